//! The whole picture of a convoy: in which order its beads go, where each of them stands and why, and when all would be done.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use gt_core::convoy_graph::TrackedState;
use gt_core::cost::Spent;
use gt_core::decide::{ConvoyState, StageFacts, WaitReason, stage};
use gt_core::merging::{MergeRequest, RequestState};
use gt_core::schedule::{Context, Run, RunState};
use gt_core::{Bead, BeadId, DependencyType, Outcome, Status, Timestamp};
use gt_store::{BeadRow, Reader};

use super::forecast::{BeadForecastFacts, DurationEstimate, outlook, past_durations};
use super::stage::{link, members, places};
use crate::dispatch::DispatchInputs;
use crate::dispatch::SchedulingSnapshot;
use crate::queue::in_line;
use gt_beads::bead_facts::BeadFacts;
use gt_beads::convoys::{Convoy, require};
use gt_town::{Result, Town};

/// A bead that a convoy tracks, and how it stands.
#[derive(Debug, Clone)]
pub struct TrackedBead {
    /// The bead and what stands around it.
    pub row: BeadRow,
    /// Where it stands.
    pub state: TrackedState,
    /// The run that works on it.
    pub run: Option<Run>,
    /// Its merge request that is not over.
    pub request: Option<MergeRequest>,
    /// In which wave it goes, from 1; none if it is over, or behind something that does not belong to the convoy.
    pub wave: Option<usize>,
    /// Its place in the line of the whole town, from 1.
    pub place: Option<usize>,
    /// The beads that have to be done first, sorted.
    pub blocked_by: Vec<BeadId>,
    /// Every reason why it does not start; none if the next cycle starts it, a run has it, or it is over.
    pub reasons: Vec<WaitReason>,
    /// The last failure; empty if there was none.
    pub failure: String,
    /// The usage of its runs.
    pub spent: Spent,
}

impl TrackedBead {
    /// Where its finished work stands in the merge queue, in a word that programs can rely on; `repairing` while a run
    /// mends it, or is about to.
    pub fn merge_state(&self) -> Option<&'static str> {
        let request = self.request.as_ref()?;
        let is_begun = self.run.is_some() || self.state == TrackedState::Queued;
        Some(match request.state {
            RequestState::Conflict | RequestState::Failed if is_begun => "repairing",
            state => state.as_str(),
        })
    }
}

/// A convoy with everything that it tracks.
#[derive(Debug, Clone)]
pub struct ConvoyStatus {
    /// The convoy.
    pub convoy: Convoy,
    /// The request that brings its integration branch to the base, if that is not over.
    pub request: Option<MergeRequest>,
    /// The tracked beads, sorted by id.
    pub tracked: Vec<TrackedBead>,
    /// The beads that can be done at once, wave by wave, by places in `tracked`.
    pub waves: Vec<Vec<usize>>,
    /// The longest chain of what is left, by places in what is tracked.
    pub critical_path: Vec<usize>,
    /// How long the rest takes; none if nothing was done before by which that could be told, or nothing is left.
    pub estimate: Option<DurationEstimate>,
    /// The usage of the runs of all its beads.
    pub spent: Spent,
    /// When it was looked at.
    pub as_of: Timestamp,
}

impl ConvoyStatus {
    /// How many stand so.
    pub fn count(&self, state: TrackedState) -> u64 {
        self.tracked.iter().filter(|one| one.state == state).count() as u64
    }

    /// When the convoy would be done at the rate of past runs.
    pub fn eta(&self) -> Option<Timestamp> {
        self.estimate.map(|estimate| self.as_of.plus(estimate.remaining))
    }

    /// Whether two pictures show the same but for the time that has passed.
    pub fn is_like(&self, other: &Self) -> bool {
        let is_same = |a: &TrackedBead, b: &TrackedBead| {
            let codes = |one: &TrackedBead| -> Vec<&'static str> {
                one.reasons.iter().map(WaitReason::code).collect()
            };
            let run = |one: &TrackedBead| one.run.as_ref().map(|run| run.id.clone());
            let request = |one: &TrackedBead| {
                one.request.as_ref().map(|request| (request.id.clone(), request.state))
            };
            a.row.bead == b.row.bead
                && (a.state, a.wave, a.place) == (b.state, b.wave, b.place)
                && (&a.blocked_by, &a.failure, a.spent) == (&b.blocked_by, &b.failure, b.spent)
                && (codes(a), run(a), request(a)) == (codes(b), run(b), request(b))
        };
        let (a, b) = (&self.convoy, &other.convoy);
        (a.members, a.landings, &a.bead.status) == (b.members, b.landings, &b.bead.status)
            && (a.cap, &a.paused) == (b.cap, &b.paused)
            && self.request == other.request
            && self.tracked.len() == other.tracked.len()
            && self.tracked.iter().zip(&other.tracked).all(|(a, b)| is_same(a, b))
    }
}

/// A convoy with everything that it tracks, and how all of it stands.
pub fn status(town: &Town, input: &str) -> Result<ConvoyStatus> {
    let inputs = DispatchInputs::read(town)?;
    town.read(|reader| {
        let bead = require(town, reader, input)?;
        let edges = reader.edges_from(&bead.id)?.into_iter();
        let edges = edges.filter(|edge| edge.kind == DependencyType::Tracks);
        let mut ids: Vec<BeadId> = edges.map(|edge| edge.target).collect();
        ids.sort_by(BeadId::natural_order);
        let rows = reader.bead_rows(&ids)?;
        let tally = reader.convoy_tally(&bead.id)?;
        let snapshot = SchedulingSnapshot::read_for_daemon(reader, &inputs, town.now())?;
        build_status(town, reader, snapshot, Convoy::of(bead, tally), rows)
    })
}

fn build_status(
    town: &Town,
    reader: &Reader<'_>,
    snapshot: SchedulingSnapshot,
    convoy: Convoy,
    rows: Vec<BeadRow>,
) -> Result<ConvoyStatus> {
    let seen = ConvoyFacts::read(reader, &snapshot, &rows)?;
    let edges = rows.iter().flat_map(|row| {
        let bead = &row.bead.id;
        seen.facts.get(bead).into_iter().flat_map(BeadFacts::blocked_by).map(move |at| (bead, at))
    });
    let places = places(&rows);
    let mut members = members(&rows, &places, |slug| snapshot.rig(slug));
    for (bead, target) in edges {
        link(&mut members, &places, bead, target);
    }
    let mut tracked: Vec<TrackedBead> =
        rows.into_iter().map(|row| seen.tracked(&snapshot, row)).collect();
    let plan = stage(&StageFacts { members: members.clone(), ..StageFacts::default() });
    let is_gated = seen.contexts.values().any(|context| context.closed.is_none() && context.gated);
    let (settings, as_of) = (snapshot.settings.clone(), snapshot.now);
    let slots = if is_gated { settings.cap_in_force() } else { settings.max_polecats };
    let slots = convoy.slots_within(slots);
    let is_staged = convoy.state() == ConvoyState::Staged;
    let durations = past_durations(reader)?;
    find_queue_places(town, reader, snapshot, seen.awake, &mut tracked)?;
    let outlook = outlook(durations.as_ref(), &settings, slots, &members, |at| {
        let one = &tracked[at];
        let until = one.reasons.iter().filter_map(WaitReason::until).max();
        BeadForecastFacts {
            age: one.run.as_ref().map(|run| age(run, as_of)),
            is_stuck: !is_staged && one.reasons.iter().any(needs_a_person),
            begins_in: until.map(|until| until.since(as_of)).unwrap_or_default(),
            turn: seen.contexts.get(&one.row.bead.id).map_or(u64::MAX, turn),
        }
    });
    for (number, wave) in plan.waves.iter().enumerate() {
        for at in wave {
            tracked[*at].wave = Some(number + 1);
        }
    }
    let request = reader.open_merge_request(&convoy.bead.id)?;
    let spent = reader.spent_by_members(&convoy.bead.id)?;
    Ok(ConvoyStatus {
        convoy,
        request,
        spent,
        waves: plan.waves,
        critical_path: outlook.critical_path,
        estimate: outlook.estimate,
        tracked,
        as_of,
    })
}

/// How each of these beads stands, with its last context. It is read as the beads of a convoy are, but for their places in
/// line: a bead that only waits for room has the reasons of the moment, as if it were first in line.
pub(crate) fn tracked_with_contexts(
    reader: &Reader<'_>,
    snapshot: &SchedulingSnapshot,
    rows: Vec<BeadRow>,
) -> Result<Vec<(TrackedBead, Option<Context>)>> {
    let seen = ConvoyFacts::read(reader, snapshot, &rows)?;
    let standing = |row: BeadRow| {
        let context = seen.contexts.get(&row.bead.id).cloned();
        let mut one = seen.tracked(snapshot, row);
        if let (TrackedState::Queued, Some(context)) = (one.state, &context) {
            one.reasons.extend(snapshot.admission(context));
        }
        (one, context)
    };
    Ok(rows.into_iter().map(standing).collect())
}

/// The age of a run.
fn age(run: &Run, now: Timestamp) -> Duration {
    now.since(run.running_at.unwrap_or(run.created_at))
}

/// Where a context comes in line, roughly: ageing aside.
fn turn(context: &Context) -> u64 {
    let priority = u64::try_from(context.priority.number()).unwrap_or(0);
    (priority << 48).saturating_add(context.number)
}

/// Whether a bead does not start before a person acts. Its blockers are judged by themselves.
fn needs_a_person(reason: &WaitReason) -> bool {
    let is_asked_itself = matches!(reason, WaitReason::BlockedBy(_) | WaitReason::BlockerFailed(_));
    !reason.passes_by_itself() && !is_asked_itself
}

/// The facts about all beads of a convoy, read at once.
struct ConvoyFacts {
    /// The surroundings of the beads that are not closed.
    facts: HashMap<BeadId, BeadFacts>,
    /// The last context of those that are not done.
    contexts: HashMap<BeadId, Context>,
    /// The last run of those that failed or are not scheduled.
    runs: HashMap<BeadId, Run>,
    /// The staged convoy that those wait in which are not scheduled.
    staged: HashMap<BeadId, BeadId>,
    /// The line of the whole town, if it was read already.
    awake: Option<Vec<Context>>,
    /// The usage of the runs of each bead.
    spent: HashMap<BeadId, Spent>,
}

impl ConvoyFacts {
    fn read(reader: &Reader<'_>, snapshot: &SchedulingSnapshot, rows: &[BeadRow]) -> Result<Self> {
        let is_open = |row: &&BeadRow| row.bead.status != Status::Closed;
        let open: Vec<&BeadRow> = rows.iter().filter(is_open).collect();
        let facts = BeadFacts::of_rows(reader, &open)?;
        let ids = open.iter().map(|row| row.bead.id.clone());
        let facts = ids.clone().zip(facts).collect();
        let failed = rows.iter().filter(|row| has_failed(&row.bead)).map(|row| &row.bead.id);
        let ids: Vec<BeadId> = ids.chain(failed.cloned()).collect();
        let awake = Self::line(reader, open.len())?;
        let mine: HashSet<&BeadId> =
            if awake.is_some() { ids.iter().collect() } else { HashSet::new() };
        let in_line = awake.iter().flatten().filter(|context| mine.contains(&context.bead));
        let mut contexts: HashMap<BeadId, Context> =
            in_line.map(|context| (context.bead.clone(), context.clone())).collect();
        let rest = ids.iter().filter(|id| !contexts.contains_key(*id)).cloned();
        contexts.extend(reader.latest_contexts_of(&rest.collect::<Vec<_>>())?);
        let is_alone = |id: &&BeadId| {
            let is_open = |context: &Context| context.closed.is_none();
            snapshot.run_of(id).is_none() && !contexts.get(*id).is_some_and(is_open)
        };
        let alone: Vec<BeadId> = ids.iter().filter(is_alone).cloned().collect();
        let runs = reader.last_runs_of(&alone)?;
        let staged = reader.staged_convoys_of(&alone)?;
        let all: Vec<BeadId> = rows.iter().map(|row| row.bead.id.clone()).collect();
        let spent = reader.spent_by_beads(&all)?;
        Ok(Self { facts, contexts, runs, staged, awake, spent })
    }

    /// The line of the whole town, if it is not much longer than what is asked about anyway.
    fn line(reader: &Reader<'_>, asked: usize) -> Result<Option<Vec<Context>>> {
        let line = reader.contexts_in_line(asked.saturating_add(1))?;
        Ok((1..=asked).contains(&line.len()).then_some(line))
    }

    /// How a bead stands, its place in line aside.
    fn tracked(&self, snapshot: &SchedulingSnapshot, row: BeadRow) -> TrackedBead {
        let bead = &row.bead;
        let run = snapshot.run_of(&bead.id).cloned();
        let latest = self.contexts.get(&bead.id);
        let context = latest.filter(|context| context.closed.is_none());
        let facts = self.facts.get(&bead.id);
        let reasons = match (facts, context) {
            (Some(_), _) if run.is_some() => Vec::new(),
            (None, _) => Vec::new(),
            (Some(facts), Some(context)) => snapshot.reasons(context, bead, facts),
            (Some(facts), None) => {
                let (run, staged) = (self.runs.get(&bead.id), self.staged.get(&bead.id));
                snapshot.reasons_without_context(bead, facts, latest, run, staged)
            }
        };
        let state = state(bead, run.as_ref(), context, &reasons);
        let mut blocked_by: Vec<BeadId> =
            facts.into_iter().flat_map(BeadFacts::blocked_by).cloned().collect();
        blocked_by.sort_unstable();
        let failure = match state {
            TrackedState::Done => String::new(),
            _ => failure(bead, latest, self.runs.get(&bead.id)),
        };
        let request = facts.and_then(|facts| facts.request().cloned());
        let (wave, place) = (None, None);
        let spent = self.spent.get(&bead.id).copied().unwrap_or_default();
        TrackedBead { row, state, run, request, wave, place, blocked_by, reasons, failure, spent }
    }
}

fn has_failed(bead: &Bead) -> bool {
    bead.status == Status::Closed && bead.outcome == Some(Outcome::Failed)
}

fn state(
    bead: &Bead,
    run: Option<&Run>,
    context: Option<&Context>,
    reasons: &[WaitReason],
) -> TrackedState {
    let any = |kind: fn(&WaitReason) -> bool| reasons.iter().any(kind);
    match run {
        _ if has_failed(bead) => TrackedState::Failed,
        _ if bead.status == Status::Closed => TrackedState::Done,
        Some(run) if run.state == RunState::Starting => TrackedState::Starting,
        Some(_) => TrackedState::Running,
        None if context.is_some_and(|context| context.starting) => TrackedState::Starting,
        None if let Some(state) = reasons.iter().find_map(request_state) => {
            TrackedState::of_request(state)
        }
        None if any(is_given_up) => TrackedState::Failed,
        None if any(is_blocked) => TrackedState::Blocked,
        None if context.is_some() && reasons.iter().all(WaitReason::is_control) => {
            TrackedState::Queued
        }
        None if context.is_none() && any(is_not_requested) => TrackedState::Idle,
        None => TrackedState::Waiting,
    }
}

fn request_state(reason: &WaitReason) -> Option<&'static str> {
    match reason {
        WaitReason::Merging(request) => Some(request.state.as_str()),
        _ => None,
    }
}

fn is_blocked(reason: &WaitReason) -> bool {
    matches!(reason, WaitReason::BlockedBy(_) | WaitReason::BlockerFailed(_))
}

/// Whether it was tried as often as it may be.
fn is_given_up(reason: &WaitReason) -> bool {
    matches!(
        reason,
        WaitReason::CircuitBroken(_)
            | WaitReason::Quarantined(_)
            | WaitReason::AttemptsUsedUp(_)
            | WaitReason::OverLimit(..)
    )
}

/// Whether the bead was never requested, or is no longer wanted.
fn is_not_requested(reason: &WaitReason) -> bool {
    matches!(
        reason,
        WaitReason::NotScheduled
            | WaitReason::ConvoyStaged(_)
            | WaitReason::Cleared(_)
            | WaitReason::RunCancelled(_)
            | WaitReason::NotSlingable(_)
            | WaitReason::TownLevel
    )
}

/// The last failure of a bead, if there was one.
fn failure(bead: &Bead, latest: Option<&Context>, run: Option<&Run>) -> String {
    let of_run = run.filter(|run| matches!(run.state, RunState::Failed | RunState::Lost));
    let of_run = of_run.map(|run| run.reason.as_str());
    let of_start = latest.map(|context| context.last_failure.as_str());
    let of_close = has_failed(bead).then_some(bead.close_reason.as_str());
    let said = [of_start.filter(|_| !has_failed(bead)), of_run, of_close];
    said.into_iter().flatten().find(|text| !text.is_empty()).unwrap_or_default().to_owned()
}

/// Finds out where those stand that wait for their turn, and what else keeps them there.
fn find_queue_places(
    town: &Town,
    reader: &Reader<'_>,
    snapshot: SchedulingSnapshot,
    awake: Option<Vec<Context>>,
    tracked: &mut [TrackedBead],
) -> Result<()> {
    let queued = tracked.iter().filter(|one| one.state == TrackedState::Queued);
    let wanted: HashMap<&BeadId, &Bead> =
        queued.map(|one| (&one.row.bead.id, &one.row.bead)).collect();
    let mut line = in_line(town, reader, snapshot, awake, &wanted)?;
    for one in tracked {
        if let Some(found) = line.remove(&one.row.bead.id) {
            one.place = Some(found.place);
            one.reasons.extend(found.reasons);
        }
    }
    Ok(())
}
