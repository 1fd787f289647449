//! Landing in a checkout of the user that is the origin of a rig.

use std::path::PathBuf;

use gt_core::Rig;
use gt_core::schedule::Run;
use gt_executors::git::{Repository, checkouts_of};

/// The name of the landing of a run among all landings in a checkout.
pub(super) fn landing_name(run: &Run) -> String {
    run.id.to_string()
}

/// Deletes the candidate of a landing that is confirmed or given up. If that fails it stays, and the next landing in the
/// checkout deletes it.
pub(super) fn forget_candidate(repository: &Repository, run: &Run, branch: &str) {
    let _ = repository.forget_candidate(branch, &landing_name(run));
}

/// The checkout on this machine in which the work of a rig lands; nothing if it is pushed to the origin.
pub fn landing_checkout(rig: &Rig) -> Option<PathBuf> {
    let checkouts = checkouts_of(&rig.repo, &rig.default_branch).unwrap_or_default();
    checkouts.into_iter().next()
}
