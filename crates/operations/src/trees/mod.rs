//! The trees that workers work in: one shared repository for each rig, a worktree for each polecat.
//!
//! Nothing here is deleted, only moved: `trash` is the one place that takes a tree away, and the one that
//! deletes what was taken away long ago.

mod ahead;
mod lock;
mod overlay;
mod place;
mod prepare;
mod rescue;
mod setup;
mod show;
mod trash;
mod warm;

use std::path::PathBuf;

use gt_core::Rig;
use gt_core::schedule::{Run, RunId};
use gt_executors::git::{GitError, Repository, Signature, Tree};

pub(crate) use ahead::{Ahead, forget, take_prepared};
pub use gt_executors::tmux::AttachCommand;
pub(crate) use lock::occupy;
pub(crate) use place::{expected_session, give_place};
pub(crate) use prepare::{NotPrepared, Prepared, prepare};
pub(crate) use rescue::save;
pub use rescue::{RestoredRescue, rescue_repository, rescue_show, rescues, restore_rescue};
pub(crate) use show::session_of;
pub use show::{Glimpse, PolecatState, ShownPolecat, attach, peek, polecat, polecats, run_of};
pub(crate) use trash::complete_moves;
pub(crate) use trash::{WARNING, delete_for_good};
pub use trash::{is_due_soon, nuke, purge, trash, undelete};
pub use warm::Warmed;
pub(crate) use warm::{keep_warm, warm_sessions};

use crate::{OperationError, Result, Town};

/// The directories of a rig whose runs have trees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trees<'a> {
    town: &'a Town,
    rig: &'a Rig,
}

impl<'a> Trees<'a> {
    /// The trees of a rig; nothing if its runs have none: it has no repository, or nobody works there for us.
    pub(crate) fn of(town: &'a Town, rig: &'a Rig) -> Option<Self> {
        has_trees(rig).then_some(Self { town, rig })
    }

    /// The repository that all of them share.
    pub(crate) fn repository(&self) -> Repository {
        Repository::of(self.directory().join(".repo.git"), &self.rig.repo)
    }

    /// Where a polecat lives; its tree is inside, with its logs beside it.
    pub(crate) fn home(&self, polecat: &str) -> PathBuf {
        self.directory().join("polecats").join(polecat)
    }

    /// The tree of a polecat.
    pub(crate) fn tree(&self, polecat: &str) -> Tree {
        Tree::of(self.home(polecat).join("rig"), &self.repository())
    }

    fn trash(&self) -> PathBuf {
        self.directory().join(".trash")
    }

    fn directory(&self) -> PathBuf {
        self.town.root().join(&self.rig.path)
    }

    /// A path below the town, as the store keeps it.
    fn below_town(&self, path: &std::path::Path) -> String {
        path.strip_prefix(self.town.root()).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// Whether the runs of a rig have trees: it has a repository, and its workers are ours.
pub(crate) fn has_trees(rig: &Rig) -> bool {
    !rig.repo.is_empty() && Run::takes_slot(rig.executor)
}

/// The repository that the trees of a rig share, once there is one.
pub(crate) fn shared_repository(town: &Town, rig: &Rig) -> Option<Repository> {
    Trees::of(town, rig).map(|trees| trees.repository()).filter(Repository::exists)
}

/// What is wrong with the repository that the trees of a rig share, if anything is.
pub(crate) fn repository_problem(town: &Town, rig: &Rig) -> Option<String> {
    Trees::of(town, rig)?.repository().problem()
}

/// The same as far as it is seen without asking git.
pub(crate) fn visible_repository_problem(town: &Town, rig: &Rig) -> Option<String> {
    Trees::of(town, rig)?.repository().visible_problem()
}

/// Who makes commits for a run.
pub(crate) fn signature_of(run: &Run) -> Signature {
    Signature {
        name: run.agent.clone(),
        email: format!("{}@gt.invalid", run.agent.replace('/', ".")),
    }
}

/// The reference that keeps what was saved of a run.
fn rescue_reference(run: &RunId) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let bead: String = run.bead.as_str().chars().map(plain).collect();
    format!("refs/gt/rescue/{bead}/{}", run.epoch)
}

/// An error of git, about a rig.
pub(crate) fn git_failed(rig: &Rig) -> impl Fn(GitError) -> OperationError {
    let slug = rig.slug.clone();
    move |error| OperationError::Git { rig: slug.clone(), source: error }
}

/// The rig of this name, whose runs have trees.
fn rig_with_trees(town: &Town, name: &str) -> Result<Rig> {
    let rig = town.read(|reader| crate::rigs::require(reader, name))?;
    if Trees::of(town, &rig).is_none() {
        return Err(OperationError::rejected(format!(
            "the rig {} has no trees: it has no repository, or its agents bring their own",
            rig.slug
        )));
    }
    Ok(rig)
}
