//! What was asked and what became of it, a line of JSON for each request.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gt_core::Timestamp;
use gt_records::ObjectWriter;

use crate::config::LogSink;

/// Lines that may wait for whoever writes them. More are dropped, and counted: nobody waits for a log.
const WAITING_MAX: usize = 4096;
/// Lines that are written at once.
const TOGETHER_MAX: usize = 1024;
/// How long whoever writes lets lines come together when there are many: waking it for each costs more than the line.
const COLLECT: Duration = Duration::from_millis(20);

/// What a line says. There is no query, no header and no body in it: they may hold secrets.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) at: Timestamp,
    pub(crate) request_id: &'a str,
    pub(crate) client: Option<SocketAddr>,
    pub(crate) caller: &'a str,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) time: Duration,
    /// What went wrong, for whoever runs the server.
    pub(crate) error: Option<&'a str>,
}

impl Entry<'_> {
    fn line(&self) -> String {
        let mut out = String::with_capacity(256);
        let mut object = ObjectWriter::new(&mut out);
        object.timestamp("time", self.at);
        object.text("request_id", self.request_id);
        if let Some(client) = self.client {
            object.text("client", &client.ip().to_string());
        }
        object.text_unless_empty("caller", self.caller);
        object.text("method", self.method);
        object.text("path", self.path);
        object.count("status", self.status.into());
        object.count("duration_us", u64::try_from(self.time.as_micros()).unwrap_or(u64::MAX));
        if let Some(error) = self.error {
            object.text("error", error);
        }
        object.finish();
        out.push('\n');
        out
    }
}

/// How long the last lines may take when a server ends: who does not take them is not waited for.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The way to the thread that writes. When this is dropped the last lines are written.
#[derive(Debug)]
pub(crate) struct AccessLog {
    lines: Option<SyncSender<String>>,
    /// Says nothing, and ends when the thread does.
    writer: Mutex<Receiver<()>>,
}

impl AccessLog {
    /// Starts whoever writes, if there is anything to write to.
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

    /// Writes a line, soon. False if nobody could take it.
    pub(crate) fn write(&self, entry: &Entry<'_>) -> bool {
        self.lines.as_ref().is_none_or(|sender| sender.try_send(entry.line()).is_ok())
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        drop(self.lines.take());
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = writer.recv_timeout(LAST_WAIT);
    }
}

fn write(lines: &Receiver<String>, mut sink: LogSink) {
    while let Ok(mut text) = lines.recv() {
        let mut count = 1;
        for line in lines.try_iter().take(TOGETHER_MAX - 1) {
            text.push_str(&line);
            count += 1;
        }
        sink(&text);
        if (2..TOGETHER_MAX).contains(&count) {
            std::thread::sleep(COLLECT);
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
        let entry = Entry {
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
