//! The lanes of the board: where a bead stands on its way from waiting to landed.

/// A lane of the board. A bead is in at most one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BoardLane {
    /// Another bead, a date, a backoff or a person holds it.
    Blocked,
    /// Nothing holds it; it waits for its turn, or to be scheduled for the first time.
    Ready,
    /// A run or a person works on it.
    Running,
    /// Its finished work waits for the review of a person.
    Review,
    /// Its finished work is in the merge queue.
    Queue,
    /// It was closed as done a short time ago.
    Landed,
}

impl BoardLane {
    /// Every lane, in the order of the board.
    pub const ALL: [Self; 6] =
        [Self::Blocked, Self::Ready, Self::Running, Self::Review, Self::Queue, Self::Landed];

    /// A short name that programs can rely on.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Review => "review",
            Self::Queue => "queue",
            Self::Landed => "landed",
        }
    }
}
