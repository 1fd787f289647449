//! Taking back a slung bead.

use gt_core::merging::MergeRequestId;
use gt_core::schedule::{ContextId, RunState};
use gt_core::{BeadId, Status};

use super::cancel::{CancelResult, cancel};
use crate::merge_queue::cancel_request;
use gt_beads::acting::require_own_work;
use gt_beads::lookup::resolve_in;
use gt_beads::transition_check::refuse_if_over;
use gt_scheduling::queue::clear;
use gt_town::{OperationError, Result, Town};

/// The outcome for a bead that was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unslung {
    /// It was running, and its run ended as this.
    Cancelled(CancelResult),
    /// It was scheduled, and is not any more.
    Cleared(BeadId, ContextId),
    /// Its work had not landed, and its merge request is given up.
    GivenUp(MergeRequestId),
    /// It was none of these.
    Nothing(BeadId),
}

/// Takes a bead back: a live run is ended, a place in the queue and a merge request are given up. The bead is open afterwards.
pub fn unsling(town: &Town, input: &str) -> Result<Unslung> {
    let (bead, live, context) = town.read(|reader| {
        let id = resolve_in(town, reader, input)?;
        refuse_if_over(town, reader, &id, "take back")?;
        require_own_work(town, reader, &id)?;
        let bead = reader.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))?;
        Ok((bead, reader.live_run(&id)?, reader.open_context(&id)?))
    })?;
    if let Some(run) = live {
        let cancelled = cancel(town, &run.id.to_string())?;
        // A run that failed to start at this moment is back in the queue.
        if cancelled.state == RunState::Cancelled || !is_scheduled(town, &bead.id)? {
            return Ok(Unslung::Cancelled(cancelled));
        }
        return unsling(town, bead.id.as_str());
    }
    if let Some(context) = context {
        let cleared = clear(town, &[bead.id.to_string()])?;
        if cleared.cleared.is_empty() {
            // It was started in this very moment.
            return unsling(town, bead.id.as_str());
        }
        // The context may have been that of a repair.
        if town.read(|reader| Ok(reader.open_merge_request(&bead.id)?))?.is_some() {
            cancel_request(town, bead.id.as_str())?;
        }
        return Ok(Unslung::Cleared(bead.id, context.id));
    }
    if let Some(request) = town.read(|reader| Ok(reader.open_merge_request(&bead.id)?))? {
        return Ok(Unslung::GivenUp(cancel_request(town, &request.id.to_string())?.id));
    }
    if matches!(bead.status, Status::Hooked | Status::InProgress) {
        let id = &bead.id;
        let who = if bead.assignee.is_empty() { "an unnamed user" } else { &bead.assignee };
        return Err(OperationError::rejected(format!(
            "{id} was claimed by {who} by hand and has no run; bd update {id} --status open releases it"
        )));
    }
    Ok(Unslung::Nothing(bead.id))
}

fn is_scheduled(town: &Town, bead: &BeadId) -> Result<bool> {
    town.read(|reader| Ok(reader.open_context(bead)?.is_some()))
}
