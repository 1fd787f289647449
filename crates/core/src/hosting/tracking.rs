//! The record of a pull request of ours between two looks at it.

use std::time::Duration;

use super::PullRequestWait;
use crate::{BeadId, Timestamp};

/// No delay before a pull request is looked at again is longer, but for the time between two looks.
pub const LOOK_DELAY_MAX: Duration = Duration::from_hours(1);

/// A pull request that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedPullRequest {
    /// The bead whose work it has.
    pub bead: BeadId,
    /// Its branch.
    pub branch: String,
    /// The fingerprint of the last poll; empty if it is fetched with the next poll in any case.
    pub fingerprint: String,
    /// When it is looked at next.
    pub due_at: Timestamp,
    /// The head commit whose failed checks or conflict have had a repair; empty if none has.
    pub repaired_head: String,
    /// The cause for which it waits, in words.
    pub waits_for: String,
}

impl TrackedPullRequest {
    /// When it is looked at next, where this time is between two looks. A time further off than any delay was set by a clock
    /// that has been set back since: then it is looked at now.
    pub fn next_look(&self, now: Timestamp, poll: Duration) -> Timestamp {
        let is_possible = self.due_at <= now.plus(poll.max(LOOK_DELAY_MAX));
        if is_possible { self.due_at } else { now }
    }
}

/// A commit that was the tip of the branch of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestTip {
    /// The commit.
    pub commit: String,
    /// The accepted commit that it was built from; empty if others have pushed it.
    pub accepted: String,
}

impl PullRequestTip {
    /// Whether we have pushed it, or were about to.
    pub fn is_ours(&self) -> bool {
        !self.accepted.is_empty()
    }
}

impl PullRequestWait {
    /// The cause of the wait, in words.
    pub fn words(&self) -> String {
        match self {
            Self::OlderHead => "the service does not show the last push yet".to_owned(),
            Self::Checks { running, failed } if failed.is_empty() => {
                format!("checks run: {}", running.join(", "))
            }
            Self::Checks { running, failed } => {
                format!("checks run: {}; failed already: {}", running.join(", "), failed.join(", "))
            }
            Self::MoreComments => "comments have come in, and more may follow".to_owned(),
            Self::RepairedHead => {
                "a repair was made for its checks or its conflict, and nothing was pushed since"
                    .to_owned()
            }
            Self::StoppedChecks(names) => {
                format!("a person starts or approves the checks {}", names.join(", "))
            }
            Self::ChangesRequested => {
                "a reviewer asks for changes, without a comment that may start a repair".to_owned()
            }
            Self::Review => "a review".to_owned(),
            Self::Merge => "a person merges it".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_does_not_end_the_looks_at_a_pull_request() {
        let now = Timestamp::from_nanos(1_790_000_000_000_000_000);
        let next = |delay: Duration, poll: Duration| {
            let pull = TrackedPullRequest {
                bead: BeadId::parse("gt-a").unwrap(),
                branch: "gt/gt-a".to_owned(),
                fingerprint: String::new(),
                due_at: now.plus(delay),
                repaired_head: String::new(),
                waits_for: String::new(),
            };
            pull.next_look(now, poll)
        };
        let (minute, day) = (Duration::from_mins(1), Duration::from_hours(24));
        assert_eq!(next(minute, minute), now.plus(minute));
        assert_eq!(next(LOOK_DELAY_MAX, minute), now.plus(LOOK_DELAY_MAX));
        assert_eq!(next(day, minute), now);
        assert_eq!(next(day, day), now.plus(day));
    }
}
