//! The file that says when this host last renewed its lease, for every process of the host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::host::boot_identity;

/// How long ago the machine was started, its sleep included.
pub fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

/// The file with the last renewal: the boot of the machine, when the renewal was sent since then, and the grace that it
/// declared. A renewal before the last boot does not count: no process is left of that time.
#[derive(Debug, Clone)]
pub struct LeaseFile {
    path: PathBuf,
}

/// The threads of one process take turns.
static WRITER: Mutex<()> = Mutex::new(());

impl LeaseFile {
    /// The file at this path.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Records a renewal that was sent so long after the boot and has arrived, unless a later one is recorded.
    pub fn record(&self, sent: Duration, grace: Duration) -> io::Result<()> {
        let _turn = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
        if self.read().is_some_and(|(last, before)| last >= sent && before == grace) {
            return Ok(());
        }
        let boot = boot_identity().unwrap_or_else(|| "-".to_owned());
        let text = format!("{boot} {} {}\n", sent.as_nanos(), grace.as_nanos());
        // Processes write beside each other, and each file is whole.
        let mut beside = self.path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        crate::private::write(Path::new(&beside), text)?;
        fs::rename(&beside, &self.path)
    }

    /// When the last renewal was sent, since the boot, and the grace that it declared; nothing if there was none since then.
    pub fn read(&self) -> Option<(Duration, Duration)> {
        let text = fs::read_to_string(&self.path).ok()?;
        let boot = boot_identity().unwrap_or_else(|| "-".to_owned());
        parse(&text, &boot)
    }
}

fn parse(text: &str, boot: &str) -> Option<(Duration, Duration)> {
    let words: Vec<&str> = text.strip_suffix('\n')?.split(' ').collect();
    let [of_boot, sent, grace] = words.as_slice() else { return None };
    let nanos = |word: &str| word.parse().ok().map(Duration::from_nanos);
    if *of_boot == boot { nanos(sent).zip(nanos(grace)) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_last_renewal_of_this_boot_counts() {
        let town = tempfile::tempdir().unwrap();
        let file = LeaseFile::at(town.path().join("lease"));
        assert_eq!(file.read(), None);
        file.record(SECOND * 7, SECOND * 60).unwrap();
        assert_eq!(file.read(), Some((SECOND * 7, SECOND * 60)));
        // A slow process reports an earlier one.
        file.record(SECOND * 5, SECOND * 60).unwrap();
        assert_eq!(file.read(), Some((SECOND * 7, SECOND * 60)));
        file.record(SECOND * 9, SECOND * 30).unwrap();
        assert_eq!(file.read(), Some((SECOND * 9, SECOND * 30)));
        assert_eq!(std::fs::read_dir(town.path()).unwrap().count(), 1);

        assert_eq!(parse("b 1 2\n", "b"), Some((Duration::from_nanos(1), Duration::from_nanos(2))));
        for text in ["", "b 1 2", "a 1 2\n", "b 1\n", "b x 2\n", "b -1 2\n", "b 1 2 3\n"] {
            assert_eq!(parse(text, "b"), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(text in "[a-z0-9 -]{0,60}\n?|.*") {
            let _ = parse(&text, "b");
        }
    }
}
