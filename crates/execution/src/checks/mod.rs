//! Running the checks of a rig on a commit.
//!
//! # Invariants
//!
//! - A check runs in a worktree that is exactly at the commit, beside files that git ignores.
//! - Its processes have no credentials of ours and may only read the store; none of them is left when it has ended.
//! - Only a pass that happened here is taken for a pass later, and only for the same contents, definition and setup.

mod command;
mod environment;
mod log;
mod request;
mod run;

pub use log::forget_check_logs;
pub(crate) use log::last_lines;
pub use request::{CheckedCommit, commit_to_check};
pub(crate) use run::protected_among;
pub use run::{CheckOrder, CheckReport, protected_paths, run_checks};
