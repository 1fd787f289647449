//! Saving the work in the tree of a run that did not end well.

use std::cell::LazyCell;
use std::path::PathBuf;

use gt_core::Rig;
use gt_core::merging::MergeRequest;
use gt_core::schedule::{DoneStatus, Rescued, Run, RunId, RunState, WorkerPlace};
use gt_executors::git::{Commit, Repository};

use super::audit::note_reference;
use super::rescue_reference;
use gt_beads::run_records::resolve;
use gt_town::settings::layers_in;
use gt_town::tree_paths::{Trees, git_failed, repository_path, signature_of};
use gt_town::{OperationError, Result, Town};

/// Saves the work that a run has left in its tree and that was not accepted; nothing if it left none. The tree stays
/// as it is.
pub(crate) fn save(town: &Town, rig: &Rig, run: &Run) -> Result<Option<Rescued>> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(None) };
    let Some(name) = run.place.as_ref().and_then(WorkerPlace::polecat_name) else {
        return Ok(None);
    };
    if run.workplace.tree.is_empty() {
        return Ok(None);
    }
    // Another run may have the tree by now; then this one was saved before the tree changed hands. The checked-out
    // branch says nothing about that: a worker may switch to any branch.
    let polecat = town.read(|reader| Ok(reader.polecat(&rig.slug, name)?))?;
    // A polecat that went on on another host has another tree there.
    let is_elsewhere = polecat.as_ref().is_some_and(|polecat| !run.is_on(&polecat.host));
    let last_run = polecat.and_then(|polecat| polecat.last_run);
    if last_run.as_ref() != Some(&run.id) && !is_elsewhere {
        return Ok(None);
    }
    let (tree, repository, failed) = (trees.tree(name), trees.repository(), git_failed(rig));
    let head = tree.head().map_err(&failed)?;
    let own = repository.resolve(&format!("refs/heads/{}", run.workplace.branch));
    let own = own.map_err(&failed)?;
    let safe =
        ReachableCommits { repository: &repository, commits: safe_commits(run, &repository) };
    let is_safe = |commit: &Option<Commit>| commit.as_ref().is_none_or(|commit| safe.has(commit));
    if head.is_some()
        && is_safe(&head)
        && is_safe(&own)
        && tree.status().map_err(&failed)?.is_clean()
    {
        return Ok(None);
    }
    // The commits on its own branch from before it switched to another.
    let beside = own.filter(|own| {
        let in_head =
            |head| ReachableCommits { repository: &repository, commits: vec![head] }.has(own);
        !safe.has(own) && !head.clone().is_some_and(in_head)
    });
    let bytes_max = town.read(|reader| Ok(layers_in(town.root(), reader)?.rescue_max()?))?;
    let reference = rescue_reference(&run.id);
    let message = format!("Rescued work of {} from {}", run.id, run.workplace.tree);
    let author = signature_of(run);
    let saved = tree
        .rescue(&repository, &reference, &message, &author, bytes_max, beside.as_ref())
        .map_err(&failed)?;
    let left_out = saved.left_out.iter();
    let rescued = Rescued {
        run: run.id.clone(),
        rig: rig.slug.clone(),
        host: run.host.clone(),
        reference,
        commit: saved.commit.to_string(),
        base: run.workplace.base_commit.clone(),
        bytes: saved.bytes,
        left_out: left_out
            .map(|left| format!("{}: {}", left.path.display(), left.reason))
            .collect(),
        created_at: town.now(),
    };
    town.write(|writer| Ok(writer.put_rescue(&rescued)?))?;
    Ok(Some(rescued))
}

/// Keeps the accepted commit of a merge request under a reference of its run, for `gt rescue`; nothing if no run made it, or a
/// rescue has it already. The caller records the row.
pub(crate) fn keep_accepted(
    town: &Town,
    rig: &Rig,
    request: &MergeRequest,
) -> Result<Option<Rescued>> {
    let Some(run) = request.run() else { return Ok(None) };
    let (run, known) = town.read(|reader| Ok((reader.run(&run)?, reader.rescue_of(&run)?)))?;
    let Some(run) = run else { return Ok(None) };
    let elsewhere = || {
        OperationError::rejected(format!(
            "the work of {}, {}, is not in the repository of {} here; say it on {}",
            request.id, request.accepted, rig.slug, run.host
        ))
    };
    let trees = Trees::of(town, rig).ok_or_else(elsewhere)?;
    let (repository, failed) = (trees.repository(), git_failed(rig));
    if !repository.exists() {
        return Err(elsewhere());
    }
    let accepted = repository.resolve(&request.accepted).map_err(&failed)?.ok_or_else(elsewhere)?;
    // An earlier rescue of the run stays; its branch has the accepted commit.
    if known.is_some() {
        return Ok(None);
    }
    let reference = rescue_reference(&run.id);
    repository.set_reference(&reference, &accepted, None).map_err(&failed)?;
    Ok(Some(Rescued {
        run: run.id,
        rig: rig.slug.clone(),
        host: run.host,
        reference,
        commit: accepted.to_string(),
        base: request.base.clone(),
        bytes: 0,
        left_out: Vec::new(),
        created_at: town.now(),
    }))
}

/// Commits that stay reachable without the branches of a worker.
struct ReachableCommits<'a> {
    repository: &'a Repository,
    commits: Vec<Commit>,
}

impl ReachableCommits<'_> {
    /// Whether a commit is in one of them.
    fn has(&self, commit: &Commit) -> bool {
        // A commit that git cannot compare counts as not safe.
        let is_in = |one: &Commit| self.repository.is_ancestor(commit, one).unwrap_or(false);
        self.commits.contains(commit) || self.commits.iter().any(is_in)
    }
}

/// Whether every commit of a run is safe. Uncommitted work does not count, and a commit that git cannot compare is
/// not safe.
pub(super) fn commits_are_safe(trees: &Trees<'_>, name: &str, run: &Run) -> bool {
    if run.workplace.tree.is_empty() {
        return true;
    }
    let repository = trees.repository();
    let recorded: Vec<Commit> = recorded_commits(run).collect();
    // Every start of a run comes here, and only few have to ask for this.
    let tip = LazyCell::new(|| base_tip(run, &repository));
    let head = trees.tree(name).head();
    let own = repository.resolve(&format!("refs/heads/{}", run.workplace.branch));
    let is_safe = |commit: Option<Commit>| {
        commit.is_some_and(|commit| recorded.contains(&commit) || *tip == Some(commit))
    };
    is_safe(head.ok().flatten()) && is_safe(own.ok().flatten())
}

/// The commits that are safe: the base of a run, its accepted work, and the commits of its origin.
fn safe_commits(run: &Run, repository: &Repository) -> Vec<Commit> {
    recorded_commits(run).chain(base_tip(run, repository)).collect()
}

/// Where the base of a run is now. A process may have put the tree there for the next run, and died before it recorded that.
fn base_tip(run: &Run, repository: &Repository) -> Option<Commit> {
    repository.tip(&run.workplace.base).ok().flatten()
}

/// The base of a run and its accepted work.
fn recorded_commits(run: &Run) -> impl Iterator<Item = Commit> {
    let is_kept = match run.state {
        // It stays on its branch until it has landed, or as its worker wanted.
        RunState::Done => true,
        RunState::Cancelled => {
            matches!(run.said, Some(DoneStatus::Escalated | DoneStatus::Deferred))
        }
        RunState::Starting
        | RunState::Running
        | RunState::Blocked
        | RunState::Failed
        | RunState::Lost => false,
    };
    let accepted = is_kept.then_some(&run.landing.accepted);
    let texts = [Some(&run.workplace.base_commit), accepted];
    texts.into_iter().flatten().filter_map(|text| Commit::parse(text))
}

/// All rescues, the last first.
pub fn rescues(town: &Town) -> Result<Vec<Rescued>> {
    town.read(|reader| Ok(reader.rescues()?))
}

/// The rescue of a run, or of the last run of a bead that has one.
pub fn rescue_show(town: &Town, input: &str) -> Result<Rescued> {
    let none = |what: String| {
        OperationError::rejected(format!(
            "nothing was saved of {what}; gt rescue list shows what was"
        ))
    };
    if let Ok(run) = RunId::parse(input) {
        let found = town.read(|reader| Ok(reader.rescue_of(&run)?))?;
        return found.ok_or_else(|| none(run.to_string()));
    }
    let run = resolve(town, input)?;
    let all = rescues(town)?.into_iter();
    all.filter(|rescued| rescued.run.bead == run.id.bead)
        .max_by_key(|rescued| rescued.run.epoch)
        .ok_or_else(|| none(run.id.bead.to_string()))
}

/// A rescue that was given a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredRescue {
    /// The rescue.
    pub rescued: Rescued,
    /// The branch that has it, in the repository of its rig.
    pub branch: String,
    /// That repository.
    pub repository: PathBuf,
}

/// The repository that has a rescue.
pub fn rescue_repository(town: &Town, rescued: &Rescued) -> Result<PathBuf> {
    repository_of(town, rescued).map(|repository| repository.path().to_owned())
}

fn repository_of(town: &Town, rescued: &Rescued) -> Result<Repository> {
    let rig = town.read(|reader| Ok(reader.rig(rescued.rig.as_str())?))?;
    Ok(match rig {
        Some(rig) => Trees { town, rig: &rig }.repository(),
        // The directory of a rig that was removed is still there.
        None => Repository::at(repository_path(&town.root().join(rescued.rig.as_str()))),
    })
}

/// Gives a rescue a branch, from which work can go on.
pub fn restore_rescue(town: &Town, input: &str, branch: Option<&str>) -> Result<RestoredRescue> {
    let rescued = rescue_show(town, input)?;
    let repository = repository_of(town, &rescued)?;
    let failed = |source| OperationError::Git { rig: rescued.rig.clone(), source };
    let Some(commit) = repository.resolve(&rescued.reference).map_err(&failed)? else {
        return Err(OperationError::rejected(format!(
            "{} is not in {}; it was saved on {}",
            rescued.reference,
            repository.path().display(),
            rescued.host
        )));
    };
    let branch = branch
        .map_or_else(|| rescued.reference.replace("refs/gt/rescue/", "rescue/"), ToOwned::to_owned);
    let reference = format!("refs/heads/{branch}");
    match repository.resolve(&reference).map_err(&failed)? {
        Some(present) if present == commit => {}
        Some(_) => {
            return Err(OperationError::rejected(format!(
                "the branch {branch} exists already and has other commits; name another with --branch"
            )));
        }
        None => {
            // First, so that no worker that ends now is taken for the one that made it.
            note_reference(town, &rescued.rig, &reference, Some(&commit))?;
            if let Err(error) = repository.set_reference(&reference, &commit, None) {
                note_reference(town, &rescued.rig, &reference, None)?;
                return Err(failed(error));
            }
        }
    }
    Ok(RestoredRescue { rescued, branch, repository: repository.path().to_owned() })
}
