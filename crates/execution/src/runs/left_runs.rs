//! The runs of this host that others have ended in the store: their processes are ended here. Those that were declared lost while
//! it was gone are saved and reported as well.

use gt_core::schedule::{Run, RunId, RunState};

use crate::trees::{NotPrepared, occupy, save};
use gt_scheduling::processes::{Alive, ProcessProbe};
use gt_town::{Result, Town, hosts};

/// Ends what is left of the runs of this host that others have ended. Saves the trees of those that were declared lost while it
/// was gone, and reports that; the others were cancelled, and their supervisors do what is left to do.
/// A run whose processes do not end, or whose tree is busy, is tried again in the next pass.
pub fn clear_left_runs(town: &Town, processes: &dyn ProcessProbe) -> Result<Vec<RunId>> {
    if !hosts::has_lease(town) {
        return Ok(Vec::new());
    }
    let own = hosts::own_row(town)?;
    let left = town.read(|reader| {
        let mut left = Vec::new();
        for id in reader.left_runs(&own.id)? {
            left.extend(reader.run(&id)?);
        }
        Ok(left)
    })?;
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let grace = town.scheduler_settings()?.kill_grace;
    let (mut cleared, mut saved, mut cancelled) = (Vec::new(), Vec::new(), Vec::new());
    for run in &left {
        if processes.worker_of(run) != Alive::No && processes.end_worker(run, grace).is_err() {
            continue;
        }
        if run.state == RunState::Cancelled {
            cancelled.push(run.id.clone());
            continue;
        }
        let Some(is_saved) = save_tree(town, run)? else { continue };
        if is_saved {
            saved.push(run.id.clone());
        }
        cleared.push(run.id.clone());
    }
    town.write(|writer| {
        writer.forget_left_runs(&cancelled)?;
        Ok(writer.clear_left_runs(&own, &cleared, &saved)?)
    })?;
    Ok(cleared)
}

/// Saves the work in the tree of a run; nothing if that cannot be done now.
fn save_tree(town: &Town, run: &Run) -> Result<Option<bool>> {
    let rig = town.read(|reader| Ok(reader.rig(run.rig.as_str())?))?;
    let Some(rig) = rig.filter(|rig| rig.has_trees() && !run.workplace.tree.is_empty()) else {
        return Ok(Some(false));
    };
    let _lock = match occupy(town, &rig, run) {
        Ok(lock) => lock,
        Err(NotPrepared::Busy(_) | NotPrepared::Away(_)) => return Ok(None),
        // A tree that cannot be locked is gone, or is kept as it is.
        Err(NotPrepared::Failed(_)) => return Ok(Some(false)),
    };
    match save(town, &rig, run) {
        Ok(saved) => Ok(Some(saved.is_some())),
        Err(error) if error.is_of_store() => Err(error),
        // A tree that git cannot read is kept as it is.
        Err(_) => Ok(Some(false)),
    }
}
