//! Watching what changes.

use std::time::Duration;

use gt_core::BeadId;
use gt_store::{Bell, EventFilter};

use super::client::WorkClient;
use super::error::WorkResult;
use super::remote::EventStream;
use gt_beads::events::EventFollower;
use gt_town::Town;

/// The changes that a watch has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenChanges {
    /// The beads that something has happened to, each once.
    pub changed: Vec<BeadId>,
    /// More has happened than is still known.
    pub missed: bool,
}

/// A watch on a work queue.
#[derive(Debug)]
pub struct WorkWatch<'d>(WatchSource<'d>);

#[derive(Debug)]
enum WatchSource<'d> {
    Here { town: &'d Town, follower: EventFollower, bell: Bell },
    Elsewhere(Box<EventStream>),
}

impl<'d> WorkWatch<'d> {
    /// Begins with what happens next.
    pub fn from_now(door: &'d WorkClient) -> WorkResult<Self> {
        Ok(Self(match door {
            WorkClient::Local(town) => WatchSource::Here {
                town,
                follower: EventFollower::from_now(town, EventFilter::default())?,
                bell: town.bell(),
            },
            WorkClient::Remote(remote) => {
                WatchSource::Elsewhere(Box::new(EventStream::from_now(remote)?))
            }
        }))
    }

    /// Waits until something has happened, but no longer than this. After an error that may pass one goes on by asking
    /// again: nothing is skipped.
    pub fn next_within(&mut self, limit: Duration) -> WorkResult<SeenChanges> {
        match &mut self.0 {
            WatchSource::Elsewhere(stream) => stream.next_within(limit),
            WatchSource::Here { town, follower, bell } => {
                let mut events = follower.next(town)?;
                if events.is_empty() {
                    bell.wait(limit);
                    events = follower.next(town)?;
                }
                let mut seen = SeenChanges::default();
                events.into_iter().filter_map(|event| event.bead).for_each(|bead| seen.add(bead));
                Ok(seen)
            }
        }
    }
}
