//! The end of the output of a run in the store, for the other hosts of the town.

use std::time::{Duration, Instant};

use gt_core::limits::RUN_OUTPUT_KEPT_BYTES;
use gt_core::schedule::Run;
use gt_store::RunOutputTail;

use super::RunOutput;
use gt_scheduling::run_transitions::log_path;
use gt_town::hosts::has_lease;
use gt_town::{Result, Town};

/// How much older the output of a live run may be in the store than on its host.
const LIVE_OUTPUT_INTERVAL: Duration = Duration::from_secs(30);

/// Keeps the end of the output of a live run in the store for as long as it grows.
#[derive(Debug, Default)]
pub(super) struct LiveOutput {
    /// The length of the output that was kept last, and the moment.
    kept: Option<(u64, Instant)>,
}

impl LiveOutput {
    /// Keeps the output if it has changed, and was not kept a short while ago.
    pub(super) fn keep_if_changed(&mut self, town: &Town, run: &Run) {
        let bytes = std::fs::metadata(log_path(town, &run.id)).map_or(0, |about| about.len());
        let is_due = match self.kept {
            None => bytes > 0,
            Some((before, at)) => bytes != before && at.elapsed() >= LIVE_OUTPUT_INTERVAL,
        };
        // A failure costs only the view from elsewhere, and is tried again.
        if is_due && try_to_keep(town, run).is_ok() {
            self.kept = Some((bytes, Instant::now()));
        }
    }
}

/// Keeps the end of the output of a run of this host, when its processes have ended. A town on a file has no other host.
/// The whole output stays here, so a failure costs only the view from elsewhere.
pub(super) fn keep_output(town: &Town, run: &Run) {
    if has_lease(town) {
        let _ = try_to_keep(town, run);
    }
}

fn try_to_keep(town: &Town, run: &Run) -> Result<()> {
    let mut output = RunOutput::of(town, run)?;
    let Ok(about) = std::fs::metadata(output.path()) else { return Ok(()) };
    // Masked, as every output that is shown.
    output.skip_to_last_bytes(RUN_OUTPUT_KEPT_BYTES)?;
    let tail = whole_lines(output.read_to_end()?, about.len());
    let kept = RunOutputTail { bytes: about.len(), tail };
    town.as_system().write(|writer| Ok(writer.keep_run_output(&run.id, &kept)?))
}

/// The end of an output of so many bytes without the line that was cut: a parser of events would stumble over it.
fn whole_lines(tail: Vec<u8>, bytes: u64) -> Vec<u8> {
    if bytes <= RUN_OUTPUT_KEPT_BYTES {
        return tail;
    }
    match tail.iter().position(|byte| *byte == b'\n') {
        Some(end) => tail[end + 1..].to_vec(),
        None => tail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_output_begins_with_a_whole_line() {
        let cut = RUN_OUTPUT_KEPT_BYTES + 1;
        for (tail, bytes, expected) in [
            ("ab\ncd", 5, "ab\ncd"),
            ("ab\ncd", cut, "cd"),
            ("abcd", cut, "abcd"),
            ("ab\n", cut, ""),
        ] {
            let kept = whole_lines(tail.as_bytes().to_vec(), bytes);
            assert_eq!(kept, expected.as_bytes(), "{tail:?} of {bytes}");
        }
    }
}
