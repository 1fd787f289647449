//! Files that are there whole or not at all.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::StoreError;
use crate::engine::sqlite::{FileKind, check_quickly, kind_of};

/// How a file that is already there is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfFileExists {
    /// It stays, and nothing is written.
    Keep,
    /// An older backup gives way.
    Replace,
}

/// Has `write` fill a file beside `target`, looks at it, and puts it in place when it is on the disk.
/// If anything fails, nothing is left.
pub(crate) fn write_aside<T>(
    target: &Path,
    existing: IfFileExists,
    write: impl FnOnce(&Path) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    refuse_to_replace(target, existing)?;
    let io = |action| move |source| StoreError::Io { action, path: target.to_owned(), source };
    let temporary = TemporaryFile::beside(target);
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    let file = options.open(&temporary.0).map_err(io("write"))?;
    let written = write(&temporary.0)?;
    check_quickly(&temporary.0)?;
    file.sync_all().map_err(io("write"))?;
    match existing {
        IfFileExists::Replace => std::fs::rename(&temporary.0, target).map_err(io("write"))?,
        IfFileExists::Keep => match std::fs::hard_link(&temporary.0, target) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(exists(target)),
            // Not every file system has links.
            Err(_) => {
                refuse_to_replace(target, existing)?;
                std::fs::rename(&temporary.0, target).map_err(io("write"))?;
            }
        },
    }
    // Without this the name may be gone after a power cut. Not every file system can do it.
    let directory = target.parent().unwrap_or(Path::new("."));
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(written)
}

/// Says why `target` must stay as it is, if it must.
fn refuse_to_replace(target: &Path, existing: IfFileExists) -> Result<(), StoreError> {
    let refused = |why| Err(StoreError::NotReplaced { path: target.to_owned(), why });
    match kind_of(target)? {
        FileKind::Foreign(_) => refused("it is not a gt store; name another file"),
        FileKind::Store if existing == IfFileExists::Keep => Err(exists(target)),
        FileKind::Absent if target.exists() && existing == IfFileExists::Keep => {
            Err(exists(target))
        }
        // The contents of the log would be taken for a part of the new file.
        FileKind::Store | FileKind::Absent if with_suffix(target, "-wal").exists() => {
            refused("a log (-wal) lies beside it, so it is in use; name another file")
        }
        FileKind::Store | FileKind::Absent => Ok(()),
    }
}

fn exists(target: &Path) -> StoreError {
    let why = "it exists already; name another file, or replace it with --force";
    StoreError::NotReplaced { path: target.to_owned(), why }
}

/// The path with something added to its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// A file that is deleted on drop, with the files that SQLite put beside it.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// A name that is not used otherwise, in this process or another.
    fn beside(target: &Path) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(with_suffix(target, &format!(".{}.{number}.new", std::process::id())))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        for suffix in ["", "-journal", "-wal", "-shm"] {
            // It is usually not there any more.
            let _ = std::fs::remove_file(with_suffix(&self.0, suffix));
        }
    }
}
