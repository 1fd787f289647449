//! Stopping all starts and waiting until no run is live.

use std::time::Duration;

use gt_core::schedule::{Run, RunId};
use gt_store::Pause;

use crate::runs::recover;
use gt_scheduling::processes::ProcessProbe;
use gt_scheduling::queue::pause;
use gt_town::{Result, Town};

/// The result of draining.
#[derive(Debug, Clone)]
pub struct DrainResult {
    /// The pause of all starts, with its actor and time.
    pub pause: Pause,
    /// The runs that had not ended in time; none means that it is drained.
    pub running: Vec<Run>,
}

/// The pause between two looks at the live runs.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Stops all starts and waits until no run is live, at most this long. `each` is told which runs are left whenever
/// that has changed, and which of them have a fault that could not be repaired. A run that died without a report is
/// found by recovery, and not waited for.
pub fn drain(
    town: &Town,
    processes: &dyn ProcessProbe,
    timeout: Option<Duration>,
    mut each: impl FnMut(&[Run], &[(RunId, String)]),
) -> Result<DrainResult> {
    let (pause, _) = pause(town)?;
    let began = town.now();
    let mut before = (usize::MAX, 0);
    loop {
        let errors = recover(town, processes)?.errors;
        let mut running = town.read(|reader| Ok(reader.live_runs()?))?;
        // A person who works by hand reports the end themselves, which may never happen.
        running.retain(|run| run.executor.takes_slot());
        if (running.len(), errors.len()) != before {
            before = (running.len(), errors.len());
            each(&running, &errors);
        }
        let over = timeout.is_some_and(|timeout| town.now().since(began) >= timeout);
        if running.is_empty() || over {
            return Ok(DrainResult { pause, running });
        }
        std::thread::sleep(DRAIN_POLL_INTERVAL);
    }
}
