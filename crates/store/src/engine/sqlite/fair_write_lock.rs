//! Fair writing across processes.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};

use crate::StoreError;
use crate::engine::{LongWaitCallback, WAIT_NOTICE_AFTER};

/// Two lock files that writers pass through one after the other: `next`, then `write`.
///
/// The holder of `next` is the next to write, so a busy daemon that comes back for more queues up
/// behind the command that was already waiting. SQLite's own lock is retried with growing pauses and
/// would let the daemon win every time. The files stay forever; unlinking them would race. Each of them
/// names its holder, for processes that wait for a holder that is stopped.
#[derive(Debug)]
pub struct FairWriteLock {
    next: Lock,
    write: Lock,
    /// This process, as it is written into the files.
    holder: String,
}

#[derive(Debug)]
struct Lock {
    file: File,
    path: PathBuf,
}

/// A lock that is held, until dropped.
#[derive(Debug)]
struct HeldLock<'t> {
    lock: &'t Lock,
    /// The file that a wait has locked, if there was one. Closing it gives the lock back.
    waited_with: Option<File>,
}

/// The right to write, until dropped.
#[derive(Debug)]
pub struct WriteTurn<'t>(#[expect(dead_code, reason = "it is held, not read")] HeldLock<'t>);

/// How long to wait, and the callback to call.
struct TurnWait<'w> {
    start: Instant,
    notice: Option<&'w LongWaitCallback>,
    was_told: Cell<bool>,
    limit: &'w dyn Fn() -> Option<Duration>,
}

/// The longest holder that is read from a file.
const HOLDER_BYTES_MAX: u64 = 200;

impl FairWriteLock {
    /// Opens the lock files beside the store.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let open = |name: &str| {
            let path = directory.join(name);
            match open_lock(&path) {
                Ok(file) => Ok(Lock { file, path }),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    Err(StoreError::ReadOnly(directory.to_owned()))
                }
                Err(source) => Err(StoreError::Io { action: "open", path, source }),
            }
        };
        let holder = format!("{} {}\n", std::process::id(), command(std::env::args_os()));
        Ok(Self { next: open("next.lock")?, write: open("write.lock")?, holder })
    }

    /// Waits for the right to write. If that takes long, `notice` is called once, and `limit` says for how long to wait
    /// altogether; nothing is without limit.
    pub fn enter(
        &self,
        notice: Option<&LongWaitCallback>,
        limit: &dyn Fn() -> Option<Duration>,
    ) -> Result<WriteTurn<'_>, StoreError> {
        let waiting = TurnWait { start: Instant::now(), notice, was_told: Cell::new(false), limit };
        let next = match self.next.try_take()? {
            Some(held) => held,
            None => self.next.wait(&waiting)?,
        };
        let write = if let Some(held) = self.write.try_take()? {
            held
        } else {
            next.name(&self.holder);
            self.write.wait(&waiting)?
        };
        drop(next);
        write.name(&self.holder);
        Ok(WriteTurn(write))
    }
}

fn open_lock(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)
}

/// The program with its verbs, such as `bd create`. Titles and other texts of the user are left out.
fn command(arguments: impl IntoIterator<Item = OsString>) -> String {
    let mut arguments = arguments.into_iter().map(|word| word.to_string_lossy().into_owned());
    let program = arguments.next().unwrap_or_default();
    let program =
        Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_verb = |word: &String| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    };
    let verbs = arguments.take_while(is_verb).take(2);
    std::iter::once(program).chain(verbs).collect::<Vec<_>>().join(" ")
}

impl HeldLock<'_> {
    /// Writes down the holder of the lock. Without it, only the message to a waiter is less exact.
    fn name(&self, holder: &str) {
        let file = self.waited_with.as_ref().unwrap_or(&self.lock.file);
        let _ = file.write_all_at(holder.as_bytes(), 0);
    }
}

impl Drop for HeldLock<'_> {
    fn drop(&mut self) {
        if self.waited_with.is_none() {
            // A lock that cannot be released here is released when the process ends.
            let _ = self.lock.file.unlock();
        }
    }
}

impl Lock {
    fn try_take(&self) -> Result<Option<HeldLock<'_>>, StoreError> {
        match self.file.try_lock() {
            Ok(()) => Ok(Some(HeldLock { lock: self, waited_with: None })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(self.error("lock", source)),
        }
    }

    /// Waits in a thread, because a wait for a lock has no time limit. The thread has a file of its own: when this gives up,
    /// the thread goes on waiting, and the lock that it then gets is released at once.
    fn wait(&self, waiting: &TurnWait<'_>) -> Result<HeldLock<'_>, StoreError> {
        let file = open_lock(&self.path).map_err(|source| self.error("open", source))?;
        let (tell, locked) = mpsc::sync_channel(1);
        let name = std::thread::Builder::new().name("gt-store-lock".to_owned());
        let thread = name.spawn(move || {
            let _ = tell.send(file.lock().map(|()| file));
        });
        thread.map_err(|source| self.error("lock", source))?;
        let mut answer = locked.recv_timeout(WAIT_NOTICE_AFTER);
        if answer.is_err() {
            if let (Some(notice), false) = (waiting.notice, waiting.was_told.replace(true)) {
                notice(self.holder().as_deref());
            }
            answer = match (waiting.limit)() {
                Some(limit) => locked.recv_timeout(limit.saturating_sub(waiting.start.elapsed())),
                None => locked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
        }
        match answer {
            Ok(Ok(file)) => Ok(HeldLock { lock: self, waited_with: Some(file) }),
            Ok(Err(source)) => Err(self.error("lock", source)),
            Err(_) => Err(StoreError::Locked(self.holder())),
        }
    }

    /// The holder in words, if it is known and still there.
    fn holder(&self) -> Option<String> {
        let mut text = String::new();
        let file = File::open(&self.path).ok()?;
        let since = file.metadata().and_then(|about| about.modified()).ok()?;
        file.take(HOLDER_BYTES_MAX).read_to_string(&mut text).ok()?;
        let (process, command) = text.lines().next()?.split_once(' ')?;
        let pid = process.parse().ok().and_then(Pid::from_raw)?;
        if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            return None;
        }
        let since = jiff::Timestamp::try_from(since).ok()?;
        let since = since.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S");
        Some(format!("{command} (process {process}, since {since})"))
    }

    fn error(&self, action: &'static str, source: Error) -> StoreError {
        StoreError::Io { action, path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_named_by_its_program_and_verbs_only() {
        let named = |words: &[&str]| command(words.iter().map(OsString::from));
        assert_eq!(named(&["/usr/bin/bd", "create", "A secret", "--rig", "web"]), "bd create");
        assert_eq!(named(&["gt", "scheduler", "run", "web"]), "gt scheduler run");
        assert_eq!(named(&["gt", "-C", "there", "up"]), "gt");
        assert_eq!(named(&[]), "");
    }
}
