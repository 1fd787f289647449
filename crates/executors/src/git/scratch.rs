//! Unique names, and temporary directories that are removed after their use.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::GitError;
use super::repository::Repository;

/// A name that no other process of this machine gives, now or later.
pub(super) fn unique_name(beginning: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // A number that comes from chance, so that a process id that comes again gives other names.
    static RANDOM_PART: OnceLock<u64> = OnceLock::new();
    let chance = RANDOM_PART.get_or_init(|| RandomState::new().build_hasher().finish());
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    format!("{beginning}-{process:x}-{:08x}-{number:x}", chance & 0xffff_ffff)
}

/// Whether the process lives that gave this name by [`unique_name`].
pub(super) fn maker_is_alive(name: &str) -> bool {
    let process = name.rsplit('-').nth(2).and_then(|process| u32::from_str_radix(process, 16).ok());
    process.is_some_and(|process| Path::new("/proc").join(process.to_string()).exists())
}

/// A directory inside our own repository that is removed after its use: at the end, or, if its
/// owner was killed, when the next one is made.
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
        let root = repository.own_path().join("scratch");
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
        // The next process removes it if it cannot be removed now.
        if fs::remove_dir_all(&self.directory).is_ok() {
            let _ = fs::remove_file(&self.lock_path);
        }
    }
}

/// Removes directories whose owners were killed. Nothing depends on its success.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let lock = entry.path();
        if lock.extension().is_none_or(|ending| ending != "lock") {
            continue;
        }
        let Ok(file) = File::open(&lock) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        let left = lock.with_extension("");
        let removed = fs::remove_dir_all(&left);
        if removed.is_ok() || !left.exists() {
            let _ = fs::remove_file(&lock);
        }
    }
}
