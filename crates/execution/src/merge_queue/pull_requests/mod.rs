//! Work that people merge on a hosting service.
//!
//! The queue checks the work, pushes it to a branch of its own and opens a pull request (`publish`). From then on the pull
//! request is looked at now and then (`follow`): it has landed when the service says so and the target has its merge commit.
//! We never merge it. The branch is named in the store before it is pushed, each tip is recorded before it is pushed, and a
//! pull request is found again by branch and marker, so a crash between two steps repeats nothing.

mod follow;
mod hosted_rig;
mod publish;

pub(super) use follow::{follow_due, next_poll, poll_setting};
pub use follow::{sync, sync_on};
pub(super) use hosted_rig::HostedRig;
