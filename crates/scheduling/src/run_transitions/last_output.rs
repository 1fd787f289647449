//! The end of a run's output.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use gt_core::runtime::last_line;
use gt_core::schedule::{RunEnd, RunId, RunState};
use gt_executors::runs::RunFiles;

use gt_town::Town;

/// The beginning of every line between two sessions in the log of a run.
pub const SESSION_SEPARATOR: &str = "--- gt: session ";

/// How much of the end of an output is read.
const LAST_BYTES: u64 = 16 * 1024;

/// The end of the output of a run's last session; empty if it cannot be read.
pub fn last_output(town: &Town, run: &RunId) -> String {
    let read = || -> std::io::Result<String> {
        let mut log = File::open(log_path(town, run))?;
        let length = log.metadata()?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let last = text.rfind(SESSION_SEPARATOR).map_or(text.as_ref(), |begins| &text[begins..]);
        Ok(last.to_owned())
    };
    read().unwrap_or_default()
}

/// The end of a run that failed or was lost, with the last line that its worker printed in the reason.
pub(super) fn with_last_line(town: &Town, run: &RunId, end: &RunEnd) -> RunEnd {
    let is_failure = matches!(end.state, RunState::Failed | RunState::Lost);
    let line = is_failure.then(|| last_output(town, run)).and_then(|output| last_line(&output));
    let line = line
        .filter(|line| !line.starts_with(SESSION_SEPARATOR) && !end.reason.contains(line.as_str()));
    match line {
        Some(line) => {
            RunEnd { reason: format!("{}; last output: {line}", end.reason), ..end.clone() }
        }
        None => end.clone(),
    }
}

/// Where the output of a run is kept.
pub fn log_path(town: &Town, run: &RunId) -> PathBuf {
    RunFiles::of(&town.runs_directory(), &run.to_string()).output_path()
}
