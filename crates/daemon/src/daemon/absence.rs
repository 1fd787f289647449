//! Work that is ready while no daemon runs to start it.

use std::fmt;

use gt_executors::process;

use super::control::{DaemonPresence, presence};
use gt_scheduling::queue::QueueStatus;
use gt_town::Town;

/// Beads are ready, and no daemon of this town on this host starts them: none runs, or it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonAbsence {
    /// How many beads are ready.
    pub ready: u64,
    /// The process of a daemon that a signal or Ctrl-Z has stopped.
    pub stopped: Option<u32>,
}

impl DaemonAbsence {
    /// The command that makes the work start.
    pub fn remedy(&self) -> String {
        self.stopped.map_or_else(|| "gt up".to_owned(), |pid| format!("kill -CONT {pid}"))
    }
}

impl fmt::Display for DaemonAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beads = if self.ready == 1 { "bead is" } else { "beads are" };
        let (ready, remedy) = (self.ready, self.remedy());
        match self.stopped {
            Some(pid) => write!(
                f,
                "The daemon (process {pid}) is stopped and {ready} {beads} ready; resume it with {remedy}"
            ),
            None => write!(
                f,
                "No daemon is running and {ready} {beads} ready; start the daemon with {remedy}"
            ),
        }
    }
}

/// Whether ready work waits for a daemon that does not run. A pause and the queue gate hold work back on purpose, so
/// work behind them does not count.
pub fn absence(town: &Town, status: &QueueStatus) -> Option<DaemonAbsence> {
    let ready = status.ready_for_daemon();
    if ready == 0 {
        return None;
    }
    let stopped = match presence(town.root()) {
        Ok(DaemonPresence::Running { pid: Some(pid), .. }) if process::is_stopped(pid) => Some(pid),
        Ok(DaemonPresence::Running { .. }) => return None,
        // A warning too many is better than none.
        Ok(DaemonPresence::NotRunning) | Err(_) => None,
    };
    Some(DaemonAbsence { ready, stopped })
}
