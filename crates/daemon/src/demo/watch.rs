//! The visible events of the demonstration, and its outcome.

use std::path::Path;

use gt_core::event::RequestChange;
use gt_core::merging::RequestState;
use gt_core::{Event, EventPayload, Status, Timestamp};
use gt_executors::git::{Commit, Repository};
use gt_store::EventFilter;

use super::tasks::{CAP, PARTS, RIGS};
use super::town_setup::{BRANCH, origin};
use gt_beads::events::EventFollower;
use gt_town::tree_paths::git_failed;
use gt_town::{Result, Town};

/// An event with its time and bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoEvent {
    /// The time.
    pub at: Timestamp,
    /// The bead; empty if it concerns none.
    pub bead: String,
    /// Its title.
    pub title: String,
    /// The event.
    pub scene: DemoEventKind,
}

/// An event of the demonstration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DemoEventKind {
    /// A worker began, for the first time or again.
    Began {
        /// The agent.
        agent: String,
        /// How many runs began before.
        earlier: u32,
    },
    /// Its work is on the branch of the origin.
    Landed {
        /// As this commit.
        commit: String,
    },
    /// Its worker was gone, or could not begin.
    Stumbled {
        /// The reason.
        reason: String,
    },
    /// Its work does not land as it is, and goes back to a worker.
    SentBack {
        /// The reason.
        reason: String,
    },
    /// Its work waits for a person.
    ReviewWanted,
    /// A person has approved its work.
    Approved,
    /// An account rests until its usage limit has passed.
    Limited {
        /// The end of the limit.
        until: String,
    },
}

/// Whether every bead is closed.
pub(super) fn is_over(town: &Town) -> Result<bool> {
    town.read(|reader| {
        for part in &PARTS {
            let bead = reader.bead(&part.bead_id()?)?;
            if bead.is_none_or(|bead| bead.status != Status::Closed) {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Follows the events of the town.
#[derive(Debug)]
pub(super) struct DemoWatch {
    follower: EventFollower,
    moments: Vec<DemoEvent>,
}

/// The outcome of the demonstration.
#[derive(Debug, Clone, PartialEq)]
pub struct DemoOutcome {
    /// How many beads there were.
    pub beads: usize,
    /// How many of them are over and their work is on the branch of its origin.
    pub landed: usize,
    /// How many runs it took.
    pub runs: usize,
    /// The largest number of workers at one time.
    pub most_at_once: usize,
    /// How many may work at once.
    pub cap: usize,
    /// The beads that failed once, and how long it took until another run went on with them, in milliseconds.
    pub recovered: Vec<(String, u64)>,
    /// From the first start to the last landing, in milliseconds.
    pub took: u64,
}

impl DemoWatch {
    /// Follows from now on.
    pub(super) fn begin(town: &Town) -> Result<Self> {
        let follower = EventFollower::from_now(town, EventFilter::default())?;
        Ok(Self { follower, moments: Vec::new() })
    }

    /// The events since the last look.
    pub(super) fn new_events(&mut self, town: &Town) -> Result<Vec<DemoEvent>> {
        let mut fresh = Vec::new();
        for event in self.follower.next(town)? {
            let known = self.moments.iter().chain(&fresh);
            if let Some(moment) = moment(&event, known) {
                fresh.push(moment);
            }
        }
        self.moments.extend(fresh.iter().cloned());
        Ok(fresh)
    }

    /// The outcome. Whether work has landed is asked where it should have: the origins below `directory`.
    pub(super) fn outcome(&self, town: &Town, directory: &Path) -> Result<DemoOutcome> {
        let mut landed = 0;
        for rig in &RIGS {
            let known = town.read(|reader| gt_town::rig_names::require(reader, rig.name))?;
            let failed = git_failed(&known);
            let origin = Repository::at(origin(directory, rig.name));
            let tip = origin.resolve(&format!("refs/heads/{BRANCH}")).map_err(&failed)?;
            for (bead, commit) in self.landings() {
                let Some(commit) = Commit::parse(commit).filter(|_| bead.starts_with(rig.name))
                else {
                    continue;
                };
                let Some(tip) = &tip else { continue };
                landed += usize::from(origin.is_ancestor(&commit, tip).map_err(&failed)?);
            }
        }
        let slot_times = slot_times(town)?;
        let (first, last) = (self.moments.first(), self.moments.last());
        Ok(DemoOutcome {
            beads: PARTS.len(),
            landed,
            runs: slot_times.len(),
            most_at_once: most_at_once(&slot_times),
            cap: CAP as usize,
            recovered: self.recovered(),
            took: first.zip(last).map_or(0, |(first, last)| milliseconds(first.at, last.at)),
        })
    }

    fn landings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.moments.iter().filter_map(|moment| match &moment.scene {
            DemoEventKind::Landed { commit } => Some((moment.bead.as_str(), commit.as_str())),
            DemoEventKind::Began { .. }
            | DemoEventKind::Stumbled { .. }
            | DemoEventKind::SentBack { .. }
            | DemoEventKind::ReviewWanted
            | DemoEventKind::Approved
            | DemoEventKind::Limited { .. } => None,
        })
    }

    /// The beads that failed once, and how long it took until a worker went on with them.
    fn recovered(&self) -> Vec<(String, u64)> {
        let stumbles = self.moments.iter().enumerate();
        let stumbles =
            stumbles.filter(|(_, moment)| matches!(moment.scene, DemoEventKind::Stumbled { .. }));
        stumbles
            .filter_map(|(at, stumble)| {
                let again = self.moments[at..].iter().find(|moment| {
                    moment.bead == stumble.bead
                        && matches!(moment.scene, DemoEventKind::Began { .. })
                })?;
                Some((stumble.bead.clone(), milliseconds(stumble.at, again.at)))
            })
            .collect()
    }
}

fn request_moment(change: &RequestChange) -> Option<DemoEventKind> {
    match RequestState::parse(&change.new, change.held.as_deref().unwrap_or_default()).ok()? {
        RequestState::Conflict => {
            let reason = format!("it conflicts with what has landed: {}", change.detail);
            Some(DemoEventKind::SentBack { reason })
        }
        RequestState::Failed => {
            let reason = format!("a check fails with it: {}", change.detail);
            Some(DemoEventKind::SentBack { reason })
        }
        RequestState::Review => Some(DemoEventKind::ReviewWanted),
        _ => None,
    }
}

/// The start and end of the slot of each run.
fn slot_times(town: &Town) -> Result<Vec<(Timestamp, Timestamp)>> {
    town.read(|reader| {
        let (mut slot_times, now) = (Vec::new(), town.now());
        for part in &PARTS {
            for run in reader.runs_of(&part.bead_id()?)? {
                slot_times.push((run.created_at, run.ended_at.unwrap_or(now)));
            }
        }
        Ok(slot_times)
    })
}

fn milliseconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX)
}

/// The largest number of these spans that overlap.
fn most_at_once(slot_times: &[(Timestamp, Timestamp)]) -> usize {
    let at = |moment: Timestamp| {
        slot_times.iter().filter(|(from, to)| *from <= moment && moment < *to).count()
    };
    // The number can only grow where a span begins.
    slot_times.iter().map(|(from, _)| at(*from)).max().unwrap_or(0)
}

fn moment<'a>(event: &Event, earlier: impl Iterator<Item = &'a DemoEvent>) -> Option<DemoEvent> {
    let bead = event.bead.as_ref().map(ToString::to_string).unwrap_or_default();
    let scene = match event.details() {
        EventPayload::Dispatched(taken) => {
            let earlier = earlier.filter(|moment| {
                moment.bead == bead && matches!(moment.scene, DemoEventKind::Began { .. })
            });
            let earlier = u32::try_from(earlier.count()).unwrap_or(u32::MAX);
            DemoEventKind::Began { agent: taken.agent, earlier }
        }
        EventPayload::Landed(landed) => DemoEventKind::Landed { commit: landed.commit },
        EventPayload::RunLost(ended)
        | EventPayload::RunFailed(ended)
        | EventPayload::StartFailed(ended) => DemoEventKind::Stumbled { reason: ended.reason },
        EventPayload::RequestChanged(change) => request_moment(&change)?,
        EventPayload::Reviewed(_) => DemoEventKind::Approved,
        EventPayload::Limited(park) => DemoEventKind::Limited {
            until: park.until.map(|until| until.to_string()).unwrap_or_default(),
        },
        _ => return None,
    };
    let title = PARTS.iter().find(|part| part.id == bead).map_or("", |part| part.title);
    Some(DemoEvent { at: event.at, bead, title: title.to_owned(), scene })
}
