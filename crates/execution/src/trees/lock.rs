//! One supervisor in a tree at a time.

use std::fs::{File, TryLockError};

use gt_core::Rig;
use gt_core::schedule::{Run, WorkerPlace};

use super::NotPrepared;
use gt_town::tree_paths::Trees;
use gt_town::{OperationError, Result, Town};

/// The lock of a tree, held by the supervisor of its run to the end of the run. The store gives a polecat to one run;
/// but a start that was taken back may have a supervisor that does not know it yet.
#[derive(Debug)]
pub(crate) struct TreeLock {
    // Closing it releases the lock.
    _file: File,
}

/// Takes the lock of the tree of a run; nothing if it has none.
pub(crate) fn occupy(
    town: &Town,
    rig: &Rig,
    run: &Run,
) -> std::result::Result<Option<TreeLock>, NotPrepared> {
    let name = run.place.as_ref().and_then(WorkerPlace::polecat_name);
    let (Some(trees), Some(name)) = (Trees::of(town, rig), name) else { return Ok(None) };
    match lock_tree(&trees, name)? {
        Some(lock) => Ok(Some(lock)),
        None => Err(NotPrepared::Busy(format!("another process uses the tree of {name}"))),
    }
}

/// Takes the lock of the tree of a polecat; nothing if another process has it.
pub(super) fn lock_tree(trees: &Trees<'_>, name: &str) -> Result<Option<TreeLock>> {
    let home = trees.home(name);
    let path = home.join("lock");
    let failed = |source| OperationError::File { action: "lock", path: path.clone(), source };
    std::fs::create_dir_all(&home).map_err(failed)?;
    let options = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let file = options.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(TreeLock { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}
