//! The trees that workers work in: one shared repository for each rig, a worktree for each polecat.
//!
//! Nothing here is deleted, only moved: `trash` is the one place that takes a tree away, and the one that
//! deletes what was taken away long ago.

mod audit;
mod check_tree;
mod fence;
mod lock;
mod overlay;
mod ports;
mod prepare;
mod program_path;
mod rescue;
mod setup;
mod trash;
mod warm;

use gt_core::schedule::RunId;

pub use audit::audit_run;
pub(crate) use audit::{look_at_target, note_target, remember_repository, restore_settings};
pub(crate) use check_tree::{CheckTree, CheckTrees};
pub use fence::{fence, use_environment_of_supervisor};
pub(crate) use fence::{programs_of, put_behind_fence};
pub(crate) use lock::occupy;
pub(crate) use overlay::ignore_files;
pub(crate) use ports::{ports_of_checks, ports_of_polecat};
pub(crate) use prepare::{NotPrepared, Prepared, occupy_and_prepare};
pub(crate) use program_path::path_with_us;
pub use rescue::{RestoredRescue, rescue_repository, rescue_show, rescues, restore_rescue};
pub(crate) use rescue::{keep_accepted, save};
pub use trash::complete_moves;
pub use trash::{PURGE_NOTICE_PERIOD, delete_for_good};
pub use trash::{is_due_soon, nuke, purge, trash, undelete};
pub use warm::WarmTreeChanges;
pub use warm::keep_warm;

/// The reference that keeps what was saved of a run.
fn rescue_reference(run: &RunId) -> String {
    format!("refs/gt/rescue/{}", reference_part(run))
}

/// A run as a part of the name of a reference.
fn reference_part(run: &RunId) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let bead: String = run.bead.as_str().chars().map(plain).collect();
    format!("{bead}/{}", run.epoch)
}
