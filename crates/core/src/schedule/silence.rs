//! A worker that prints nothing.

use std::fmt;

use super::run::Run;
use crate::Timestamp;

/// The silence of the worker of a live run, of which people were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// When it printed something last, to the second.
    pub since: Timestamp,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "has said nothing since {}", self.since)
    }
}

impl Run {
    /// The silence of its worker, if people were told of it and it lasts.
    pub fn silence(&self) -> Option<Silence> {
        self.silent_since.filter(|_| self.state.is_live()).map(|since| Silence { since })
    }
}
