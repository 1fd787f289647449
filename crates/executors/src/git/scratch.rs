//! Names that nobody else has, and places that are gone after their use.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::GitError;
use super::repository::Repository;

/// A name that no other process of this machine gives, now or later.
pub(super) fn unique_name(beginning: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // The process and the moment it began with it, so that a process id that comes again is another name.
    static BEGUN: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let begun = BEGUN.get_or_init(|| {
        let mut bytes = [0; 8];
        let _ = File::open("/dev/urandom")
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes));
        u64::from_le_bytes(bytes)
    });
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    format!("{beginning}-{process:x}-{:08x}-{number:x}", begun & 0xffff_ffff)
}

/// A directory inside a repository that is removed after its use: at the end, or, if its owner was killed,
/// by the next one who makes such a directory.
#[derive(Debug)]
pub(super) struct Scratch {
    directory: PathBuf,
    lock_path: PathBuf,
    /// Held as long as the owner lives.
    _lock: File,
}

impl Scratch {
    /// A new empty directory.
    pub(super) fn new(repository: &Repository) -> Result<Self, GitError> {
        let root = repository.path().join("gt-scratch");
        fs::create_dir_all(&root).map_err(GitError::file("make", &root))?;
        // Under the same lock, a directory that is just being made is not taken for one that was left.
        let _registry = repository.registry()?;
        sweep(&root);
        let name = unique_name("scratch");
        let lock_path = root.join(format!("{name}.lock"));
        let lock = File::create_new(&lock_path).map_err(GitError::file("make", &lock_path))?;
        lock.lock().map_err(GitError::file("lock", &lock_path))?;
        let directory = root.join(name);
        fs::create_dir(&directory).map_err(GitError::file("make", &directory))?;
        Ok(Self { directory, lock_path, _lock: lock })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next one.
        if fs::remove_dir_all(&self.directory).is_ok() {
            let _ = fs::remove_file(&self.lock_path);
        }
    }
}

/// Removes what owners have left who were killed. It is only for order, so nothing depends on its success.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "lock") {
            continue;
        }
        let free = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if free
            && (fs::remove_dir_all(path.with_extension("")).is_ok()
                || !path.with_extension("").exists())
        {
            let _ = fs::remove_file(&path);
        }
    }
}
