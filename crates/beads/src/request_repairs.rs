//! The repairs of merge requests that were sent back.

use gt_core::merging::{MergeRequest, RequestPurpose, RequestState};
use gt_core::schedule::ContextOrigin;
use gt_core::{Bead, DependencyType, Status};
use gt_store::Reader;

use gt_town::Result;

/// The repair run of a request that was sent back, or the place of that run in the queue; for the branch of a convoy, those of
/// the task that mends it. Empty if there is none.
pub fn repair_of(reader: &Reader<'_>, request: &MergeRequest) -> Result<String> {
    if !matches!(request.state, RequestState::Conflict | RequestState::Failed) {
        return Ok(String::new());
    }
    let own = request.id.bead.clone();
    let tasks = integration_repairs(reader, request)?.into_iter().map(|task| task.id);
    for bead in std::iter::once(own).chain(tasks) {
        if let Some(run) = reader.live_run(&bead)? {
            return Ok(format!("{} repairs it; gt run show {}", run.id, run.id));
        }
        if reader.open_context(&bead)?.is_some() {
            return Ok(format!("a repair is scheduled; gt why {bead} says what it waits for"));
        }
        let handed_in = reader.open_merge_request(&bead)?;
        if let Some(repair) = handed_in.filter(|repair| repair.id != request.id) {
            return Ok(format!("{} repairs it; gt mq show {}", repair.id, repair.id));
        }
    }
    Ok(String::new())
}

/// The tasks of a convoy that mend its branch in the rig of this request and are not closed. A repair is what such a task was
/// scheduled for first; a member of the convoy is not.
pub fn integration_repairs(reader: &Reader<'_>, request: &MergeRequest) -> Result<Vec<Bead>> {
    let mut tasks = Vec::new();
    if request.purpose != RequestPurpose::Integration {
        return Ok(tasks);
    }
    for edge in reader.edges_from(&request.id.bead)? {
        if edge.kind != DependencyType::Tracks {
            continue;
        }
        let is_open =
            |bead: &Bead| bead.status != Status::Closed && bead.rig.as_ref() == Some(&request.rig);
        let Some(bead) = reader.bead(&edge.target)?.filter(is_open) else { continue };
        let first = reader.contexts_of(&bead.id)?.into_iter().next();
        let is_repair = first.is_some_and(|first| {
            first.origin == ContextOrigin::Repair
                && first.parameters.base_branch.as_ref() == Some(&request.branch)
        });
        tasks.extend(is_repair.then_some(bead));
    }
    Ok(tasks)
}
