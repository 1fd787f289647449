//! The merge queue: accepted commits are put on top of their target, checked there, and pushed.
//!
//! Only this module moves a target branch. Intent, effect, confirmation: a candidate is recorded before it is
//! pushed, and confirmed when the origin has it. A crash in between leaves a question that the origin answers with the
//! next pass (`settle`), so nothing lands twice and no bead closes before its work is on the target.

mod attendance;
mod batch;
mod branch_push;
mod branch_work;
mod commands;
mod commit_lookup;
mod integrate;
mod integration_repair;
mod land;
mod local_machine;
mod machine;
mod pass;
mod pull_requests;
mod queue_name;
mod repair;
mod required_reviews;
mod revert;
mod rig_removal;
mod settle;
mod submit;
mod unmerged;
mod verify;
mod views;

pub use attendance::{followed_pull_requests, unattended_convoys, unattended_requests};
pub(crate) use commands::merge_of_rig;
pub use commands::{
    RequestReview, cancel_request, close_unmerged, comment, owner_of_caller, pause, put_on_top,
    retry, review,
};
pub use gt_executors::runs::ProcessOwner;
pub use gt_store::{CandidateCheck, MergeQueueRow, RequestFilter};
pub(crate) use integration_repair::request_mended_by;
pub use machine::{
    BuilderWait, CandidateCheckOrder, HostingService, MergeLock, MergeMachine, MergeRepository,
};
pub use pass::{
    PassReport, actionable_queues, land_own, land_own_of, pass, pass_for, pass_if_free, pass_on,
};
pub use pull_requests::{sync, sync_on};
pub use queue_name::QueueName;
pub use revert::{revert, revert_on};
pub use rig_removal::remove_rig;
pub(crate) use submit::{AcceptedSubmission, submit_in};
pub use views::{
    LineEntry, RequestChangeSize, RequestStory, change, change_size, failed_check, flaky_checks,
    has_repair, is_repaired, line, requests, review_reason, reviews_of_work, story,
};
