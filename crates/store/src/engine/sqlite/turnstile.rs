//! Fair writing across processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::engine::{Notice, with_notice};

/// Two lock files that writers pass through one after the other: `next`, then `write`.
///
/// Whoever holds `next` is the next to write, so a busy daemon that comes back for more queues up
/// behind the command that was already waiting. SQLite's own lock is retried with growing pauses and
/// would let the daemon win every time. The files stay forever; unlinking them would race.
#[derive(Debug)]
pub struct Turnstile {
    next: Lock,
    write: Lock,
}

#[derive(Debug)]
struct Lock {
    file: File,
    path: PathBuf,
}

/// The right to write, until dropped.
#[derive(Debug)]
pub struct Turn<'t>(&'t Turnstile);

impl Turnstile {
    /// Opens the lock files beside the store.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let open = |name: &str| {
            let path = directory.join(name);
            match OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(&path)
            {
                Ok(file) => Ok(Lock { file, path }),
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    Err(StoreError::ReadOnly(directory.to_owned()))
                }
                Err(source) => Err(StoreError::Io { action: "open", path, source }),
            }
        };
        Ok(Self { next: open("next.lock")?, write: open("write.lock")? })
    }

    /// Waits for the right to write, without limit; `notice` is called once if it takes long.
    pub fn enter(&self, notice: Option<&Notice>) -> Result<Turn<'_>, StoreError> {
        self.next.take(notice)?;
        let taken = self.write.take(notice);
        self.next.release()?;
        taken.map(|()| Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // A lock that cannot be released here is released when the process ends.
        let _ = self.0.write.release();
    }
}

impl Lock {
    fn take(&self, notice: Option<&Notice>) -> Result<(), StoreError> {
        match self.file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(self.error("lock", source)),
        }
        with_notice(notice, || self.file.lock().map_err(|source| self.error("lock", source)))
    }

    fn release(&self) -> Result<(), StoreError> {
        self.file.unlock().map_err(|source| self.error("unlock", source))
    }

    fn error(&self, action: &'static str, source: std::io::Error) -> StoreError {
        StoreError::Io { action, path: self.path.clone(), source }
    }
}
