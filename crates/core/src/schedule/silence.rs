//! A worker that says nothing.

use std::fmt;

use super::run::Run;
use crate::Timestamp;

/// That the worker of a live run has said nothing for so long that people were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// When it said something last, to the second.
    pub since: Timestamp,
}

/// How its text begins.
const BEGINNING: &str = "has said nothing since ";

impl Silence {
    fn parse(text: &str) -> Option<Self> {
        Timestamp::parse(text.strip_prefix(BEGINNING)?).ok().map(|since| Self { since })
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BEGINNING}{}", self.since)
    }
}

impl Run {
    /// The silence of its worker, if people were told of it and it lasts: this stands where the reason of its end will
    /// stand.
    pub fn silence(&self) -> Option<Silence> {
        let is_at_work = self.state.is_live() && self.landing.state.is_none();
        is_at_work.then(|| Silence::parse(&self.reason)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_else(seconds in 0_i64..4_000_000_000, text in ".{0,80}") {
            let silence = Silence { since: Timestamp::from_nanos(seconds * 1_000_000_000) };
            prop_assert_eq!(Silence::parse(&silence.to_string()), Some(silence));
            prop_assert_eq!(Silence::parse(&text), None);
        }
    }
}
