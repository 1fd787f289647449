//! A clock that the seed moves.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use gt_core::{Clock, Timestamp};

const BEGINNING: i64 = 1_790_000_000_000_000_000;
const TICK: i64 = 1_000;

/// Goes on a microsecond whenever it is asked, and jumps either way when it is told.
#[derive(Debug)]
pub(crate) struct SimulatedClock(AtomicI64);

impl SimulatedClock {
    pub(crate) fn new() -> Self {
        Self(AtomicI64::new(BEGINNING))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(nanos(by), Ordering::Relaxed);
    }

    pub(crate) fn set_back(&self, by: Duration) {
        self.0.fetch_sub(nanos(by), Ordering::Relaxed);
    }

    /// The time without touching it.
    pub(crate) fn peek(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.fetch_add(TICK, Ordering::Relaxed))
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
