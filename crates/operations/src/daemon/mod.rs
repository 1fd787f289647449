//! The daemon: what keeps a town going by itself.
//!
//! # Invariants
//!
//! - It knows nothing that is not in the store or in the world: whoever ends it, however, loses nothing, and the next one
//!   finds all workers by their locks.
//! - A few reconcilers do the work, each on threads of its own, so that none waits for another. They take no input: whoever
//!   wakes them too often, or not at all, costs time and nothing else.
//! - Whatever is told to it (the bell, the ends of runs, timers) is a hint. A look at everything, from time to time, counts
//!   what no hint had told of.
//! - Nothing in it grows with what it has done.

mod absence;
mod concerns;
mod control;
mod duties;
mod heart;
mod journal;
mod office;
mod report;
mod rounds;
mod run;
mod spawning;
mod unit;
mod wake;
mod watch;

pub use absence::{DaemonAbsence, absence};
pub use control::{Standing, Started, Stopped, standing, start, stop};
pub use duties::Duty;
pub use gt_executors::daemon::make_room_for_files;
pub use journal::{Entry, log_files, log_path};
pub use report::{DutyReport, LatencyReport, Report};
pub use run::{Surroundings, Tell, detach, run};
pub use unit::{Unit, install_unit, unit};

use std::path::{Path, PathBuf};

use gt_executors::daemon::is_held;

use crate::Town;
use crate::town::DIRECTORY;

/// The file that a daemon holds a lock on for as long as it runs.
const LOCK: &str = "daemon.lock";

/// What whoever leaves something scheduled is told when nobody will start it by itself.
pub const NOT_RUNNING: &str = "warning: no daemon is running; start it with gt up, or start what is ready with gt scheduler run";

/// Whether a daemon runs for this town on this machine. What cannot be found out counts as no: then somebody is told
/// once too often.
pub fn is_running(town: &Town) -> bool {
    is_held(&lock_path(town.root()))
}

fn lock_path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join(LOCK)
}
