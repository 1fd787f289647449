//! The start of a run: a context becomes a run in one transaction, and no other function writes a run that takes a slot.

use std::time::Duration;

use gt_core::decide::{AfterFailure, StartFailure, WaitReason, after_start_failure};
use gt_core::schedule::{CloseReason, Context, Run, RunId, RunState};
use gt_core::{BeadChangeKind, BeadId, ExecutorKind, Status, Uid};
use gt_store::Writer;

use super::parks::note_start;
use super::place::give_place;
use super::pull::give_in;
use super::recipe::Recipe;
use super::snapshot::SchedulingSnapshot;
use gt_beads::bead_facts::BeadFacts;
use gt_beads::run_records::release_in;
use gt_town::{Result, Town};

/// The outcome for a context that was to start.
#[derive(Debug, Clone)]
pub enum Start {
    /// It has a run, and its slot.
    Begun(Box<Run>),
    /// Something keeps it now.
    Changed(Vec<WaitReason>),
    /// It was closed: it can never start.
    GivenUp(CloseReason, String),
}

/// The process that starts runs.
#[derive(Debug, Clone, Copy)]
pub struct Starter<'a> {
    /// The lock that says whether they are alive.
    pub lock: &'a str,
    /// The machine.
    pub host: &'a str,
}

/// Starts a context if everything that is checked for it says yes now: nothing that was read before counts.
/// Afterwards the snapshot counts the run.
pub(crate) fn start_in(
    writer: &mut Writer<'_>,
    snapshot: &mut SchedulingSnapshot,
    number: u64,
    recipe: &std::result::Result<Recipe, StartFailure>,
    starter: Starter<'_>,
) -> Result<Start> {
    let Some(context) = writer.context_by_number(number)? else {
        return Ok(Start::Changed(vec![WaitReason::NotScheduled]));
    };
    if context.closed.is_some() {
        return Ok(Start::Changed(vec![WaitReason::NotScheduled]));
    }
    let Some(bead) = writer.bead(&context.bead)? else {
        return give_up(writer, &context, CloseReason::StaleWorkBead, "its bead is gone");
    };
    if bead.status == Status::Closed && snapshot.run_of(&bead.id).is_none() {
        return give_up(writer, &context, CloseReason::StaleWorkBead, "its bead is closed");
    }
    let facts = BeadFacts::of_bead(writer, &bead)?;
    let mut reasons = snapshot.reasons(&context, &bead, &facts);
    if let Some(WaitReason::RigGone(rig)) =
        reasons.iter().find(|reason| matches!(reason, WaitReason::RigGone(_)))
    {
        let why = format!("the rig {rig} is gone");
        return give_up(writer, &context, CloseReason::Quarantined, &why);
    }
    reasons.extend(snapshot.admission(&context));
    if !reasons.is_empty() {
        return Ok(Start::Changed(reasons));
    }
    let recipe = match recipe {
        Ok(recipe) => recipe,
        Err(failure) => {
            return give_up(writer, &context, CloseReason::Quarantined, failure.message());
        }
    };
    if let Some(agent) = context.place.as_ref().filter(|place| place.is_agent()) {
        let run = give_in(writer, &bead, agent.as_str())?;
        note_start(writer, snapshot, &run)?;
        snapshot.note_run(run.clone(), &context.convoys);
        return Ok(Start::Begun(Box::new(run)));
    }
    let executor = snapshot.executor_of(&context);
    let id = writer.next_run_id(&bead.id)?;
    let rig = snapshot.rig(&context.rig).filter(|_| executor != ExecutorKind::None);
    let place = match rig.filter(|rig| rig.has_trees()) {
        Some(rig) => Some(give_place(writer, snapshot, rig, &context, starter.host, &id)?),
        None => context.place.clone(),
    };
    let agent = match &place {
        Some(place) => place.to_string(),
        None => format!("{}/{}", context.rig, executor.as_str()),
    };
    let uid = Uid::of_run(&id, writer.now());
    let run = Run {
        runtime: snapshot.runtime_of(&context).to_owned(),
        agent,
        place,
        host: starter.host.to_owned(),
        account: snapshot.account_of(&context).unwrap_or_default().to_owned(),
        gated: context.gated,
        starter: starter.lock.to_owned(),
        formula: recipe.formula.clone(),
        steps: recipe.steps.clone(),
        reserved: snapshot.reserve_of(&context),
        created_by: writer.actor().to_owned(),
        ..Run::begun(id, uid, context.number, context.rig.clone(), executor, writer.now())
    };
    writer.insert_run(&run)?;
    if executor == ExecutorKind::None {
        // A person needs no process: with the hook the work is theirs.
        writer.close_context(&context, CloseReason::Dispatched, "")?;
    } else {
        writer.set_starting(&context, true)?;
    }
    let mut hooked = bead.clone();
    hooked.assignee.clone_from(&run.agent);
    hooked.enter(Status::Hooked, writer.now());
    hooked.updated_at = writer.now().of_change_after(bead.updated_at);
    writer.save_bead(&bead, &hooked, BeadChangeKind::StatusChanged)?;
    note_start(writer, snapshot, &run)?;
    snapshot.note_run(run.clone(), &context.convoys);
    Ok(Start::Begun(Box::new(run)))
}

/// Gives a run that is starting another place, because the previous run has not left its place yet. Nothing if it is
/// not starting any more.
pub(crate) fn move_start_in(
    writer: &mut Writer<'_>,
    snapshot: &SchedulingSnapshot,
    context: &Context,
    id: &RunId,
) -> Result<Option<Run>> {
    let (Some(run), Some(bead)) = (writer.run(id)?, writer.bead(&id.bead)?) else {
        return Ok(None);
    };
    let Some(rig) = snapshot.rig(&run.rig) else { return Ok(None) };
    if run.state != RunState::Starting {
        return Ok(None);
    }
    let place = give_place(writer, snapshot, rig, context, &run.host, id)?;
    let moved = Run { agent: place.to_string(), place: Some(place), ..run };
    writer.move_start(&moved)?;
    let mut hooked = bead.clone();
    hooked.assignee.clone_from(&moved.agent);
    hooked.updated_at = writer.now().of_change_after(bead.updated_at);
    writer.save_bead(&bead, &hooked, BeadChangeKind::Updated)?;
    Ok(Some(moved))
}

fn give_up(
    writer: &mut Writer<'_>,
    context: &Context,
    reason: CloseReason,
    why: &str,
) -> Result<Start> {
    writer.close_context(context, reason, why)?;
    Ok(Start::GivenUp(reason, why.to_owned()))
}

/// The cost of a failed start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartFailureCost {
    /// Nothing: it counts as no failure, and is tried again at once.
    Nothing,
    /// Nothing, but something has to go away first.
    Patience,
    /// It counts towards the breaker, and the next try waits.
    Counted,
}

/// The delay before a retry when something has to go away first.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Takes back the start of a run that its worker has not taken: the slot is free, the bead is open, and the
/// context is back in line or given up. `false` if the worker has taken it after all, or it ended.
pub fn start_failed_in(
    writer: &mut Writer<'_>,
    run: &Run,
    why: &str,
    cost: &StartFailureCost,
    jitter: f64,
) -> Result<bool> {
    let is_starting = writer.run(&run.id)?.is_some_and(|run| run.state == RunState::Starting);
    if !is_starting {
        return Ok(false);
    }
    let by = writer.actor().to_owned();
    writer.fail_start(run, why, &by)?;
    release_in(writer, &run.id.bead)?;
    let Some(context) = writer.context_by_number(run.context)? else { return Ok(true) };
    if context.closed.is_some() {
        return Ok(true);
    }
    writer.set_starting(&context, false)?;
    put_back_or_give_up(writer, &context, why, cost, jitter)?;
    Ok(true)
}

/// Puts an open context back in line after a start that failed, or gives it up.
pub fn put_back_or_give_up(
    writer: &mut Writer<'_>,
    context: &Context,
    why: &str,
    cost: &StartFailureCost,
    jitter: f64,
) -> Result<()> {
    match cost {
        StartFailureCost::Nothing => {
            let last_failure = &context.last_failure;
            return Ok(writer.postpone_context(context, context.failures, last_failure, None)?);
        }
        StartFailureCost::Patience => {
            let later = Some(writer.now().plus(BUSY_RETRY_DELAY));
            return Ok(writer.postpone_context(context, context.failures, why, later)?);
        }
        StartFailureCost::Counted => {}
    }
    let failure = StartFailure::Spawn(why.to_owned());
    match after_start_failure(&failure, context.failures, writer.now(), jitter) {
        AfterFailure::Retry { failures, at } => {
            writer.postpone_context(context, failures, why, Some(at))?;
        }
        AfterFailure::CircuitBroken { failures } => {
            writer.postpone_context(context, failures, why, None)?;
            writer.close_context(context, CloseReason::CircuitBroken, why)?;
        }
        AfterFailure::Quarantined => {
            writer.close_context(context, CloseReason::Quarantined, why)?;
        }
    }
    Ok(())
}

/// Closes open contexts whose bead is over: it was closed by hand before its turn came.
pub fn close_stale(town: &Town, limit: usize) -> Result<Vec<BeadId>> {
    let stale = town.read(|reader| Ok(reader.stale_contexts(limit)?))?;
    if stale.is_empty() {
        return Ok(Vec::new());
    }
    town.write(|writer| {
        let mut closed = Vec::new();
        for context in writer.stale_contexts(limit)? {
            writer.close_context(&context, CloseReason::StaleWorkBead, "its bead is closed")?;
            closed.push(context.bead);
        }
        Ok(closed)
    })
}
