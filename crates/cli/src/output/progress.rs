//! Progress bars of long commands.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, if that is a terminal.
pub(crate) fn progress_bar(doing: &'static str, total: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total).with_message(doing);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent}%") {
        bar.set_style(style);
    }
    bar
}
