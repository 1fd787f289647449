//! Work that is ready while no daemon runs to start it.

use std::fmt;

use super::is_running;
use crate::Town;
use crate::queue::QueueStatus;

/// Beads are ready, and no daemon of this town runs on this host to start them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonAbsence {
    /// How many beads are ready.
    pub ready: u64,
}

impl fmt::Display for DaemonAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beads = if self.ready == 1 { "bead is" } else { "beads are" };
        write!(
            f,
            "No daemon is running and {} {beads} ready; start the daemon with gt up",
            self.ready
        )
    }
}

/// Whether ready work waits for a daemon that does not run. A pause and the queue gate hold work back on purpose, so
/// work behind them does not count.
pub fn absence(town: &Town, status: &QueueStatus) -> Option<DaemonAbsence> {
    let ready = status.ready_for_daemon();
    (ready > 0 && !is_running(town)).then_some(DaemonAbsence { ready })
}
