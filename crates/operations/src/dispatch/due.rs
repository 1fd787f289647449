//! When something that waits may start because time has passed, and nothing else has happened.

use std::time::Duration;

use gt_core::Timestamp;
use gt_core::decide::{Hold, STRIKE_WITHIN, WaitReason};
use gt_store::Lane;

use super::scene::{Caller, Scene};
use super::settings::Overrides;
use crate::{Result, Town};

/// The earliest moment at which something that waits may become startable by time alone: a backoff or a deferral ends,
/// something that is parked may be tried or used more, or a budget has something left again. A machine that has no room is
/// looked at again soon. Nothing if only an event can change anything.
///
/// The delay between starts is no such moment: whoever starts something waits for it.
///
/// It is a hint for a timer: a cycle at that moment may still find nothing to start,
/// and whatever happens until then may make it wrong. So whoever uses it asks again after every cycle.
pub fn next_due(town: &Town) -> Result<Option<Timestamp>> {
    let around = town.surroundings()?;
    town.read(|reader| {
        let scene = town.scene(reader, &around, &Overrides::default(), Caller::Daemon)?;
        if scene.control.paused.is_some() {
            return Ok(None);
        }
        let waking = reader.next_context_due(scene.now)?;
        // What is full or parked keeps nobody if nobody stands in line.
        let mut lanes = reader.lanes()?;
        lanes.retain(|lane| lane.awake > 0 && scene.rig_starts(lane));
        let capacity = room_by_time(&scene, &lanes);
        Ok(waking.into_iter().chain(capacity).min())
    })
}

/// How soon to look again at a machine that has no room: nobody tells when it has.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// When there may be room again by time alone for any of those that stand in these lanes.
fn room_by_time(scene: &Scene, lanes: &[Lane]) -> Option<Timestamp> {
    if lanes.is_empty() {
        return None;
    }
    let held = scene.caps.parked.iter().filter_map(|(_, hold)| match hold {
        Hold::Until(until) | Hold::Ramp(_, until) => Some(*until),
        // It has shown that it works when it has lasted.
        Hold::Trial(run) => {
            let trial = scene.run_of(&run.bead).filter(|trial| trial.id == *run);
            Some(trial?.running_at?.plus(STRIKE_WITHIN))
        }
        Hold::Once => None,
    });
    let full = lanes.iter().flat_map(|lane| scene.lane_reasons(lane));
    let full = full.filter_map(|reason| match reason {
        WaitReason::Memory { .. } | WaitReason::Load(_) => Some(scene.now.plus(LOOK_AGAIN)),
        reason => reason.until(),
    });
    held.chain(full).min()
}
