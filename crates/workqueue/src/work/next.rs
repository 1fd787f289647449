//! An agent asks for work.

use std::time::Duration;

use gt_core::decide::{ReadinessFacts, RigFacts, SchedulingFacts, offer_reasons};
use gt_core::work::{Position, RunRef, WorkItem, check_agent};
use gt_core::{Bead, ExecutorKind, Invalid, Rig, RigSlug, RigState, limits};
use gt_store::{Offered, PullQuery, Writer};

use super::error::{Conflict, WorkError, WorkResult};
use super::projects::require_rig;
use super::refuse_other;
use super::requests::{NextRequest, NextWork, NoWork, TakenItem};
use gt_scheduling::dispatch::take_in;
use gt_town::settings::file_layers;
use gt_town::{OperationError, Town};

/// Gives an agent the next item, if there is one: first an item that was dispatched to it, then the most urgent and
/// oldest ready item that is meant for it or for any agent.
pub fn next(town: &Town, request: NextRequest) -> WorkResult<NextWork> {
    check_agent(&request.agent).map_err(|error| WorkError::invalid("agent", &error))?;
    if request.kinds.len() > limits::WORK_TYPES_MAX {
        let most = limits::WORK_TYPES_MAX;
        let why = Invalid(format!("an agent asks for at most {most} types at a time"));
        return Err(WorkError::invalid("types", &why));
    }
    refuse_other(town, &request.agent, || format!("{} asks for work", request.agent))?;
    let dispatched_below =
        file_layers(town)?.work_claim().map_err(OperationError::from)? == DISPATCHED;
    town.submit(move |_, writer| next_in(writer, &request, dispatched_below))
}

/// The value of `work.claim` that offers an agent only what was dispatched to it.
const DISPATCHED: &str = "dispatched";

/// How often the event counter is read where no bell rings: one read.
const NEWS_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often work is looked for without new events: a bead may have been deferred until now.
const WORK_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Like [`next`]; if there is nothing, waits for it, at most so long and while `go_on` says so.
pub(super) fn next_while(
    town: &Town,
    request: &NextRequest,
    wait: Duration,
    go_on: impl Fn() -> bool,
) -> WorkResult<NextWork> {
    let began = town.now();
    let bell = town.bell();
    loop {
        let seen = town.read(|reader| Ok(reader.last_event_number()?))?;
        let looked = town.now();
        let found = next(town, request.clone())?;
        if matches!(found, NextWork::Item(_)) || town.now().since(began) >= wait || !go_on() {
            return Ok(found);
        }
        loop {
            let left = wait.saturating_sub(town.now().since(began));
            if left.is_zero() || town.now().since(looked) >= WORK_POLL_INTERVAL || !go_on() {
                break;
            }
            bell.wait(NEWS_POLL_INTERVAL.min(left));
            if town.read(|reader| Ok(reader.last_event_number()?))? != seen {
                break;
            }
        }
    }
}

fn next_in(
    writer: &mut Writer<'_>,
    request: &NextRequest,
    dispatched_below: bool,
) -> WorkResult<NextWork> {
    let rig = match &request.project {
        Some(reference) => Some(require_rig(writer, reference)?),
        None => None,
    };
    let NextRequest { agent, kinds, lease, dispatched, .. } = request;
    let (rig_slug, dispatched) = (rig.as_ref().map(|rig| &rig.slug), *dispatched);
    let ask = PullQuery {
        agent,
        kinds,
        rig: rig_slug,
        dispatched,
        dispatched_below,
        after: None,
        now: writer.now(),
    };
    let mut offer = writer.offer(&ask)?;
    if let Some(bead) = offer.busy_with {
        let item = super::require_item(writer, &bead.clone().into())?.uid;
        return Err(Conflict::AgentBusy { agent: agent.clone(), item, bead }.into());
    }
    if let Some(pause) = offer.paused {
        return Ok(NextWork::Nothing(NoWork::Paused(pause.by, pause.at)));
    }
    let offered = loop {
        let Some(offered) = offer.first else {
            if offer.only_dispatched {
                return Ok(NextWork::Nothing(NoWork::NotDispatched));
            }
            return Ok(NextWork::Nothing(nothing(writer, rig, request)?));
        };
        if may_have(writer, agent, &offered)? {
            break offered;
        }
        let Bead { id, priority, created_at, .. } = offered.bead;
        let after = Position { priority, created_at, bead: id };
        offer = writer.offer(&PullQuery { after: Some(&after), ..ask })?;
    };
    let (run, bead) = take_in(writer, &offered, agent, *lease)?;
    let lease_expires_at = run.lease_expires_at.unwrap_or_else(|| lease.ends(writer.lease_now()));
    let item = WorkItem::of(bead, offered.project, Some((run.uid, Some(lease_expires_at))));
    let taken = TakenItem { item, run: RunRef::Id(run.id), run_uid: run.uid, lease_expires_at };
    Ok(NextWork::Item(Box::new(taken)))
}

/// Whether the evaluator lets an agent have what is proposed for it.
fn may_have(writer: &Writer<'_>, agent: &str, offered: &Offered) -> WorkResult<bool> {
    if offered.given.is_some() {
        return Ok(true);
    }
    let bead = &offered.bead;
    let context = match offered.context {
        Some(number) => writer.context_by_number(number)?,
        None => None,
    };
    let inbox = RigSlug::inbox();
    let slug = context.as_ref().map_or(bead.rig.as_ref().unwrap_or(&inbox), |context| &context.rig);
    // The rig of what is proposed is asked for work; only a context can name another one.
    let executor = if bead.rig.as_ref().is_some_and(|rig| rig == slug) {
        Some((RigState::Active, ExecutorKind::Pull))
    } else {
        writer.rig(slug.as_str())?.map(|rig| (rig.state, rig.executor))
    };
    let rig_facts = executor.map(|(state, executor)| RigFacts { state, executor, can_run: true });
    let facts = SchedulingFacts {
        readiness: ReadinessFacts {
            status: &bead.status,
            issue_type: &bead.issue_type,
            pinned: bead.pinned,
            ephemeral: bead.ephemeral,
            defer_until: bead.defer_until,
            parent_deferred: None,
            open_blockers: &[],
            failed_blockers: &[],
        },
        assignee: &bead.assignee,
        run: None,
        paused: None,
        request: None,
    };
    let now = writer.now();
    let reasons = offer_reasons(agent, &facts, context.as_ref(), (slug, rig_facts), None, now);
    Ok(reasons.is_empty())
}

/// Why there is nothing.
fn nothing(writer: &Writer<'_>, rig: Option<Rig>, request: &NextRequest) -> WorkResult<NoWork> {
    let rigs = match rig {
        Some(rig) => vec![rig],
        None => writer.rigs()?,
    };
    let mut closed: Vec<RigSlug> = Vec::new();
    for rig in rigs.iter().filter(|rig| rig.executor == ExecutorKind::Pull) {
        let mut queued = request.kinds.is_empty() && writer.any_queued_in(&rig.slug)?;
        for kind in &request.kinds {
            queued = queued || writer.any_queued_of(&rig.slug, kind)?;
        }
        match rig.state {
            RigState::Active if queued => return Ok(NoWork::AllWait),
            RigState::Parked | RigState::Docked if queued => closed.push(rig.slug.clone()),
            RigState::Active | RigState::Parked | RigState::Docked => {}
        }
    }
    Ok(if closed.is_empty() { NoWork::Empty } else { NoWork::ProjectsClosed(closed) })
}
