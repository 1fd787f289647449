//! A worktree.

use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::call::Call;
use super::commit::Commit;
use super::error::GitError;
use super::index;
use super::links;
use super::references;
use super::repository::Repository;
use super::status::{self, Report, TreeStatus};
use super::vigil::Vigil;

/// A worktree of a shared [`Repository`], or any other directory with a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    path: PathBuf,
}

/// Something that git does in several steps, and that has begun in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// `git rebase`, or `git am`.
    Rebase,
    /// `git merge`.
    Merge,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
}

impl Unfinished {
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

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.command())
    }
}

/// What a status may also look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ignored {
    Hidden,
    Shown,
}

/// Whether a switch leaves all files as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilesStay {
    Yes,
    No,
}

impl FilesStay {
    fn keep(self, switch: Call) -> Call {
        match self {
            Self::Yes => switch,
            // Ignored files of the last worker are not overwritten by files of the base.
            Self::No => switch.arg("--no-overwrite-ignore"),
        }
    }
}

/// The commit that is checked out where `HEAD` says this, if that can be read without git.
fn checked_out(git_directory: &Path, head: &str) -> Option<Commit> {
    match head.strip_prefix("ref: ") {
        Some(name) => references::reference(&links::common_directory(git_directory), name),
        None => Commit::parse(head),
    }
}

impl Tree {
    /// The tree at a path. Whether there is one is not looked at.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A call of git in the tree. It fails if the directory is no tree itself, instead of taking the
    /// repository around it for its own.
    pub(super) fn call(&self, deed: impl Into<String>) -> Result<Call, GitError> {
        if self.path.join(".git").symlink_metadata().is_err() {
            return Err(GitError::Missing { path: self.path.join(".git") });
        }
        Ok(Call::within(&self.path, deed))
    }

    /// What is checked out, unless there is no commit yet.
    pub fn head(&self) -> Result<Option<Commit>, GitError> {
        self.call("find HEAD")?
            .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .optional_commit()
    }

    /// What is checked out, if that can be read without asking git.
    pub fn head_in_files(&self) -> Option<Commit> {
        let directory = self.git_directory().ok()?;
        let head = std::fs::read_to_string(directory.join("HEAD")).ok()?;
        checked_out(&directory, head.trim())
    }

    /// What is checked out. Git is not asked, unless only git can say.
    pub fn head_quickly(&self) -> Result<Option<Commit>, GitError> {
        self.head_in_files().map_or_else(|| self.head(), |head| Ok(Some(head)))
    }

    /// The branch, if that can be read without asking git.
    fn branch_in_files(&self) -> Option<String> {
        let directory = self.git_directory().ok()?;
        let head = std::fs::read_to_string(directory.join("HEAD")).ok()?;
        // One that there is: where git keeps references otherwise, this file names one that there is not.
        checked_out(&directory, head.trim())?;
        head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
    }

    /// The branch, unless `HEAD` is detached.
    pub fn branch(&self) -> Result<Option<String>, GitError> {
        if let Some(branch) = self.branch_in_files() {
            return Ok(Some(branch));
        }
        let mut asked = self.call("find the branch")?.args(["symbolic-ref", "--quiet", "HEAD"]);
        let answer = asked.answer()?;
        let text = String::from_utf8_lossy(&answer.output);
        match answer.code {
            Some(0) => Ok(text.trim().strip_prefix("refs/heads/").map(str::to_owned)),
            Some(1) => Ok(None),
            _ => Err(asked.failed(&answer)),
        }
    }

    /// Where git keeps what belongs to this tree alone.
    pub(super) fn git_directory(&self) -> Result<PathBuf, GitError> {
        links::git_directory(&self.path)
    }

    /// Takes away the lock of the index if somebody left it there. Only for whoever knows that nobody is at work in the
    /// tree: git that was ended in the middle leaves it behind, and git that is alive needs it.
    pub fn free_index(&self) -> Result<(), GitError> {
        let lock = self.git_directory()?.join("index.lock");
        match std::fs::remove_file(&lock) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(GitError::file("remove", &lock)),
        }
    }

    /// The repository that has its objects and branches.
    pub fn repository(&self) -> Result<Repository, GitError> {
        Ok(Repository::at(links::common_directory(&self.git_directory()?)))
    }

    /// What has begun in the tree and is not over.
    pub fn unfinished(&self) -> Result<Option<Unfinished>, GitError> {
        let directory = self.git_directory()?;
        let begun = |(sign, _): &&(&str, Unfinished)| directory.join(sign).exists();
        Ok(Unfinished::SIGNS.iter().find(begun).map(|(_, operation)| *operation))
    }

    pub(super) fn report(&self, ignored: Ignored) -> Result<Report, GitError> {
        self.report_with(ignored, |call| call)
    }

    fn report_with(
        &self,
        ignored: Ignored,
        change: impl FnOnce(Call) -> Call,
    ) -> Result<Report, GitError> {
        let call = self
            .call(format!("look at {}", self.path.display()))?
            .args(["status", "--porcelain=v2", "--branch", "-z", "--no-renames"])
            .args(["--no-ahead-behind", "--untracked-files=all", "--ignore-submodules=none"]);
        let call = match ignored {
            Ignored::Hidden => call,
            Ignored::Shown => call.arg("--ignored=matching"),
        };
        Ok(status::parse(&change(call).done()?))
    }

    /// How the tree stands.
    pub fn status(&self) -> Result<TreeStatus, GitError> {
        let Report { head, branch, changes } = self.report(Ignored::Hidden)?;
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
    /// Nothing is thrown away for it. Whatever is not committed, or is ignored now and would not be at
    /// `base`, is [`GitError::NotClean`], and then the tree is where it was. A branch that is there
    /// already and not at `base` is [`GitError::BranchExists`].
    pub fn recycle(&self, branch: &str, base: &Commit) -> Result<(), GitError> {
        self.recycle_watched(branch, base, None)
    }

    /// The same for a tree that somebody may have watched over: then nobody looks at its files again.
    pub fn recycle_watched(
        &self,
        branch: &str,
        base: &Commit,
        vigil: Option<&Vigil>,
    ) -> Result<(), GitError> {
        let switch = |files| self.switch_to_new(branch, base, files);
        self.move_clean(base, vigil, switch, |before| self.undo_switch(before, branch, base))
    }

    /// Puts a clean tree on `base`, and on no branch. Otherwise the same as [`Self::recycle`].
    pub fn recycle_detached(&self, base: &Commit) -> Result<(), GitError> {
        let switch = |files: FilesStay| {
            let deed = format!("switch {} to {base}", self.path.display());
            let call = files.keep(self.call(deed)?.args(["switch", "--quiet"]));
            call.args(["--detach", base.as_str()]).done().map(drop)
        };
        self.move_clean(base, None, switch, |before| self.switch_back(before))
    }

    /// Has `switch` move a tree to `base`, and `undo` move it back to what `HEAD` was if it is not clean.
    fn move_clean(
        &self,
        base: &Commit,
        vigil: Option<&Vigil>,
        switch: impl FnOnce(FilesStay) -> Result<(), GitError> + Send,
        undo: impl FnOnce(&str) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        if let Some(unfinished) = self.unfinished()? {
            return Err(GitError::Unfinished { operation: unfinished.command() });
        }
        let directory = self.git_directory()?;
        let head = directory.join("HEAD");
        let before = std::fs::read_to_string(&head).map_err(GitError::file("read", &head))?;
        let left = if checked_out(&directory, before.trim()).as_ref() != Some(base) {
            switch(FilesStay::No)?;
            // Afterwards is when it counts, and a change that was there before is still there.
            self.left_at(base, &directory)?
        } else if vigil.is_some_and(|vigil| vigil.holds(base)) {
            switch(FilesStay::Yes)?;
            self.require_head(base)?;
            Vec::new()
        } else {
            // Nothing but the name of the branch changes, so one need not wait for the other.
            let (switched, left) = std::thread::scope(|scope| {
                let switched = scope.spawn(|| switch(FilesStay::Yes));
                let left = self.left_at(base, &directory);
                (switched.join(), left)
            });
            switched.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            self.require_head(base)?;
            left?
        };
        if left.is_empty() {
            return Ok(());
        }
        undo(before.trim())?;
        Err(GitError::NotClean { path: self.path.clone(), left })
    }

    /// Has git write down what it sees in a tree whose `HEAD` is at `base`, so that whoever uses it next need not ask.
    /// Only for whoever has the tree alone.
    pub fn remember(&self, base: &Commit) -> Result<(), GitError> {
        self.left_at(base, &self.git_directory()?).map(drop)
    }

    /// What is not committed, where `HEAD` is at `base`. Only for whoever has the tree alone.
    fn left_at(&self, base: &Commit, git_directory: &Path) -> Result<Vec<PathBuf>, GitError> {
        if self.is_seen_at(base, git_directory)? {
            return Ok(Vec::new());
        }
        // Git may write down what it sees, so that next time looking is enough.
        let report =
            self.report_with(Ignored::Hidden, |call| call.env("GIT_OPTIONAL_LOCKS", "1"))?;
        Ok(report.changes.paths().cloned().collect())
    }

    /// Whether everything can be seen to be as in this commit, which `HEAD` is at, without asking git how it is.
    pub(super) fn is_seen_at(&self, base: &Commit, git_directory: &Path) -> Result<bool, GitError> {
        let Some(sight) = index::look(&self.path, git_directory) else { return Ok(false) };
        Ok(sight.tree == self.tree_of(base, git_directory)? && self.are_ignored(&sight.others)?)
    }

    /// The hash of the tree of a commit: that is asked once, and kept beside the index.
    fn tree_of(&self, commit: &Commit, git_directory: &Path) -> Result<String, GitError> {
        let kept = git_directory.join("gt-base-tree");
        let known = std::fs::read_to_string(&kept).unwrap_or_default();
        if let Some((of, tree)) = known.split_once(' ')
            && of == commit.as_str()
        {
            return Ok(tree.to_owned());
        }
        let call = self.call(format!("find the tree of {commit}"))?;
        let output = call.args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).done()?;
        let tree = String::from_utf8_lossy(&output).trim().to_owned();
        // Otherwise it is asked again.
        let _ = links::replace(&kept, format!("{commit} {tree}").as_bytes());
        Ok(tree)
    }

    /// Whether git would pass over all of these.
    fn are_ignored(&self, paths: &[PathBuf]) -> Result<bool, GitError> {
        if paths.is_empty() {
            return Ok(true);
        }
        let mut call = self.call("find what is ignored")?.args(["check-ignore", "--stdin", "-z"]);
        let mut input = Vec::new();
        for path in paths {
            input.extend_from_slice(path.as_os_str().as_bytes());
            input.push(0);
        }
        call = call.input(input);
        let answer = call.answer()?;
        // It says nothing, and 1, of those that are not. What it cannot say is found out the long way.
        let ignored = answer.output.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(answer.code == Some(0) && ignored.count() == paths.len())
    }

    /// Makes sure that nobody has checked out something else meanwhile.
    fn require_head(&self, base: &Commit) -> Result<(), GitError> {
        if self.head_quickly()?.as_ref() == Some(base) {
            return Ok(());
        }
        Err(GitError::Failed {
            deed: format!("switch {} to {base}", self.path.display()),
            message: "somebody has checked out something else meanwhile".to_owned(),
        })
    }

    fn switch_to_new(&self, branch: &str, base: &Commit, files: FilesStay) -> Result<(), GitError> {
        let own = self.git_directory()?;
        if files == FilesStay::Yes
            && references::begin_branch(&links::common_directory(&own), &own, branch, base)
                .is_some()
        {
            return Ok(());
        }
        let switch = || -> Result<Call, GitError> {
            let call = self.call(format!("switch {} to {branch}", self.path.display()))?;
            Ok(files.keep(call.args(["switch", "--quiet"])))
        };
        let call = switch()?.args(["--no-track", "-c", branch]);
        let mut call = match files {
            // Where it is not told where to begin, git does not look at a single file. It begins where we are.
            FilesStay::Yes => call,
            FilesStay::No => call.arg(base.as_str()),
        };
        let answer = call.answer()?;
        if answer.succeeded() {
            return Ok(());
        }
        match self.repository()?.resolve(&format!("refs/heads/{branch}"))? {
            // Before a crash it came as far as this.
            Some(commit) if commit == *base => switch()?.arg(branch).done().map(drop),
            Some(_) => Err(GitError::BranchExists { branch: branch.to_owned() }),
            None => Err(call.failed(&answer)),
        }
    }

    /// Goes back to what `HEAD` was, from a new branch.
    fn undo_switch(&self, before: &str, branch: &str, base: &Commit) -> Result<(), GitError> {
        if before.strip_prefix("ref: refs/heads/") == Some(branch) {
            return Ok(());
        }
        self.switch_back(before)?;
        self.repository()?.delete_branch_if_at(branch, base).map(drop)
    }

    /// Goes back to what `HEAD` was.
    fn switch_back(&self, before: &str) -> Result<(), GitError> {
        let back = self.call("switch back")?.args(["switch", "--quiet"]);
        match before.strip_prefix("ref: refs/heads/") {
            Some(earlier) => back.arg(earlier).done().map(drop),
            None => back.args(["--detach", before]).done().map(drop),
        }
    }
}
