//! Rules of the house, checked as tests.
//!
//! The rules themselves are in `tests/`, a file for each subject; this library holds their parts:
//! reading the workspace, and the small readers of text that decide whether a rule is kept.
//!
//! # Architecture invariants
//!
//! - Nothing depends on this crate, and no rule needs the network.
//! - A broken rule is reported with file and line and with the way to fix it, all at once.
//! - What looks for something is tested with text that contains it: a search that finds nothing
//!   would keep every rule.

pub mod manifest;
pub mod policy;
pub mod scan;
pub mod workspace;

/// Fails the test with all findings, one on each line, unless there are none.
#[track_caller]
pub fn assert_none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}\n  {}\n", findings.join("\n  "));
}
