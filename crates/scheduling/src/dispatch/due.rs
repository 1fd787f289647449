//! When something that waits may start because time has passed, and nothing else has happened.

use std::time::Duration;

use gt_core::Timestamp;
use gt_core::decide::{ParkHold, STRIKE_WITHIN, WaitReason};
use gt_store::Lane;

use super::snapshot::SchedulingSnapshot;
use crate::dispatch::DispatchInputs;
use gt_town::{Result, Town};

/// The earliest moment at which something that waits may become startable by time alone: a backoff or a deferral ends,
/// something that is parked may be tried or used more, or a budget has something left again. A machine that has no room is
/// looked at again soon. Nothing if only an event can change anything.
///
/// The delay between starts is no such moment: the dispatcher waits for it while it starts runs.
///
/// It is a hint for a timer: a cycle at that moment may still find nothing to start, and events until then may make it
/// wrong. So the caller asks again after every cycle.
pub fn next_due(town: &Town) -> Result<Option<Timestamp>> {
    let inputs = DispatchInputs::read(town)?;
    town.read(|reader| {
        let snapshot = SchedulingSnapshot::read_for_daemon(reader, &inputs, town.now())?;
        if snapshot.control.paused.is_some() {
            return Ok(None);
        }
        let waking = reader.next_context_due(snapshot.now)?;
        // A full or parked lane matters only if a context stands in it.
        let mut lanes = reader.lanes()?;
        lanes.retain(|lane| snapshot.rig_starts(lane));
        let capacity = room_by_time(&snapshot, &lanes);
        Ok(waking.into_iter().chain(capacity).min())
    })
}

/// How soon to look again at a machine that has no room: no event reports that it has.
const MACHINE_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// When there may be room again by time alone for any of those that stand in these lanes.
fn room_by_time(snapshot: &SchedulingSnapshot, lanes: &[Lane]) -> Option<Timestamp> {
    if lanes.is_empty() {
        return None;
    }
    let held = snapshot.caps.parked.iter().filter_map(|(_, hold)| match hold {
        ParkHold::Until(until) | ParkHold::Ramp(_, until) => Some(*until),
        // It has shown that it works when it has lasted.
        ParkHold::Trial(run) => {
            let trial = snapshot.run_of(&run.bead).filter(|trial| trial.id == *run);
            Some(trial?.running_at?.plus(STRIKE_WITHIN))
        }
        ParkHold::Once => None,
    });
    let full = lanes.iter().flat_map(|lane| snapshot.lane_reasons(lane));
    let full = full.filter_map(|reason| match reason {
        WaitReason::Memory { .. } | WaitReason::Load(_) | WaitReason::Disk { .. } => {
            Some(snapshot.now.plus(MACHINE_POLL_INTERVAL))
        }
        reason => reason.until(),
    });
    held.chain(full).min()
}
