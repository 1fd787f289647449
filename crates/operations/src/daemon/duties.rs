//! What the daemon has to do.

use std::fmt;
use std::time::Duration;

/// One thing that the daemon sees to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Duty {
    /// Starting what may start.
    Dispatch,
    /// Runs and starts that died.
    Liveness,
    /// What convoys track and nobody has scheduled.
    Convoys,
    /// Accepted work that was on its way when its worker died.
    Landing,
    /// Notices and nudges.
    Outbox,
    /// Workers that say nothing.
    Stalls,
    /// Agents that asked for work and say nothing any more.
    Work,
    /// Trees that stand ready before anybody needs them.
    Trees,
    /// What is old.
    Retention,
}

impl Duty {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Dispatch,
        Self::Liveness,
        Self::Convoys,
        Self::Landing,
        Self::Outbox,
        Self::Stalls,
        Self::Work,
        Self::Trees,
        Self::Retention,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Liveness => "liveness",
            Self::Convoys => "convoys",
            Self::Landing => "landing",
            Self::Outbox => "outbox",
            Self::Stalls => "stalls",
            Self::Work => "work",
            Self::Trees => "trees",
            Self::Retention => "retention",
        }
    }

    /// How many threads see to it. A start may take minutes, and nobody else is to wait for it.
    pub(super) const fn hands(self) -> usize {
        match self {
            Self::Dispatch => 8,
            Self::Liveness
            | Self::Convoys
            | Self::Landing
            | Self::Outbox
            | Self::Stalls
            | Self::Work
            | Self::Trees
            | Self::Retention => 1,
        }
    }

    /// How long after something happened it is seen to. Trees are made ready when whatever is about to start has started:
    /// a start needs the disk and the processors more, and perhaps one of those very trees.
    pub(super) const fn delay(self) -> Duration {
        match self {
            Self::Dispatch
            | Self::Liveness
            | Self::Convoys
            | Self::Landing
            | Self::Outbox
            | Self::Stalls
            | Self::Work
            | Self::Retention => Duration::ZERO,
            Self::Trees => Duration::from_secs(1),
        }
    }
}

impl fmt::Display for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
