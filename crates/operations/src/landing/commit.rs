//! Committing what a worker has left in its tree.

use gt_core::Rig;
use gt_core::schedule::{Run, WorkerPlace};
use gt_executors::git::{Commit, GitError, Limits, Tree, Unfinished};

use super::done::Refused;
use crate::Town;
use crate::trees::{Trees, git_failed, signature_of};

/// The largest file that is committed for a worker: what the usual hosts take.
const FILE_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// What the worker is told to do when it has put right what was wrong.
const AGAIN: &str = "then say gt done again";

/// Commits what is not committed; the commit that has everything.
pub(super) fn commit(
    town: &Town,
    rig: &Rig,
    run: &Run,
    trees: &Trees<'_>,
    message: Option<&str>,
) -> Result<Commit, Refused> {
    let failed = git_failed(rig);
    let tree = run
        .place
        .as_ref()
        .and_then(WorkerPlace::polecat_name)
        .map(|name| trees.tree(name))
        .ok_or_else(|| Refused::Work(format!("{} has no tree", run.id)))?;
    demand_own_branch(rig, run, &tree)?;
    let message = match message {
        Some(message) => message.to_owned(),
        None => format!("{}\n\n{}", title(town, run)?, run.id),
    };
    let limits =
        Limits { file_bytes_max: FILE_BYTES_MAX, base: Commit::parse(&run.workplace.base_commit) };
    match tree.commit_all(&message, &signature_of(run), &limits) {
        Ok(_) => {}
        Err(
            error @ (GitError::ConflictMarkers { .. }
            | GitError::Oversize { .. }
            | GitError::Nested { .. }
            | GitError::Submodules { .. }
            | GitError::Unfinished { .. }),
        ) => return Err(Refused::Work(format!("{error}; {AGAIN}"))),
        Err(error) => return Err(failed(error).into()),
    }
    let head = tree.head().map_err(&failed)?;
    head.ok_or_else(|| Refused::Work(format!("{} has no commit", run.workplace.branch)))
}

fn title(town: &Town, run: &Run) -> Result<String, Refused> {
    let bead = town.read(|reader| Ok(reader.bead(&run.id.bead)?))?;
    Ok(bead.map_or_else(|| run.id.bead.to_string(), |bead| bead.title.to_string()))
}

/// Only what is on the branch of the run is its work.
fn demand_own_branch(rig: &Rig, run: &Run, tree: &Tree) -> Result<(), Refused> {
    let failed = git_failed(rig);
    // In the middle of a rebase there is no branch, and switching to one would be the wrong advice.
    let unfinished = tree.unfinished().map_err(&failed)?;
    if let Some(operation) = unfinished.filter(|operation| *operation != Unfinished::Merge) {
        let error = GitError::Unfinished { operation: operation.command() };
        return Err(Refused::Work(format!("{error}; {AGAIN}")));
    }
    let (place, branch) = (&run.workplace.tree, &run.workplace.branch);
    match tree.branch().map_err(&failed)? {
        Some(on) if on == *branch => Ok(()),
        Some(on) => Err(Refused::Work(format!(
            "{place} is on {on} and not on {branch}, the branch of {}; switch back with git switch {branch}, {AGAIN}",
            run.id
        ))),
        None => Err(Refused::Work(format!(
            "{place} is on no branch, and the work of {} belongs on {branch}; go there with git switch {branch}, take \
             along what you have committed meanwhile with git merge {}, {AGAIN}",
            run.id,
            tree.head()
                .map_err(&failed)?
                .map_or_else(|| "HEAD@{1}".to_owned(), |head| head.to_string())
        ))),
    }
}
