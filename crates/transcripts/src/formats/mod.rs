//! The formats in which agents print what they do, one line for each event.

mod claude;
mod codex;
mod gemini;
mod goose;
mod opencode;

use gt_core::runtime::TranscriptFormat;
use serde_json::Value;

use crate::event::TranscriptKind;
use crate::sink::{EventSink, shorten};

/// Adds the events of one line. A line that is not whole has no end, because the output ends before it.
pub(crate) fn read_line(
    format: TranscriptFormat,
    line: &[u8],
    is_whole: bool,
    sink: &mut EventSink,
) {
    let read = match format {
        TranscriptFormat::Claude => claude::read,
        TranscriptFormat::Codex => codex::read,
        TranscriptFormat::Gemini => gemini::read,
        TranscriptFormat::Goose => goose::read,
        TranscriptFormat::Opencode => opencode::read,
        TranscriptFormat::Plain => return plain(line, sink),
    };
    match serde_json::from_slice::<Value>(line) {
        Ok(value) if value.is_object() => read(&value, sink),
        _ if !is_whole && line.starts_with(b"{") => {
            sink.begin_line(None);
            let shown = shorten(&String::from_utf8_lossy(line));
            sink.note(format!("the output ends in the middle of an event: {shown}"));
        }
        _ => plain(line, sink),
    }
}

/// A line for people: a warning before the first event, or the output of an agent without a format.
fn plain(line: &[u8], sink: &mut EventSink) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if !text.is_empty() {
        sink.begin_line(None);
        sink.add(TranscriptKind::Text(text.to_owned()));
    }
}
