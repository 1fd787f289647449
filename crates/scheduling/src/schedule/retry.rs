//! Another try for what was given up.

use gt_core::merging::{MergeRequest, RequestState};
use gt_core::schedule::{CloseReason, Context, ContextOrigin, RunState};
use gt_core::{Bead, BeadId, ExecutorKind, Outcome, Status};
use gt_store::{NewContext, Writer};

use super::check;
use super::lift_stop::lift_stop_of_run_in;
use super::rehearse::rehearse;
use crate::dispatch::DispatchInputs;
use crate::dispatch::SchedulingSnapshot;
use gt_beads::beads::reopen_in;
use gt_beads::lookup::resolve_in;
use gt_beads::run_records::release_in;
use gt_beads::transition_check::refuse_if_over;
use gt_town::{OperationError, Result, Town};

/// A bead that is scheduled again.
#[derive(Debug, Clone)]
pub struct Retried {
    /// The bead.
    pub bead: BeadId,
    /// Its new context.
    pub context: Context,
    /// It had failed, and is open again.
    pub reopened: bool,
    /// It was scheduled already, and its backoff or cooldown is over.
    pub hastened: bool,
}

/// Schedules beads again that were given up or failed, and clears their failures. Without names that is every bead
/// that waits for a person: circuit-broken, quarantined, failed in its last run, or out of attempts. A bead that could
/// not start anyway is refused, as by a sling. With `now` a bead that is scheduled already, and waits for the end of a
/// backoff or cooldown, waits no longer. If one of the names is unknown, nothing is scheduled.
pub fn retry(town: &Town, inputs: &[String], all: bool, now: bool) -> Result<Vec<Result<Retried>>> {
    let unknown = town.read(|reader| {
        let found = inputs.iter().map(|input| resolve_in(town, reader, input));
        Ok(found.filter_map(Result::err).collect::<Vec<OperationError>>())
    })?;
    if !unknown.is_empty() {
        return Ok(unknown.into_iter().map(Err).collect());
    }
    let mut names = inputs.to_vec();
    if all {
        names.extend(town.read(|reader| {
            let failed = reader.failed_contexts()?.into_iter().map(|context| context.bead);
            let broken = reader.beads_with_failed_runs()?;
            let mut beads: Vec<BeadId> = failed.chain(broken).collect();
            if now {
                let open = reader.open_contexts()?;
                let waiting = open.into_iter().filter(|context| context.next_attempt_at.is_some());
                beads.extend(waiting.map(|context| context.bead));
            }
            beads.sort();
            beads.dedup();
            Ok(beads.into_iter().map(|bead| bead.to_string()).collect::<Vec<_>>())
        })?);
    }
    try_again(town, names, all, now)
}

/// The same for beads that were found to need it. A bead that needs it no more is passed over.
pub(crate) fn retry_found(town: &Town, names: Vec<String>) -> Result<Vec<Result<Retried>>> {
    try_again(town, names, true, false)
}

fn try_again(
    town: &Town,
    names: Vec<String>,
    found: bool,
    now: bool,
) -> Result<Vec<Result<Retried>>> {
    let inputs = DispatchInputs::read(town)?;
    // Before the transaction, because it reads files.
    let recipes = names.iter().map(|name| try_recipe(town, name)).collect::<Result<Vec<_>>>()?;
    let mut snapshot = None;
    let answers = town.write_each(names.into_iter().zip(recipes), |writer, (name, recipe)| {
        let snapshot = match &mut snapshot {
            Some(snapshot) => snapshot,
            unread => {
                unread.insert(SchedulingSnapshot::read_for_daemon(writer, &inputs, town.now())?)
            }
        };
        retry_in(town, writer, snapshot, &name, recipe, now)
    })?;
    let told = answers.into_iter().filter_map(|answer| match answer {
        Ok(RetryResult::Again(retried)) => Some(Ok(*retried)),
        // A bead that was found, but needs no other try any more, gets none.
        Ok(RetryResult::NotNeeded(why)) => (!found).then_some(Err(why)),
        Err(error) => Some(Err(error)),
    });
    Ok(told.collect())
}

/// The result for one name.
enum RetryResult {
    Again(Box<Retried>),
    /// There is nothing to try again, for this reason.
    NotNeeded(OperationError),
}

/// The fault of the formula or the runtime that the bead's last context names, if there is one. A fault of the name
/// itself is told later.
pub(crate) fn try_recipe(town: &Town, input: &str) -> Result<Option<OperationError>> {
    let settings = town.scheduler_settings()?;
    let found = town.read(|reader| {
        let Ok(id) = resolve_in(town, reader, input) else { return Ok(None) };
        let Some(latest) = reader.latest_context(&id)? else { return Ok(None) };
        let rig = reader.rig(latest.rig.as_str())?;
        Ok(reader.bead(&id)?.zip(rig).map(|(bead, rig)| (bead, rig, latest)))
    })?;
    Ok(found.and_then(|(bead, rig, latest)| {
        let place = latest.place.as_ref();
        rehearse(town, &settings, &rig, place, &bead, &latest.parameters).err()
    }))
}

fn retry_in(
    town: &Town,
    writer: &mut Writer<'_>,
    snapshot: &SchedulingSnapshot,
    input: &str,
    recipe: Option<OperationError>,
    now: bool,
) -> Result<RetryResult> {
    let id = resolve_in(town, writer, input)?;
    refuse_if_over(town, writer, &id, "retry")?;
    let require = |writer: &Writer<'_>| -> Result<Bead> {
        writer.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))
    };
    let bead = require(writer)?;
    let refusal = |why: String| OperationError::rejected(format!("cannot retry {id}: {why}"));
    let not_needed = |why: String| Ok(RetryResult::NotNeeded(refusal(why)));
    let Some(latest) = writer.latest_context(&id)? else {
        let rig = bead.rig.as_ref().map(|slug| writer.rig(slug.as_str())).transpose()?.flatten();
        let is_pulled = rig.is_some_and(|rig| rig.executor == ExecutorKind::Pull);
        return not_needed(if is_pulled {
            format!("it was never scheduled, and agents pull it while it is open: bd reopen {id}")
        } else {
            format!("it was never scheduled; gt sling {id} schedules it")
        });
    };
    if latest.closed.is_none() && now && latest.next_attempt_at.is_some() {
        writer.end_context_wait(&latest)?;
        let context = Context { next_attempt_at: None, ..latest };
        let retried = Retried { bead: id, context, reopened: false, hastened: true };
        return Ok(RetryResult::Again(Box::new(retried)));
    }
    if latest.closed.is_none() {
        return not_needed(format!(
            "it is scheduled already ({}); gt why {id} says what it waits for",
            latest.id
        ));
    }
    if let Some(run) = writer.live_run(&id)? {
        return not_needed(format!(
            "it is running ({}); gt run cancel {} ends that",
            run.id, run.id
        ));
    }
    let request = writer.open_merge_request(&id)?;
    // The queue schedules the repair of work that it sends back, and a bead has one context at a time.
    if let Some(open) = request.as_ref().filter(|request| !is_sent_back(request)) {
        return not_needed(format!("{}; {}", open.state_reason(), open.next_step()));
    }
    let reopened = bead.status == Status::Closed;
    if reopened && bead.outcome != Some(Outcome::Failed) {
        return not_needed(format!(
            "it is closed, and did not fail; to do it again: bd reopen {id}, then gt sling {id}"
        ));
    }
    let last_run = writer.runs_of(&id)?.into_iter().next();
    let dispatched =
        latest.closed.as_ref().is_some_and(|closed| closed.reason == CloseReason::Dispatched);
    let ended_well = last_run.as_ref().is_some_and(|run| run.state == RunState::Done);
    if dispatched && ended_well && !reopened {
        return not_needed(format!("its last run ended well; gt sling {id} schedules it anew"));
    }
    let Some(rig) = snapshot.rig(&latest.rig) else {
        return Err(refusal(format!(
            "the rig {} is gone; gt sling {id} <rig> names another",
            latest.rig
        )));
    };
    check::takes(snapshot, &bead, rig, latest.place.as_ref())
        .map_err(|why| refusal(why.to_string()))?;
    if let Some(until) = bead.defer_until.filter(|until| *until > town.now()) {
        return Err(refusal(format!("it is put off until {until}; bd undefer {id} ends that")));
    }
    if let Some(fault) = recipe {
        return Err(refusal(format!(
            "{fault}; gt sling {id} --formula <formula> schedules it with another"
        )));
    }
    if reopened {
        reopen_in(town, writer, id.as_str(), None)?;
    }
    if request.is_some() && bead.status == Status::Blocked {
        // A repair that was given up has blocked it.
        release_in(writer, &id)?;
    } else {
        lift_stop_of_run_in(writer, &bead)?;
    }
    let bead = require(writer)?;
    if bead.status == Status::Blocked {
        return Err(refusal(format!(
            "its status is blocked, so nothing starts it; bd update {id} --status open, then gt scheduler retry {id}"
        )));
    }
    let new = NewContext {
        place: latest.place.clone(),
        account: latest.account.clone(),
        forced: latest.forced,
        parameters: latest.parameters.clone(),
        ..NewContext::plain(id.clone(), latest.rig.clone(), bead.priority, ContextOrigin::Retry)
    };
    let made = writer.insert_contexts(vec![new])?.into_iter().next();
    let context = made.ok_or_else(|| OperationError::rejected("nothing was scheduled"))?;
    Ok(RetryResult::Again(Box::new(Retried { bead: id, context, reopened, hastened: false })))
}

/// Whether an open merge request needs a repair.
fn is_sent_back(request: &MergeRequest) -> bool {
    matches!(request.state, RequestState::Conflict | RequestState::Failed)
}
