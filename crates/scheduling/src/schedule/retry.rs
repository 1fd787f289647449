//! Another try for what was given up.

use gt_core::merging::{MergeRequest, RequestState};
use gt_core::schedule::{CloseReason, Context, ContextOrigin, RunState};
use gt_core::{Bead, BeadId, ExecutorKind, Outcome, Status};
use gt_store::{NewContext, Reader, Writer};

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

/// A bead that is tried again.
#[derive(Debug, Clone)]
pub struct Retried {
    /// The bead.
    pub bead: BeadId,
    /// Its context. A bead that was never scheduled is only opened, and has none.
    pub context: Option<Context>,
    /// Agents pull it while it is open.
    pub is_pulled: bool,
    /// It had failed, and is open again.
    pub reopened: bool,
    /// It was scheduled already, and its backoff or cooldown is over.
    pub hastened: bool,
}

/// Tries beads again that were given up or failed, and clears their failures. A bead that could not start anyway is
/// refused, as by a sling. One that was never scheduled is only opened. With `now` a bead that is scheduled already, and
/// waits for the end of a backoff or cooldown, waits no longer. If one of the names is unknown, nothing is tried again.
pub fn retry(town: &Town, names: &[String], now: bool) -> Result<Vec<Result<Retried>>> {
    let unknown = town.read(|reader| {
        let found = names.iter().map(|name| resolve_in(town, reader, name));
        Ok(found.filter_map(Result::err).collect::<Vec<OperationError>>())
    })?;
    if !unknown.is_empty() {
        return Ok(unknown.into_iter().map(Err).collect());
    }
    try_again(town, names, false, now)
}

/// The same for beads that were found to need it. A bead that needs it no more is passed over.
pub fn retry_found(town: &Town, names: &[String], now: bool) -> Result<Vec<Result<Retried>>> {
    try_again(town, names, true, now)
}

/// Every bead that waits for a person: circuit-broken, quarantined, failed in its last run, or out of attempts. With `now`
/// also those that wait for the end of a backoff or cooldown.
pub fn beads_to_retry(town: &Town, now: bool) -> Result<Vec<String>> {
    town.read(|reader| {
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
        Ok(beads.into_iter().map(|bead| bead.to_string()).collect())
    })
}

/// How many of these beads a retry gives to the scheduler.
pub fn count_retries(town: &Town, names: &[String], now: bool) -> Result<usize> {
    let inputs = DispatchInputs::read(town)?;
    let recipes = names.iter().map(|name| try_recipe(town, name)).collect::<Result<Vec<_>>>()?;
    town.read(|reader| {
        let snapshot = SchedulingSnapshot::read_for_daemon(reader, &inputs, town.now())?;
        let decisions = names.iter().zip(recipes).map(|(name, recipe)| {
            let decision = decide_in(town, reader, &snapshot, name, recipe, now);
            matches!(decision, Ok(RetryDecision::Hasten(..) | RetryDecision::Schedule(_)))
        });
        Ok(decisions.filter(|starts| *starts).count())
    })
}

fn try_again(
    town: &Town,
    names: &[String],
    found: bool,
    now: bool,
) -> Result<Vec<Result<Retried>>> {
    let inputs = DispatchInputs::read(town)?;
    // Before the transaction, because it reads files.
    let recipes = names.iter().map(|name| try_recipe(town, name)).collect::<Result<Vec<_>>>()?;
    let mut snapshot = None;
    let answers = town.write_each(names.iter().zip(recipes), |writer, (name, recipe)| {
        let snapshot = match &mut snapshot {
            Some(snapshot) => snapshot,
            unread => {
                unread.insert(SchedulingSnapshot::read_for_daemon(writer, &inputs, town.now())?)
            }
        };
        match decide_in(town, writer, snapshot, name, recipe, now)? {
            RetryDecision::NotNeeded(why) => Ok(RetryResult::NotNeeded(why)),
            decision => Ok(RetryResult::Again(Box::new(apply_in(town, writer, decision)?))),
        }
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

/// The result of a retry of a bead.
enum RetryDecision {
    /// There is nothing to try again, for this reason.
    NotNeeded(OperationError),
    /// It is scheduled, and the wait of its context ends.
    Hasten(BeadId, Box<Context>),
    /// It failed without ever being scheduled, and is opened. The flag says that agents pull it while it is open.
    Open(BeadId, bool),
    /// It is scheduled again.
    Schedule(Box<NextTry>),
}

/// A bead that a retry schedules.
struct NextTry {
    bead: Bead,
    latest: Context,
    has_request: bool,
}

fn refusal(id: &BeadId, why: impl std::fmt::Display) -> OperationError {
    OperationError::rejected(format!("cannot retry {id}: {why}"))
}

fn decide_in(
    town: &Town,
    reader: &Reader<'_>,
    snapshot: &SchedulingSnapshot,
    input: &str,
    recipe: Option<OperationError>,
    now: bool,
) -> Result<RetryDecision> {
    let id = resolve_in(town, reader, input)?;
    refuse_if_over(town, reader, &id, "retry")?;
    let bead = reader.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))?;
    let refusal = |why: String| refusal(&id, why);
    let not_needed = |why: String| Ok(RetryDecision::NotNeeded(refusal(why)));
    let is_closed = bead.status == Status::Closed;
    let has_failed = is_closed && bead.outcome == Some(Outcome::Failed);
    let Some(latest) = reader.latest_context(&id)? else {
        let rig = bead.rig.as_ref().map(|slug| reader.rig(slug.as_str())).transpose()?.flatten();
        let is_pulled = rig.is_some_and(|rig| rig.executor == ExecutorKind::Pull);
        return match (has_failed, is_closed, is_pulled) {
            (true, ..) => Ok(RetryDecision::Open(id, is_pulled)),
            (_, true, _) => {
                not_needed(format!("it is closed, and did not fail; bd reopen {id} opens it again"))
            }
            (_, _, true) => {
                not_needed("it is open, and waits for an agent that pulls it".to_owned())
            }
            _ => not_needed(format!("it was never scheduled; gt sling {id} schedules it")),
        };
    };
    if latest.closed.is_none() && now && latest.next_attempt_at.is_some() {
        return Ok(RetryDecision::Hasten(id, Box::new(latest)));
    }
    if latest.closed.is_none() {
        return not_needed(format!(
            "it is scheduled already ({}); gt why {id} says what it waits for",
            latest.id
        ));
    }
    if let Some(run) = reader.live_run(&id)? {
        return not_needed(format!(
            "it is running ({}); gt run cancel {} ends that",
            run.id, run.id
        ));
    }
    let request = reader.open_merge_request(&id)?;
    // The queue schedules the repair of work that it sends back, and a bead has one context at a time.
    if let Some(open) = request.as_ref().filter(|request| !is_sent_back(request)) {
        return not_needed(format!("{}; {}", open.state_reason(), open.next_step()));
    }
    if is_closed && !has_failed {
        return not_needed(format!(
            "it is closed, and did not fail; to do it again: bd reopen {id}, then gt sling {id}"
        ));
    }
    let last_run = reader.runs_of(&id)?.into_iter().next();
    let dispatched =
        latest.closed.as_ref().is_some_and(|closed| closed.reason == CloseReason::Dispatched);
    let ended_well = last_run.as_ref().is_some_and(|run| run.state == RunState::Done);
    if dispatched && ended_well && !is_closed {
        return not_needed(match &request {
            // Its repairs are used up.
            Some(open) => format!("{}; {}", open.state_reason(), open.next_step()),
            None => format!("its last run ended well; gt sling {id} schedules it anew"),
        });
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
    Ok(RetryDecision::Schedule(Box::new(NextTry { bead, latest, has_request: request.is_some() })))
}

fn apply_in(town: &Town, writer: &mut Writer<'_>, decision: RetryDecision) -> Result<Retried> {
    let next = match decision {
        RetryDecision::NotNeeded(why) => return Err(why),
        RetryDecision::Hasten(bead, latest) => {
            writer.end_context_wait(&latest)?;
            let context = Some(Context { next_attempt_at: None, ..*latest });
            let (reopened, hastened) = (false, true);
            return Ok(Retried { bead, context, is_pulled: false, reopened, hastened });
        }
        RetryDecision::Open(bead, is_pulled) => {
            reopen_in(town, writer, bead.as_str(), None)?;
            let (reopened, hastened) = (true, false);
            return Ok(Retried { bead, context: None, is_pulled, reopened, hastened });
        }
        RetryDecision::Schedule(next) => next,
    };
    let NextTry { bead, latest, has_request } = *next;
    let id = bead.id.clone();
    let reopened = bead.status == Status::Closed;
    if reopened {
        reopen_in(town, writer, id.as_str(), None)?;
    }
    if has_request && bead.status == Status::Blocked {
        // A repair that was given up has blocked it.
        release_in(writer, &id)?;
    } else {
        lift_stop_of_run_in(writer, &bead)?;
    }
    let bead = writer.bead(&id)?.ok_or_else(|| OperationError::NoBead(id.to_string()))?;
    if bead.status == Status::Blocked {
        return Err(refusal(
            &id,
            format!(
                "its status is blocked, so nothing starts it; bd update {id} --status open, then gt scheduler retry {id}"
            ),
        ));
    }
    let new = NewContext {
        place: latest.place.clone(),
        account: latest.account.clone(),
        forced: latest.forced,
        parameters: latest.parameters.clone(),
        ..NewContext::plain(id.clone(), latest.rig.clone(), bead.priority, ContextOrigin::Retry)
    };
    let made = writer.insert_contexts(vec![new])?.into_iter().next();
    let made = made.ok_or_else(|| OperationError::rejected("nothing was scheduled"))?;
    Ok(Retried { bead: id, context: Some(made), is_pulled: false, reopened, hastened: false })
}

/// Whether an open merge request needs a repair.
fn is_sent_back(request: &MergeRequest) -> bool {
    matches!(request.state, RequestState::Conflict | RequestState::Failed)
}
