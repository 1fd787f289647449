//! Where the beads of a convoy stand.

/// Where a bead of a convoy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrackedState {
    /// It is over, and did not fail.
    Done,
    /// It failed, its work does not land, or it could not be started too often: a person is asked.
    Failed,
    /// A worker has it.
    Running,
    /// Its worker is done and gone, and what it did lands without a person.
    Landing,
    /// A worker is about to have it.
    Starting,
    /// It is scheduled, and waits for nothing but its turn.
    Queued,
    /// Something has to be done first.
    Blocked,
    /// Something else keeps it: a date, its rig, an agent or a person who has it, or a review of its work.
    Waiting,
    /// It is not scheduled.
    Idle,
}

impl TrackedState {
    /// Every one, in the order in which they are counted.
    pub const ALL: [Self; 9] = [
        Self::Done,
        Self::Failed,
        Self::Running,
        Self::Landing,
        Self::Starting,
        Self::Queued,
        Self::Blocked,
        Self::Waiting,
        Self::Idle,
    ];

    /// A short name that programs can rely on.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Landing => "landing",
            Self::Starting => "starting",
            Self::Queued => "queued",
            Self::Blocked => "blocked",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
        }
    }

    /// Where a bead stands without a run whose merge request is in the state of this name.
    pub fn of_request(state: &str) -> Self {
        match state {
            "failed" | "conflict" => Self::Failed,
            "review" | "held" => Self::Waiting,
            _ => Self::Landing,
        }
    }
}
