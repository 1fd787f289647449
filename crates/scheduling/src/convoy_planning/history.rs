//! How a convoy stood at any moment that the event log still tells of.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gt_core::convoy_graph::{GraphEdge, GraphLayout, GraphNode, TrackedState, layout};
use gt_core::event::convoy_replay::{
    ConvoyReplay, QueueState, ReplayedRequest, ReplayedRun, TimelineSpan, WorkState, timeline,
};
use gt_core::event::replay::Replay;
use gt_core::schedule::{CloseReason, Context};
use gt_core::{Bead, BeadId, Dependency, DependencyType, Event, Timestamp};
use gt_store::Reader;

use gt_beads::convoys::require;
use gt_town::{OperationError, Result, Town};

/// A moment in the event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogMoment {
    /// After the event of this number.
    Number(u64),
    /// After the last event until then.
    Time(Timestamp),
}

impl LogMoment {
    /// Reads the number of an event or an instant (RFC 3339).
    pub fn parse(text: &str) -> std::result::Result<Self, gt_core::Invalid> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        Timestamp::parse(text).map(Self::Time).map_err(|_| {
            let text = text.escape_debug();
            gt_core::Invalid::new(format!(
                "\"{text}\" is neither the number of an event nor an instant such as \"2026-11-18T14:00:00Z\""
            ))
        })
    }
}

/// An event's place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPlace {
    /// The number of the event.
    pub number: u64,
    /// When it happened.
    pub at: Timestamp,
}

/// The part of the log that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptLog {
    /// The oldest event.
    pub first: LogPlace,
    /// The newest event.
    pub last: LogPlace,
}

/// The answer to a question about the past.
#[derive(Debug, Clone)]
pub enum Recalled<T> {
    /// The events of that time are not kept any more.
    NotKept(KeptLog),
    /// How it was.
    Known(T),
}

/// A convoy as it was.
#[derive(Debug, Clone)]
pub struct PastConvoy {
    /// The convoy, as it is now.
    pub convoy: Bead,
    /// The event after which this is how it stood.
    pub place: LogPlace,
    /// Everything in it.
    pub replay: ConvoyReplay,
}

impl PastConvoy {
    /// How many of the members stood so.
    pub fn count(&self, state: TrackedState) -> u64 {
        let members = self.replay.members().into_iter();
        members.filter(|bead| self.replay.state(bead) == state).count() as u64
    }

    /// The drawing of its beads.
    pub fn graph(&self) -> GraphLayout {
        let members = self.replay.members();
        let places: HashMap<&BeadId, usize> =
            members.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let edges = self.replay.replay.edges.iter().filter(|(_, kind)| kind.can_block());
        let edges: Vec<GraphEdge> = edges
            .filter_map(|((bead, blocker), _)| {
                Some(GraphEdge { from: *places.get(blocker)?, to: *places.get(bead)? })
            })
            .collect();
        let request = |id: &BeadId| self.replay.work.get(id).and_then(|work| work.request.as_ref());
        let nodes = members.iter().map(|id| GraphNode {
            id: (*id).clone(),
            title: self.title(id),
            state: self.replay.state(id),
            merge_state: request(id).map(|request| request.state.clone()),
            is_critical: false,
        });
        layout(nodes.collect(), &edges)
    }

    /// The title of a bead at that time.
    pub fn title(&self, id: &BeadId) -> String {
        self.replay.replay.beads.get(id).map(|bead| bead.title.clone()).unwrap_or_default()
    }
}

/// The time of each bead of a convoy.
#[derive(Debug, Clone)]
pub struct ConvoyTimeline {
    /// The convoy.
    pub convoy: Bead,
    /// The part of the log that tells of it.
    pub log: KeptLog,
    /// Each bead with its title and its spans.
    pub rows: Vec<(BeadId, String, Vec<TimelineSpan>)>,
}

/// How a convoy stood at a moment.
pub fn convoy_at(town: &Town, input: &str, moment: LogMoment) -> Result<Recalled<PastConvoy>> {
    town.read(|reader| {
        let convoy = require(town, reader, input)?;
        let log = kept_log(reader)?;
        let Some(number) = number_of(reader, &log, moment)? else {
            return Ok(Recalled::NotKept(log));
        };
        let (now, events) = facts(reader, &convoy)?;
        let mut replay = now.before(&events);
        for event in events.iter().take_while(|event| event.number <= number) {
            replay.apply(event);
        }
        let at = reader.event_time(number)?.unwrap_or(log.first.at);
        Ok(Recalled::Known(PastConvoy { convoy, place: LogPlace { number, at }, replay }))
    })
}

/// How long each bead of a convoy waited for what, and was worked on.
pub fn convoy_timeline(town: &Town, input: &str) -> Result<ConvoyTimeline> {
    town.read(|reader| {
        let convoy = require(town, reader, input)?;
        let mut log = kept_log(reader)?;
        let (now, events) = facts(reader, &convoy)?;
        let members: Vec<BeadId> = now.members().into_iter().cloned().collect();
        let titles: Vec<String> = members
            .iter()
            .map(|id| now.replay.beads.get(id).map(|bead| bead.title.clone()).unwrap_or_default())
            .collect();
        let replay = now.before(&events);
        let mut spans = timeline(replay, &members, log.first.at, &events);
        // The part of the log before the first event of the convoy or of a bead of it tells nothing.
        let of_beads = |event: &&Event| event.bead.is_some();
        if let Some(first) = events.iter().find(of_beads) {
            log.first = LogPlace { number: first.number, at: first.at };
        }
        let rows = members.into_iter().zip(titles).map(|(id, title)| {
            let own = spans.remove(&id).unwrap_or_default();
            (id, title, own)
        });
        Ok(ConvoyTimeline { rows: rows.collect(), convoy, log })
    })
}

fn kept_log(reader: &Reader<'_>) -> Result<KeptLog> {
    let oldest = reader.oldest_event()?;
    let (number, at) =
        oldest.ok_or_else(|| OperationError::rejected("nothing has happened in this town yet"))?;
    let last = reader.last_event_number()?;
    let last_at = reader.event_time(last)?.unwrap_or(at);
    let first = LogPlace { number, at };
    Ok(KeptLog { first, last: LogPlace { number: last, at: last_at } })
}

/// The number of the last event until a moment; nothing if that is not kept.
fn number_of(reader: &Reader<'_>, log: &KeptLog, moment: LogMoment) -> Result<Option<u64>> {
    let (first, last) = (log.first.number, log.last.number);
    match moment {
        LogMoment::Number(number) if number > last => Err(OperationError::rejected(format!(
            "there is no event {number} yet; the last one is {last}"
        ))),
        LogMoment::Number(number) => Ok(Some(number).filter(|number| *number >= first)),
        LogMoment::Time(at) if at < log.first.at => Ok(None),
        LogMoment::Time(at) => {
            // Numbers have no gaps, and times follow them but for a clock that was set back.
            let (mut known, mut beyond) = (first, last + 1);
            while beyond - known > 1 {
                let middle = known + (beyond - known) / 2;
                let is_until = reader.event_time(middle)?.is_some_and(|time| time <= at);
                *(if is_until { &mut known } else { &mut beyond }) = middle;
            }
            Ok(Some(known))
        }
    }
}

/// The present of a convoy, and everything that happened to it, to its beads and to their blockers.
fn facts(reader: &Reader<'_>, convoy: &Bead) -> Result<(ConvoyReplay, Vec<Event>)> {
    let mut ids: BTreeSet<BeadId> = BTreeSet::from([convoy.id.clone()]);
    let mut edges: Vec<Dependency> = reader.edges_from(&convoy.id)?;
    let tracked = edges.iter().filter(|edge| edge.kind == DependencyType::Tracks);
    ids.extend(tracked.map(|edge| edge.target.clone()));
    // Beads that the convoy tracked earlier are only in its own events.
    let own = reader.events_of(std::slice::from_ref(&convoy.id))?;
    ids.extend(own.iter().flat_map(tracked_once));
    for member in ids.clone() {
        if member != convoy.id {
            edges.extend(reader.edges_from(&member)?);
        }
    }
    let blockers = edges.iter().filter(|edge| edge.kind.can_block());
    ids.extend(blockers.map(|edge| edge.target.clone()));
    let ids: Vec<BeadId> = ids.into_iter().collect();
    let rows = reader.bead_rows(&ids)?;
    let mut events = reader.events_of(&ids)?;
    events.extend(reader.pause_events()?);
    events.sort_by_key(|event| event.number);
    let replay = ConvoyReplay {
        convoy: convoy.id.clone(),
        replay: Replay::of(rows.iter().map(|row| &row.bead), &edges),
        work: work_now(reader, &ids)?,
        is_town_paused: reader.scheduler_state()?.paused.is_some(),
        is_convoy_paused: reader
            .convoy_tally(&convoy.id)?
            .is_some_and(|tally| tally.paused.is_some()),
    };
    Ok((replay, events))
}

/// The beads that an event of a convoy says it tracked.
fn tracked_once(event: &Event) -> Vec<BeadId> {
    let details = event.details();
    let changed = details.bead_change().map(|change| change.dependencies.clone());
    changed.unwrap_or_default().into_iter().map(|edge| edge.depends_on_id).collect()
}

fn work_now(reader: &Reader<'_>, ids: &[BeadId]) -> Result<BTreeMap<BeadId, WorkState>> {
    let mut work: BTreeMap<BeadId, WorkState> = BTreeMap::new();
    for (bead, context) in reader.latest_contexts_of(ids)? {
        work.entry(bead).or_default().queue = queue_state(&context);
    }
    for run in reader.live_runs()? {
        if ids.binary_search(&run.id.bead).is_ok() {
            work.entry(run.id.bead.clone()).or_default().run = Some(ReplayedRun {
                id: run.id.to_string(),
                agent: run.agent.clone(),
                is_starting: run.running_at.is_none(),
            });
        }
    }
    for request in reader.open_merge_requests()? {
        if ids.binary_search(&request.id.bead).is_ok() {
            work.entry(request.id.bead.clone()).or_default().request = Some(ReplayedRequest {
                id: request.id.to_string(),
                state: request.state.as_str().to_owned(),
            });
        }
    }
    Ok(work)
}

fn queue_state(context: &Context) -> QueueState {
    match &context.closed {
        None if context.next_attempt_at.is_some() => QueueState::BackingOff,
        None => QueueState::Scheduled,
        Some(closed) => match closed.reason {
            CloseReason::CircuitBroken | CloseReason::Quarantined => QueueState::GivenUp,
            _ => QueueState::Unscheduled,
        },
    }
}
