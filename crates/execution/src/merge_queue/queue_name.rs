//! The name of a merge queue.

use gt_core::RigSlug;
use gt_core::merging::MergeRequest;

/// A queue: the requests of one rig for one target branch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName {
    /// The rig.
    pub rig: RigSlug,
    /// The target branch.
    pub target: String,
}

impl QueueName {
    /// The queue of a request.
    pub fn of(request: &MergeRequest) -> Self {
        Self { rig: request.rig.clone(), target: request.target.clone() }
    }
}
