//! A bead as it was.

use gt_core::event::replay::{Replay, ReplayedBead};
use gt_core::{BeadId, Timestamp};
use gt_store::EventFilter;

use crate::lookup::resolve_in;
use gt_town::{OperationError, Result, Town};

/// A bead at some time.
#[derive(Debug, Clone)]
pub struct PastBead {
    /// Its id.
    pub id: BeadId,
    /// Its main fields at that time.
    pub state: ReplayedBead,
}

/// The bead at `at`: its later events are taken back, from the last to the first.
pub fn bead_as_of(town: &Town, input: &str, at: Timestamp) -> Result<PastBead> {
    town.read(|reader| {
        let id = resolve_in(town, reader, input)?;
        let bead = reader.bead(&id)?.ok_or_else(|| OperationError::NoBead(input.to_owned()))?;
        let mut replay = Replay::of([&bead], []);
        let of_bead = EventFilter { bead: Some(id.clone()), ..EventFilter::default() };
        let events = reader.latest_events(&of_bead, usize::MAX)?;
        for event in events.iter().rev().take_while(|event| event.at > at) {
            replay.revert(event);
        }
        match replay.beads.remove(&id) {
            Some(state) if bead.created_at <= at => Ok(PastBead { id, state }),
            _ => Err(OperationError::rejected(format!("{id} did not exist at {at}"))),
        }
    })
}
