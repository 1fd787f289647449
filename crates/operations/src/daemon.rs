//! The daemon, as seen from outside.

use std::fs::{File, TryLockError};

use crate::Town;
use crate::town::DIRECTORY;

/// The file that a daemon holds a lock on for as long as it runs.
const LOCK: &str = "daemon.lock";

/// What whoever leaves something scheduled is told when nobody will start it by itself.
pub const NOT_RUNNING: &str = "warning: no daemon is running; start it with gt up, or start what is ready with gt scheduler run";

/// Whether a daemon runs for this town on this machine. What cannot be found out counts as no: then somebody is told
/// once too often.
pub fn is_running(town: &Town) -> bool {
    let Ok(file) = File::open(town.root().join(DIRECTORY).join(LOCK)) else { return false };
    // Shared, so that two who ask at once do not take each other for the daemon.
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
