//! When something that waits may start because time has passed, and nothing else has happened.

use gt_core::Timestamp;
use gt_core::decide::Hold;

use super::scene::{Caller, Scene};
use super::settings::Overrides;
use crate::settings::file_layers;
use crate::{Result, Town};

/// The earliest moment at which something that waits may become startable by time alone: a backoff or a deferral ends,
/// or something that is parked may be tried. Nothing if only an event can change anything.
///
/// It is a hint for a timer: a moment that has passed means now, a cycle at that moment may still find nothing to start,
/// and whatever happens until then may make it wrong. So whoever uses it asks again after every cycle.
pub fn next_due(town: &Town) -> Result<Option<Timestamp>> {
    let files = file_layers(town)?;
    town.read(|reader| {
        let scene = town.scene(reader, &files, &Overrides::default(), Caller::Daemon)?;
        if scene.control.paused.is_some() {
            return Ok(None);
        }
        let waking = reader.next_waking()?;
        // What is parked keeps nobody if nobody stands in line.
        let is_awaited = reader.lanes()?.iter().any(|lane| lane.awake > 0);
        let capacity = if is_awaited { room_by_time(&scene) } else { None };
        Ok(waking.into_iter().chain(capacity).min())
    })
}

/// When there is room again by time alone.
fn room_by_time(scene: &Scene) -> Option<Timestamp> {
    let holds = scene.caps.parked.iter().filter_map(|(_, hold)| match hold {
        Hold::Until(until) => Some(*until),
        Hold::Once | Hold::Trial(_) => None,
    });
    holds.min()
}
