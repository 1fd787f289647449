//! The tasks that mend the integration branch of a convoy whose last request was sent back.

use gt_core::merging::{MergeRequest, RequestState, convoy_of_branch};
use gt_core::schedule::{ContextOrigin, Merge, Run, SlingParameters};
use gt_core::{Bead, BeadId, Outcome};
use gt_store::{NewContext, Reader, Writer};

use super::repair::refinery_of;
use gt_beads::beads::{Close, NewBead, close_in, create_in};
use gt_beads::request_repairs::integration_repairs;
use gt_scheduling::dispatch::DEFAULT_FORMULA;
use gt_town::{OperationError, Result, Town};

/// Makes a task that mends the integration branch of a convoy. The convoy tracks it; when it has landed on the branch, the
/// next request of the convoy is made.
pub(super) fn schedule_integration_repair_in(
    town: &Town,
    writer: &mut Writer<'_>,
    request: &MergeRequest,
) -> Result<()> {
    let MergeRequest { id, branch, target, detail, .. } = request;
    let convoy = &id.bead;
    let (title, description) = match request.state {
        RequestState::Conflict => (
            format!("Merge {target} into {branch}"),
            format!(
                "{id} brings {branch}, the work of the convoy {convoy}, to {target}. It does not apply there: {detail}.\n\n\
                 Merge the target into your branch (git merge origin/{target}), resolve what conflicts so that the work of \
                 both sides stays, and commit the merge. It lands on {branch}."
            ),
        ),
        _ => (
            format!("Mend {branch} for {target}"),
            format!(
                "{id} brings {branch}, the work of the convoy {convoy}, to {target}. It was sent back: {detail}.\n\n\
                 gt mq show {id} says more. Your branch begins at {branch}; mend it there. If the check passes on your branch alone, merge the target \
                 first (git merge origin/{target})."
            ),
        ),
    };
    let priority = writer.bead(convoy)?.map(|bead| bead.priority).unwrap_or_default();
    let task = NewBead {
        title,
        description,
        priority,
        rig: Some(request.rig.to_string()),
        ..NewBead::default()
    };
    let task = create_in(town, writer, &task)?.bead;
    writer.track(convoy, std::slice::from_ref(&task.id))?;
    let parameters = SlingParameters {
        formula: Some(DEFAULT_FORMULA.to_owned()),
        base_branch: Some(branch.clone()),
        merge: Some(Merge::Mr),
        convoy: Some(convoy.clone()),
        ..SlingParameters::default()
    };
    writer.insert_contexts(vec![NewContext {
        parameters,
        enqueued_by: Some(refinery_of(request).to_string()),
        ..NewContext::plain(task.id, request.rig.clone(), priority, ContextOrigin::Repair)
    }])?;
    Ok(())
}

/// The request of a convoy that was sent back, and whose branch a bead was made to mend.
pub(crate) fn request_mended_by(
    reader: &Reader<'_>,
    bead: &BeadId,
) -> Result<Option<MergeRequest>> {
    let first = reader.contexts_of(bead)?.into_iter().next();
    let first = first.filter(|first| first.origin == ContextOrigin::Repair);
    let Some(first) = first else { return Ok(None) };
    let branch = first.parameters.base_branch.unwrap_or_default();
    let Some(convoy) = convoy_of_branch(&branch) else { return Ok(None) };
    Ok(reader.open_merge_request(&convoy)?.filter(|request| {
        matches!(request.state, RequestState::Conflict | RequestState::Failed)
            && (&request.rig, &request.branch) == (&first.rig, &branch)
    }))
}

/// Closes the tasks that were to mend the branch of a request: a person has mended it. Refused while one of them is worked on,
/// or on its way to the branch.
pub(super) fn close_idle_repairs_in(writer: &mut Writer<'_>, request: &MergeRequest) -> Result<()> {
    let tasks = integration_repairs(writer, request)?;
    for task in &tasks {
        if let Some(run) = writer.live_run(&task.id)? {
            return Err(OperationError::rejected(format!(
                "{} mends {}; wait for it, or gt run cancel {}",
                run.id, request.branch, run.id
            )));
        }
        if let Some(open) = writer.open_merge_request(&task.id)? {
            return Err(OperationError::rejected(format!(
                "{} brings a repair to {}; wait for it, or gt mq cancel {}",
                open.id, request.branch, open.id
            )));
        }
    }
    close_repairs_in(writer, &tasks, &format!("not needed: {} is tried again", request.id))?;
    Ok(())
}

/// Closes the tasks that were to mend the branch of a request that is given up. Returns the runs that were ended with them,
/// whose processes the caller ends.
pub(super) fn end_repairs_in(writer: &mut Writer<'_>, request: &MergeRequest) -> Result<Vec<Run>> {
    let tasks = integration_repairs(writer, request)?;
    close_repairs_in(writer, &tasks, &format!("not needed: {} was cancelled", request.id))
}

fn close_repairs_in(writer: &mut Writer<'_>, tasks: &[Bead], why: &str) -> Result<Vec<Run>> {
    let mut ended = Vec::new();
    for task in tasks {
        let how = Close {
            reasons: vec![why.to_owned()],
            outcome: Some(Outcome::Cancelled),
            force: true,
            session: None,
        };
        ended.extend(close_in(writer, &task.id, &how, 0, None)?.cancelled);
    }
    Ok(ended)
}
