//! `gt deacon redispatch`: another run for a bead that has none, by the rules of recovery.

use std::time::Duration;

use gt_core::decide::WaitReason;
use gt_core::event::AttemptsUsed;
use gt_core::schedule::{CloseReason, Context, ContextId, ContextOrigin, Run, RunState};
use gt_core::{BeadId, EventPayload, Status, Timestamp};

use crate::dispatch::DispatchInputs;
use crate::dispatch::SchedulingSnapshot;
use crate::schedule::{redispatch_in, try_recipe};
use gt_beads::lookup::resolve_in;
use gt_beads::transition_check::refuse_if_over;
use gt_town::{OperationError, Result, Town};

/// A request for another run.
#[derive(Debug, Clone, Default)]
pub struct Redispatch {
    /// The bead.
    pub bead: String,
    /// The rig, if not the former one.
    pub rig: Option<String>,
    /// The largest number of attempts, if not that of the setting.
    pub max_attempts: Option<u32>,
    /// The time since the previous redispatch, if not that of the setting.
    pub cooldown: Option<Duration>,
}

/// The outcome of a request for another run.
#[derive(Debug, Clone)]
pub enum Redispatched {
    /// It is scheduled.
    Scheduled(BeadId, Box<Context>),
    /// It was scheduled already.
    Already(BeadId, ContextId),
    /// The previous redispatch is too recent.
    CoolingDown(BeadId, Timestamp),
    /// Recovery does not apply to this bead, for this reason.
    Skipped(BeadId, String),
    /// It has had this many attempts, and a person is asked.
    UsedUp(BeadId, u32),
}

/// Schedules another run for an open bead that has none. A bead that a person took out of the queue, or that was
/// given up, stays so: only a person lifts that.
pub fn redispatch(town: &Town, wish: &Redispatch) -> Result<Redispatched> {
    let inputs = DispatchInputs::read(town)?;
    // Before the transaction, because it reads files.
    let fault = try_recipe(town, &wish.bead)?;
    town.write(|writer| {
        let id = resolve_in(town, writer, &wish.bead)?;
        refuse_if_over(town, writer, &id, "redispatch")?;
        let bead = writer.bead(&id)?.ok_or_else(|| OperationError::NoBead(wish.bead.clone()))?;
        let snapshot = SchedulingSnapshot::read_for_daemon(writer, &inputs, town.now())?;
        let now = writer.now();
        if bead.status != Status::Open {
            let why = format!("it is {}, not open; gt why {id} says more", bead.status);
            return Ok(Redispatched::Skipped(id, why));
        }
        let latest = writer.latest_context(&id)?;
        if let Some(context) = latest.as_ref().filter(|context| context.closed.is_none()) {
            return Ok(match context.next_attempt_at.filter(|at| *at > now) {
                Some(at) => Redispatched::CoolingDown(id, at),
                None => Redispatched::Already(id, context.id.clone()),
            });
        }
        let reasons = snapshot.reasons_unscheduled(writer, &bead, None)?;
        if let Some(reason) = reasons.iter().find(|reason| is_for_a_person(reason)) {
            let why = format!("{reason}; only a person lifts that: gt why {id} says how");
            return Ok(Redispatched::Skipped(id, why));
        }
        let last_run = writer.runs_of(&id)?.into_iter().next();
        let used = attempts_used(latest.as_ref(), last_run.as_ref());
        let most = wish.max_attempts.unwrap_or(snapshot.settings.max_attempts);
        if used >= most {
            // If the attempts of the setting are used up, people were told when the last run ended.
            if let Some(run) = last_run.filter(|_| used < snapshot.settings.max_attempts) {
                let escalated = EventPayload::Escalated(AttemptsUsed { attempts: used });
                writer.record_run(&run, escalated);
            }
            return Ok(Redispatched::UsedUp(id, used));
        }
        let cooldown = wish.cooldown.unwrap_or(snapshot.settings.cooldown);
        let previous = latest.as_ref().filter(|latest| latest.origin == ContextOrigin::Recovery);
        let cool = previous.map(|previous| previous.enqueued_at.min(now).plus(cooldown));
        if let Some(cool) = cool.filter(|cool| *cool > now) {
            return Ok(Redispatched::CoolingDown(id, cool));
        }
        if let Some(fault) = fault {
            return Err(OperationError::rejected(format!("cannot redispatch {id}: {fault}")));
        }
        let rig = wish.rig.as_deref();
        let context = redispatch_in(writer, &snapshot, &bead, rig, latest.as_ref(), used)?;
        Ok(Redispatched::Scheduled(id, Box::new(context)))
    })
}

/// Whether only a person may schedule a bead again that waits for this.
fn is_for_a_person(reason: &WaitReason) -> bool {
    matches!(
        reason,
        WaitReason::Cleared(_)
            | WaitReason::CircuitBroken(_)
            | WaitReason::Quarantined(_)
            | WaitReason::RunCancelled(_)
            | WaitReason::OverLimit(..)
            | WaitReason::Review
            | WaitReason::Escalated(_)
            | WaitReason::PutOff(_)
            | WaitReason::AssignedTo(_)
            | WaitReason::ConvoyStaged(_)
    )
}

/// How many attempts a bead that is not scheduled has used since a person last scheduled it.
fn attempts_used(latest: Option<&Context>, last_run: Option<&Run>) -> u32 {
    let Some(latest) = latest else { return 0 };
    let is_dispatched =
        latest.closed.as_ref().is_some_and(|closed| closed.reason == CloseReason::Dispatched);
    let last_run = last_run.filter(|run| is_dispatched && run.context == latest.number);
    match last_run.map(|run| run.state) {
        Some(RunState::Lost | RunState::Failed) => latest.attempts.saturating_add(1),
        Some(RunState::Done) => 0,
        Some(RunState::Cancelled | RunState::Starting | RunState::Running | RunState::Blocked)
        | None => latest.attempts,
    }
}
