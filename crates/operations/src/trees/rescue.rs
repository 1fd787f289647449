//! What is saved of the tree of a run that did not end well.

use std::path::PathBuf;

use gt_core::Rig;
use gt_core::schedule::{Rescued, Run, RunId, WorkerPlace};
use gt_core::settings::parse_bytes;
use gt_executors::git::{Repository, Tree};

use super::{Trees, git_failed, rescue_reference, rig_with_trees, signature_of};
use crate::runs::resolve;
use crate::settings::layers_in;
use crate::{OperationError, Result, Town};

/// Saves what a run has left in its tree and nobody has accepted; nothing if it left nothing. The tree stays as it
/// is.
pub(crate) fn save(town: &Town, rig: &Rig, run: &Run) -> Result<Option<Rescued>> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(None) };
    let Some(name) = run.place.as_ref().and_then(WorkerPlace::polecat_name) else {
        return Ok(None);
    };
    if run.workplace.tree.is_empty() {
        return Ok(None);
    }
    let tree = trees.tree(name);
    let failed = git_failed(rig);
    // Another run may have the tree by now; then whoever gave it to them has saved this one. A branch that is nobody's,
    // or none at all, is what this one has made of it.
    let branch = tree.branch().map_err(&failed)?;
    let is_of_another = branch.is_some_and(|branch| {
        branch != run.workplace.branch && branch.starts_with(&format!("polecat/{name}/"))
    });
    if is_of_another {
        return Ok(None);
    }
    if has_nothing(&tree, run).map_err(&failed)? {
        return Ok(None);
    }
    let bytes_max = town.read(|reader| {
        Ok(parse_bytes(&layers_in(town.root(), reader)?.get("rescue.max")?.value).unwrap_or(0))
    })?;
    let reference = rescue_reference(&run.id);
    let message = format!("What {} left in {}", run.id, run.workplace.tree);
    let saved = tree
        .rescue(&trees.repository(), &reference, &message, &signature_of(run), bytes_max)
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

/// Whether the tree is as it was when the run began.
fn has_nothing(tree: &Tree, run: &Run) -> Result<bool, gt_executors::git::GitError> {
    let head = tree.head()?;
    let is_at_base = head.is_some_and(|head| head.as_str() == run.workplace.base_commit);
    Ok(is_at_base && tree.status()?.is_clean())
}

/// Everything that was saved, the last first.
pub fn rescues(town: &Town) -> Result<Vec<Rescued>> {
    town.read(|reader| Ok(reader.rescues()?))
}

/// What was saved of a run, or of the last run of a bead of which something was.
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

/// Where what was saved can be found again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredRescue {
    /// What it is.
    pub rescued: Rescued,
    /// The branch that has it, in the repository of its rig.
    pub branch: String,
    /// That repository.
    pub repository: PathBuf,
}

/// The repository that has what was saved.
pub fn rescue_repository(town: &Town, rescued: &Rescued) -> Result<PathBuf> {
    repository_of(town, rescued).map(|(_, repository)| repository.path().to_owned())
}

fn repository_of(town: &Town, rescued: &Rescued) -> Result<(Rig, Repository)> {
    let rig = rig_with_trees(town, rescued.rig.as_str())?;
    let repository = Trees { town, rig: &rig }.repository();
    Ok((rig, repository))
}

/// Gives what was saved a branch, from which work can go on.
pub fn restore_rescue(town: &Town, input: &str, branch: Option<&str>) -> Result<RestoredRescue> {
    let rescued = rescue_show(town, input)?;
    let (rig, repository) = repository_of(town, &rescued)?;
    let failed = git_failed(&rig);
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
        None => repository.set_reference(&reference, &commit, None).map_err(&failed)?,
    }
    Ok(RestoredRescue { rescued, branch, repository: repository.path().to_owned() })
}
