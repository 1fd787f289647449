//! Whether the service refuses an agent because a limit is reached.

use std::time::Duration;

use gt_core::Timestamp;
use gt_core::runtime::TranscriptFormat;

use crate::event::TranscriptKind;
use crate::last_words::whole_lines;
use crate::parser::TranscriptParser;

/// The words of the service, or of the program of the agent itself, at the end of an output. The words of the agent, and what its tools
/// print, is not in it: a test that prints the words of a limit is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceWords {
    /// The limit that an event tells of.
    pub limit: Option<ToldLimit>,
    /// The words.
    pub text: String,
}

/// A limit as an event tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToldLimit {
    /// When it is over, if the service says so.
    pub until: Option<Timestamp>,
    /// How long such a limit lasts at most, if that is known.
    pub window: Option<Duration>,
    /// The words of the service.
    pub text: String,
}

/// The words of the service at the end of an output, which may begin in the middle of a line. An agent that calls a tool goes on,
/// so nothing before the last call counts. A plain output is returned as it is.
pub fn service_words(format: TranscriptFormat, end_of_output: &str) -> ServiceWords {
    if format == TranscriptFormat::Plain {
        return ServiceWords { limit: None, text: end_of_output.to_owned() };
    }
    let mut found = ServiceWords::default();
    for line in whole_lines(end_of_output).lines() {
        if line.starts_with('{') {
            let mut parser = TranscriptParser::new(format);
            let mut events = parser.read(line.as_bytes());
            events.extend(parser.finish());
            for event in events {
                found.note(event.kind);
            }
        } else {
            found.add_line(line);
        }
    }
    found
}

impl ServiceWords {
    fn note(&mut self, event: TranscriptKind) {
        match event {
            TranscriptKind::ToolCall(_) => *self = Self::default(),
            TranscriptKind::Limit { until, window, text } => {
                self.add_line(&text);
                // The same refusal is told several times, and not each time with its end.
                if until.is_some() || self.limit.is_none() {
                    self.limit = Some(ToldLimit { until, window, text });
                }
            }
            TranscriptKind::Error(text) | TranscriptKind::Result { is_error: true, text } => {
                self.add_line(&text);
            }
            TranscriptKind::Prompt(_)
            | TranscriptKind::Text(_)
            | TranscriptKind::Thinking(_)
            | TranscriptKind::ToolResult { .. }
            | TranscriptKind::Usage(_)
            | TranscriptKind::Window(_)
            | TranscriptKind::Session(_)
            | TranscriptKind::Result { is_error: false, .. }
            | TranscriptKind::Note(_) => {}
        }
    }

    fn add_line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }
}
