//! Leases: how long an agent has its work item.

use std::time::Duration;

use crate::{Invalid, Timestamp};

/// How long an agent may be silent before its work is given to another agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(u16);

impl Lease {
    /// The shortest, in seconds.
    pub const SHORTEST_S: u16 = 30;
    /// The longest, in seconds.
    pub const LONGEST_S: u16 = 3600;

    /// A lease of so many seconds.
    pub fn of_seconds(seconds: i64) -> Result<Self, Invalid> {
        match u16::try_from(seconds) {
            Ok(fits @ Self::SHORTEST_S..=Self::LONGEST_S) => Ok(Self(fits)),
            _ => Err(Invalid(format!(
                "a lease of {seconds} seconds is not between {} and {}",
                Self::SHORTEST_S,
                Self::LONGEST_S
            ))),
        }
    }

    /// The number of seconds.
    pub fn seconds(self) -> i64 {
        self.0.into()
    }

    /// When it ends if it begins now.
    pub fn ends(self, now: Timestamp) -> Timestamp {
        now.plus(Duration::from_secs(self.0.into()))
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self(300)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_neither_too_short_nor_too_long() {
        for (seconds, fits) in [(29, false), (30, true), (3600, true), (3601, false), (-1, false)] {
            assert_eq!(Lease::of_seconds(seconds).is_ok(), fits, "{seconds}");
        }
        assert_eq!(Lease::default().seconds(), 300);
        let now = Timestamp::from_nanos(0);
        assert_eq!(Lease::default().ends(now), Timestamp::from_nanos(300_000_000_000));
    }
}
