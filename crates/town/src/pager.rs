//! Long texts for a person at a terminal.

use gt_executors::pager::{pager_or_usual, show_in_pager};

/// Shows a text in the pager that was named, else in the usual one. `false` if there is none, or it did not work.
pub fn show(named: Option<&str>, text: &[u8]) -> bool {
    pager_or_usual(named).is_some_and(|pager| show_in_pager(pager, text).is_ok())
}
