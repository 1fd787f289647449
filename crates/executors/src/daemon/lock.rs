//! The lock that a daemon holds for as long as it runs, and the identity of its holder.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid};

use crate::runs::start_of;

/// The process that holds the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// Its number.
    pub pid: u32,
    /// When it was started, in ticks of the kernel; nothing where the kernel does not tell. The number comes back one day,
    /// both together do not.
    started: Option<u64>,
    /// Since when it has the lock, as it said itself.
    pub since: String,
}

impl LockHolder {
    fn parse(text: &str) -> Option<Self> {
        let line = text.strip_suffix('\n')?;
        let (pid, rest) = line.split_once(' ')?;
        let (started, since) = rest.split_once(' ')?;
        Some(Self {
            pid: pid.parse().ok().filter(|pid| *pid > 0)?,
            started: started.parse().ok(),
            since: since.to_owned(),
        })
    }

    /// Whether it is a process here, and the same one.
    fn is_here(&self) -> bool {
        start_of(self.pid).is_some_and(|now| self.started.is_none_or(|then| then == now))
    }
}

/// The lock, held until this value is dropped or the process ends. Programs that are started meanwhile do not get it.
#[derive(Debug)]
pub struct DaemonLock {
    // Closing it gives the lock back.
    file: File,
}

/// The result of trying to take the lock.
#[derive(Debug)]
pub enum LockAttempt {
    /// It is ours.
    Ours(DaemonLock),
    /// Another process has it; its identity, if it has written that already.
    Theirs(Option<LockHolder>),
}

/// How long a process that has just taken the lock may take to write its identity.
const IDENTITY_WAIT_MAX: Duration = Duration::from_secs(1);
/// How long apart a lock is looked at.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

impl DaemonLock {
    /// Takes the lock of the file at `path`, and says in it who we are. `since` is one word.
    pub fn take(path: &Path, since: &str) -> io::Result<LockAttempt> {
        let file = crate::private::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error),
                // A process that only asks holds the lock for a moment.
                Err(TryLockError::WouldBlock) if began.elapsed() < IDENTITY_WAIT_MAX => {
                    if let Some(holder) = holder(path)? {
                        return Ok(LockAttempt::Theirs(Some(holder)));
                    }
                    std::thread::sleep(LOCK_POLL_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => return Ok(LockAttempt::Theirs(holder(path)?)),
            }
        }
        let pid = std::process::id();
        let started = start_of(pid).map_or_else(|| "-".to_owned(), |ticks| ticks.to_string());
        let text = format!("{pid} {started} {since}\n");
        file.set_len(0)?;
        file.write_all_at(text.as_bytes(), 0)?;
        Ok(LockAttempt::Ours(Self { file }))
    }
}

impl DaemonLock {
    /// Whether its file is still the one at `path`; yes if that cannot be found out.
    pub fn is_in_place(&self, path: &Path) -> bool {
        match (self.file.metadata(), std::fs::metadata(path)) {
            (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
            (_, Err(error)) => error.kind() != io::ErrorKind::NotFound,
            (Err(_), Ok(_)) => true,
        }
    }
}

/// Whether a process holds the lock; no if that cannot be found out.
pub fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    // Shared, so that two processes that ask at once do not take each other for the daemon.
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The holder of the lock; nothing if the lock is free, or if the holder has not written its
/// identity.
pub fn holder(path: &Path) -> io::Result<Option<LockHolder>> {
    let began = Instant::now();
    loop {
        if !is_held(path) {
            return Ok(None);
        }
        let text = std::fs::read_to_string(path)?;
        let found = LockHolder::parse(&text);
        // The file names the previous holder until the new one has written its identity.
        let is_known = found.as_ref().is_some_and(LockHolder::is_here);
        if is_known || began.elapsed() > IDENTITY_WAIT_MAX {
            return Ok(found.filter(|_| is_held(path)));
        }
        std::thread::sleep(LOCK_POLL_INTERVAL);
    }
}

/// Asks the holder of the lock to end, and says whether the signal was sent. Other processes never
/// get it.
pub fn ask_to_end(path: &Path, holder: &LockHolder) -> io::Result<bool> {
    let pid = i32::try_from(holder.pid).ok().and_then(Pid::from_raw);
    let Some(pid) = pid.filter(|pid| *pid != getpid()) else { return Ok(false) };
    let sent = send_end(pid, || holder.is_here() && is_held(path));
    match sent {
        Err(Errno::SRCH) => Ok(false),
        sent => Ok(sent?),
    }
}

/// Sends `TERM` to a process if it is still the one that is meant once its number cannot come back any more.
fn send_end(pid: Pid, is_meant: impl FnOnce() -> bool) -> Result<bool, Errno> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    if !is_meant() {
        return Ok(false);
    }
    pidfd_send_signal(&process, Signal::TERM).map(|()| true)
}

/// Waits until the lock is free, at most `limit`; says whether it is.
pub fn wait_until_free(path: &Path, limit: Duration) -> bool {
    let began = Instant::now();
    while is_held(path) {
        if began.elapsed() > limit {
            return false;
        }
        std::thread::sleep(LOCK_POLL_INTERVAL);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_learns_who_holds_the_lock() {
        let town = tempfile::tempdir().unwrap();
        let path = town.path().join("daemon.lock");
        assert_eq!(holder(&path).unwrap(), None);
        let LockAttempt::Ours(lock) = DaemonLock::take(&path, "2026-01-01T00:00:00Z").unwrap()
        else {
            panic!("the lock is free");
        };
        assert!(is_held(&path) && lock.is_in_place(&path));
        assert!(!lock.is_in_place(&town.path().join("other")));
        let LockAttempt::Theirs(Some(first)) = DaemonLock::take(&path, "later").unwrap() else {
            panic!("it is taken");
        };
        assert_eq!((first.pid, first.since.as_str()), (std::process::id(), "2026-01-01T00:00:00Z"));
        // A process does not end itself.
        assert!(!ask_to_end(&path, &first).unwrap());
        drop(lock);
        gt_testkit::wait_until("it is free", || !is_held(&path));
        assert!(wait_until_free(&path, Duration::ZERO));
        assert_eq!(holder(&path).unwrap(), None);
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let town = tempfile::tempdir().unwrap();
        let path = town.path().join("daemon.lock");
        let _lock = DaemonLock::take(&path, "now").unwrap();
        let other = LockHolder { pid: 1, started: Some(u64::MAX), since: String::new() };
        assert!(!ask_to_end(&path, &other).unwrap());
    }

    #[test]
    fn an_incomplete_identity_is_no_holder() {
        for text in ["", "12", "12 34", "12 34 now", "0 1 now\n", "x 1 now\n", "12\n", "12 1\n"] {
            assert_eq!(LockHolder::parse(text), None, "{text:?}");
        }
        let holder = LockHolder::parse("12 - now\n").unwrap();
        assert_eq!((holder.pid, holder.started, holder.since.as_str()), (12, None, "now"));
    }
}
