//! Which commit a person or a worker wants to have checked.

use gt_core::schedule::Run;
use gt_core::{BeadId, Rig};
use gt_executors::git::{Commit, GitError, Repository, Tree};
use gt_store::{Reader, Worker};

use crate::trees::use_environment_of_supervisor;
use gt_beads::acting::current_run;
use gt_beads::lookup;
use gt_town::hosts::{host_of, other_host_of};
use gt_town::rig_names::require;
use gt_town::tree_paths::{Trees, git_failed, rig_with_trees};
use gt_town::{OperationError, Result, Town};

/// A commit to check.
#[derive(Debug, Clone)]
pub struct CheckedCommit {
    /// The rig whose checks count.
    pub rig: Rig,
    /// The commit.
    pub commit: Commit,
    /// The bead that it is the work of, if a bead was named.
    pub bead: Option<BeadId>,
}

/// Finds the commit that `input` means: a commit or branch of a rig, or a bead, whose accepted commit or branch it is then. A
/// worker that names nothing means the work on its own branch, and nothing else may be checked for it.
pub fn commit_to_check(
    town: &Town,
    input: Option<&str>,
    rig: Option<&str>,
) -> Result<CheckedCommit> {
    if let Some(worker) = town.worker() {
        return own_work(town, worker, input);
    }
    let input = input.ok_or_else(|| {
        OperationError::rejected(
            "name a commit, a branch or a bead: gt rig check run <commit|bead> [--rig <rig>]",
        )
    })?;
    match lookup::resolve(town, input) {
        Ok(bead) => of_bead(town, &bead),
        Err(no_bead) => {
            let Some(rig) = rig_meant(town, rig)? else {
                let advice = "a commit or a branch needs its rig, with --rig <rig>";
                return Err(OperationError::rejected(format!("{no_bead}; {advice}")));
            };
            let commit = of_rig(town, &rig, input)?;
            Ok(CheckedCommit { rig, commit, bead: None })
        }
    }
}

/// The work of the worker that asks.
fn own_work(town: &Town, worker: &Worker, input: Option<&str>) -> Result<CheckedCommit> {
    let (run, rig) = town.read(|reader| {
        let run = current_run(reader, worker)?;
        let rig = require(reader, run.rig.as_str())?;
        Ok((run, rig))
    })?;
    // A check of the worker must not depend on variables that the worker has changed: its pass counts for the queue.
    use_environment_of_supervisor(town, &run.id);
    let trees = Trees::of(town, &rig).filter(|_| !run.workplace.tree.is_empty());
    let Some(trees) = trees else {
        return Err(OperationError::rejected(format!(
            "{} has no tree, so that nothing can be checked",
            run.id
        )));
    };
    let failed = git_failed(&rig);
    let repository = trees.repository();
    let tree = Tree::of(town.root().join(&run.workplace.tree), &repository);
    let status = tree.status().map_err(&failed)?;
    if let Some(path) = status.changes.paths().next() {
        return Err(OperationError::rejected(format!(
            "commit first: a check runs on a commit, and {} is not committed",
            path.display()
        )));
    }
    let head = status.head.ok_or_else(|| {
        OperationError::rejected(format!("commit first: the tree of {} has no commit", run.id))
    })?;
    let own = || CheckedCommit {
        rig: rig.clone(),
        commit: head.clone(),
        bead: Some(run.id.bead.clone()),
    };
    let Some(input) = input
        .filter(|input| ![run.id.bead.as_str(), "HEAD", &run.workplace.branch].contains(input))
    else {
        return Ok(own());
    };
    match repository.resolve(input).map_err(&failed)? {
        Some(commit) if repository.is_ancestor(&commit, &head).map_err(&failed)? => {
            Ok(CheckedCommit { commit, ..own() })
        }
        _ => Err(OperationError::rejected(format!(
            "{input} is not on {}, and a worker has only its own branch checked; say gt rig check run",
            run.workplace.branch
        ))),
    }
}

/// The accepted work of a bead, or else the branch of its last run.
fn of_bead(town: &Town, bead: &BeadId) -> Result<CheckedCommit> {
    let (rig, wanted) = town.read(|reader| {
        let found = accepted_or_branch(reader, bead)?;
        let (rig, wanted) = found.ok_or_else(|| {
            OperationError::rejected(format!(
                "{bead} has no branch with work; name a commit with --rig <rig>"
            ))
        })?;
        Ok((require(reader, &rig)?, wanted))
    })?;
    let commit = of_rig(town, &rig, &wanted)?;
    Ok(CheckedCommit { rig, commit, bead: Some(bead.clone()) })
}

/// The rig, and the commit or branch.
fn accepted_or_branch(reader: &Reader<'_>, bead: &BeadId) -> Result<Option<(String, String)>> {
    if let Some(request) = reader.merge_requests_of(bead)?.into_iter().next() {
        return Ok(Some((request.rig.to_string(), request.accepted)));
    }
    let of_run = |run: Run| {
        let accepted = Some(run.landing.accepted).filter(|accepted| !accepted.is_empty());
        let branch = Some(run.workplace.branch).filter(|branch| !branch.is_empty());
        Some((run.rig.to_string(), accepted.or(branch)?))
    };
    Ok(reader.runs_of(bead)?.into_iter().find_map(of_run))
}

/// The rig that a person means: the one that they name, the one they stand in, or the only one.
fn rig_meant(town: &Town, name: Option<&str>) -> Result<Option<Rig>> {
    if let Some(name) = name {
        return rig_with_trees(town, name).map(Some);
    }
    let mut rigs = town.read(|reader| Ok(reader.rigs()?))?;
    if let Some(here) = town.rig_here(&rigs) {
        return Ok(Some(here));
    }
    rigs.retain(Rig::has_trees);
    Ok(if rigs.len() == 1 { rigs.pop() } else { None })
}

/// The commit of a rig that a text names; the origin is asked if it is not here.
fn of_rig(town: &Town, rig: &Rig, text: &str) -> Result<Commit> {
    let rig = rig_with_trees(town, rig.slug.as_str())?;
    if let Some(host) = other_host_of(town, &rig.slug, &host_of(town)?)? {
        return Err(OperationError::rejected(format!(
            "only the host {host} works on the rig {}; run the checks there",
            rig.slug
        )));
    }
    let trees = Trees { town, rig: &rig };
    let failed = git_failed(&rig);
    let path = trees.repository().path().to_owned();
    let repository = Repository::clone_from(&rig.repo, path).map_err(&failed)?;
    let find = || -> Result<Option<Commit>> {
        match repository.resolve(text).map_err(&failed)? {
            Some(commit) => Ok(Some(commit)),
            None => repository.tip(text).map_err(&failed),
        }
    };
    // The name of a branch means the commit that it has now, and a commit that is here is the same everywhere.
    let here = find()?;
    if let Some(commit) = here.as_ref().filter(|commit| commit.as_str().starts_with(text)) {
        return Ok(commit.clone());
    }
    match repository.fetch() {
        // A branch of a worker is here alone.
        Err(GitError::Unreachable { .. }) if here.is_some() => {}
        fetched => fetched.map_err(&failed)?,
    }
    find()?.ok_or_else(|| {
        OperationError::rejected(format!(
            "the rig {} has no commit, branch or bead \"{}\"; name one with gt rig check run <commit|bead>",
            rig.slug,
            text.chars().take(60).collect::<String>().escape_debug()
        ))
    })
}
