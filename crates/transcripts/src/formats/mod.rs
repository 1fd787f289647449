//! The formats in which agents print what they do, one line for each event.

mod claude;
mod codex;
mod gemini;
mod goose;
mod opencode;

use gt_core::json::without_broken_escapes;
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
    match event_in(line) {
        Some(event) => read(&event, sink),
        _ if !is_whole && line.starts_with(b"{") => {
            sink.begin_line(None);
            let shown = shorten(&String::from_utf8_lossy(line));
            sink.note(format!("the output ends in the middle of an event: {shown}"));
        }
        _ => {
            if let Some(problem) = problem_of_event(line) {
                sink.begin_line(None);
                sink.note(format!(
                    "an event cannot be read, so its usage does not count: {problem}"
                ));
            }
            plain(line, sink);
        }
    }
}

/// Why a line that looks like an event is none, such as a number that no program can hold.
fn problem_of_event(line: &[u8]) -> Option<String> {
    let line = line.trim_ascii();
    let is_event = line.starts_with(b"{\"type\":") && line.ends_with(b"}");
    is_event
        .then(|| serde_json::from_slice::<Value>(line).err())
        .flatten()
        .map(|error| error.to_string())
}

/// The event of a line. An agent that cuts a text may leave half of a character at its end, or bytes that are no text; the
/// rest of the event counts.
fn event_in(line: &[u8]) -> Option<Value> {
    let event = serde_json::from_slice::<Value>(line).ok().or_else(|| {
        let is_event = line.trim_ascii().starts_with(b"{") && line.trim_ascii().ends_with(b"}");
        let text = is_event.then(|| String::from_utf8_lossy(line))?;
        serde_json::from_str(&without_broken_escapes(&text)).ok()
    });
    event.filter(Value::is_object)
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
