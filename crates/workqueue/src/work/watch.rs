//! Watching what changes.

use std::time::Duration;

use gt_core::BeadId;
use gt_store::{Bell, EventFilter};

use super::door::Door;
use super::error::WorkResult;
use super::remote::EventStream;
use gt_beads::events::Follower;
use gt_town::Town;

/// The changes that a watch has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The beads that something has happened to, each once.
    pub changed: Vec<BeadId>,
    /// More has happened than is still known.
    pub missed: bool,
}

/// A watch on a work queue.
#[derive(Debug)]
pub struct Watch<'d>(Eyes<'d>);

#[derive(Debug)]
enum Eyes<'d> {
    Here { town: &'d Town, follower: Follower, bell: Bell },
    Elsewhere(Box<EventStream>),
}

impl<'d> Watch<'d> {
    /// Begins with what happens next.
    pub fn from_now(door: &'d Door) -> WorkResult<Self> {
        Ok(Self(match door {
            Door::Local(town) => Eyes::Here {
                town,
                follower: Follower::from_now(town, EventFilter::default())?,
                bell: town.bell(),
            },
            Door::Remote(remote) => Eyes::Elsewhere(Box::new(EventStream::from_now(remote)?)),
        }))
    }

    /// Waits until something has happened, but no longer than this. After an error that may pass one goes on by asking
    /// again: nothing is skipped.
    pub fn next_within(&mut self, limit: Duration) -> WorkResult<Seen> {
        match &mut self.0 {
            Eyes::Elsewhere(stream) => stream.next_within(limit),
            Eyes::Here { town, follower, bell } => {
                let mut events = follower.next(town)?;
                if events.is_empty() {
                    bell.wait(limit);
                    events = follower.next(town)?;
                }
                let mut seen = Seen::default();
                events.into_iter().filter_map(|event| event.bead).for_each(|bead| seen.add(bead));
                Ok(seen)
            }
        }
    }
}
