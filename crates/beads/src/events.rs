//! Reading the event log.

use gt_core::{BeadId, Event};
use gt_store::EventFilter;

use crate::lookup::{NamedRecord, resolve_shown_in};
use gt_town::{OperationError, Result, Town};

/// How many events are read at a time.
const PAGE_EVENTS: usize = 500;

/// The number of the last event.
pub fn last_number(town: &Town) -> Result<u64> {
    town.read(|reader| Ok(reader.last_event_number()?))
}

/// The last `limit` events that the filter admits, oldest first.
pub fn latest(town: &Town, filter: &EventFilter, limit: usize) -> Result<Vec<Event>> {
    town.read(|reader| Ok(reader.latest_events(filter, limit)?))
}

/// The bead that `input` means, even if it was deleted: its history is still there.
pub fn bead_with_history(town: &Town, input: &str) -> Result<BeadId> {
    let found = town.read(|reader| {
        Ok(match resolve_shown_in(town, reader, input)? {
            NamedRecord::Bead(id) => id,
            // Events of a context are recorded for its bead.
            NamedRecord::Context(context) => context.bead,
        })
    });
    let missing = match found {
        Err(OperationError::NoBead(name)) => name,
        resolved => return resolved,
    };
    if let Ok(id) = BeadId::parse(&missing) {
        let of_bead = EventFilter { bead: Some(id.clone()), ..EventFilter::default() };
        if !latest(town, &of_bead, 1)?.is_empty() {
            return Ok(id);
        }
    }
    Err(OperationError::NoBead(missing))
}

/// The bead that the town's actor changed last, if it still exists.
pub fn last_touched(town: &Town) -> Result<BeadId> {
    let own = EventFilter { actor: Some(town.actor().name.clone()), ..EventFilter::default() };
    let touched = town.read(|reader| {
        let own = EventFilter { of_beads: true, ..own };
        Ok(reader.latest_events(&own, 1)?.into_iter().find_map(|event| event.bead))
    })?;
    touched.ok_or_else(|| {
        let actor = &town.actor().name;
        OperationError::rejected(format!("which bead? {actor} has changed none yet; name it"))
    })
}

/// Reads the log as it grows: nothing is skipped, nothing comes twice.
#[derive(Debug)]
pub struct EventFollower {
    filter: EventFilter,
    reached: u64,
}

impl EventFollower {
    /// Begins after what has happened so far.
    pub fn from_now(town: &Town, filter: EventFilter) -> Result<Self> {
        Ok(Self { filter, reached: last_number(town)? })
    }

    /// The last `limit` events of the past that the filter admits, oldest first.
    pub fn past(&self, town: &Town, limit: usize) -> Result<Vec<Event>> {
        let past = latest(town, &self.filter, limit)?;
        Ok(past.into_iter().filter(|event| event.number <= self.reached).collect())
    }

    /// Begins after event `number`.
    pub fn after(number: u64, filter: EventFilter) -> Self {
        Self { filter, reached: number }
    }

    /// The number of the last event that was looked at.
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// The next events, in order; empty if there are none yet.
    pub fn next(&mut self, town: &Town) -> Result<Vec<Event>> {
        let reached = self.reached;
        let (events, reached) =
            town.read(|reader| Ok(reader.events_after(reached, &self.filter, PAGE_EVENTS)?))?;
        self.reached = reached;
        Ok(events)
    }
}
