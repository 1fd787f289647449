//! Beads in and out: as JSONL, and in the other forms that a new user may have.

mod beads_directory;
mod dump;
mod export;
mod external;
mod files;
mod gas_town;
mod import;
mod import_contents;
mod jsonl_file;
mod lines;
mod merged_lines;
mod rigs_and_settings;
mod summary;
mod survey;

pub use export::{ExportOptions, export, export_some};
pub use import::{ImportOptions, import};
pub use import_contents::{ImportContents, SourceKind};
pub use jsonl_file::{
    AUTOMATIC_EXPORT, EXPORT_PATH, JsonlWrite, install_merge_driver, is_automatic,
    is_changed_elsewhere, jsonl_in_own_repository, jsonl_path, merge_jsonl, sync_jsonl,
    write_jsonl,
};
pub use lines::LineFile;
pub use rigs_and_settings::{KEPT_ACCOUNTS, KEPT_PAUSE};
pub use summary::{ImportSummary, Skipped};
