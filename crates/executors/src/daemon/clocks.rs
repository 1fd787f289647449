//! Detects that the machine slept, or that its clock was set.

use std::time::{Duration, Instant};

use gt_core::Timestamp;

use crate::runs::since_boot;

/// Differences between two clocks that are smaller than this mean nothing.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(2);

/// A jump of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockJump {
    /// The machine slept for so long.
    Slept(Duration),
    /// The clock was set forward.
    Forward(Duration),
    /// The clock was set back.
    Back(Duration),
}

/// Compares clocks from time to time.
#[derive(Debug)]
pub struct ClockWatch {
    steady: Instant,
    boot: Duration,
    wall: Timestamp,
}

impl ClockWatch {
    /// Begins now. `wall` is the time on the machine's clock.
    pub fn new(wall: Timestamp) -> Self {
        Self { steady: Instant::now(), boot: since_boot(), wall }
    }

    /// The jump of the clock since the last call, if there was one.
    pub fn jump_since_last_call(&mut self, wall: Timestamp) -> Option<ClockJump> {
        let now = Self::new(wall);
        let before = std::mem::replace(self, now);
        let passed = self.steady.duration_since(before.steady);
        let passed_with_sleep = self.boot.saturating_sub(before.boot);
        jump(passed, passed_with_sleep, before.wall, wall)
    }
}

/// `awake` is how long the machine ran between two looks, `passed` the same with its sleep.
fn jump(
    awake: Duration,
    passed: Duration,
    before: Timestamp,
    after: Timestamp,
) -> Option<ClockJump> {
    let slept = passed.saturating_sub(awake);
    if slept > CLOCK_DIFFERENCE_MAX {
        return Some(ClockJump::Slept(slept));
    }
    let expected = before.plus(passed.max(awake));
    if after.since(expected) > CLOCK_DIFFERENCE_MAX {
        return Some(ClockJump::Forward(after.since(expected)));
    }
    (expected.since(after) > CLOCK_DIFFERENCE_MAX).then(|| ClockJump::Back(expected.since(after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn sleep_and_set_clocks_are_told_from_time_that_passes() {
        let start = Timestamp::from_nanos(1_000_000_000_000);
        let hour = SECOND * 3600;
        for (awake, passed, wall, expected) in [
            (SECOND, SECOND, start.plus(SECOND), None),
            (SECOND, SECOND * 2, start.plus(SECOND * 2), None),
            (SECOND, SECOND + hour, start.plus(SECOND + hour), Some(ClockJump::Slept(hour))),
            (SECOND, SECOND, start.plus(SECOND + hour), Some(ClockJump::Forward(hour))),
            (SECOND * 9, SECOND * 9, start, Some(ClockJump::Back(SECOND * 9))),
            // A daemon that was stopped for an hour, on a machine that was awake.
            (hour, hour, start.plus(hour), None),
            // Where no clock goes on during sleep.
            (SECOND, Duration::ZERO, start.plus(SECOND), None),
        ] {
            assert_eq!(jump(awake, passed, start, wall), expected, "{awake:?} {passed:?}");
        }
    }

    #[test]
    fn clocks_agree_while_nothing_happens() {
        let start = Timestamp::from_nanos(5);
        let mut watch = ClockWatch::new(start);
        assert_eq!(watch.jump_since_last_call(start), None);
        let jumped = watch.jump_since_last_call(start.plus(SECOND * 60));
        assert!(
            matches!(jumped, Some(ClockJump::Forward(time)) if time > SECOND * 50),
            "{jumped:?}"
        );
    }
}
