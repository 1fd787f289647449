//! Keeping `.beads/issues.jsonl` current in a process beside the command that changed a bead.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_beads::events::last_number;
use gt_beads::interchange::{is_automatic, jsonl_path, write_jsonl};
use gt_store::Writer;
use gt_town::town::{CommitFollower, CommitHook, DIRECTORY};
use gt_town::{OperationError, Result, Town};

use crate::background_helper::start;

/// The first argument that makes a program the helper; the town follows.
pub const HELPER: &str = "__export-beads";
/// Held by the helper at work, in the directory of the town.
const LOCK: &str = "export-helper.lock";
/// How long the helper collects further changes before it writes the file.
const COLLECTING_TIME: Duration = Duration::from_millis(200);

/// Writes the file after each change of a bead, if `export.auto` says so. The program must call [`run`] when it is started with
/// [`HELPER`].
#[derive(Debug, Clone, Copy, Default)]
pub struct ExportBeads;

impl CommitHook for ExportBeads {
    fn begin(&self, town: &Town) -> Option<Box<dyn CommitFollower>> {
        let root = town.has_directory().then(|| town.root().to_owned())?;
        Some(Box::new(ChangedBeads { root, is_due: false }))
    }
}

/// Whether one write has changed a bead.
struct ChangedBeads {
    root: PathBuf,
    is_due: bool,
}

impl CommitFollower for ChangedBeads {
    fn before_commit(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        if !self.is_due && writer.recorded().iter().any(|event| event.bead.is_some()) {
            self.is_due = is_automatic(writer)?;
        }
        Ok(())
    }

    fn after_commit(self: Box<Self>) {
        // A helper at work looks for further changes after it has let its lock go.
        if self.is_due && matches!(try_lock(&self.root), Ok(Some(_))) {
            // The change is committed; the next one is written with it.
            let _ = start(&self.root, HELPER);
        }
    }
}

/// Takes the lock of the helper; nothing if another process has it.
fn try_lock(root: &Path) -> Result<Option<File>> {
    let path = root.join(DIRECTORY).join(LOCK);
    let failed = |action, source| OperationError::File { action, path: path.clone(), source };
    let open = File::options().create(true).append(true).open(&path);
    let file = open.map_err(|source| failed("open", source))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed("lock", source)),
    }
}

/// The helper: brings the file of the town up to date, until nothing changes any more.
pub fn run(town: &Town) -> Result<()> {
    let path = jsonl_path(town)?;
    let mut written = None;
    while written != Some(last_number(town)?) {
        let Some(lock) = try_lock(town.root())? else { return Ok(()) };
        std::thread::sleep(COLLECTING_TIME);
        let number = last_number(town)?;
        write_jsonl(town, &path)?;
        written = Some(number);
        drop(lock);
    }
    Ok(())
}
