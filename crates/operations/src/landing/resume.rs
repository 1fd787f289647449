//! Work that was on its way when somebody died.

use gt_core::schedule::{LandingState, Run};
use gt_executors::git::{Commit, GitError};

use super::done::end_as_said;
use super::land::{Landed, land};
use crate::runs::{Alive, World};
use crate::trees::{Trees, git_failed};
use crate::{Result, Town};

/// Asks the origin about every push whose end nobody has seen, and whose worker is gone: what is there is confirmed, and
/// what is not there is pushed again. Returns the runs that are over now.
pub(crate) fn resume(town: &Town, world: &dyn World) -> Result<Vec<Run>> {
    let mut over = Vec::new();
    for run in town.read(|reader| Ok(reader.landing_runs()?))? {
        if !run.is_on(world.host()) || world.worker_of(&run) != Alive::No {
            continue;
        }
        if complete(town, &run)? {
            over.push(run);
        }
    }
    Ok(over)
}

fn complete(town: &Town, run: &Run) -> Result<bool> {
    let rig = town.read(|reader| Ok(reader.rig(run.rig.as_str())?))?;
    let Some(rig) = rig else { return Ok(false) };
    let Some(trees) = Trees::of(town, &rig) else { return Ok(false) };
    let repository = trees.repository();
    let failed = git_failed(&rig);
    let Some(accepted) = Commit::parse(&run.landing.accepted) else { return Ok(false) };
    let pushed = Commit::parse(&run.landing.commit);
    // Where nobody answers, the question stays open.
    if let Err(error) = repository.fetch() {
        return match error {
            GitError::Unreachable { .. } => Ok(false),
            other => Err(failed(other)),
        };
    }
    let tip = repository.tip(&run.workplace.base).map_err(&failed)?;
    let is_there = match (&pushed, &tip) {
        (Some(pushed), Some(tip)) => repository.is_ancestor(pushed, tip).map_err(&failed)?,
        _ => false,
    };
    let commit = if is_there {
        pushed.unwrap_or(accepted)
    } else if run.state.is_live() {
        match land(town, &rig, run, &repository, &accepted, &run.workplace.base)? {
            Landed::There(commit) => commit,
            // It is lost like any other run, and what it did is saved.
            Landed::Conflict(_) | Landed::Rejected(_) | Landed::Unreachable(_) => return Ok(false),
        }
    } else {
        return Ok(false);
    };
    town.write(|writer| {
        writer.set_landing(run, LandingState::Confirmed, commit.as_str())?;
        if run.state.is_live() { end_as_said(writer, town, run) } else { Ok(false) }
    })
}
