//! The consequence of a failed start: another try after a while, or no more tries.

use std::time::Duration;

use crate::Timestamp;

/// The wait after the first failure; every further one doubles it.
const BACKOFF_FIRST: Duration = Duration::from_secs(5);
/// The longest wait before jitter.
const BACKOFF_LONGEST: Duration = Duration::from_mins(5);
/// The longest wait that [`backoff`] ever answers, jitter included.
pub const BACKOFF_MAX: Duration = Duration::from_mins(6);
/// This many starts in a row that failed to spawn break the circuit.
pub const START_FAILURES_MAX: u32 = 3;

/// How long to wait after so many failures: 5 s, doubling to 5 min, and up to a fifth less or more, so that
/// starts that failed together are not retried together. `jitter` is a random number in [0, 1).
pub fn backoff(failures: u32, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let plain = BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_LONGEST);
    // A value outside of the range is replaced, because a factor that is not finite would panic.
    let jitter = if (0.0..1.0).contains(&jitter) { jitter } else { 0.5 };
    plain.mul_f64(0.8 + 0.4 * jitter).min(BACKOFF_MAX)
}

/// Whether the time for the next try has come, where no wait is ever longer than `longest`. A time
/// further away was written by a clock that has jumped since, so it is due.
pub fn is_due_within(
    next_attempt_at: Option<Timestamp>,
    now: Timestamp,
    longest: Duration,
) -> bool {
    next_attempt_at.is_none_or(|at| at <= now || at.since(now) > longest)
}

/// Why a start failed. Being held up (parked, paused, no slot) is no failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartFailure {
    /// It cannot succeed however often it is tried: the formula or the rig is gone.
    Permanent(String),
    /// The worker could not be started this time.
    Spawn(String),
}

impl StartFailure {
    /// The failure, in words.
    pub fn message(&self) -> &str {
        match self {
            Self::Permanent(message) | Self::Spawn(message) => message,
        }
    }
}

/// The consequence of a failed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// The context closes at once.
    Quarantined,
    /// The context closes after too many tries.
    CircuitBroken {
        /// How many starts have failed, with this one.
        failures: u32,
    },
    /// It is tried again.
    Retry {
        /// How many starts have failed, with this one.
        failures: u32,
        /// Not before this.
        at: Timestamp,
    },
}

/// The consequence of a failed start of a context that has failed `failures_before` times already.
pub fn after_start_failure(
    failure: &StartFailure,
    failures_before: u32,
    now: Timestamp,
    jitter: f64,
) -> AfterFailure {
    let failures = failures_before.saturating_add(1);
    match failure {
        StartFailure::Permanent(_) => AfterFailure::Quarantined,
        StartFailure::Spawn(_) if failures >= START_FAILURES_MAX => {
            AfterFailure::CircuitBroken { failures }
        }
        StartFailure::Spawn(_) => {
            AfterFailure::Retry { failures, at: now.plus(backoff(failures, jitter)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_790_000_000_000_000_000);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_wait_doubles_up_to_five_minutes() {
        for (failures, seconds) in [
            (0, 5),
            (1, 5),
            (2, 10),
            (3, 20),
            (4, 40),
            (5, 80),
            (6, 160),
            (7, 300),
            (8, 300),
            (u32::MAX, 300),
        ] {
            assert_eq!(backoff(failures, 0.5), SECOND * seconds, "after {failures}");
        }
    }

    #[test]
    fn jitter_is_a_fifth_either_way() {
        assert_eq!(backoff(1, 0.0), SECOND * 4);
        assert_eq!(backoff(2, 0.25), SECOND * 9);
        assert_eq!(backoff(99, 0.0), SECOND * 240);
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1.0, f64::MAX] {
            assert_eq!(backoff(1, wrong), SECOND * 5, "{wrong}");
        }
    }

    fn is_due(next_attempt_at: Option<Timestamp>, now: Timestamp) -> bool {
        is_due_within(next_attempt_at, now, BACKOFF_MAX)
    }

    #[test]
    fn a_try_is_due_when_its_time_has_come_or_cannot_be_right() {
        assert!(is_due(None, NOW));
        assert!(is_due(Some(NOW.minus(SECOND)), NOW));
        assert!(is_due(Some(NOW), NOW));
        assert!(!is_due(Some(NOW.plus(SECOND)), NOW));
        assert!(!is_due(Some(NOW.plus(BACKOFF_MAX)), NOW));
        assert!(is_due(Some(NOW.plus(BACKOFF_MAX + SECOND)), NOW), "the clock has jumped");
        assert!(is_due(Some(Timestamp::from_nanos(i64::MAX)), Timestamp::from_nanos(i64::MIN)));
        let in_an_hour = Some(NOW.plus(SECOND * 3600));
        assert!(!is_due_within(in_an_hour, NOW, SECOND * 3600));
    }

    #[test]
    fn a_permanent_failure_is_not_retried() {
        let gone = StartFailure::Permanent("the formula is gone".to_owned());
        for before in [0, 1, 2, u32::MAX] {
            assert_eq!(after_start_failure(&gone, before, NOW, 0.5), AfterFailure::Quarantined);
        }
    }

    #[test]
    fn the_third_failure_to_spawn_breaks_the_circuit() {
        let failure = StartFailure::Spawn("no such program".to_owned());
        let after = |before| after_start_failure(&failure, before, NOW, 0.5);
        let retry = |failures, seconds: u32| AfterFailure::Retry {
            failures,
            at: NOW.plus(SECOND * seconds),
        };
        assert_eq!(after(0), retry(1, 5));
        assert_eq!(after(1), retry(2, 10));
        assert_eq!(after(2), AfterFailure::CircuitBroken { failures: 3 });
        assert_eq!(after(u32::MAX), AfterFailure::CircuitBroken { failures: u32::MAX });
        assert_eq!(failure.message(), "no such program");
    }

    proptest! {
        #[test]
        fn every_wait_is_bounded_and_ends(failures: u32, jitter: f64, now: i64) {
            let wait = backoff(failures, jitter);
            prop_assert!(wait >= SECOND * 4 && wait <= BACKOFF_MAX);
            let now = Timestamp::from_nanos(now);
            let at = now.plus(wait);
            prop_assert!(is_due(Some(at), at));
            prop_assert!(at == now || !is_due(Some(at), now));
        }

        #[test]
        fn more_failures_never_wait_less(failures in 0_u32..40, jitter in 0.0..1.0) {
            prop_assert!(backoff(failures, jitter) <= backoff(failures + 1, jitter));
        }
    }
}
