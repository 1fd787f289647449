//! A worktree as our git sees it: the files of the worker, and an index and a configuration of our own.
//!
//! In its own index a worker can mark files as unchanged, or stage other contents than the files have. Our git compares
//! the files with `HEAD` instead, in an index that only our git has written. That index is kept between calls
//! ([`TreeView::keep`]), so that files which have not changed are not read again.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::call::{GitCall, entries, path_of};
use super::commit::Commit;
use super::error::GitError;
use super::repository::Repository;
use super::repository_view::CommonDirectoryView;
use super::scratch::unique_name;
use super::status::{self, StatusOutput};
use super::tree::{Ignored, Tree};

/// A worktree that is being looked at.
#[derive(Debug)]
pub(super) struct TreeView<'a> {
    tree: &'a Tree,
    git_directory: PathBuf,
    view: Arc<CommonDirectoryView>,
    /// The index of this look.
    index: PathBuf,
    /// Where it is kept afterwards, if the tree belongs to the shared repository.
    kept_index: Option<PathBuf>,
    was_kept: Cell<bool>,
}

impl Repository {
    /// Where the indexes of ours are.
    pub(super) fn indexes_path(&self) -> PathBuf {
        self.own_path().join("indexes")
    }
}

impl<'a> TreeView<'a> {
    /// Looks at a tree: the index is that of its `HEAD`.
    pub(super) fn open(tree: &'a Tree) -> Result<Self, GitError> {
        let (git_directory, view) = (tree.git_directory()?, tree.view()?);
        let indexes = tree.indexes().filter(|indexes| indexes.is_dir());
        let name = git_directory.file_name().unwrap_or_default();
        let kept_index = indexes.as_ref().map(|indexes| indexes.join(name));
        let place = indexes.unwrap_or_else(std::env::temp_dir);
        let index = place.join(unique_name("use-index"));
        let opened =
            Self { tree, git_directory, view, index, kept_index, was_kept: Cell::new(false) };
        if let Some(kept) = opened.kept_index.as_ref().filter(|kept| kept.is_file()) {
            // Without it, every file is read.
            let _ = copy_with_time(kept, &opened.index);
        }
        opened.read_head()?;
        Ok(opened)
    }

    fn read_head(&self) -> Result<(), GitError> {
        // Unchanged entries keep the time at which their files were last looked at.
        let mut call = self.call("read HEAD").args(["read-tree", "--reset", "HEAD"]);
        let answer = call.answer()?;
        if answer.succeeded() {
            return Ok(());
        }
        if self.index.exists() {
            // A kept index that git cannot read is not worth more than none.
            let _ = fs::remove_file(&self.index);
            if call.answer()?.succeeded() {
                return Ok(());
            }
        }
        if self.tree.head()?.is_some() {
            return Err(call.failed(&answer));
        }
        self.call("begin an index").args(["read-tree", "--empty"]).done().map(drop)
    }

    /// Git in the tree, with our index.
    pub(super) fn call(&self, deed: impl Into<String>) -> GitCall {
        // Our index may be written at any time.
        self.plain_call(deed).env("GIT_INDEX_FILE", &self.index).env("GIT_OPTIONAL_LOCKS", "1")
    }

    /// Git in the tree, with the index of the worker.
    fn plain_call(&self, deed: impl Into<String>) -> GitCall {
        let view = Arc::clone(&self.view);
        GitCall::in_tree_through(self.tree.path(), &self.git_directory, view, deed)
    }

    /// How the files differ from `HEAD`.
    pub(super) fn report(&self, ignored: Ignored) -> Result<StatusOutput, GitError> {
        let mut report = self.files(ignored)?;
        self.tell_new_submodules(&mut report)?;
        self.look_into_submodules(&mut report)?;
        self.tell_conflicts(&mut report)?;
        self.tell_absent(&mut report)?;
        self.tell_staged(&mut report)?;
        Ok(report)
    }

    fn files(&self, ignored: Ignored) -> Result<StatusOutput, GitError> {
        let call = self
            .call(format!("look at {}", self.tree.path().display()))
            .args(["status", "--porcelain=v2", "--branch", "-z", "--no-renames"])
            // Git would look into submodules with the configuration that they have.
            .args(["--no-ahead-behind", "--untracked-files=all", "--ignore-submodules=dirty"]);
        let call = match ignored {
            Ignored::Hidden => call,
            Ignored::Shown => call.arg("--ignored=matching"),
        };
        Ok(status::parse(&call.done()?))
    }

    /// Every path that is not as in `HEAD`. Nothing is asked about the index of the worker.
    pub(super) fn files_left(&self) -> Result<Vec<PathBuf>, GitError> {
        let mut report = self.files(Ignored::Hidden)?;
        self.look_into_submodules(&mut report)?;
        Ok(report.changes.paths().cloned().collect())
    }

    fn look_into_submodules(&self, report: &mut StatusOutput) -> Result<(), GitError> {
        let new = report.changes.new_submodules.iter().cloned();
        for path in self.submodules()?.into_iter().chain(new.collect::<Vec<_>>()) {
            let inside = Tree::at(self.tree.path().join(&path));
            let changes = TreeView::open(&inside)?.report(Ignored::Hidden)?.changes;
            if !changes.is_empty() {
                add(&mut report.changes.tracked, path.clone());
                report.changes.dirty_submodules.push(path);
            }
        }
        Ok(())
    }

    /// A repository in the tree that the worker has added to its index is a submodule, also before the first commit of it.
    fn tell_new_submodules(&self, report: &mut StatusOutput) -> Result<(), GitError> {
        let changes = &mut report.changes;
        let is_directory = |path: &PathBuf| path.as_os_str().as_bytes().ends_with(b"/");
        if !changes.untracked.iter().any(is_directory) {
            return Ok(());
        }
        let output = listed(self.plain_call("list the files").args(["ls-files", "--stage", "-z"]))?;
        let known = submodules_in(&output);
        let plain = |path: &PathBuf| -> PathBuf { path.components().collect() };
        let (new, untracked): (Vec<PathBuf>, Vec<PathBuf>) = std::mem::take(&mut changes.untracked)
            .into_iter()
            .partition(|path| is_directory(path) && known.contains(&plain(path)));
        changes.untracked = untracked;
        changes.new_submodules = new.iter().map(plain).collect();
        changes.tracked.extend(changes.new_submodules.iter().cloned());
        Ok(())
    }

    /// The submodules that are checked out.
    pub(super) fn submodules(&self) -> Result<Vec<PathBuf>, GitError> {
        let output = self.call("list the files").args(["ls-files", "--stage", "-z"]).done()?;
        let mut found: Vec<PathBuf> = submodules_in(&output)
            .into_iter()
            .filter(|path| {
                let place = self.tree.path().join(path);
                !place.is_symlink() && place.join(".git").exists()
            })
            .collect();
        found.dedup();
        Ok(found)
    }

    /// While a merge or the like has begun, the index of the worker knows what it could not settle.
    fn tell_conflicts(&self, report: &mut StatusOutput) -> Result<(), GitError> {
        if self.tree.unfinished()?.is_none() {
            return Ok(());
        }
        let answer = self.plain_call("list conflicts").args(["ls-files", "--unmerged", "-z"]);
        for entry in entries(&listed(answer)?) {
            let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
            add(&mut report.changes.conflicts, path_of(&entry[tab + 1..]));
        }
        let conflicts = &report.changes.conflicts;
        report.changes.tracked.retain(|path| !conflicts.contains(path));
        Ok(())
    }

    /// A sparse checkout leaves files out that no worker has deleted.
    fn tell_absent(&self, report: &mut StatusOutput) -> Result<(), GitError> {
        let is_gone = |path: &PathBuf| self.tree.path().join(path).symlink_metadata().is_err();
        if !report.changes.tracked.iter().any(is_gone) {
            return Ok(());
        }
        let output = listed(self.plain_call("list the files").args(["ls-files", "-t", "-z"]))?;
        let left_out: HashSet<PathBuf> =
            entries(&output).filter_map(|entry| entry.strip_prefix(b"S ")).map(path_of).collect();
        let changes = &mut report.changes;
        let (absent, tracked) = std::mem::take(&mut changes.tracked)
            .into_iter()
            .partition(|path| is_gone(path) && left_out.contains(path));
        (changes.absent, changes.tracked) = (absent, tracked);
        Ok(())
    }

    /// Contents that are only in the index of the worker would be lost with it.
    fn tell_staged(&self, report: &mut StatusOutput) -> Result<(), GitError> {
        if report.head.is_none() {
            return Ok(());
        }
        let call = self.plain_call("compare what is staged").args([
            "diff-index",
            "--cached",
            "--name-only",
            "--no-renames",
            "--ignore-submodules=dirty",
            "-z",
            "HEAD",
            "--",
        ]);
        let changes = &mut report.changes;
        let known: HashSet<PathBuf> = changes.paths().chain(&changes.absent).cloned().collect();
        let output = listed(call)?;
        let staged = entries(&output).map(path_of).filter(|path| !known.contains(path));
        changes.tracked.extend(staged);
        Ok(())
    }

    /// Puts the present contents of these paths into our index.
    pub(super) fn stage<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p PathBuf>,
    ) -> Result<(), GitError> {
        self.call("add the changes")
            .args(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"])
            .input(joined(paths))
            .done()
            .map(drop)
    }

    /// The contents of our index, as a tree object.
    pub(super) fn write_files(&self) -> Result<Commit, GitError> {
        self.call("save the files").args(["write-tree"]).commit()
    }

    /// The worker's index, as a tree object; nothing while there are conflicts.
    pub(super) fn write_staged(&self) -> Result<Option<Commit>, GitError> {
        let theirs = self.git_directory.join("index");
        let copy = self.index.with_file_name(unique_name("use-staged"));
        if !theirs.is_file() {
            return Ok(None);
        }
        fs::copy(&theirs, &copy).map_err(GitError::file("copy", &theirs))?;
        let mut call = self.plain_call("read the index").env("GIT_INDEX_FILE", &copy);
        call = call.args(["write-tree"]);
        let answer = call.answer();
        let _ = fs::remove_file(&copy);
        Ok(Commit::parse(String::from_utf8_lossy(&answer?.output).trim()))
    }

    /// Keeps our index for the next look at the tree.
    pub(super) fn keep(&self) -> Result<(), GitError> {
        let Some(kept) = &self.kept_index else { return Ok(()) };
        self.was_kept.set(true);
        fs::rename(&self.index, kept).map_err(GitError::file("write", kept))
    }

    /// Gives the worker a copy of our index, in place of the one that it had, and keeps ours. Only for a tree in which no
    /// process works.
    pub(super) fn give_index(&self) -> Result<(), GitError> {
        let theirs = self.git_directory.join("index");
        let beside = self.git_directory.join(unique_name("index.gt-new"));
        copy_with_time(&self.index, &beside).map_err(GitError::file("write", &beside))?;
        fs::rename(&beside, &theirs).map_err(GitError::file("write", &theirs))?;
        self.keep()
    }

    /// Brings the index of the worker to `HEAD` after a commit of ours, and ends a merge that the commit has concluded. If
    /// that does not work, the worker's git shows differences that are not there, and nothing is lost.
    pub(super) fn reset_index_of_worker(&self) {
        let _ = self.plain_call("reset the index").args(["reset", "--quiet"]).answer();
    }
}

impl Drop for TreeView<'_> {
    fn drop(&mut self) {
        if !self.was_kept.get() {
            let _ = fs::remove_file(&self.index);
        }
    }
}

/// The submodules in a list of `git ls-files --stage -z`.
fn submodules_in(output: &[u8]) -> Vec<PathBuf> {
    let links = entries(output).filter(|entry| entry.starts_with(b"160000 "));
    let path = |entry: &[u8]| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        Some(path_of(&entry[tab + 1..]))
    };
    links.filter_map(path).collect()
}

/// The output of a call about the index of a worker. An index that git cannot read lists nothing:
/// its contents are not needed.
fn listed(mut call: GitCall) -> Result<Vec<u8>, GitError> {
    let answer = call.answer()?;
    Ok(if answer.succeeded() { answer.output } else { Vec::new() })
}

fn add(paths: &mut Vec<PathBuf>, path: PathBuf) {
    if !paths.contains(&path) {
        paths.push(path);
    }
}

/// Copies an index. Git compares the time of its file with those of its entries.
fn copy_with_time(from: &Path, to: &Path) -> std::io::Result<()> {
    let modified = fs::metadata(from)?.modified()?;
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(modified)
}

/// Paths as the input of a command with `-z`.
pub(super) fn joined<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Vec<u8> {
    let mut joined = Vec::new();
    for path in paths {
        joined.extend_from_slice(path.as_os_str().as_bytes());
        joined.push(0);
    }
    joined
}
