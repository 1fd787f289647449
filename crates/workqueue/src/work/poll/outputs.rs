//! The output files of commands: kept for a while, as the rest of the history is.

use std::fs::{DirEntry, read_dir, remove_file};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use gt_core::{Timestamp, Uid};

use super::Polling;

/// How often old files are looked for.
const CLEANUP_INTERVAL: Duration = Duration::from_hours(24);

/// The output files of a poller.
pub(super) struct Outputs<'a> {
    directory: &'a Path,
    keep: Option<Duration>,
    looked_at: Option<Timestamp>,
}

impl<'a> Outputs<'a> {
    pub(super) fn of(polling: &'a Polling) -> Self {
        Self { directory: &polling.output, keep: polling.keep, looked_at: None }
    }

    /// Removes old files, at most once a day. A file that cannot be removed now is removed another day: no work waits
    /// for it.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        let Some(keep) = self.keep else { return };
        if self.looked_at.is_some_and(|at| now.since(at) < CLEANUP_INTERVAL) {
            return;
        }
        self.looked_at = Some(now);
        let oldest = now.minus(keep);
        for entry in read_dir(self.directory).into_iter().flatten().flatten() {
            if is_ours(&entry) && written_at(&entry).is_some_and(|at| at < oldest) {
                let _ = remove_file(entry.path());
            }
        }
    }
}

/// Whether a file has the name of such an output: a bead and the alias of its run.
fn is_ours(entry: &DirEntry) -> bool {
    /// How long an alias is as text.
    const ALIAS: usize = 36;
    let name = entry.file_name();
    let name = name.to_str().and_then(|name| name.strip_suffix(".log")).unwrap_or_default();
    let alias = name.len().checked_sub(ALIAS).and_then(|at| name.split_at_checked(at));
    alias.is_some_and(|(bead, run)| bead.ends_with('-') && Uid::parse(run).is_some())
}

/// When a regular file was last written to.
fn written_at(entry: &DirEntry) -> Option<Timestamp> {
    let about = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let age = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(age.as_nanos()).ok().map(Timestamp::from_nanos)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const RUN: &str = "0191b0a4-0000-7000-8000-000000000001";
    const DAY: Duration = Duration::from_hours(24);

    fn outputs(directory: &Path, keep: Option<Duration>) -> Outputs<'_> {
        Outputs { directory, keep, looked_at: None }
    }

    #[test]
    fn only_old_output_files_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (written, now) = (UNIX_EPOCH + DAY, Timestamp::from_nanos(0).plus(DAY * 100));
        let old = ["notes.log".to_owned(), format!("{RUN}.log"), format!("wq-1-{RUN}.log")];
        for name in &old {
            File::create(directory.path().join(name)).unwrap().set_modified(written).unwrap();
        }
        let young = File::create(directory.path().join(format!("wq-2-{RUN}.log"))).unwrap();
        young.set_modified(UNIX_EPOCH + DAY * 99).unwrap();
        let left = || {
            let mut names: Vec<String> = read_dir(directory.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };

        outputs(directory.path(), None).tidy(now);
        assert_eq!(left().len(), 4);
        outputs(directory.path(), Some(DAY * 90)).tidy(now);
        assert_eq!(
            left(),
            [format!("{RUN}.log"), "notes.log".to_owned(), format!("wq-2-{RUN}.log")]
        );
    }

    #[test]
    fn old_files_are_looked_for_once_a_day() {
        let directory = tempfile::tempdir().unwrap();
        let mut outputs = outputs(directory.path(), Some(DAY));
        let begin = Timestamp::from_nanos(0).plus(DAY * 10);
        outputs.tidy(begin);
        outputs.tidy(begin.plus(DAY / 2));
        assert_eq!(outputs.looked_at, Some(begin));
        outputs.tidy(begin.plus(DAY));
        assert_eq!(outputs.looked_at, Some(begin.plus(DAY)));
    }
}
