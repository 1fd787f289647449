//! The transitions of a run in the store: its claim by a supervisor and its end, with everything that follows.

mod claim;
mod finish;
mod last_output;
mod limited;

pub use claim::{Claim, ClaimedRun, claim};
pub use finish::{FinishEffect, exec_failed, finish};
pub use finish::{end_run_in, finish_in, finish_with_reason_in};
pub use last_output::{SESSION_SEPARATOR, last_output, last_words_of};
pub use last_output::{log_path, open_output};
pub use limited::limited;
