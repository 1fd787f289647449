//! The directories of a rig: its shared repository, and a worktree for each polecat.

use std::path::{Path, PathBuf};

use gt_core::schedule::{Run, WorkerPlace, session_name};
use gt_core::{Prefix, Rig};
use gt_executors::git::{GitError, Repository, Signature, Tree};

use crate::{OperationError, Result, Town};

/// The directories of a rig whose runs have trees.
#[derive(Debug, Clone, Copy)]
pub struct Trees<'a> {
    /// The town of the rig.
    pub town: &'a Town,
    /// The rig.
    pub rig: &'a Rig,
}

impl<'a> Trees<'a> {
    /// The trees of a rig; nothing if its runs have none: it has no repository, or no worker of ours works there.
    pub fn of(town: &'a Town, rig: &'a Rig) -> Option<Self> {
        rig.has_trees().then_some(Self { town, rig })
    }

    /// The repository that all of them share.
    pub fn repository(&self) -> Repository {
        Repository::of(repository_path(&self.directory()), &self.rig.repo)
    }

    /// The directory of a polecat; its tree is inside, with its logs beside it.
    pub fn home(&self, polecat: &str) -> PathBuf {
        self.directory().join("polecats").join(polecat)
    }

    /// The tree of a polecat.
    pub fn tree(&self, polecat: &str) -> Tree {
        Tree::of(self.home(polecat).join("rig"), &self.repository())
    }

    /// The directory of a worktree for checks; the tree is inside, with its lock beside it.
    pub fn check_home(&self, number: u32) -> PathBuf {
        self.directory().join("checks").join(number.to_string())
    }

    /// The worktree for checks of this number.
    pub fn check_tree(&self, number: u32) -> Tree {
        Tree::of(self.check_home(number).join("rig"), &self.repository())
    }

    /// The directory that worktrees are moved to.
    pub fn trash(&self) -> PathBuf {
        self.directory().join(".trash")
    }

    /// The directory of the rig.
    pub fn directory(&self) -> PathBuf {
        self.town.root().join(&self.rig.path)
    }

    /// A path below the town, as the store keeps it.
    pub fn below_town(&self, path: &Path) -> String {
        path.strip_prefix(self.town.root()).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// The path of the repository that the trees of a rig share, below the directory of the rig.
pub fn repository_path(directory: &Path) -> PathBuf {
    directory.join(".repo.git")
}

/// The repository that the trees of a rig share, once there is one.
pub fn shared_repository(town: &Town, rig: &Rig) -> Option<Repository> {
    Trees::of(town, rig).map(|trees| trees.repository()).filter(Repository::exists)
}

/// Whether the shared repository of a rig is there and does not have this branch.
pub fn lacks_branch(town: &Town, rig: &Rig, branch: &str) -> bool {
    shared_repository(town, rig).is_some_and(|known| matches!(known.tip(branch), Ok(None)))
}

/// The problem of the repository that the trees of a rig share, if it has one.
pub fn repository_problem(town: &Town, rig: &Rig) -> Option<String> {
    Trees::of(town, rig)?.repository().problem()
}

/// The problem of that repository, as far as it shows without asking git.
pub fn visible_repository_problem(town: &Town, rig: &Rig) -> Option<String> {
    Trees::of(town, rig)?.repository().visible_problem()
}

/// The author of commits for a run.
pub fn signature_of(run: &Run) -> Signature {
    Signature {
        name: run.agent.clone(),
        email: format!("{}@gt.invalid", run.agent.replace('/', ".")),
    }
}

/// An error of git, about a rig.
pub fn git_failed(rig: &Rig) -> impl Fn(GitError) -> OperationError {
    let slug = rig.slug.clone();
    move |error| OperationError::Git { rig: slug.clone(), source: error }
}

/// The rig of this name, whose runs have trees.
pub fn rig_with_trees(town: &Town, name: &str) -> Result<Rig> {
    let rig = town.read(|reader| crate::rig_names::require(reader, name))?;
    if Trees::of(town, &rig).is_none() {
        return Err(OperationError::rejected(format!(
            "the rig {} has no trees: it has no repository, or its agents bring their own",
            rig.slug
        )));
    }
    Ok(rig)
}

/// The session of a run: that of its polecat, or one of its own.
pub fn session_of(run: &Run, prefix: Option<&Prefix>) -> String {
    match (prefix, run.place.as_ref().and_then(WorkerPlace::polecat_name)) {
        (Some(prefix), Some(name)) => session_name(prefix, name),
        _ => run.id.to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
    }
}
