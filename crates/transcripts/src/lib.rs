//! The output of agents as typed events.
//!
//! # Architecture invariants
//!
//! - Nothing here reads a file or a clock: the caller brings the bytes as they come.
//! - No input makes anything here panic, and no line takes more memory than [`LINE_BYTES_MAX`].
//! - Fields that are not known are ignored, and a line that is no event of its format is text: an agent of a later version
//!   stays readable.
//! - What cannot be read is told by a [`TranscriptKind::Note`].

mod codex_session;
mod event;
mod formats;
mod input;
mod last_words;
mod parser;
mod refusal;
mod sink;

pub use codex_session::CodexSession;
pub use event::{ModelUsage, ToolUse, TranscriptEvent, TranscriptKind, UsageScope};
pub use last_words::last_words;
pub use parser::{LINE_BYTES_MAX, TranscriptParser};
pub use refusal::{ServiceWords, ToldLimit, service_words};
