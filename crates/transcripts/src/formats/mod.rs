//! The formats in which agents print what they do, one line for each event.

mod claude;
mod codex;
mod gemini;
mod opencode;

use serde_json::Value;

use crate::event::{TranscriptEvent, TranscriptKind};

/// The format of an agent's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TranscriptFormat {
    /// `--output-format stream-json` of Claude Code and Qwen Code.
    Claude,
    /// `exec --json` of Codex.
    Codex,
    /// `--output-format stream-json` of Gemini CLI.
    Gemini,
    /// `run --format json` of opencode.
    Opencode,
    /// Text for people.
    #[default]
    Plain,
}

impl TranscriptFormat {
    /// Adds the events of one line.
    pub(crate) fn events_of(self, line: &[u8], events: &mut Vec<TranscriptEvent>) {
        let read = match self {
            Self::Claude => claude::read,
            Self::Codex => codex::read,
            Self::Gemini => gemini::read,
            Self::Opencode => opencode::read,
            Self::Plain => return plain(line, events),
        };
        match serde_json::from_slice::<Value>(line) {
            Ok(value) if value.is_object() => read(&value, events),
            _ => plain(line, events),
        }
    }
}

/// A line for people: a warning before the first event, or the output of an agent without a format.
fn plain(line: &[u8], events: &mut Vec<TranscriptEvent>) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if !text.is_empty() {
        events.push(TranscriptEvent::new(TranscriptKind::Text(text.to_owned())));
    }
}
