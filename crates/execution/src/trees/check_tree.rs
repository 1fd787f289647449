//! The worktrees in which checks run: a few for each rig, each used by one process at a time.
//!
//! No work is in them, so that they are the only trees that are removed instead of moved away.

use std::fs::{self, File, TryLockError};
use std::path::PathBuf;
use std::time::Duration;

use gt_core::Rig;
use gt_executors::git::{Commit, Repository, Tree};
use gt_executors::runs::ProcessMark;

use super::setup::TreeSetup;
use crate::wrap::WrappedCommand;
use gt_town::settings::layers;
use gt_town::tree_paths::{Trees, git_failed};
use gt_town::{OperationError, Result, Town};

/// How often a free tree is looked for.
const TREE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The variable by which the processes of a check are found. Its value is the path of the tree.
const MARK: &str = "GT_CHECK_TREE";

/// The trees for checks of a rig on this host.
pub(crate) struct CheckTrees<'a> {
    trees: Trees<'a>,
    setup: TreeSetup,
    count: u32,
}

/// A tree that this process uses alone.
pub(crate) struct CheckTree {
    tree: Tree,
    number: u32,
    home: PathBuf,
    // Closing it releases the lock.
    _lock: File,
}

impl<'a> CheckTrees<'a> {
    /// Those of a rig with a repository.
    pub(crate) fn of(town: &'a Town, rig: &'a Rig) -> Result<Self> {
        let trees = Trees::of(town, rig).ok_or_else(|| {
            OperationError::rejected(format!(
                "the rig {} has no trees of ours, so no check can run in one",
                rig.slug
            ))
        })?;
        let count = u32::try_from(layers(town)?.checks_max()?).unwrap_or(1).max(1);
        Ok(Self { trees, setup: TreeSetup::of(town, rig)?, count })
    }

    /// The repository of the rig, which is made if it is not there.
    pub(crate) fn repository(&self) -> Result<Repository> {
        let repository = self.trees.repository();
        if !repository.exists() {
            repository.repair().map_err(git_failed(self.trees.rig))?;
        }
        Ok(repository)
    }

    /// A hash of how the trees are set up.
    pub(crate) fn setup_hash(&self) -> Result<String> {
        self.setup.hash()
    }

    /// The words of a command in a tree, with the program of the rig around them.
    pub(crate) fn wrapped(
        &self,
        tree: &CheckTree,
        environment: &[(String, String)],
        argv: Vec<String>,
    ) -> Result<Vec<String>> {
        let Trees { town, rig } = self.trees;
        let place = (town, tree.tree.path());
        // A container has to be told that this one is given too.
        let environment = [environment, &[(MARK.to_owned(), String::new())]].concat();
        WrappedCommand { rig, place, run: "", environment: &environment }
            .argv(self.setup.wrap(), argv)
    }

    /// Waits for a tree that no other process uses; nothing if `keep_going` says no before.
    pub(crate) fn take(&self, keep_going: &dyn Fn() -> bool) -> Result<Option<CheckTree>> {
        loop {
            for number in 1..=self.count {
                if let Some(tree) = self.try_take(number)? {
                    return Ok(Some(tree));
                }
            }
            if !keep_going() {
                return Ok(None);
            }
            std::thread::sleep(TREE_POLL_INTERVAL);
        }
    }

    fn try_take(&self, number: u32) -> Result<Option<CheckTree>> {
        let home = self.trees.check_home(number);
        let path = home.join("lock");
        let failed = |source| OperationError::File { action: "lock", path: path.clone(), source };
        fs::create_dir_all(&home).map_err(failed)?;
        let options = gt_executors::private::options().create(true).append(true).open(&path);
        let lock = options.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let tree = CheckTree { tree: self.trees.check_tree(number), number, home, _lock: lock };
        // Processes of a check whose runner and attendant were both killed.
        Ok(tree.mark(|mark| mark.end_all(Duration::ZERO)).then_some(tree))
    }

    /// Puts a tree at a commit and sets it up. `tree_hash` is the hash of the tree of the commit. The setup runs the code of
    /// that commit, so it gets the environment of a check.
    pub(crate) fn prepare(
        &self,
        tree: &CheckTree,
        repository: &Repository,
        commit: &Commit,
        tree_hash: &str,
        environment: &[(String, String)],
        without: &[&str],
    ) -> Result<()> {
        let ready = tree.home.join("ready");
        let wanted = format!("{tree_hash}\n{}\n", self.setup.hash()?);
        let is_reset = self.reset(tree, repository, commit)?;
        self.setup.lay_over(&self.trees, &tree.tree)?;
        if is_reset && fs::read_to_string(&ready).is_ok_and(|text| text == wanted) {
            return Ok(());
        }
        let failed = |source| OperationError::File { action: "write", path: ready.clone(), source };
        let _ = fs::remove_file(&ready);
        self.setup.run_command(&self.trees, &tree.tree, None, environment, without)?;
        fs::write(&ready, wanted).map_err(failed)
    }

    /// Puts a tree at a commit, without anything that a check left there but ignored files. Says `false` if the tree had to
    /// be made anew.
    pub(crate) fn reset(
        &self,
        tree: &CheckTree,
        repository: &Repository,
        commit: &Commit,
    ) -> Result<bool> {
        if tree.tree.reset_to(commit).is_ok() {
            return Ok(true);
        }
        let failed = git_failed(self.trees.rig);
        let path = tree.tree.path();
        // The tree may be as it should be, and the repository damaged.
        repository.repair().map_err(&failed)?;
        repository.discard_check_tree(path).map_err(&failed)?;
        repository.add_detached_worktree(path, commit).map_err(&failed)?;
        Ok(false)
    }
}

impl CheckTree {
    /// The tree.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Its number among the trees for checks of its rig on this host.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Calls `work` with the mark of the processes of checks in this tree.
    pub(crate) fn mark<T>(&self, work: impl FnOnce(ProcessMark<'_>) -> T) -> T {
        let value = self.tree.path().to_string_lossy();
        work(ProcessMark { name: MARK, value: &value })
    }
}
