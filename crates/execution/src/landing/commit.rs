//! Committing the uncommitted work of a worker.

use gt_core::Rig;
use gt_core::schedule::{Run, WorkerPlace};
use gt_executors::git::{Commit, CommitLimits, GitError, Tree, UnfinishedOperation};

use gt_town::tree_paths::{Trees, git_failed, signature_of};
use gt_town::{OperationError, Town, with_causes};

/// The largest file that is committed for a worker: the limit of the usual hosts.
const FILE_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Why nothing was committed.
#[derive(Debug)]
pub(super) enum CommitFailure {
    /// A fault of the work, and how to correct it.
    Work(String),
    /// Another error.
    Elsewhere(OperationError),
}

impl CommitFailure {
    /// The reason in words.
    pub(super) fn why(&self) -> String {
        match self {
            Self::Work(why) => why.clone(),
            Self::Elsewhere(error) => with_causes(error),
        }
    }
}

impl From<OperationError> for CommitFailure {
    fn from(error: OperationError) -> Self {
        Self::Elsewhere(error)
    }
}

/// Commits uncommitted work; returns the commit that has everything.
pub(super) fn commit(
    town: &Town,
    rig: &Rig,
    run: &Run,
    trees: &Trees<'_>,
    message: Option<&str>,
) -> Result<Commit, CommitFailure> {
    let failed = git_failed(rig);
    let tree = run
        .place
        .as_ref()
        .and_then(WorkerPlace::polecat_name)
        .map(|name| trees.tree(name))
        .ok_or_else(|| OperationError::rejected(format!("{} has no tree", run.id)))?;
    if tree.head().is_err() {
        // The worker may have damaged the references of the shared repository.
        trees.repository().repair().map_err(&failed)?;
    }
    demand_own_branch(rig, run, &tree)?;
    let message = match message {
        Some(message) => message.to_owned(),
        None => format!("{}\n\n{}", title(town, run)?, run.id),
    };
    let limits = CommitLimits {
        file_bytes_max: FILE_BYTES_MAX,
        base: Commit::parse(&run.workplace.base_commit),
    };
    match tree.commit_all(&message, &signature_of(run), &limits) {
        Ok(_) => {}
        Err(
            error @ (GitError::ConflictMarkers { .. }
            | GitError::Oversize { .. }
            | GitError::Nested { .. }
            | GitError::Submodules { .. }
            | GitError::Unfinished { .. }),
        ) => return Err(CommitFailure::Work(error.to_string())),
        Err(error) => return Err(failed(error).into()),
    }
    let head = tree.head().map_err(&failed)?;
    head.ok_or_else(|| {
        CommitFailure::Work(format!("{} has no commit; make one", run.workplace.branch))
    })
}

fn title(town: &Town, run: &Run) -> Result<String, CommitFailure> {
    let bead = town.read(|reader| Ok(reader.bead(&run.id.bead)?))?;
    Ok(bead.map_or_else(|| run.id.bead.to_string(), |bead| bead.title.to_string()))
}

/// Requires that the branch of the run is checked out: only its commits are the work of the run.
fn demand_own_branch(rig: &Rig, run: &Run, tree: &Tree) -> Result<(), CommitFailure> {
    let failed = git_failed(rig);
    // In the middle of a rebase there is no branch, and switching to one would be the wrong advice.
    let unfinished = tree.unfinished().map_err(&failed)?;
    if let Some(operation) = unfinished.filter(|operation| *operation != UnfinishedOperation::Merge)
    {
        let error = GitError::Unfinished { operation: operation.command() };
        return Err(CommitFailure::Work(error.to_string()));
    }
    let (place, branch) = (&run.workplace.tree, &run.workplace.branch);
    match tree.branch().map_err(&failed)? {
        Some(on) if on == *branch => Ok(()),
        Some(on) => Err(CommitFailure::Work(format!(
            "{place} is on {on} and not on {branch}, the branch of {}; switch back with git switch {branch}",
            run.id
        ))),
        None => Err(CommitFailure::Work(format!(
            "{place} is on no branch, and the work of {} belongs on {branch}; go there with git switch {branch}, take \
             along what you have committed meanwhile with git merge {}",
            run.id,
            tree.head()
                .map_err(&failed)?
                .map_or_else(|| "HEAD@{1}".to_owned(), |head| head.to_string())
        ))),
    }
}
