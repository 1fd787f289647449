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

/// How many characters a bar has.
const BLOCKS: u64 = 10;

/// A bar with its numbers: `████░░░░░░ 4/10`. Parts that failed are crosses.
pub(crate) fn progress_blocks(done: u64, failed: u64, total: u64) -> String {
    // Some of a thing is never drawn as none or as all of it.
    let share = |part: u64| match part {
        0 => 0,
        part if part >= total => BLOCKS,
        part => (part * BLOCKS / total).clamp(1, BLOCKS - 1),
    };
    let done_blocks = share(done);
    let failed_blocks = share(failed).min(BLOCKS - done_blocks);
    let bar: String = (0..BLOCKS)
        .map(|at| match at {
            at if at < done_blocks => '█',
            at if at < done_blocks + failed_blocks => '✗',
            _ => '░',
        })
        .collect();
    format!("{bar} {done}/{total}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_only_when_all_is_done() {
        for (done, failed, total, expected) in [
            (0, 0, 0, "░░░░░░░░░░ 0/0"),
            (0, 0, 7, "░░░░░░░░░░ 0/7"),
            (1, 0, 100, "█░░░░░░░░░ 1/100"),
            (99, 0, 100, "█████████░ 99/100"),
            (99, 1, 100, "█████████✗ 99/100"),
            (5, 2, 10, "█████✗✗░░░ 5/10"),
            (3, 0, 3, "██████████ 3/3"),
        ] {
            assert_eq!(progress_blocks(done, failed, total), expected);
        }
    }
}
