//! Where a work item stands.

use std::fmt;

use crate::schedule::names;
use crate::{Invalid, Outcome, Status};

names! {
    /// The status of a work item.
    WorkStatus, "a status; write queued, dispatched, in_progress, blocked, completed, failed or cancelled" {
        /// No agent has it.
        Queued = "queued",
        /// It was given to an agent that has not picked it up yet.
        Dispatched = "dispatched",
        /// An agent is at it.
        InProgress = "in_progress",
        /// Its agent waits for something outside.
        Blocked = "blocked",
        /// It was done.
        Completed = "completed",
        /// It was tried and did not work.
        Failed = "failed",
        /// It was called off.
        Cancelled = "cancelled",
    }
}

impl WorkStatus {
    /// The status of a bead with this status and outcome. A bead that is deferred, pinned or has a custom status
    /// waits in the queue. While a run has the bead, the status of the bead follows that run.
    pub fn of(status: &Status, outcome: Option<Outcome>) -> Self {
        match status {
            Status::Open | Status::Deferred | Status::Pinned | Status::Custom(_) => Self::Queued,
            Status::Hooked => Self::Dispatched,
            Status::InProgress => Self::InProgress,
            Status::Blocked => Self::Blocked,
            Status::Closed => match outcome {
                Some(Outcome::Success) | None => Self::Completed,
                Some(Outcome::Failed) => Self::Failed,
                Some(Outcome::Cancelled) => Self::Cancelled,
            },
        }
    }

    /// Whether it is over.
    pub fn is_terminal(self) -> bool {
        self.outcome().is_some()
    }

    /// How something ended that stands like this, if it is over.
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Queued | Self::Dispatched | Self::InProgress | Self::Blocked => None,
            Self::Completed => Some(Outcome::Success),
            Self::Failed => Some(Outcome::Failed),
            Self::Cancelled => Some(Outcome::Cancelled),
        }
    }
}

impl fmt::Display for WorkStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_a_bead_is_a_status_of_a_work_item() {
        let custom = Status::parse("staged_ready").unwrap();
        for (status, outcome, expected) in [
            (Status::Open, None, "queued"),
            (Status::Deferred, None, "queued"),
            (Status::Pinned, None, "queued"),
            (custom, None, "queued"),
            (Status::Hooked, None, "dispatched"),
            (Status::InProgress, None, "in_progress"),
            (Status::Blocked, None, "blocked"),
            (Status::Closed, None, "completed"),
            (Status::Closed, Some(Outcome::Success), "completed"),
            (Status::Closed, Some(Outcome::Failed), "failed"),
            (Status::Closed, Some(Outcome::Cancelled), "cancelled"),
        ] {
            let stands = WorkStatus::of(&status, outcome);
            assert_eq!(stands.as_str(), expected, "{status}");
            assert_eq!(stands.is_terminal(), status == Status::Closed);
            assert_eq!(WorkStatus::parse(expected).unwrap(), stands);
        }
        assert!(WorkStatus::parse("open").is_err());
    }
}
