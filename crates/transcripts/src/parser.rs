//! Bytes in, events out.

use crate::event::{TranscriptEvent, TranscriptKind};
use crate::formats::TranscriptFormat;

/// The most bytes of one line. The rest of a longer line is dropped, and the line is no event.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Reads the output of one agent, in pieces of any size.
#[derive(Debug)]
pub struct TranscriptParser {
    format: TranscriptFormat,
    line: Vec<u8>,
    /// Whether the line is longer than it may be.
    is_cut: bool,
}

impl TranscriptParser {
    /// A parser at the beginning of an output.
    pub fn new(format: TranscriptFormat) -> Self {
        Self { format, line: Vec::new(), is_cut: false }
    }

    /// Reads the next bytes; the events of all lines that they complete.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<TranscriptEvent> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.split_last() {
                // Most lines come whole.
                Some((b'\n', line)) if self.line.is_empty() && !self.is_cut => {
                    self.format.events_of(line, &mut events);
                }
                Some((b'\n', line)) => {
                    self.keep(line);
                    self.end_line(&mut events);
                }
                _ => self.keep(piece),
            }
        }
        events
    }

    /// The events of a last line without an end.
    pub fn finish(mut self) -> Vec<TranscriptEvent> {
        let mut events = Vec::new();
        self.end_line(&mut events);
        events
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
        self.is_cut |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self, events: &mut Vec<TranscriptEvent>) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_cut) {
            let text = format!("a line of more than {LINE_BYTES_MAX} bytes was left out");
            events.push(TranscriptEvent::new(TranscriptKind::Error(text)));
        } else {
            self.format.events_of(&line, events);
        }
    }
}
