//! The processes of runs that were ended in the store alone.

use std::time::Duration;

use gt_core::ExecutorKind;
use gt_core::schedule::Run;
use gt_executors::runs::{AskResult, Liveness, RunFiles, ask_to_cancel, end_orphan};

use gt_town::Town;

/// How long a cancellation that is only in the store waits for a supervisor that listens.
const LISTENER_WAIT_MAX: Duration = Duration::from_secs(1);
/// How often it looks for one.
const LISTENER_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Ends the remaining processes of runs that were cancelled in the store, without waiting: the next run of a bead
/// does not start before they are gone.
pub fn end_processes_of<'a>(town: &Town, runs: impl IntoIterator<Item = &'a Run>) {
    let grace = town.scheduler_settings().map(|settings| settings.kill_grace).unwrap_or_default();
    for run in runs {
        match run.executor {
            // The supervisor of a run on another machine passes it on.
            ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh => {}
            ExecutorKind::Pull | ExecutorKind::None => continue,
        }
        let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
        let mut waited = Duration::ZERO;
        // A supervisor that has only just taken the run does not listen yet.
        while ask_to_cancel(&files).is_ok_and(|asked| asked == AskResult::NoListener)
            && files.liveness().is_ok_and(|liveness| liveness == Liveness::Held)
        {
            if waited >= LISTENER_WAIT_MAX {
                // The supervisor is dead, and its agent is not. Processes that cannot be ended show as a run that is
                // over and has processes.
                let _ = end_orphan(&files, grace);
                break;
            }
            std::thread::sleep(LISTENER_POLL_INTERVAL);
            waited += LISTENER_POLL_INTERVAL;
        }
    }
}
