//! The consequence of a notice that could not be sent.

use std::time::Duration;

use super::backoff;
use crate::Timestamp;

/// A notice is sent at most so often. With the waits between, that is about three hours.
pub const NOTICE_ATTEMPTS_MAX: u32 = 10;
/// How many tries follow each other as quickly as those of a start that failed.
const QUICK_RETRIES_MAX: u32 = 6;
/// The wait between later tries, before jitter: a service that is down for minutes may be down for hours.
const SLOW_RETRY_INTERVAL: Duration = Duration::from_hours(1);
/// The longest wait that is ever answered, jitter included.
pub const NOTICE_WAIT_MAX: Duration = Duration::from_mins(72);

/// When a notice is tried again that has failed `attempts` times: after 5 s, doubling to 160 s, then every
/// hour. Nothing if it is given up. `jitter` is a number in [0, 1), as for [`backoff`].
pub fn next_delivery(attempts: u32, now: Timestamp, jitter: f64) -> Option<Timestamp> {
    if attempts >= NOTICE_ATTEMPTS_MAX {
        return None;
    }
    let jitter = if (0.0..1.0).contains(&jitter) { jitter } else { 0.5 };
    let wait = if attempts <= QUICK_RETRIES_MAX {
        backoff(attempts, jitter)
    } else {
        SLOW_RETRY_INTERVAL.mul_f64(0.8 + 0.4 * jitter).min(NOTICE_WAIT_MAX)
    };
    Some(now.plus(wait))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);

    #[test]
    fn a_notice_is_tried_ten_times_in_about_three_hours() {
        let waits: Vec<u64> = (1..)
            .map_while(|attempts| next_delivery(attempts, NOW, 0.5))
            .map(|at| at.since(NOW).as_secs())
            .collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 3600, 3600, 3600]);
    }

    proptest! {
        #[test]
        fn every_wait_is_bounded(attempts: u32, jitter: f64) {
            if let Some(at) = next_delivery(attempts, NOW, jitter) {
                prop_assert!(at > NOW && at.since(NOW) <= NOTICE_WAIT_MAX);
            }
        }
    }
}
