//! The name of a merge queue.

use gt_core::RigSlug;

/// A queue: the requests of one rig for one target branch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName {
    /// The rig.
    pub rig: RigSlug,
    /// The target branch.
    pub target: String,
}
