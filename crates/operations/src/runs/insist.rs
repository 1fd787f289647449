//! Telling a store that is away, or has no room.

use std::time::Duration;

use crate::Result;

/// How long apart such a store is told again, and how often.
const INSIST_PAUSE: Duration = Duration::from_secs(1);
const INSIST_MAX: u32 = 3600;

/// Does something with a store that may be away. The run's lock is held meanwhile, so a store that comes back learns
/// what happened before anybody can take the run for lost.
pub(super) fn insist<T>(act: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 0..INSIST_MAX {
        match act() {
            Err(error) if error.is_of_store() => std::thread::sleep(INSIST_PAUSE),
            done => return done,
        }
    }
    act()
}
