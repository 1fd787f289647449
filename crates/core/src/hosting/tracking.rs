//! What is kept of a pull request of ours between two looks at it.

use super::PullRequestWait;
use crate::{BeadId, Timestamp};

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
    /// What it waits for, in words.
    pub waits_for: String,
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
    /// What is waited for, in words.
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
