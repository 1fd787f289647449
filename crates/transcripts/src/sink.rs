//! Where the readers of formats put their events.

use std::collections::BTreeSet;

use gt_core::Timestamp;
use gt_core::schedule::Money;
use serde_json::Value;

use crate::event::{TranscriptEvent, TranscriptKind};
use crate::input::money;

/// The most tokens that one report may name. A number above is a mistake of the agent, and counts as nothing.
const TOKENS_MAX: u64 = 10_000_000_000;
/// How many types of events that are not known are told, each once.
const UNKNOWN_TYPES_MAX: usize = 16;
/// How many characters of a value that cannot be used are shown.
const SHOWN_CHARACTERS_MAX: usize = 60;
/// The most bytes of a message that comes in pieces; a longer one becomes several.
const JOINED_BYTES_MAX: usize = 64 * 1024;

/// Collects the events of an output, and what has been told about it.
#[derive(Debug, Default)]
pub(crate) struct EventSink {
    events: Vec<TranscriptEvent>,
    /// The time of the line that is read.
    at: Option<Timestamp>,
    /// A message whose next piece may follow.
    begun: Option<TranscriptEvent>,
    unknown_types: BTreeSet<String>,
}

impl EventSink {
    /// Begins a line of this time.
    pub(crate) fn begin_line(&mut self, at: Option<Timestamp>) {
        self.at = at;
    }

    /// Adds an event of the line.
    pub(crate) fn add(&mut self, kind: TranscriptKind) {
        self.end_message();
        self.events.push(TranscriptEvent { at: self.at, kind });
    }

    /// Adds a piece of a message. The message is an event once something else follows.
    pub(crate) fn add_piece(&mut self, piece: &str) {
        if let Some(TranscriptEvent { kind: TranscriptKind::Text(text), .. }) = &mut self.begun
            && text.len() + piece.len() <= JOINED_BYTES_MAX
        {
            text.push_str(piece);
            return;
        }
        self.end_message();
        let kind = TranscriptKind::Text(piece.to_owned());
        self.begun = Some(TranscriptEvent { at: self.at, kind });
    }

    /// Tells what could not be read.
    pub(crate) fn note(&mut self, text: String) {
        self.add(TranscriptKind::Note(text));
    }

    /// Tells of a type of events that is not known, once.
    pub(crate) fn unknown_type(&mut self, of: &str, name: &str) {
        let shown = shorten(&format!("{of} \"{}\"", name.escape_debug()));
        if self.unknown_types.len() < UNKNOWN_TYPES_MAX && !self.unknown_types.contains(&shown) {
            self.note(format!("{shown} is not known; all of them are left out"));
            self.unknown_types.insert(shown);
        }
    }

    /// The number of tokens at a key, also if it is written as text; 0 if there is none. A number that cannot be one of
    /// tokens counts as 0, and is told.
    pub(crate) fn tokens(&mut self, value: &Value, key: &str) -> u64 {
        let found = match value.get(key) {
            None | Some(Value::Null) => return 0,
            Some(found) => found,
        };
        let number = match found {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.filter(|number| *number <= TOKENS_MAX).unwrap_or_else(|| {
            let shown = shorten(&found.to_string());
            self.note(format!("{key} is {shown}, which is no number of tokens; it counts as 0"));
            0
        })
    }

    /// The amount at a key, if there is one. A number that cannot be an amount counts as none, and is told.
    pub(crate) fn money(&mut self, value: &Value, key: &str) -> Option<Money> {
        let found = value.get(key).filter(|found| !found.is_null())?;
        let amount = money(found);
        if amount.is_none() {
            let shown = shorten(&found.to_string());
            self.note(format!("{key} is {shown}, which is no amount; it is left out"));
        }
        amount
    }

    /// The events so far.
    pub(crate) fn take(&mut self) -> Vec<TranscriptEvent> {
        std::mem::take(&mut self.events)
    }

    /// The events at the end of the output.
    pub(crate) fn finish(mut self) -> Vec<TranscriptEvent> {
        self.end_message();
        self.events
    }

    fn end_message(&mut self) {
        self.events.extend(self.begun.take());
    }
}

/// A text that is short enough for a note.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
