//! The access log: a line of JSON for each request and its answer.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gt_api::{AccessLogDocument, to_json};
use gt_core::Timestamp;

use crate::config::LogSink;

/// Lines that may wait for the writer thread. More are dropped, and counted: no request waits for a log.
const WAITING_MAX: usize = 4096;
/// Lines that are written at once.
const BATCH_LINES_MAX: usize = 1024;
/// How long the writer lets lines come together when there are many: waking it for each costs more than the line.
const BATCH_WAIT: Duration = Duration::from_millis(20);

/// The contents of a line. There is no query, no header and no body in it: they may hold secrets.
#[derive(Debug)]
pub(crate) struct AccessLogEntry<'a> {
    pub(crate) at: Timestamp,
    pub(crate) request_id: &'a str,
    pub(crate) client: Option<SocketAddr>,
    pub(crate) caller: &'a str,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) time: Duration,
    /// The cause of a failure, for the operator of the server.
    pub(crate) error: Option<&'a str>,
}

impl AccessLogEntry<'_> {
    fn line(&self) -> String {
        let document = AccessLogDocument {
            time: self.at.into(),
            request_id: self.request_id,
            client: self.client.map(|client| client.ip().to_string()),
            caller: self.caller,
            method: self.method,
            path: self.path,
            status: self.status,
            duration_us: u64::try_from(self.time.as_micros()).unwrap_or(u64::MAX),
            error: self.error,
        };
        let mut out = to_json(&document);
        out.push('\n');
        out
    }
}

/// How long the last lines may take when a server ends: a sink that does not take them is not waited for.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(1);

/// The way to the thread that writes. When this is dropped the last lines are written.
#[derive(Debug)]
pub(crate) struct AccessLog {
    lines: Option<SyncSender<String>>,
    /// Says nothing, and ends when the thread does.
    writer: Mutex<Receiver<()>>,
}

impl AccessLog {
    /// Starts the writer thread, if there is anything to write to.
    pub(crate) fn start(sink: Option<LogSink>) -> std::io::Result<Self> {
        let (alive, writer) = sync_channel(0);
        let writer = Mutex::new(writer);
        let Some(sink) = sink else { return Ok(Self { lines: None, writer }) };
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let name = "gt-serve-log".to_owned();
        std::thread::Builder::new().name(name).spawn(move || {
            write(&receiver, sink);
            drop(alive);
        })?;
        Ok(Self { lines: Some(sender), writer })
    }

    /// Writes a line, soon. False if the writer could not take it.
    pub(crate) fn write(&self, entry: &AccessLogEntry<'_>) -> bool {
        self.lines.as_ref().is_none_or(|sender| sender.try_send(entry.line()).is_ok())
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        drop(self.lines.take());
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = writer.recv_timeout(SHUTDOWN_WAIT);
    }
}

fn write(lines: &Receiver<String>, mut sink: LogSink) {
    while let Ok(mut text) = lines.recv() {
        let mut count = 1;
        for line in lines.try_iter().take(BATCH_LINES_MAX - 1) {
            text.push_str(&line);
            count += 1;
        }
        sink(&text);
        if (2..BATCH_LINES_MAX).contains(&count) {
            std::thread::sleep(BATCH_WAIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_line_is_written_before_a_log_ends() {
        let written = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&written);
        let sink: LogSink = Box::new(move |lines| sink.lock().unwrap().push_str(lines));
        let log = AccessLog::start(Some(sink)).unwrap();
        let entry = AccessLogEntry {
            at: Timestamp::from_nanos(0),
            request_id: "one",
            client: None,
            caller: "",
            method: "GET",
            path: "/work",
            status: 200,
            time: Duration::ZERO,
            error: None,
        };
        assert!((0..100).all(|_| log.write(&entry)));
        drop(log);
        assert_eq!(written.lock().unwrap().lines().count(), 100);
    }
}
