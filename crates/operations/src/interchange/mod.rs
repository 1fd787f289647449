//! Beads in and out, as JSONL.

mod export;
mod import;
mod lines;

pub use export::export;
pub use import::{ImportOptions, ImportSummary, Skipped, import};
pub use lines::Source;
