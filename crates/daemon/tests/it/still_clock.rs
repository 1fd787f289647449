//! A clock that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use gt_core::{Clock, Timestamp};

/// A clock that stands still until it is moved; in nanoseconds since 1970.
#[derive(Debug)]
pub(crate) struct StillClock(pub(crate) AtomicI64);

impl StillClock {
    pub(crate) fn at(nanos: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(nanos)))
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_nanos()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
