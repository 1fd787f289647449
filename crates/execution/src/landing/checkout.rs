//! Landing in a checkout of the user that is the origin of a rig.

use std::path::PathBuf;

use gt_core::Rig;
use gt_executors::git::checkouts_of;

/// The checkout on this machine in which the work of a rig lands; nothing if it is pushed to the origin.
pub fn landing_checkout(rig: &Rig) -> Option<PathBuf> {
    let checkouts = checkouts_of(&rig.repo, &rig.default_branch).unwrap_or_default();
    checkouts.into_iter().next()
}
