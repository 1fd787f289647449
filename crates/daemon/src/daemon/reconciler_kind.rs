//! The kinds of reconcilers.

use std::fmt;
use std::time::Duration;

/// A kind of reconciler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReconcilerKind {
    /// Starts work that may start.
    Dispatch,
    /// Runs and starts that died.
    Liveness,
    /// Members of convoys that are not scheduled yet.
    Convoys,
    /// Merge requests: built, checked and pushed.
    MergeQueue,
    /// Notices and nudges.
    Outbox,
    /// Workers that say nothing.
    Stalls,
    /// Agents that asked for work and say nothing any more.
    Work,
    /// Trees that are made ready before a run needs them.
    Trees,
    /// Records that are older than their retention time.
    Retention,
}

impl ReconcilerKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Dispatch,
        Self::Liveness,
        Self::Convoys,
        Self::MergeQueue,
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
            Self::MergeQueue => "merge-queue",
            Self::Outbox => "outbox",
            Self::Stalls => "stalls",
            Self::Work => "work",
            Self::Trees => "trees",
            Self::Retention => "retention",
        }
    }

    /// How many threads it has. A start or a check may take minutes, and other starts and queues must not wait for it.
    pub(super) const fn hands(self) -> usize {
        match self {
            Self::Dispatch => 8,
            Self::MergeQueue => 4,
            Self::Liveness
            | Self::Convoys
            | Self::Outbox
            | Self::Stalls
            | Self::Work
            | Self::Trees
            | Self::Retention => 1,
        }
    }

    /// How long after an event the reconciler runs. Trees are made ready only after pending starts: a start needs the
    /// disk and the processors more, and perhaps one of those trees.
    pub(super) const fn delay(self) -> Duration {
        match self {
            Self::Dispatch
            | Self::Liveness
            | Self::Convoys
            | Self::MergeQueue
            | Self::Outbox
            | Self::Stalls
            | Self::Work
            | Self::Retention => Duration::ZERO,
            Self::Trees => Duration::from_secs(1),
        }
    }
}

impl fmt::Display for ReconcilerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
