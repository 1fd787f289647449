//! A worktree.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::call::GitCall;
use super::commit::Commit;
use super::error::GitError;
use super::links::{self, canonical};
use super::repository::Repository;
use super::repository_view::CommonDirectoryView;
use super::status::{StatusOutput, TreeStatus};
use super::tree_view::TreeView;

/// A worktree of a shared [`Repository`], or any other directory with a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    path: PathBuf,
    /// The repository that it should belong to.
    repository: Option<PathBuf>,
}

/// Something that git does in several steps, and that has begun in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnfinishedOperation {
    /// `git rebase`, or `git am`.
    Rebase,
    /// `git merge`.
    Merge,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
}

impl UnfinishedOperation {
    /// The files in a repository that say so.
    const SIGNS: [(&'static str, Self); 5] = [
        ("rebase-merge", Self::Rebase),
        ("rebase-apply", Self::Rebase),
        ("MERGE_HEAD", Self::Merge),
        ("CHERRY_PICK_HEAD", Self::CherryPick),
        ("REVERT_HEAD", Self::Revert),
    ];

    /// The name of the command.
    pub fn command(self) -> &'static str {
        match self {
            Self::Rebase => "rebase",
            Self::Merge => "merge",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
        }
    }
}

impl fmt::Display for UnfinishedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.command())
    }
}

/// Whether a status also lists ignored files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ignored {
    Hidden,
    Shown,
}

impl Tree {
    /// The tree at a path. Whether there is one is not looked at.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path: std::path::absolute(&path).unwrap_or(path), repository: None }
    }

    /// The tree at a path that belongs to a repository, unless a worker has made something else of it.
    pub fn of(path: impl Into<PathBuf>, repository: &Repository) -> Self {
        Self { repository: Some(repository.path().to_owned()), ..Self::at(path) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The view through which our git sees the repository of the tree.
    pub(super) fn view(&self) -> Result<Arc<CommonDirectoryView>, GitError> {
        self.repository()?.view()
    }

    /// Where our indexes of trees of the same repository are.
    pub(super) fn indexes(&self) -> Option<PathBuf> {
        let repository = self.repository.as_ref().map(Repository::at);
        let is_of = |repository: &Repository| self.repository().is_ok_and(|of| of == *repository);
        repository.filter(is_of).map(|repository| repository.indexes_path())
    }

    /// A call of git in the tree. It fails if the directory is no tree itself, instead of taking the
    /// repository around it for its own.
    pub(super) fn call(&self, deed: impl Into<String>) -> Result<GitCall, GitError> {
        let directory = self.git_directory()?;
        Ok(GitCall::in_tree_through(&self.path, &directory, self.view()?, deed))
    }

    /// The commit that is checked out, unless there is no commit yet.
    pub fn head(&self) -> Result<Option<Commit>, GitError> {
        self.call("find HEAD")?
            .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .optional_commit()
    }

    /// The branch, unless `HEAD` is detached.
    pub fn branch(&self) -> Result<Option<String>, GitError> {
        let mut asked = self.call("find the branch")?.args(["symbolic-ref", "--quiet", "HEAD"]);
        let answer = asked.answer()?;
        let text = String::from_utf8_lossy(&answer.output);
        match answer.code {
            Some(0) => Ok(text.trim().strip_prefix("refs/heads/").map(str::to_owned)),
            Some(1) => Ok(None),
            _ => Err(asked.failed(&answer)),
        }
    }

    /// The directory of the data that belongs to this tree alone.
    pub(super) fn git_directory(&self) -> Result<PathBuf, GitError> {
        if self.path.join(".git").symlink_metadata().is_err() {
            return Err(GitError::Missing { path: self.path.join(".git") });
        }
        links::git_directory(&self.path)
    }

    /// Removes a stale lock of the index. Call it only when no process works in the tree: git that
    /// was killed leaves the lock behind, and git that is alive needs it.
    pub fn free_index(&self) -> Result<(), GitError> {
        let lock = self.git_directory()?.join("index.lock");
        match std::fs::remove_file(&lock) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(GitError::file("remove", &lock)),
        }
    }

    /// The repository that has its objects and branches.
    pub fn repository(&self) -> Result<Repository, GitError> {
        let found = links::common_directory(&self.git_directory()?);
        let is_it = |wanted: &&PathBuf| canonical(wanted) == canonical(&found);
        Ok(match self.repository.as_ref().filter(is_it) {
            Some(repository) => Repository::at(repository),
            None => Repository::of_others(found),
        })
    }

    /// The operation that has begun in the tree and is not over.
    pub fn unfinished(&self) -> Result<Option<UnfinishedOperation>, GitError> {
        let directory = self.git_directory()?;
        let begun = |(sign, _): &&(&str, UnfinishedOperation)| directory.join(sign).exists();
        Ok(UnfinishedOperation::SIGNS.iter().find(begun).map(|(_, operation)| *operation))
    }

    pub(super) fn report(&self, ignored: Ignored) -> Result<StatusOutput, GitError> {
        TreeView::open(self)?.report(ignored)
    }

    /// How the tree stands.
    pub fn status(&self) -> Result<TreeStatus, GitError> {
        let StatusOutput { head, branch, changes } = self.report(Ignored::Hidden)?;
        let unpushed = if head.is_some() { self.unpushed()? } else { 0 };
        Ok(TreeStatus { head, branch, changes, unpushed, unfinished: self.unfinished()? })
    }

    /// How many commits of `HEAD` no branch of the origin has, as last fetched.
    pub fn unpushed(&self) -> Result<u64, GitError> {
        let output = self
            .call("count commits")?
            .args(["rev-list", "--count", "HEAD", "--not", "--remotes"])
            .done()?;
        let text = String::from_utf8_lossy(&output);
        text.trim().parse().map_err(|_| GitError::Failed {
            deed: "count commits".to_owned(),
            message: format!("it answered {:?}", text.trim()),
        })
    }

    /// Puts a clean tree on a new branch that begins at `base`. Ignored files stay.
    ///
    /// Nothing is thrown away for it. Files that are not committed, or that are ignored now and
    /// would not be at `base`, are [`GitError::NotClean`], and then the tree is where it was. A
    /// branch that exists and is not at `base` is [`GitError::BranchExists`].
    pub fn recycle(&self, branch: &str, base: &Commit) -> Result<(), GitError> {
        let switch = |view: &TreeView<'_>| self.switch_to_new(view, branch, base);
        self.move_clean(base, switch, |view, before| self.undo_switch(view, before, branch, base))
    }

    /// Puts a clean tree on `base`, and on no branch. Otherwise the same as [`Self::recycle`].
    pub fn recycle_detached(&self, base: &Commit) -> Result<(), GitError> {
        let switch = |view: &TreeView<'_>| {
            let call = self.switch(view, base.as_str());
            call.args(["--no-overwrite-ignore", "--detach", base.as_str()]).done().map(drop)
        };
        self.move_clean(base, switch, |view, before| self.switch_back(view, before))
    }

    /// Has `switch` move a tree to `base`, and `undo` move it back to its previous `HEAD` if it is not clean.
    fn move_clean(
        &self,
        base: &Commit,
        switch: impl FnOnce(&TreeView<'_>) -> Result<(), GitError>,
        undo: impl FnOnce(&TreeView<'_>, &str) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        if let Some(unfinished) = self.unfinished()? {
            return Err(GitError::Unfinished { operation: unfinished.command() });
        }
        let view = TreeView::open(self)?;
        // Files that are only staged would not survive the next index.
        let StatusOutput { head, branch, changes: staged } = view.report(Ignored::Hidden)?;
        if !staged.is_empty() || !staged.absent.is_empty() {
            return Err(self.not_clean(staged.paths().chain(&staged.absent)));
        }
        switch(&view)?;
        if head.as_ref() == Some(base) {
            // No file was changed, so what was ignored before is ignored now.
            self.forget_settings()?;
            return view.give_index();
        }
        let before = branch.or_else(|| head.map(|head| head.to_string()));
        // Files that were ignored before may not be ignored any more.
        let left = view.files_left()?;
        if left.is_empty() {
            self.forget_settings()?;
            return view.give_index();
        }
        undo(&view, before.as_deref().unwrap_or_default())?;
        Err(self.not_clean(left.iter()))
    }

    /// Removes the settings that the last worker has made for this tree alone.
    fn forget_settings(&self) -> Result<(), GitError> {
        let settings = self.git_directory()?.join("config.worktree");
        match std::fs::remove_file(&settings) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(GitError::file("remove", &settings)),
        }
    }

    fn not_clean<'p>(&self, left: impl Iterator<Item = &'p PathBuf>) -> GitError {
        GitError::NotClean { path: self.path.clone(), left: left.cloned().collect() }
    }

    /// Has git look at all files of a clean tree, so that the next look need not read them.
    pub fn remember(&self) -> Result<(), GitError> {
        let view = TreeView::open(self)?;
        view.files_left()?;
        view.keep()
    }

    fn switch(&self, view: &TreeView<'_>, to: &str) -> GitCall {
        view.call(format!("switch {} to {to}", self.path.display())).args(["switch", "--quiet"])
    }

    fn switch_to_new(
        &self,
        view: &TreeView<'_>,
        branch: &str,
        base: &Commit,
    ) -> Result<(), GitError> {
        // Ignored files of the last worker are not overwritten by files of the base.
        let switch = || self.switch(view, branch).arg("--no-overwrite-ignore");
        let mut call = switch().args(["--no-track", "-c", branch, base.as_str()]);
        let answer = call.answer()?;
        if answer.succeeded() {
            return Ok(());
        }
        match self.repository()?.resolve(&format!("refs/heads/{branch}"))? {
            // Before a crash it came as far as this.
            Some(commit) if commit == *base => switch().arg(branch).done().map(drop),
            Some(_) => Err(GitError::BranchExists { branch: branch.to_owned() }),
            None => Err(call.failed(&answer)),
        }
    }

    /// Goes back to the previous `HEAD`, from a new branch.
    fn undo_switch(
        &self,
        view: &TreeView<'_>,
        before: &str,
        branch: &str,
        base: &Commit,
    ) -> Result<(), GitError> {
        if before == branch {
            return Ok(());
        }
        self.switch_back(view, before)?;
        self.repository()?.delete_branch_if_at(branch, base).map(drop)
    }

    /// Goes back to the previous `HEAD`.
    fn switch_back(&self, view: &TreeView<'_>, before: &str) -> Result<(), GitError> {
        let back = self.switch(view, before);
        match Commit::parse(before) {
            Some(commit) => back.args(["--detach", commit.as_str()]).done().map(drop),
            None => back.arg(before).done().map(drop),
        }
    }
}
