//! Whether this machine slept, or its clock was set.

use std::fs;
use std::io;
use std::path::Path;

use gt_core::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// The wall clock and a clock that counts only while the machine is awake drift apart by less than
/// this, unless the machine slept or its clock was set.
const GAP_NANOS_MIN: i64 = 30 * 1_000_000_000;
/// By so much they may drift apart before that is written down.
const DRIFT_NANOS_MAX: i64 = 1_000_000_000;

/// The contents of the file: how far apart the two clocks were, and since when the machine runs
/// without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AwakeRecord {
    apart_nanos: i64,
    since: Timestamp,
}

impl AwakeRecord {
    fn parse(text: &str) -> Option<Self> {
        let (apart, since) = text.strip_suffix('\n')?.split_once(' ')?;
        Some(Self { apart_nanos: apart.parse().ok()?, since: Timestamp::parse(since).ok()? })
    }

    /// The new record, given the one of the last look.
    fn next(before: Option<Self>, apart_nanos: i64, now: Timestamp) -> Self {
        match before {
            Some(before)
                if before.apart_nanos.abs_diff(apart_nanos) < GAP_NANOS_MIN.unsigned_abs() =>
            {
                Self { apart_nanos, ..before }
            }
            // It slept, or was started anew, or its clock was set; or this is the first look.
            Some(_) | None => Self { apart_nanos, since: now },
        }
    }
}

/// Since when, by its clock, this machine has neither slept nor had its clock set, as far as
/// earlier calls recorded it in the file at `path`.
pub fn awake_since(path: &Path, now: Timestamp) -> io::Result<Option<Timestamp>> {
    let awake = clock_gettime(ClockId::Monotonic);
    let awake_nanos = awake.tv_sec.saturating_mul(1_000_000_000).saturating_add(awake.tv_nsec);
    let apart_nanos = now.as_nanos().saturating_sub(awake_nanos);
    // A record that was not written completely is ignored.
    let before = fs::read_to_string(path).ok().and_then(|text| AwakeRecord::parse(&text));
    let next = AwakeRecord::next(before, apart_nanos, now);
    let is_near = |before: AwakeRecord| {
        before.since == next.since
            && before.apart_nanos.abs_diff(apart_nanos) < DRIFT_NANOS_MAX.unsigned_abs()
    };
    if !before.is_some_and(is_near) {
        crate::private::write(path, format!("{} {}\n", next.apart_nanos, next.since))?;
    }
    Ok(Some(next.since))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_machine_that_slept_or_whose_clock_was_set_begins_anew() {
        let town = tempfile::tempdir().unwrap();
        let path = town.path().join("awake");
        let begin = Timestamp::parse("2026-01-02T03:04:05Z").unwrap();
        let look = |now| awake_since(&path, now).unwrap();
        assert_eq!(look(begin), Some(begin));
        // Hardly any time passes by the other clock.
        let later = |seconds| begin.plus(Duration::from_secs(seconds));
        assert_eq!(look(later(10)), Some(begin));
        assert_eq!(look(later(20)), Some(begin));
        let woken = later(3600);
        assert_eq!(look(woken), Some(woken));
        assert_eq!(look(woken.plus(Duration::from_secs(5))), Some(woken));
        assert_eq!(look(begin), Some(begin));
        fs::write(&path, "12").unwrap();
        assert_eq!(look(woken), Some(woken));
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(text in "[0-9 :TZ-]{0,40}\n?|.*", now in any::<i64>()) {
            let before = AwakeRecord::parse(&text);
            let _ = AwakeRecord::next(before, now, Timestamp::from_nanos(now));
        }
    }
}
