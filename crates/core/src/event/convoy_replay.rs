//! How a convoy stood after any event, and how long each of its beads waited for what.
//!
//! Fields and dependencies of beads come from [`Replay`]. Contexts, runs and merge requests come from the events about them:
//! each tells the state after it, and enough about the state before it to begin in the middle of the log.

use std::collections::{BTreeMap, BTreeSet};

use super::replay::{Replay, ReplayedBead};
use super::{Event, EventKind, EventPayload};
use crate::bead::Gate;
use crate::convoy_graph::TrackedState;
use crate::decide::{ChildrenFacts, TargetFacts, edge_blocks};
use crate::{BeadId, DependencyType, Outcome, Status, Timestamp};

/// The place of a bead in the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QueueState {
    /// It is not scheduled.
    #[default]
    Unscheduled,
    /// It is scheduled.
    Scheduled,
    /// It is scheduled, and its last start failed.
    BackingOff,
    /// It was tried as often as it may be.
    GivenUp,
}

/// A live run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedRun {
    /// Its name.
    pub id: String,
    /// The agent; empty if the kept events do not name it.
    pub agent: String,
    /// Its worker has not taken it yet.
    pub is_starting: bool,
}

/// A merge request that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedRequest {
    /// Its name.
    pub id: String,
    /// The name of its state.
    pub state: String,
}

/// The work on a bead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkState {
    /// Its place in the queue.
    pub queue: QueueState,
    /// Its live run.
    pub run: Option<ReplayedRun>,
    /// Its merge request that is not over.
    pub request: Option<ReplayedRequest>,
}

fn is_over(state: &str) -> bool {
    matches!(state, "landed" | "cancelled" | "superseded")
}

impl WorkState {
    /// Goes on to the state after an event of the bead.
    pub fn apply(&mut self, event: &Event) {
        let run = event.run.clone().unwrap_or_default();
        match event.details() {
            EventPayload::Scheduled(_) | EventPayload::RetryNow(_) => {
                self.queue = QueueState::Scheduled;
            }
            EventPayload::Unscheduled(_) => self.queue = QueueState::Unscheduled,
            EventPayload::CircuitBroken(_)
            | EventPayload::Quarantined(_)
            | EventPayload::Escalated(_)
            | EventPayload::OverLimit(_) => self.queue = QueueState::GivenUp,
            EventPayload::RunStarting(taken) => {
                self.run = Some(ReplayedRun { id: run, agent: taken.agent, is_starting: true });
            }
            EventPayload::Dispatched(taken) | EventPayload::RunUnblocked(taken) => {
                self.queue = QueueState::Unscheduled;
                self.run = Some(ReplayedRun { id: run, agent: taken.agent, is_starting: false });
            }
            EventPayload::StartFailed(_) => {
                self.queue = QueueState::BackingOff;
                self.run = None;
            }
            EventPayload::RunDone(_)
            | EventPayload::RunFailed(_)
            | EventPayload::RunLost(_)
            | EventPayload::RunCancelled(_) => self.run = None,
            EventPayload::RequestOpened(change) | EventPayload::RequestChanged(change) => {
                let request = ReplayedRequest { id: change.request, state: change.new };
                self.request = Some(request).filter(|request| !is_over(&request.state));
            }
            _ => {}
        }
    }

    /// The state before the first of these events of the bead, the oldest first. A part that no event tells of is as it
    /// is now.
    pub fn before(events: &[&Event], now: &Self) -> Self {
        let queue = events.iter().find_map(|event| match event.kind {
            EventKind::Scheduled => Some(QueueState::Unscheduled),
            EventKind::Unscheduled
            | EventKind::CircuitBroken
            | EventKind::Quarantined
            | EventKind::RunStarting
            | EventKind::StartFailed
            | EventKind::Dispatched => Some(QueueState::Scheduled),
            EventKind::RetryNow => Some(QueueState::BackingOff),
            _ => None,
        });
        let run = events.iter().find_map(|event| {
            let id = event.run.clone().unwrap_or_default();
            let taken =
                |is_starting| ReplayedRun { id: id.clone(), agent: String::new(), is_starting };
            match event.details() {
                EventPayload::RunStarting(_) => Some(None),
                EventPayload::Dispatched(known) => {
                    Some(Some(ReplayedRun { agent: known.agent, ..taken(true) }))
                }
                EventPayload::StartFailed(_) => Some(Some(taken(true))),
                EventPayload::RunBlocked(_)
                | EventPayload::RunUnblocked(_)
                | EventPayload::RunDone(_)
                | EventPayload::RunFailed(_)
                | EventPayload::RunLost(_)
                | EventPayload::RunCancelled(_) => Some(Some(taken(false))),
                _ => None,
            }
        });
        let request = events.iter().find_map(|event| match event.details() {
            EventPayload::RequestOpened(_) => Some(None),
            EventPayload::RequestChanged(change) => {
                Some(change.old.map(|state| ReplayedRequest { id: change.request, state }))
            }
            _ => None,
        });
        Self {
            queue: queue.unwrap_or(now.queue),
            run: run.unwrap_or_else(|| now.run.clone()),
            request: request.unwrap_or_else(|| now.request.clone()),
        }
    }
}

/// The reason why time passes for a bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// It is scheduled, and waits for capacity.
    Waiting,
    /// Another bead has to be done first.
    Blocked,
    /// It is put off.
    Deferred,
    /// Its last start failed.
    Backoff,
    /// All starts, or those of its convoy, are paused.
    Paused,
    /// A person, or something outside, holds it or its merge request.
    Held,
    /// A run works on it.
    Running,
    /// Its work is being built or checked.
    Checking,
    /// Its work waits for a review.
    Review,
    /// Its work is in the merge queue.
    Landing,
}

impl SpanKind {
    /// A short name that programs can rely on.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Deferred => "deferred",
            Self::Backoff => "backoff",
            Self::Paused => "paused",
            Self::Held => "held",
            Self::Running => "running",
            Self::Checking => "checking",
            Self::Review => "review",
            Self::Landing => "landing",
        }
    }
}

/// A part of the time of a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineSpan {
    /// The reason why time passed.
    pub kind: SpanKind,
    /// When it began.
    pub from: Timestamp,
    /// When it ended; nothing if it goes on.
    pub to: Option<Timestamp>,
    /// The run that worked.
    pub run: Option<String>,
}

/// A convoy, its beads and their blockers, after some event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvoyReplay {
    /// The convoy.
    pub convoy: BeadId,
    /// The beads and the edges between them.
    pub replay: Replay,
    /// The work on each bead.
    pub work: BTreeMap<BeadId, WorkState>,
    /// All starts are paused.
    pub is_town_paused: bool,
    /// The starts of the convoy are paused.
    pub is_convoy_paused: bool,
}

impl ConvoyReplay {
    /// Goes back from the present to the state before the first of these events, the oldest first.
    #[must_use]
    pub fn before(mut self, events: &[Event]) -> Self {
        for event in events.iter().rev() {
            self.replay.revert(event);
        }
        let mut of_bead: BTreeMap<&BeadId, Vec<&Event>> = BTreeMap::new();
        for event in events {
            if let Some(bead) = &event.bead {
                of_bead.entry(bead).or_default().push(event);
            }
        }
        for (bead, events) in &of_bead {
            let now = self.work.get(*bead).cloned().unwrap_or_default();
            self.work.insert((*bead).clone(), WorkState::before(events, &now));
        }
        let first_pause = |is_of: &dyn Fn(&Event) -> bool| {
            events.iter().find_map(|event| match event.kind {
                EventKind::Paused if is_of(event) => Some(false),
                EventKind::Resumed if is_of(event) => Some(true),
                _ => None,
            })
        };
        let of_convoy = |event: &Event| event.bead.as_ref() == Some(&self.convoy);
        let convoy = first_pause(&of_convoy).unwrap_or(self.is_convoy_paused);
        let town = first_pause(&|event| event.bead.is_none()).unwrap_or(self.is_town_paused);
        (self.is_convoy_paused, self.is_town_paused) = (convoy, town);
        self
    }

    /// Goes on to the state after an event.
    pub fn apply(&mut self, event: &Event) {
        self.replay.apply(event);
        let pauses = match event.kind {
            EventKind::Paused => Some(true),
            EventKind::Resumed => Some(false),
            _ => None,
        };
        match (&event.bead, pauses) {
            (None, Some(is_paused)) => self.is_town_paused = is_paused,
            (Some(bead), Some(is_paused)) if *bead == self.convoy => {
                self.is_convoy_paused = is_paused;
            }
            (Some(bead), None) => self.work.entry(bead.clone()).or_default().apply(event),
            (_, _) => {}
        }
    }

    /// The beads that the convoy tracks, by their names.
    pub fn members(&self) -> Vec<&BeadId> {
        let edges = self.replay.edges.iter();
        let tracked = edges
            .filter(|((issue, _), kind)| *issue == self.convoy && **kind == DependencyType::Tracks);
        let mut members: Vec<&BeadId> = tracked.map(|((_, target), _)| target).collect();
        members.retain(|member| self.replay.beads.contains_key(*member));
        members.sort_by(|a, b| a.natural_order(b));
        members
    }

    /// The beads that have to be done before this one, sorted.
    pub fn blocked_by(&self, bead: &BeadId) -> Vec<&BeadId> {
        let edges = self.replay.edges.iter().filter(|((issue, _), _)| issue == bead);
        let blocking = edges.filter(|((_, target), kind)| {
            let facts = self.replay.beads.get(target).map(facts_of);
            // A gate of children is not in the log; it is rare, and the present knows it.
            edge_blocks(kind, Gate::AllChildren, facts.as_ref(), ChildrenFacts::default)
        });
        blocking.map(|((_, target), _)| target).collect()
    }

    /// Where a bead stands.
    pub fn state(&self, bead: &BeadId) -> TrackedState {
        let Some(known) = self.replay.beads.get(bead) else { return TrackedState::Idle };
        let default = WorkState::default();
        let work = self.work.get(bead).unwrap_or(&default);
        if known.status == Status::Closed {
            let failed = known.outcome == Some(Outcome::Failed);
            return if failed { TrackedState::Failed } else { TrackedState::Done };
        }
        if let Some(run) = &work.run {
            return if run.is_starting { TrackedState::Starting } else { TrackedState::Running };
        }
        let is_repaired = matches!(work.queue, QueueState::Scheduled | QueueState::BackingOff);
        if let Some(request) = work.request.as_ref().filter(|_| !is_repaired) {
            return TrackedState::of_request(&request.state);
        }
        match work.queue {
            QueueState::GivenUp => TrackedState::Failed,
            _ if !self.blocked_by(bead).is_empty() => TrackedState::Blocked,
            _ if known.status != Status::Open => TrackedState::Waiting,
            QueueState::Scheduled => TrackedState::Queued,
            QueueState::BackingOff => TrackedState::Waiting,
            QueueState::Unscheduled => TrackedState::Idle,
        }
    }

    /// Why time passes for a bead now, and the run that works on it; nothing if it is over or nothing is wanted of it.
    pub fn span(&self, bead: &BeadId) -> Option<(SpanKind, Option<String>)> {
        let known = self.replay.beads.get(bead).filter(|known| known.status != Status::Closed)?;
        let default = WorkState::default();
        let work = self.work.get(bead).unwrap_or(&default);
        if let Some(run) = &work.run {
            return Some((SpanKind::Running, Some(run.id.clone())));
        }
        if let Some(request) = &work.request {
            let kind = match request.state.as_str() {
                "review" => SpanKind::Review,
                "held" | "failed" | "conflict" => SpanKind::Held,
                "building" | "checking" => SpanKind::Checking,
                _ => SpanKind::Landing,
            };
            return Some((kind, None));
        }
        let is_blocked = !self.blocked_by(bead).is_empty();
        let kind = match (&known.status, work.queue) {
            (Status::Deferred, _) => SpanKind::Deferred,
            (Status::Blocked, _) | (_, QueueState::GivenUp) => SpanKind::Held,
            (_, QueueState::Unscheduled) => return None,
            (_, _) if is_blocked => SpanKind::Blocked,
            (_, _) if self.is_town_paused || self.is_convoy_paused => SpanKind::Paused,
            (_, QueueState::BackingOff) => SpanKind::Backoff,
            (_, QueueState::Scheduled) => SpanKind::Waiting,
        };
        Some((kind, None))
    }

    /// The beads for which this event may change why time passes.
    fn touched<'a>(&'a self, event: &'a Event, members: &'a [BeadId]) -> BTreeSet<&'a BeadId> {
        if matches!(event.kind, EventKind::Paused | EventKind::Resumed) {
            return members.iter().collect();
        }
        let Some(bead) = &event.bead else { return BTreeSet::new() };
        let edges = self.replay.edges.keys().filter(|(_, target)| target == bead);
        let waiting = edges.map(|(issue, _)| issue);
        waiting.chain([bead]).filter(|id| members.binary_search(id).is_ok()).collect()
    }
}

fn facts_of(bead: &ReplayedBead) -> TargetFacts {
    TargetFacts { status: bead.status.clone(), outcome: bead.outcome }
}

/// The time of each of these beads, from the state before the first of the events to the last one.
pub fn timeline(
    mut replay: ConvoyReplay,
    members: &[BeadId],
    from: Timestamp,
    events: &[Event],
) -> BTreeMap<BeadId, Vec<TimelineSpan>> {
    let mut sorted = members.to_vec();
    sorted.sort_unstable();
    let mut spans: BTreeMap<BeadId, Vec<TimelineSpan>> = BTreeMap::new();
    for bead in members {
        let own = spans.entry(bead.clone()).or_default();
        continue_or_begin_span(own, replay.span(bead), from);
    }
    for event in events {
        replay.apply(event);
        for bead in replay.touched(event, &sorted) {
            let own = spans.entry(bead.clone()).or_default();
            continue_or_begin_span(own, replay.span(bead), event.at);
        }
    }
    // Several changes at one moment leave spans without any time.
    for own in spans.values_mut() {
        own.retain(|span| span.to != Some(span.from));
    }
    spans
}

/// Ends the last span if another begins.
fn continue_or_begin_span(
    spans: &mut Vec<TimelineSpan>,
    now: Option<(SpanKind, Option<String>)>,
    at: Timestamp,
) {
    let last = spans.last_mut().filter(|span| span.to.is_none());
    match (last, now) {
        (Some(last), Some((kind, run))) if last.kind == kind && last.run == run => {}
        (last, now) => {
            if let Some(last) = last {
                // A clock that was set back ends no span before it began.
                last.to = Some(at.max(last.from));
            }
            if let Some((kind, run)) = now {
                spans.push(TimelineSpan { kind, from: at, to: None, run });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{
        BeadCreated, ContextEnded, ContextNamed, ContextOpened, PauseChanged, RequestChange,
        RunEnded, RunTaken,
    };
    use crate::{IssueType, Priority};

    /// A convoy of two beads, with everything that can happen to their work.
    struct History {
        now: ConvoyReplay,
        events: Vec<Event>,
        states: Vec<ConvoyReplay>,
    }

    const BEADS: [&str; 2] = ["gt-a", "gt-b"];

    fn id(text: &str) -> BeadId {
        BeadId::trusted(text.to_owned())
    }

    impl History {
        fn new() -> Self {
            let convoy = id("hq-cv-1");
            let now = ConvoyReplay {
                convoy: convoy.clone(),
                replay: Replay::default(),
                work: BTreeMap::new(),
                is_town_paused: false,
                is_convoy_paused: false,
            };
            let mut history = Self { now, events: Vec::new(), states: Vec::new() };
            for bead in BEADS {
                let created = BeadCreated {
                    title: bead.to_owned(),
                    issue_type: IssueType::default(),
                    status: Status::Open,
                    outcome: None,
                    priority: Priority::default(),
                    assignee: String::new(),
                    dependencies: Vec::new(),
                };
                history.add(Some(bead), None, &EventPayload::Created(created));
                history.now.work.insert(id(bead), WorkState::default());
            }
            history
        }

        fn add(&mut self, bead: Option<&str>, run: Option<String>, details: &EventPayload) {
            let number = self.events.len() as u64 + 1;
            let event = Event {
                number,
                at: Timestamp::from_nanos(i64::try_from(number).unwrap() * 1_000_000_000),
                actor: String::new(),
                kind: details.kind(),
                bead: bead.map(id),
                rig: None,
                run,
                payload: details.to_json().unwrap(),
            };
            // The model: what the store would have after it, by the rules of the product and not by those of the replay.
            self.now.replay.apply(&event);
            self.events.push(event);
        }

        /// Does something to a bead that is possible for it now.
        fn step(&mut self, bead: usize, choice: u8) {
            let name = BEADS[bead];
            let mut work = self.now.work[&id(name)].clone();
            let run_id = format!("{name}#{}", self.events.len());
            let context = || "hq-ctx-1".to_owned();
            let ended = || RunEnded { reason: String::new(), pulled_by: None };
            let (run, details) = match (&work.run, work.queue, choice % 4) {
                (_, _, 3) if choice > 200 => {
                    self.now.is_town_paused = !self.now.is_town_paused;
                    let pause = PauseChanged { title: None };
                    let details = if self.now.is_town_paused {
                        EventPayload::Paused(pause)
                    } else {
                        EventPayload::Resumed(pause)
                    };
                    self.add(None, None, &details);
                    return self.states.push(self.now.clone());
                }
                (None, QueueState::Unscheduled | QueueState::GivenUp, 0 | 1) => {
                    work.queue = QueueState::Scheduled;
                    let origin = String::new();
                    (None, EventPayload::Scheduled(ContextOpened { context: context(), origin }))
                }
                (None, QueueState::Scheduled, 0) => {
                    work.queue = QueueState::Unscheduled;
                    let reason = "cleared".to_owned();
                    let end = ContextEnded { context: context(), reason, why: None };
                    (None, EventPayload::Unscheduled(end))
                }
                (None, QueueState::BackingOff, 0) => {
                    work.queue = QueueState::Scheduled;
                    (None, EventPayload::RetryNow(ContextNamed { context: context() }))
                }
                (None, QueueState::Scheduled, 1) => {
                    work.queue = QueueState::GivenUp;
                    let end = ContextEnded { context: context(), reason: String::new(), why: None };
                    (None, EventPayload::CircuitBroken(end))
                }
                (None, QueueState::Scheduled, 2) => {
                    let agent = "nux".to_owned();
                    work.run = Some(ReplayedRun {
                        id: run_id.clone(),
                        agent: agent.clone(),
                        is_starting: true,
                    });
                    let taken = RunTaken { agent, lease_expires_at: None };
                    (Some(run_id), EventPayload::RunStarting(taken))
                }
                (Some(live), _, 0) if live.is_starting => {
                    let id = live.id.clone();
                    (work.run, work.queue) = (None, QueueState::BackingOff);
                    (Some(id), EventPayload::StartFailed(ended()))
                }
                (Some(live), _, 1 | 2) if live.is_starting => {
                    let (id, agent) = (live.id.clone(), live.agent.clone());
                    work.queue = QueueState::Unscheduled;
                    work.run = Some(ReplayedRun { is_starting: false, ..live.clone() });
                    let taken = RunTaken { agent, lease_expires_at: None };
                    (Some(id), EventPayload::Dispatched(taken))
                }
                (Some(live), _, 0 | 1) => {
                    let id = live.id.clone();
                    work.run = None;
                    (Some(id), EventPayload::RunLost(ended()))
                }
                _ => {
                    let old = work.request.as_ref().map(|request| request.state.clone());
                    let new = match (&old, choice % 3) {
                        (None, _) => "queued",
                        (Some(_), 0) => "landed",
                        (Some(_), 1) => "review",
                        (Some(_), _) => "checking",
                    };
                    let change = RequestChange {
                        request: format!("{name}@1"),
                        target: String::new(),
                        old: old.clone(),
                        new: new.to_owned(),
                        held: None,
                        detail: String::new(),
                        commit: String::new(),
                    };
                    work.request =
                        Some(ReplayedRequest { id: change.request.clone(), state: new.to_owned() })
                            .filter(|request| request.state != "landed");
                    let details = match old {
                        None => EventPayload::RequestOpened(change),
                        Some(_) => EventPayload::RequestChanged(change),
                    };
                    (None, details)
                }
            };
            self.add(Some(name), run, &details);
            self.now.work.insert(id(name), work);
            self.states.push(self.now.clone());
        }
    }

    /// Without what the beginning of a log may not tell: the agent of a run that began before it.
    fn without_agents(mut replay: ConvoyReplay) -> ConvoyReplay {
        for run in replay.work.values_mut().filter_map(|work| work.run.as_mut()) {
            run.agent.clear();
        }
        replay
    }

    #[test]
    fn work_that_waits_for_a_person_is_not_landing() {
        let mut history = History::new();
        for (state, expected) in [
            ("queued", TrackedState::Landing),
            ("checking", TrackedState::Landing),
            ("review", TrackedState::Waiting),
            ("held", TrackedState::Waiting),
            ("failed", TrackedState::Failed),
            ("conflict", TrackedState::Failed),
        ] {
            let request = ReplayedRequest { id: "gt-a@1".to_owned(), state: state.to_owned() };
            let work = WorkState { request: Some(request), ..WorkState::default() };
            history.now.work.insert(id("gt-a"), work.clone());
            assert_eq!(history.now.state(&id("gt-a")), expected, "{state}");
            // A repair that is scheduled goes on by itself.
            let repaired = WorkState { queue: QueueState::Scheduled, ..work };
            history.now.work.insert(id("gt-a"), repaired);
            assert_eq!(history.now.state(&id("gt-a")), TrackedState::Queued, "{state}");
        }
    }

    proptest! {
        #[test]
        fn a_replay_reaches_every_state_and_ends_in_the_present(
            steps in proptest::collection::vec((0..2_usize, any::<u8>()), 1..40),
            kept_from in 0..40_usize,
        ) {
            let mut history = History::new();
            for (bead, choice) in steps {
                history.step(bead, choice);
            }
            let begun = history.events.len() - history.states.len();
            // The oldest events may be gone.
            let kept_from = kept_from.min(history.states.len());
            let kept = &history.events[begun + kept_from..];
            let mut replay = history.now.clone().before(kept);
            if kept_from > 0 {
                let before = without_agents(replay.clone());
                let expected = without_agents(history.states[kept_from - 1].clone());
                // A part without any kept event is as it is now, which is what it was then; one that was given up or
                // backs off is scheduled anew by an event that does not tell it apart from one that is not scheduled.
                prop_assert_eq!(before.replay, expected.replay);
                prop_assert_eq!(before.is_town_paused, expected.is_town_paused);
                for bead in BEADS.map(id) {
                    prop_assert_eq!(&before.work[&bead].run, &expected.work[&bead].run);
                    prop_assert_eq!(&before.work[&bead].request, &expected.work[&bead].request);
                }
            }
            for (at, event) in kept.iter().enumerate() {
                replay.apply(event);
                let expected = &history.states[kept_from + at];
                prop_assert_eq!(&without_agents(replay.clone()).replay, &expected.replay);
                if kept_from == 0 {
                    prop_assert_eq!(&replay, expected);
                }
            }
            prop_assert_eq!(without_agents(replay), without_agents(history.now.clone()));
        }

        #[test]
        fn spans_of_a_bead_follow_each_other(
            steps in proptest::collection::vec((0..2_usize, any::<u8>()), 1..40),
        ) {
            let mut history = History::new();
            for (bead, choice) in steps {
                history.step(bead, choice);
            }
            let members = BEADS.map(id);
            let begin = history.now.clone().before(&history.events);
            let spans = timeline(begin, &members, Timestamp::from_nanos(0), &history.events);
            for bead in &members {
                let own = &spans[bead];
                for pair in own.windows(2) {
                    prop_assert!(pair[0].to.is_some_and(|to| to <= pair[1].from));
                }
                let now = history.now.span(bead);
                let last = own.last().filter(|span| span.to.is_none());
                prop_assert_eq!(last.map(|span| (span.kind, span.run.clone())), now);
            }
        }
    }
}
