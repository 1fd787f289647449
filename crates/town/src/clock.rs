//! The machine's clock.

use std::time::SystemTime;

use gt_core::{Clock, Timestamp};

use crate::{OperationError, Result};

/// The machine's clock: the only place that reads it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// Refuses a clock that says a time which cannot be written down.
    pub fn check(self) -> Result<()> {
        let now = self.now().as_nanos();
        if now > 0 && now < i64::MAX {
            return Ok(());
        }
        Err(OperationError::rejected(
            "the clock of this machine says a time outside the years 1970 to 2261; set it right and \
             try again",
        ))
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that the rule points to")]
    fn now(&self) -> Timestamp {
        // Not by way of a calendar: the clock of a machine may be set beyond the last year of one.
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanos = since_1970.map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        Timestamp::from_nanos(nanos)
    }
}
