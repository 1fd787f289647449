//! Failures of hooks, for a user who wonders why nothing happened.

use std::io::Write as _;
use std::path::Path;

use gt_core::{Clock as _, limits};

use gt_town::SystemClock;
use gt_town::town::DIRECTORY;

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
    let _ = gt_executors::private::options()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_kept_beside_a_new_one() {
        let town = tempfile::tempdir().unwrap();
        let directory = town.path().join(DIRECTORY);
        std::fs::create_dir(&directory).unwrap();
        append(town.path(), "first\nof\x1b all");
        let first = std::fs::read_to_string(directory.join(NAME)).unwrap();
        assert!(first.ends_with("Z first of  all\n"), "{first}");
        let long = usize::try_from(limits::HOOK_LOG_BYTES_MAX).unwrap();
        append(town.path(), &"x".repeat(long));

        append(town.path(), "last");

        let old = std::fs::read_to_string(directory.join("hooks.log.old")).unwrap();
        assert!(old.starts_with(&first));
        assert_eq!(std::fs::read_to_string(directory.join(NAME)).unwrap().lines().count(), 1);
    }
}
