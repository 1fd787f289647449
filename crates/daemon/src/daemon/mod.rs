//! The daemon: it keeps a town going without commands.
//!
//! # Invariants
//!
//! - It knows nothing that is not in the store or in the world. If it is killed, nothing is lost, and the next daemon
//!   finds all workers by their locks.
//! - A few reconcilers do the work, each on threads of its own, so that none waits for another. They take no input:
//!   waking them too often, or not at all, costs time and nothing else.
//! - Every signal to it (the bell, the ends of runs, timers) is a hint. A full scan, from time to time, counts the
//!   findings that no hint announced.
//! - Its memory does not grow with the work it has done.

mod absence;
mod control;
mod event_loop;
mod event_routing;
mod host_lease;
mod journal;
mod reconciler_kind;
mod reconcilers;
mod report;
mod run;
mod spawning;
mod state;
mod unit;
mod wake;
mod watch;

pub use absence::{
    DaemonAbsence, absence, absence_for_request, absence_warning, absence_with_backoff,
    land_without_daemon,
};
pub use control::{DaemonPresence, DaemonStart, DaemonStop, presence, start, stop};
pub use gt_executors::daemon::{Signals, make_room_for_files, open_files_max};
pub use journal::{JournalEntry, log_files, log_path};
pub use reconciler_kind::ReconcilerKind;
pub use report::{DaemonReport, LatencyReport, ReconcilerReport};
pub use run::{DaemonEnvironment, ServiceLog, detach, run};
pub use unit::{Unit, install_unit, unit};

use std::path::{Path, PathBuf};

use gt_executors::daemon::is_held;

use gt_town::Town;
use gt_town::town::DIRECTORY;

/// The file that a daemon holds a lock on for as long as it runs.
const LOCK: &str = "daemon.lock";

/// Whether a daemon runs for this town on this machine. An unreadable lock counts as no: a warning too many is better
/// than none.
pub fn is_running(town: &Town) -> bool {
    is_held(&lock_path(town.root()))
}

fn lock_path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join(LOCK)
}
