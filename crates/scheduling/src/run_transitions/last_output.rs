//! The end of a run's output.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use gt_core::runtime::TranscriptFormat;
use gt_core::schedule::{Run, RunEnd, RunId, RunState};
use gt_core::secret_mask::SecretMask;
use gt_executors::runs::RunFiles;

use crate::runtimes::{transcript_format, words_in};
use gt_town::Town;

/// The beginning of every line between two sessions in the log of a run.
pub const SESSION_SEPARATOR: &str = "--- gt: session ";

/// How much of the end of an output is read.
const LAST_BYTES: u64 = 16 * 1024;

/// How much of the end of an output with events is read: one answer of a tool can be long.
const LAST_EVENT_BYTES: u64 = 256 * 1024;

/// The end of the output of a run's last session; empty if it cannot be read.
pub fn last_output(town: &Town, run: &RunId) -> String {
    end_of_output(town, run, LAST_BYTES)
}

fn end_of_output(town: &Town, run: &RunId, bytes_max: u64) -> String {
    // It ends up in reasons and notices. Without the accounts it is not known what to leave out.
    let Ok(accounts) = town.read(|reader| Ok(reader.accounts_to_mask()?)) else {
        return String::new();
    };
    let mask = SecretMask::of_accounts(&accounts);
    let read = || -> std::io::Result<String> {
        let mut log = open_output(&log_path(town, run))?;
        let length = log.metadata()?.len();
        // A key that begins before the end is masked as well.
        let begins = length.saturating_sub(bytes_max.saturating_add(mask.longest() as u64));
        log.seek(SeekFrom::Start(begins))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        let text = if begins > 0 {
            mask.mask_end(&bytes)
        } else {
            mask.mask(&String::from_utf8_lossy(&bytes)).into_owned()
        };
        let last = text.rfind(SESSION_SEPARATOR).map_or(text.as_str(), |begins| &text[begins..]);
        Ok(last.to_owned())
    };
    read().unwrap_or_default()
}

/// Opens the output of a run. An agent can put a pipe in its place, which would be waited for without end.
pub fn open_output(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    File::open(path)
}

/// The last words of the worker of a run, on one line: its last message or error, or the last line of an output that is
/// plain text. None if its last session has said nothing.
pub fn last_words_of(town: &Town, run: &Run) -> Option<String> {
    let format = transcript_format(town, &run.runtime);
    let bytes_max = if format == TranscriptFormat::Plain { LAST_BYTES } else { LAST_EVENT_BYTES };
    let words = words_in(format, &end_of_output(town, &run.id, bytes_max));
    words.filter(|line| !line.starts_with(SESSION_SEPARATOR))
}

/// The end of a run that failed or was lost, with the last words of its worker in the reason.
pub(super) fn with_last_words(town: &Town, run: &RunId, end: &RunEnd) -> RunEnd {
    if !matches!(end.state, RunState::Failed | RunState::Lost) {
        return end.clone();
    }
    // Without them the reason is still right.
    let run = town.read(|reader| Ok(reader.run(run)?)).ok().flatten();
    let words = run.and_then(|run| last_words_of(town, &run));
    match words.filter(|words| !end.reason.contains(words.as_str())) {
        Some(words) => {
            RunEnd { reason: format!("{}; last output: {words}", end.reason), ..end.clone() }
        }
        None => end.clone(),
    }
}

/// Where the output of a run is kept.
pub fn log_path(town: &Town, run: &RunId) -> PathBuf {
    RunFiles::of(&town.runs_directory(), &run.to_string()).output_path()
}
