//! Hosting services and pull requests: their types, and the decisions about them.
//!
//! A pull request is fetched by a tool of the user. Everything in it is data that strangers may have written: a decision
//! reads the typed fields, and text reaches an agent only through [`quote_feedback`].

mod branch_name;
mod description;
mod pull_request;
mod quoting;
mod repository;
mod tracking;
mod trust;
mod verdict;

pub use branch_name::{BRANCH_TRIES_MAX, pull_request_branch};
pub use description::{PullRequestDescription, RequestMarker};
pub use pull_request::{
    HostedCheck, HostedCheckState, PolledPullRequest, PullRequest, PullRequestApproval,
    PullRequestFeedback, PullRequestFeedbackKind, PullRequestReviewState, PullRequestState,
    ShownFeedback,
};
pub use quoting::{FEEDBACK_CHARACTERS_MAX, quote_feedback, quote_text};
pub use repository::{HostedRepository, NoHostingService, fork_address, is_repository_owner};
pub use tracking::{LOOK_DELAY_MAX, PullRequestTip, TrackedPullRequest};
pub use trust::{FeedbackTrust, PullRequestTrust};
pub use verdict::{
    CHECKS_GRACE, FEEDBACK_QUIET, PullRequestNext, PullRequestRecord, PullRequestRepair,
    PullRequestVerdict, PullRequestWait, judge_pull_request,
};
