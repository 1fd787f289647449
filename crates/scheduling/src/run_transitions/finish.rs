//! The end of a run, and its consequences.

use gt_core::decide::{AfterLoss, FailureCause, LossCost, after_loss};
use gt_core::event::{AttemptsUsed, LimitReached};
use gt_core::schedule::{Context, ContextOrigin, Run, RunEnd, RunId, RunLimit, RunLoss, RunState};
use gt_core::{BeadChangeKind, EventPayload, Outcome, Status};
use gt_store::{NewContext, Writer};

use super::last_output::with_last_words;
use crate::dispatch::record_run_evidence;
use crate::dispatch::{StartFailureCost, put_back_or_give_up};
use gt_beads::beads::{Close, close_in};
use gt_beads::run_records::{release_in, set_status_in};
use gt_core::jitter;
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town};

/// The consequence of the end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishEffect {
    /// It had ended already; nothing was changed.
    Already,
    /// The bead is closed.
    Closed(Outcome),
    /// The bead is open, and another run is scheduled.
    Rescheduled,
    /// The bead is open, and a person is asked.
    Escalated,
    /// The bead is open.
    Reopened,
}

/// Records the end of a run, with all consequences. The reason of a failure or a loss carries the last words of its
/// worker.
pub fn finish(town: &Town, id: &RunId, end: &RunEnd) -> Result<FinishEffect> {
    let end = with_last_words(town, id, end);
    town.write(|writer| finish_in(writer, town, id, &end))
}

/// Like [`finish`], inside a larger transaction.
pub fn finish_in(
    writer: &mut Writer<'_>,
    town: &Town,
    id: &RunId,
    end: &RunEnd,
) -> Result<FinishEffect> {
    finish_with_reason_in(writer, town, id, end, None)
}

/// Ends a run and judges its runtime and account by its end, in one transaction; its bead is left to the caller. Nothing if the
/// run has ended already.
pub fn end_run_in(
    writer: &mut Writer<'_>,
    run: &Run,
    end: &RunEnd,
    by: &str,
) -> Result<Option<FailureCause>> {
    if !writer.end_run(run, end, by)? {
        return Ok(None);
    }
    Ok(Some(record_run_evidence(writer, run, end)?))
}

/// Like [`finish_in`]. A bead that closes with the run gets this reason, if there is one.
pub fn finish_with_reason_in(
    writer: &mut Writer<'_>,
    town: &Town,
    id: &RunId,
    end: &RunEnd,
    reason: Option<String>,
) -> Result<FinishEffect> {
    let Some(run) = &writer.run(id)? else { return Ok(FinishEffect::Already) };
    // A run that was to be cancelled and is gone counts as cancelled, even if recovery finds it.
    let is_wanted = !run.ended_by.is_empty() && end.state == RunState::Lost;
    let cancelled = is_wanted.then(|| RunEnd { state: RunState::Cancelled, ..end.clone() });
    let end = cancelled.as_ref().unwrap_or(end);
    // However its worker went, it went because it was asked to.
    let over = run.over_limit.filter(|_| end.state == RunState::Lost);
    let ended_over = over.map(|_| RunEnd { loss: RunLoss::Budget, ..end.clone() });
    let end = ended_over.as_ref().unwrap_or(end);
    let Some(blame) = end_run_in(writer, run, end, &run.ended_by)? else {
        return Ok(FinishEffect::Already);
    };
    let context = writer.context_by_number(run.context)?;
    match (end.state, context) {
        // Without a repository there is no merge request that a person could approve.
        (RunState::Done, Some(context)) if context.is_reviewed_by_hand(run) => {
            release_in(writer, &run.id.bead)?;
            Ok(FinishEffect::Reopened)
        }
        (RunState::Done, _) => {
            let reason = reason.unwrap_or_else(|| format!("done by {}", run.id));
            close(writer, run, Outcome::Success, reason)?;
            Ok(FinishEffect::Closed(Outcome::Success))
        }
        // Its runtime or account was already known not to work: the next run would fail as well.
        (RunState::Failed, Some(context)) if blame == FailureCause::Known => {
            lost(writer, town, run, &context, LossCost::Nothing)
        }
        (RunState::Failed, Some(context)) if context.parameters.retries > 0 => {
            release_in(writer, &run.id.bead)?;
            let mut next = successor(writer, &context, context.attempts)?;
            next.parameters.retries -= 1;
            // It was not lost: the cooldown between redispatches is not for it.
            next.origin = context.origin;
            writer.insert_contexts(vec![next])?;
            Ok(FinishEffect::Rescheduled)
        }
        // Accepted work is not given up because its repair failed.
        (RunState::Failed, _) if writer.open_merge_request(&run.id.bead)?.is_some() => {
            // A person has to decide.
            let changed = BeadChangeKind::StatusChanged;
            set_status_in(writer, &run.id.bead, Status::Blocked, "", changed)?;
            writer.record_run(run, EventPayload::Escalated(AttemptsUsed { attempts: 1 }));
            Ok(FinishEffect::Escalated)
        }
        (RunState::Failed, _) => {
            close(writer, run, Outcome::Failed, end.reason.clone())?;
            Ok(FinishEffect::Closed(Outcome::Failed))
        }
        (RunState::Lost, Some(context)) => {
            let price = match blame {
                FailureCause::Bead => LossCost::of(end.loss),
                FailureCause::Established | FailureCause::Known => LossCost::Nothing,
            };
            lost(writer, town, run, &context, price)
        }
        (
            RunState::Lost
            | RunState::Cancelled
            | RunState::Starting
            | RunState::Running
            | RunState::Blocked,
            _,
        ) => {
            release_in(writer, &run.id.bead)?;
            Ok(FinishEffect::Reopened)
        }
    }
}

fn close(writer: &mut Writer<'_>, run: &Run, outcome: Outcome, reason: String) -> Result<()> {
    let how = Close { reasons: vec![reason], outcome: Some(outcome), force: true, session: None };
    close_in(writer, &run.id.bead, &how, 0, None)?;
    Ok(())
}

/// Reopens the bead, and schedules its next run in the same transaction, unless its attempts are used up.
fn lost(
    writer: &mut Writer<'_>,
    town: &Town,
    run: &Run,
    context: &Context,
    price: LossCost,
) -> Result<FinishEffect> {
    release_in(writer, &run.id.bead)?;
    let settings = SchedulerSettings::of(&layers_over(&file_layers(town)?, writer)?)?;
    let previous = (context.origin == ContextOrigin::Recovery).then_some(context.enqueued_at);
    let (used, most) = (context.attempts, settings.max_attempts);
    match after_loss(price, used, most, previous, settings.cooldown, writer.now()) {
        AfterLoss::Redispatch { attempts, not_before } => {
            let mut next = successor(writer, context, attempts)?;
            next.next_attempt_at = not_before;
            writer.insert_contexts(vec![next])?;
            Ok(FinishEffect::Rescheduled)
        }
        AfterLoss::AskPerson => {
            let limit = run.over_limit.map(RunLimit::as_str).unwrap_or_default().to_owned();
            writer.record_run(run, EventPayload::OverLimit(LimitReached { limit }));
            Ok(FinishEffect::Escalated)
        }
        AfterLoss::UsedUp { attempts } => {
            writer.record_run(run, EventPayload::Escalated(AttemptsUsed { attempts }));
            Ok(FinishEffect::Escalated)
        }
    }
}

/// The same context once more. An automatic retry waits for no gate.
fn successor(writer: &Writer<'_>, context: &Context, attempts: u32) -> Result<NewContext> {
    let priority = writer.bead(&context.bead)?.map_or(context.priority, |bead| bead.priority);
    Ok(NewContext {
        place: context.place.clone(),
        account: context.account.clone(),
        parameters: context.parameters.clone(),
        attempts,
        ..NewContext::plain(
            context.bead.clone(),
            context.rig.clone(),
            priority,
            ContextOrigin::Recovery,
        )
    })
}

/// Takes back a run that was claimed and whose agent could not be started: that counts as a failed start, though its
/// context is closed already.
pub fn exec_failed(town: &Town, id: &RunId, why: &str) -> Result<()> {
    town.write(|writer| {
        let Some(run) = writer.run(id)?.filter(|run| run.state.is_live()) else { return Ok(()) };
        writer.fail_start(&run, why, "")?;
        release_in(writer, &id.bead)?;
        let Some(context) = writer.context_by_number(run.context)? else { return Ok(()) };
        let mut next = successor(writer, &context, context.attempts)?;
        next.failures = context.failures;
        next.origin = context.origin;
        next.gated = context.gated;
        for context in writer.insert_contexts(vec![next])? {
            put_back_or_give_up(
                writer,
                &context,
                why,
                &StartFailureCost::Counted,
                jitter(&run.id.to_string()),
            )?;
        }
        Ok(())
    })
}
