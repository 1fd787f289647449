//! The machine's clock.

use gt_core::{Clock, Timestamp};

/// The machine's clock: the only place that reads it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that the rule points to")]
    fn now(&self) -> Timestamp {
        let nanos = jiff::Timestamp::now().as_nanosecond();
        Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}
