//! What went wrong with hooks, for whoever wonders why nothing happened.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use gt_core::{Clock as _, limits};

use crate::SystemClock;
use crate::town::DIRECTORY;

/// The file inside the town's own directory.
const NAME: &str = "hooks.log";

/// Adds a line. A log that cannot be written must not stop the work it is about.
pub(super) fn append(root: &Path, message: &str) {
    let path = root.join(DIRECTORY).join(NAME);
    if path.metadata().is_ok_and(|metadata| metadata.len() > limits::HOOK_LOG_BYTES_MAX) {
        let _ = std::fs::rename(&path, path.with_extension("log.old"));
    }
    let message: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = format!("{} {message}\n", SystemClock.now());
    // One write, so that the lines of helpers that run side by side stay whole.
    let _ = File::options()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
}
