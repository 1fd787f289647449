//! What was asked and what became of it, a line of JSON for each request.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use gt_core::Timestamp;
use gt_records::ObjectWriter;

use crate::config::LogSink;

/// Lines that may wait for whoever writes them. More are dropped, and counted: nobody waits for a log.
const WAITING_MAX: usize = 4096;
/// Lines that are written at once.
const TOGETHER_MAX: usize = 256;

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

/// The way to the thread that writes.
#[derive(Debug)]
pub(crate) struct AccessLog(Option<SyncSender<String>>);

impl AccessLog {
    /// Starts whoever writes, if there is anything to write to.
    pub(crate) fn start(sink: Option<LogSink>) -> std::io::Result<Self> {
        let Some(sink) = sink else { return Ok(Self(None)) };
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let name = "gt-serve-log".to_owned();
        std::thread::Builder::new().name(name).spawn(move || write(&receiver, sink))?;
        Ok(Self(Some(sender)))
    }

    /// Writes a line, soon. False if nobody could take it.
    pub(crate) fn write(&self, entry: &Entry<'_>) -> bool {
        self.0.as_ref().is_none_or(|sender| sender.try_send(entry.line()).is_ok())
    }
}

fn write(lines: &Receiver<String>, mut sink: LogSink) {
    while let Ok(mut text) = lines.recv() {
        lines.try_iter().take(TOGETHER_MAX).for_each(|line| text.push_str(&line));
        sink(&text);
    }
}
