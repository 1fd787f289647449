//! Preparing the tree of a run while its supervisor is being started.
//!
//! Whoever starts a run in a session waits for that session, and git need not. So the tree is prepared by the starter
//! meanwhile, and the supervisor is told what came of it by a file of the run. Both need the lock of the tree: the
//! starter takes it before there is a supervisor, and the supervisor waits for it where that file is. A starter that dies
//! leaves the file empty and the lock free, and then the supervisor does it all itself.

use std::fs;
use std::path::Path;

use gt_core::Rig;
use gt_core::schedule::{Polecat, Run, SlingParameters, TreeState, WorkerPlace, Workplace};
use gt_executors::runs::RunFiles;

use super::lock::{TreeLock, lock_tree, wait_for_tree};
use super::{NotPrepared, Prepared, Trees, occupy, prepare};
use crate::{OperationError, Result, Town, with_causes};

/// What is between the parts of what a supervisor is told: no path has it.
const BETWEEN: char = '\0';

/// The first part, which says what follows.
const READY: &str = "ready";
const BUSY: &str = "busy";
const AWAY: &str = "away";
const FAILED: &str = "failed";

/// A tree that is about to be prepared by whoever starts its run.
pub(crate) struct Ahead<'a> {
    town: &'a Town,
    run: &'a Run,
    rig: Rig,
    parameters: SlingParameters,
    lock: TreeLock,
}

impl<'a> Ahead<'a> {
    /// Takes the tree of a run that nobody has seen yet; nothing if it has none, or somebody is at it. Whatever is wrong is
    /// left to the supervisor, who can say so.
    pub(crate) fn begin(town: &'a Town, run: &'a Run) -> Option<Self> {
        let name = run.place.as_ref().and_then(WorkerPlace::polecat_name)?;
        let found = town.read(|reader| {
            let rig = reader.rig(run.rig.as_str())?;
            Ok(rig.zip(reader.context_by_number(run.context)?))
        });
        let (rig, context) = found.ok().flatten()?;
        let trees = Trees::of(town, &rig)?;
        let lock = lock_tree(&trees, name).ok().flatten()?;
        let files = files_of(town, run);
        let _ = files.create();
        gt_executors::private::write(&files.prepared_path(), "").ok()?;
        Some(Self { town, run, rig, parameters: context.parameters, lock })
    }

    /// Prepares it, and tells the supervisor.
    pub(crate) fn carry_out(self, program: &Path) {
        let (town, rig, run, parameters) = (self.town, &self.rig, self.run, &self.parameters);
        let prepared = prepare(town, rig, run, parameters, program);
        let told = match &prepared {
            Ok(prepared) => ready(prepared),
            Err(NotPrepared::Busy(why)) => [BUSY, why].map(str::to_owned).to_vec(),
            Err(NotPrepared::Away(why)) => [AWAY, why].map(str::to_owned).to_vec(),
            Err(NotPrepared::Failed(error)) => vec![FAILED.to_owned(), with_causes(error)],
        };
        // If it cannot be written, the supervisor does it again.
        let path = files_of(self.town, self.run).prepared_path();
        let _ = fs::write(path, told.join(&BETWEEN.to_string()));
        self.lock.give_back();
    }
}

/// Takes away what a supervisor was to be told that did not come.
pub(crate) fn forget(town: &Town, run: &Run) {
    let _ = fs::remove_file(files_of(town, run).prepared_path());
}

fn files_of(town: &Town, run: &Run) -> RunFiles {
    RunFiles::of(&town.runs_directory(), &run.id.to_string())
}

/// Takes the tree of a run for its supervisor, prepared; by its starter, if that is at it. Only the holder of the run's
/// lock calls this.
pub(crate) fn take_prepared(
    town: &Town,
    rig: &Rig,
    run: &Run,
    parameters: &SlingParameters,
    program: &Path,
) -> std::result::Result<(Option<TreeLock>, Prepared), NotPrepared> {
    let path = files_of(town, run).prepared_path();
    let name = run.place.as_ref().and_then(WorkerPlace::polecat_name);
    if let (Some(trees), Some(name), true) = (Trees::of(town, rig), name, path.exists()) {
        let lock = wait_for_tree(&trees, name)?;
        let told = fs::read_to_string(&path).unwrap_or_default();
        forget(town, run);
        let prepared = match heard(town, run, name, &told)? {
            Some(prepared) => prepared?,
            None => prepare(town, rig, run, parameters, program)?,
        };
        return Ok((Some(lock), prepared));
    }
    let lock = occupy(town, rig, run)?;
    Ok((lock, prepare(town, rig, run, parameters, program)?))
}

fn ready(prepared: &Prepared) -> Vec<String> {
    let Workplace { session, tree, branch, base, base_commit } = &prepared.place;
    let parts = [READY, session, tree, branch, base, base_commit].map(str::to_owned);
    let is_written = if prepared.polecat.is_some() { "no" } else { "yes" };
    parts.into_iter().chain([is_written.to_owned()]).collect()
}

/// What a starter told; nothing if it did not come to that.
fn heard(
    town: &Town,
    run: &Run,
    name: &str,
    told: &str,
) -> Result<Option<std::result::Result<Prepared, NotPrepared>>> {
    let parts: Vec<&str> = told.split(BETWEEN).collect();
    Ok(Some(match parts.as_slice() {
        [READY, session, tree, branch, base, base_commit, is_written] => {
            let [session, tree, branch, base, base_commit] =
                [session, tree, branch, base, base_commit].map(|part| (*part).to_owned());
            let polecat = match *is_written {
                "yes" => None,
                _ => town.read(|reader| Ok(reader.polecat(&run.rig, name)?))?,
            };
            let polecat = polecat.map(|polecat| Polecat {
                tree: TreeState::Ready,
                branch: branch.clone(),
                last_run: Some(run.id.clone()),
                updated_at: town.now(),
                ..polecat
            });
            Ok(Prepared { place: Workplace { session, tree, branch, base, base_commit }, polecat })
        }
        [BUSY, why] => Err(NotPrepared::Busy((*why).to_owned())),
        [AWAY, why] => Err(NotPrepared::Away((*why).to_owned())),
        [FAILED, why] => Err(NotPrepared::Failed(OperationError::rejected(*why))),
        _ => return Ok(None),
    }))
}
