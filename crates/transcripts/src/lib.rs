//! The output of agents as typed events.
//!
//! # Architecture invariants
//!
//! - Nothing here reads a file or a clock: the caller brings the bytes as they come.
//! - No input makes anything here panic, and no line takes more memory than [`LINE_BYTES_MAX`].
//! - Fields and events that are not known are left out, and a line that is no event of its format is text: an agent of a later
//!   version stays readable.

mod event;
mod formats;
mod input;
mod parser;

pub use event::{ModelUsage, ToolCall, TranscriptEvent, TranscriptKind, UsageScope};
pub use formats::TranscriptFormat;
pub use parser::{LINE_BYTES_MAX, TranscriptParser};
