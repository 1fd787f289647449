//! Writing to a store that is unreachable, or has no room.

use std::time::Duration;

use gt_executors::runs::RunLock;
use gt_town::Result;

/// The time between two attempts, and the most attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const RETRIES_MAX: u32 = 3600;

/// Repeats an action while the store is unreachable and the run has its files. The caller holds the lock of the run
/// meanwhile, so the result is written before recovery can take the run for lost.
pub(super) fn retry_while_unreachable<T>(lock: &RunLock, act: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 0..RETRIES_MAX {
        match act() {
            Err(error) if error.is_of_store() && !lock.is_removed() => {
                std::thread::sleep(RETRY_INTERVAL);
            }
            done => return done,
        }
    }
    act()
}
