//! The turn to push to an origin, and the pushes that outlive the process that had it.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use super::error::GitError;
use super::fence::time_awake;
use super::networking::PUSH_TIME_MAX;
use super::repository::Repository;
use crate::runs::boot_identity;

/// The locks beside the repository: of landings, and of a push to the target of a landing.
const LANDING: &str = "landing";
const PUSHING: &str = "pushing";

/// How often a push of a process that is gone is looked at.
const PUSH_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The turn to bring something to the origin: see [`Repository::turn`].
#[derive(Debug)]
pub struct OriginTurn {
    _lock: File,
}

impl Repository {
    /// Waits for the turn to push to the origin. Landings on one machine are made one after the
    /// other: if all of them rebased at once, only the first could push, and the others would begin
    /// again. A push that outlives its process is waited for, so that the origin's answer is final.
    pub fn turn(&self) -> Result<OriginTurn, GitError> {
        let turn = OriginTurn { _lock: self.lock(LANDING)? };
        while self.is_push_under_way()? {
            std::thread::sleep(PUSH_POLL_INTERVAL);
        }
        Ok(turn)
    }

    /// The same, if the lock is free.
    pub fn turn_if_free(&self) -> Result<Option<OriginTurn>, GitError> {
        let (file, path) = self.lock_file(LANDING)?;
        if !try_lock(&file, &path)? || self.is_push_under_way()? {
            return Ok(None);
        }
        Ok(Some(OriginTurn { _lock: file }))
    }

    /// The lock that a push to the target of a landing holds until git has ended. The caller has the turn.
    pub(super) fn lock_push(&self) -> Result<File, GitError> {
        let (mut file, path) = self.lock_file(PUSHING)?;
        // An earlier push may hold it that is over its time.
        let _ = try_lock(&file, &path)?;
        let began = PushStart::now().line();
        let written = file.set_len(0).and_then(|()| file.write_all(began.as_bytes()));
        written.map_err(GitError::file("write", &path))?;
        Ok(file)
    }

    /// Whether git pushes to the target for a process that is gone. The caller has the turn, so no other process of ours
    /// does. One that hangs longer than any push may take does not count.
    fn is_push_under_way(&self) -> Result<bool, GitError> {
        let (mut file, path) = self.lock_file(PUSHING)?;
        if try_lock(&file, &path)? {
            return Ok(false);
        }
        let mut line = String::new();
        file.read_to_string(&mut line).map_err(GitError::file("read", &path))?;
        // A push that has only begun has written nothing yet.
        Ok(PushStart::parse(&line).is_none_or(|began| !began.is_over_its_time()))
    }
}

/// When a push began, by the time that the machine has been awake: its wall clock may be set at any time.
#[derive(Debug, PartialEq, Eq)]
struct PushStart {
    boot: String,
    awake: Duration,
}

impl PushStart {
    fn now() -> Self {
        Self { boot: boot(), awake: time_awake() }
    }

    fn line(&self) -> String {
        format!("push {} {}\n", self.boot, self.awake.as_millis())
    }

    fn parse(line: &str) -> Option<Self> {
        let (boot, millis) = line.strip_prefix("push ")?.strip_suffix('\n')?.split_once(' ')?;
        let awake = Duration::from_millis(millis.parse().ok()?);
        Some(Self { boot: boot.to_owned(), awake })
    }

    fn is_over_its_time(&self) -> bool {
        self.boot != boot() || time_awake().saturating_sub(self.awake) >= PUSH_TIME_MAX
    }
}

fn boot() -> String {
    boot_identity().unwrap_or_else(|| "-".to_owned())
}

fn try_lock(file: &File, path: &Path) -> Result<bool, GitError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(GitError::file("lock", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;

    use super::*;

    #[test]
    fn a_push_that_goes_on_has_the_turn() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::at(directory.path().join("repository.git"));
        let push = repository.lock_push().unwrap();
        assert!(repository.turn_if_free().unwrap().is_none());
        drop(push);
        let turn = repository.turn_if_free().unwrap();
        assert!(turn.is_some() && repository.turn_if_free().unwrap().is_none());
    }

    #[test]
    fn a_push_that_hangs_for_too_long_does_not_keep_the_turn() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::at(directory.path().join("repository.git"));
        let mut push = repository.lock_push().unwrap();
        let over = PushStart { boot: "another".to_owned(), ..PushStart::now() };
        push.set_len(0).unwrap();
        push.rewind().unwrap();
        push.write_all(over.line().as_bytes()).unwrap();
        assert!(repository.turn_if_free().unwrap().is_some());
    }

    #[test]
    fn a_push_has_the_turn_whatever_the_clock_says() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::at(directory.path().join("repository.git"));
        let push = repository.lock_push().unwrap();
        let began = push.metadata().unwrap().modified().unwrap();
        // As if the clock had jumped by a day.
        for moved in [began - Duration::from_hours(24), began + Duration::from_hours(24)] {
            push.set_modified(moved).unwrap();
            assert!(repository.turn_if_free().unwrap().is_none());
        }
    }

    #[test]
    fn the_start_of_a_push_is_read_as_it_was_written() {
        let began = PushStart { awake: Duration::from_millis(1_234), ..PushStart::now() };
        assert_eq!(PushStart::parse(&began.line()), Some(began));
        for other in ["", "push\n", "push x\n", "push x y\n", "push x 12"] {
            assert_eq!(PushStart::parse(other), None, "{other}");
        }
        assert!(!PushStart::now().is_over_its_time());
    }
}
