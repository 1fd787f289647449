//! Waiting for a condition instead of sleeping and hoping.

use std::thread;
use std::time::{Duration, Instant};

/// How long [`wait_until`] waits. Only a failing test reaches it: builds beside the tests must not make one fail.
pub const CONDITION_TIME_LIMIT: Duration = Duration::from_mins(5);

/// The pause between two looks at a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Returns as soon as `condition` holds; panics naming `what` if it does not hold within
/// [`CONDITION_TIME_LIMIT`].
#[track_caller]
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(
        holds_within(CONDITION_TIME_LIMIT, condition),
        "waited {} s in vain until {what}",
        CONDITION_TIME_LIMIT.as_secs()
    );
}

/// Whether `condition` holds at some look before `limit` has passed. It is looked at once more at
/// the end, so that a long pause of this process does not count against it.
pub(crate) fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        let last = Instant::now() >= deadline;
        if condition() {
            return true;
        }
        if last {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_once_the_condition_holds() {
        let mut looks = 0;
        wait_until("three looks were taken", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }

    #[test]
    fn gives_up_after_the_limit_but_looks_at_least_once() {
        let mut looks = 0;
        let held = holds_within(Duration::ZERO, || {
            looks += 1;
            false
        });
        assert!(!held);
        assert_eq!(looks, 1);
    }
}
