//! Changes of status: what the table answers, for the bead and for the run that has it.

use gt_core::decide::{ConvoyState, RunEffect, Transition, Verb, VerbActor, refuse_convoy_status};
use gt_core::schedule::{CloseReason, Run, RunEnd, RunId, RunState};
use gt_core::{Bead, BeadChangeKind, Outcome, Status};
use gt_store::Writer;

use crate::merge_requests::cancel_request_in;
use crate::run_records::cancel_in;
use crate::transition_check::{BeadDecision, ask};
use gt_town::{OperationError, Result};

/// The result of a verb. The run is settled; the bead is the caller's to save.
pub(super) struct AppliedVerb {
    /// The bead as it is stored: a run that was cancelled has given it back.
    pub(super) old: Bead,
    /// The bead as it is to be.
    pub(super) new: Bead,
    /// Which kind of event the change is, if it has one of its own.
    pub(super) kind: Option<BeadChangeKind>,
    /// Its run ended with it.
    pub(super) ended: bool,
    /// The run that was cancelled for it; its processes are still to be ended.
    pub(super) cancelled: Option<Run>,
}

/// Does `verb` to `bead` for an actor in the run `acting`. The caller adds the reason and the outcome of a close.
pub(super) fn apply(
    writer: &mut Writer<'_>,
    bead: &Bead,
    verb: &Verb,
    name: &'static str,
    acting: Option<&RunId>,
) -> Result<AppliedVerb> {
    let end = RunEnd::without_status(RunState::Done, "its bead was closed");
    apply_with_end(writer, bead, verb, name, acting, &end)
}

/// Like [`apply`], where the close of the bead may end its run in this way.
pub(super) fn apply_with_end(
    writer: &mut Writer<'_>,
    bead: &Bead,
    verb: &Verb,
    name: &'static str,
    acting: Option<&RunId>,
    end: &RunEnd,
) -> Result<AppliedVerb> {
    let speaker = VerbActor { name: writer.actor(), run: acting };
    let answer = ask(writer, bead, verb, speaker, writer.now())?;
    let answer = answer.map_err(|refusal| {
        let bead = bead.id.clone();
        OperationError::Refused { verb: name, bead, refusal }
    })?;
    let cancelled = apply_run_effect(writer, &answer, end)?;
    match answer.ruling.bead {
        Transition::Closed => drop(cancel_request_in(writer, &bead.id, "its bead was closed")?),
        Transition::Deleted => drop(cancel_request_in(writer, &bead.id, "its bead was deleted")?),
        Transition::Nothing
        | Transition::Claimed
        | Transition::Status(_)
        | Transition::Reopened
        | Transition::Assigned => {}
    }
    let old = match &cancelled {
        None => bead.clone(),
        Some(_) => {
            writer.bead(&bead.id)?.ok_or_else(|| OperationError::NoBead(bead.id.to_string()))?
        }
    };
    let now = writer.now();
    let mut new = old.clone();
    let kind = match answer.ruling.bead {
        Transition::Nothing | Transition::Claimed | Transition::Deleted => None,
        Transition::Assigned => {
            if let Verb::Assign(to) = verb {
                new.assignee.clone_from(to);
            }
            None
        }
        Transition::Status(status) => {
            new.enter(status, now);
            Some(BeadChangeKind::StatusChanged)
        }
        Transition::Closed => {
            new.status = Status::Closed;
            new.closed_at = Some(now);
            new.close_reason = String::new();
            new.outcome = None;
            Some(BeadChangeKind::Closed)
        }
        Transition::Reopened => {
            new.enter(Status::Open, now);
            // The worker whose run closed it has gone; a person who had it has it again.
            let last_run = writer.runs_of(&new.id)?.into_iter().next();
            if last_run.is_some_and(|run| run.agent == new.assignee) {
                new.assignee = String::new();
            }
            Some(BeadChangeKind::Reopened)
        }
    };
    refuse_for_convoy(&old, &new)?;
    Ok(AppliedVerb { old, new, kind, ended: answer.ruling.run == RunEffect::Ended, cancelled })
}

/// The bead after the writer's actor has claimed it.
pub(super) fn claim_in(
    writer: &mut Writer<'_>,
    bead: &Bead,
    acting: Option<&RunId>,
) -> Result<Bead> {
    let speaker = VerbActor { name: writer.actor(), run: acting };
    let answer = ask(writer, bead, &Verb::Claim, speaker, writer.now())?;
    let answer =
        answer.map_err(|refusal| OperationError::NotClaimed { bead: bead.id.clone(), refusal })?;
    // A claim ends no run, so it does not matter how.
    apply_run_effect(writer, &answer, &RunEnd::without_status(RunState::Done, ""))?;
    let mut claimed = bead.clone();
    match answer.ruling.bead {
        Transition::Claimed => {
            writer.actor().clone_into(&mut claimed.assignee);
            claimed.enter(Status::InProgress, writer.now());
        }
        Transition::Status(status) => claimed.enter(status, writer.now()),
        Transition::Nothing
        | Transition::Closed
        | Transition::Reopened
        | Transition::Assigned
        | Transition::Deleted => return Ok(claimed),
    }
    refuse_for_convoy(bead, &claimed)?;
    claimed.updated_at = writer.now().of_change_after(bead.updated_at);
    Ok(claimed)
}

/// Convoys have statuses of their own, and verbs of their own to get from one to the other.
fn refuse_for_convoy(old: &Bead, new: &Bead) -> Result<()> {
    if !old.issue_type.is_convoy() || old.status == new.status {
        return Ok(());
    }
    match refuse_convoy_status(ConvoyState::of(old), &new.status) {
        Some(why) => Err(OperationError::rejected(format!("{} is a convoy: {why}", old.id))),
        None => Ok(()),
    }
}

/// Lets the run that has `bead` go before the bead is deleted. Says which, if there was one.
pub(crate) fn cancel_before_delete_in(
    writer: &mut Writer<'_>,
    bead: &Bead,
    acting: Option<&RunId>,
) -> Result<Option<Run>> {
    Ok(apply(writer, bead, &Verb::Delete { force: true }, "delete", acting)?.cancelled)
}

/// Does to the run what the table said. Says which was cancelled, if one was.
fn apply_run_effect(
    writer: &mut Writer<'_>,
    answer: &BeadDecision,
    end: &RunEnd,
) -> Result<Option<Run>> {
    let Some(run) = &answer.run else { return Ok(None) };
    match answer.ruling.run {
        RunEffect::Untouched => Ok(None),
        RunEffect::Taken => {
            writer.claim_run(run, &run.workplace)?;
            let context = writer.context_by_number(run.context)?;
            if let Some(context) = context.filter(|context| context.closed.is_none()) {
                writer.close_context(&context, CloseReason::Dispatched, "")?;
            }
            Ok(None)
        }
        RunEffect::Ended => {
            writer.end_run(run, end, "")?;
            Ok(None)
        }
        RunEffect::Cancelled => {
            cancel_in(writer, run)?;
            Ok(Some(run.clone()))
        }
    }
}

/// How a close is told from a plain change of status.
pub(super) fn finish(bead: &mut Bead, reason: &str, outcome: Option<Outcome>) {
    reason.clone_into(&mut bead.close_reason);
    bead.outcome = outcome;
}
