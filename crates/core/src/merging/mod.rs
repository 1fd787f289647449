//! Merge requests: accepted commits on their way to a target branch.

mod candidate;
mod integration_branch;
mod order;
mod request;
mod revert_history;
mod review;
mod transition;

pub use candidate::{Candidate, CandidatePart, CandidateState};
pub use integration_branch::{convoy_of_branch, integration_branch};
pub use order::{BatchSearch, SearchStep, in_queue_order, may_share_batch};
#[cfg(test)]
pub(crate) use request::tests;
pub use request::{
    AcceptedBlocker, MergeMethod, MergeRequest, MergeRequestId, PullRequestName, QueueStop,
    RequestHold, RequestPurpose, RequestState,
};
pub use revert_history::{may_share_branch, revert_of};
pub use review::{Review, ReviewDecision, approval_of};
pub use transition::{OriginAnswer, RequestAction, RequestRefusal, next_state};
