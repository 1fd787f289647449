//! Beads in and out: as JSONL, and in the other forms that a new user may have.

mod arrival;
mod beads_directory;
mod dump;
mod export;
mod external;
mod files;
mod furnish;
mod gas_town;
mod import;
mod lines;
mod summary;
mod survey;

pub use arrival::{Arrival, SourceKind};
pub use export::export;
pub use furnish::{KEPT_ACCOUNTS, KEPT_PAUSE, kept};
pub use import::{ImportOptions, import};
pub use lines::Source;
pub use summary::{ImportSummary, Skipped};
