//! One supervisor in a tree at a time.

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use gt_core::Rig;
use gt_core::schedule::{Run, WorkerPlace};

use super::{NotPrepared, Trees};
use crate::{OperationError, Result, Town};

/// The right to change a tree, held by the supervisor of its run to the end of the run. The store gives a polecat to one
/// run; but a start that was taken back may have a supervisor that does not know it yet.
#[derive(Debug)]
pub(crate) struct TreeLock {
    // Closing it gives the lock back.
    file: File,
}

/// Takes the right to change the tree of a run; nothing if it has none.
pub(crate) fn occupy(
    town: &Town,
    rig: &Rig,
    run: &Run,
) -> std::result::Result<Option<TreeLock>, NotPrepared> {
    let name = run.place.as_ref().and_then(WorkerPlace::polecat_name);
    let (Some(trees), Some(name)) = (Trees::of(town, rig), name) else { return Ok(None) };
    match lock_tree(&trees, name)? {
        Some(lock) => Ok(Some(lock)),
        None => Err(NotPrepared::Busy(format!("somebody is at the tree of {name}"))),
    }
}

/// Takes the right to change the tree of a polecat; nothing if somebody has it.
pub(super) fn lock_tree(trees: &Trees<'_>, name: &str) -> Result<Option<TreeLock>> {
    let (file, path) = lock_file(trees, name)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(TreeLock { file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => {
            Err(OperationError::File { action: "lock", path, source })
        }
    }
}

/// Takes the right to change the tree of a polecat, after whoever has it.
pub(super) fn wait_for_tree(trees: &Trees<'_>, name: &str) -> Result<TreeLock> {
    let (file, path) = lock_file(trees, name)?;
    file.lock().map_err(|source| OperationError::File { action: "lock", path, source })?;
    Ok(TreeLock { file })
}

fn lock_file(trees: &Trees<'_>, name: &str) -> Result<(File, PathBuf)> {
    let home = trees.home(name);
    let path = home.join("lock");
    let failed = |source| OperationError::File { action: "lock", path: path.clone(), source };
    std::fs::create_dir_all(&home).map_err(failed)?;
    let options = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    Ok((options.map_err(failed)?, path))
}

impl TreeLock {
    /// Gives it back at once, although a program may have been started just now that still has all our files.
    pub(super) fn give_back(self) {
        // What cannot be unlocked is when it is closed.
        let _ = self.file.unlock();
    }
}
