//! Bytes in, events out.

use gt_core::runtime::TranscriptFormat;

use crate::event::TranscriptEvent;
use crate::formats::read_line;
use crate::sink::EventSink;

/// The most bytes of one line. A longer line is left out.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Reads the output of one agent, in pieces of any size.
#[derive(Debug)]
pub struct TranscriptParser {
    format: TranscriptFormat,
    line: Vec<u8>,
    /// Whether the line is longer than it may be.
    is_too_long: bool,
    sink: EventSink,
}

impl TranscriptParser {
    /// A parser at the beginning of an output.
    pub fn new(format: TranscriptFormat) -> Self {
        Self { format, line: Vec::new(), is_too_long: false, sink: EventSink::default() }
    }

    /// Reads the next bytes; the events of all lines that they complete.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<TranscriptEvent> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.split_last() {
                // Most lines come whole.
                Some((b'\n', line)) if self.line.is_empty() && !self.is_too_long => {
                    read_line(self.format, line, true, &mut self.sink);
                }
                Some((b'\n', line)) => {
                    self.keep(line);
                    self.end_line(true);
                }
                _ => self.keep(piece),
            }
        }
        self.sink.take()
    }

    /// The events of a last line without an end.
    pub fn finish(mut self) -> Vec<TranscriptEvent> {
        self.end_line(false);
        self.sink.finish()
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
        self.is_too_long |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self, is_whole: bool) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            let megabytes = LINE_BYTES_MAX / (1024 * 1024);
            self.sink.begin_line(None);
            self.sink.note(format!("a line of more than {megabytes} MB is left out"));
        } else {
            read_line(self.format, &line, is_whole, &mut self.sink);
        }
    }
}
