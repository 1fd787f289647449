//! How a run ends, and what follows.

use gt_core::decide::{AfterLoss, Blame, Price, after_loss};
use gt_core::schedule::{Context, Origin, Run, RunEnd, RunId, RunState};
use gt_core::{EventKind, Json, Outcome};
use gt_store::{NewContext, Writer};

use super::last_output::with_last_line;
use super::release::release_in;
use crate::beads::{Close, close_in};
use crate::dispatch::{Cost, SchedulerSettings, jitter, settle};
use crate::recovery::testify;
use crate::settings::{file_layers, layers_over};
use crate::{Result, Town};

/// What followed the end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finished {
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

/// Writes down how a run ended, together with everything that follows from it. The reason of a failure or a loss carries
/// the last line that the worker printed.
pub fn finish(town: &Town, id: &RunId, end: &RunEnd) -> Result<Finished> {
    let end = with_last_line(town, id, end);
    town.write(|writer| finish_in(writer, town, id, &end, None))
}

/// Like [`finish`], as a part of something larger. `by` ends it now; otherwise it is whoever has written down that it
/// is to end, or it ended by itself.
pub(crate) fn finish_in(
    writer: &mut Writer<'_>,
    town: &Town,
    id: &RunId,
    end: &RunEnd,
    by: Option<&str>,
) -> Result<Finished> {
    finish_as(writer, town, id, end, by, None)
}

/// Like [`finish_in`] for a run that ends by itself; a bead that closes with it gets this reason, if there is one.
pub(crate) fn finish_with_reason_in(
    writer: &mut Writer<'_>,
    town: &Town,
    id: &RunId,
    end: &RunEnd,
    reason: Option<String>,
) -> Result<Finished> {
    finish_as(writer, town, id, end, None, reason)
}

fn finish_as(
    writer: &mut Writer<'_>,
    town: &Town,
    id: &RunId,
    end: &RunEnd,
    by: Option<&str>,
    reason: Option<String>,
) -> Result<Finished> {
    let Some(run) = &writer.run(id)? else { return Ok(Finished::Already) };
    // What somebody wanted to end and is gone was cancelled, whoever notices that it is gone.
    let is_wanted = !run.ended_by.is_empty() && end.state == RunState::Lost;
    let cancelled = is_wanted.then(|| RunEnd { state: RunState::Cancelled, ..end.clone() });
    let by = by.filter(|_| !is_wanted).unwrap_or(&run.ended_by);
    let end = cancelled.as_ref().unwrap_or(end);
    if !writer.end_run(run, end, by)? {
        return Ok(Finished::Already);
    }
    let blame = testify(writer, run, end)?;
    let context = writer.context_by_number(run.context)?;
    match (end.state, context) {
        (RunState::Done, Some(context)) if context.parameters.review_only => {
            release_in(writer, &run.id.bead)?;
            Ok(Finished::Reopened)
        }
        (RunState::Done, _) => {
            let reason = reason.unwrap_or_else(|| format!("done by {}", run.id));
            close(writer, run, Outcome::Success, reason)?;
            Ok(Finished::Closed(Outcome::Success))
        }
        // What it was carried out with does not work, which was known before: the next one would fail as well.
        (RunState::Failed, Some(context)) if blame == Blame::Known => {
            lost(writer, town, run, &context, Price::Nothing)
        }
        (RunState::Failed, Some(context)) if context.parameters.retries > 0 => {
            release_in(writer, &run.id.bead)?;
            let mut next = successor(writer, &context, context.attempts)?;
            next.parameters.retries -= 1;
            // It was not lost: the cooldown between redispatches is not for it.
            next.origin = context.origin;
            writer.insert_contexts(vec![next])?;
            Ok(Finished::Rescheduled)
        }
        (RunState::Failed, _) => {
            close(writer, run, Outcome::Failed, end.reason.clone())?;
            Ok(Finished::Closed(Outcome::Failed))
        }
        (RunState::Lost, Some(context)) => {
            let price = match blame {
                Blame::Bead => Price::of(end.loss),
                Blame::Established | Blame::Known => Price::Nothing,
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
            Ok(Finished::Reopened)
        }
    }
}

fn close(writer: &mut Writer<'_>, run: &Run, outcome: Outcome, reason: String) -> Result<()> {
    let how = Close { reasons: vec![reason], outcome: Some(outcome), force: true, session: None };
    close_in(writer, &run.id.bead, &how, 0, None)?;
    Ok(())
}

/// The bead opens again, and its next run is scheduled in the same transaction, unless it had enough.
fn lost(
    writer: &mut Writer<'_>,
    town: &Town,
    run: &Run,
    context: &Context,
    price: Price,
) -> Result<Finished> {
    release_in(writer, &run.id.bead)?;
    let settings = SchedulerSettings::of(&layers_over(&file_layers(town)?, writer)?)?;
    let previous = (context.origin == Origin::Recovery).then_some(context.enqueued_at);
    let (used, most) = (context.attempts, settings.max_attempts);
    match after_loss(price, used, most, previous, settings.cooldown, writer.now()) {
        AfterLoss::Redispatch { attempts, not_before } => {
            let mut next = successor(writer, context, attempts)?;
            next.next_attempt_at = not_before;
            writer.insert_contexts(vec![next])?;
            Ok(Finished::Rescheduled)
        }
        AfterLoss::UsedUp { attempts } => {
            let number = Json::trusted(attempts.to_string());
            writer.record_run(run, EventKind::Escalated, &[("attempts", number)]);
            Ok(Finished::Escalated)
        }
    }
}

/// The same once more. What comes back by itself waits for no gate.
fn successor(writer: &Writer<'_>, context: &Context, attempts: u32) -> Result<NewContext> {
    let priority = writer.bead(&context.bead)?.map_or(context.priority, |bead| bead.priority);
    Ok(NewContext {
        place: context.place.clone(),
        account: context.account.clone(),
        parameters: context.parameters.clone(),
        attempts,
        ..NewContext::plain(context.bead.clone(), context.rig.clone(), priority, Origin::Recovery)
    })
}

/// Takes back a run whose worker took it and then could not start its agent: that counts as a start that
/// failed, though its context is closed already.
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
            settle(writer, &context, why, &Cost::Counted, jitter(&run.id.to_string()))?;
        }
        Ok(())
    })
}
