//! The files of a tree as git objects, without the tree noticing.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::call::GitCall;
use super::commit::{Commit, Signature};
use super::error::GitError;
use super::repository::Repository;
use super::rescue::{LeftOutFile, Reason};
use super::status::Changes;
use super::tree::{Ignored, Tree};
use super::tree_view::{TreeView, joined};

/// How much may still be kept, how much was, and the files that were not.
#[derive(Debug)]
pub(super) struct RescueBudget {
    /// The bytes that may still be kept.
    pub(super) bytes_free: u64,
    /// The bytes that were kept.
    pub(super) bytes: u64,
    /// The files that were not kept, as paths from the top of the outermost tree.
    pub(super) left_out: Vec<LeftOutFile>,
}

impl RescueBudget {
    /// Whether this much may be kept; if so, it is counted.
    pub(super) fn admits(&mut self, bytes: u64) -> bool {
        let admitted = bytes <= self.bytes_free;
        if admitted {
            self.bytes_free -= bytes;
            self.bytes += bytes;
        }
        admitted
    }

    pub(super) fn leave_out(&mut self, path: PathBuf, reason: Reason) {
        self.left_out.push(LeftOutFile { path, reason });
    }
}

/// The contents of a tree, as objects of its own repository that no reference names yet.
#[derive(Debug)]
pub(super) struct TreeSnapshot {
    /// The commit that is checked out.
    pub(super) head: Option<Commit>,
    /// The files, as a tree object.
    pub(super) files: Commit,
    /// The staged files, if they are neither in `HEAD` nor in the files.
    pub(super) staged: Option<Commit>,
    /// The submodules in it that are checked out.
    pub(super) submodules: Vec<PathBuf>,
    /// The repositories in it that are no submodules.
    pub(super) nested: Vec<PathBuf>,
}

/// The actions for the changed paths of a tree.
#[derive(Debug, Default)]
struct SnapshotPlan {
    added: Vec<PathBuf>,
    removed: Vec<PathBuf>,
    nested: Vec<PathBuf>,
}

/// A tree, seen with an index of ours.
struct TreeSnapshotter<'a> {
    tree: &'a Tree,
    view: TreeView<'a>,
    /// Where the tree is in the outermost one.
    inside: &'a Path,
}

impl Tree {
    /// Writes the files of the tree as objects. Of the files that are not committed, the small ones come first.
    pub(super) fn snapshot(
        &self,
        inside: &Path,
        ledger: &mut RescueBudget,
    ) -> Result<TreeSnapshot, GitError> {
        demand_readable(self.path())?;
        let view = TreeView::open(self)?;
        let report = view.report(Ignored::Shown)?;
        // With conflicts there is no tree of what is staged; then both sides are commits anyway.
        let staged = view.write_staged()?;
        let photographer = TreeSnapshotter { tree: self, view, inside };
        let plan = photographer.plan(&report.changes, ledger);
        photographer.name_special_files(&report.changes.ignored, &plan.nested, ledger);
        photographer.remove(&plan.removed)?;
        photographer.add(&plan.added, ledger)?;
        let files = photographer.view.write_files()?;
        let of_head = match &report.head {
            Some(_) => Some(self.call("read HEAD")?.args(["rev-parse", "HEAD^{tree}"]).commit()?),
            None => None,
        };
        let staged = staged.filter(|staged| *staged != files && Some(staged) != of_head.as_ref());
        let submodules = photographer.view.submodules()?;
        Ok(TreeSnapshot { head: report.head, files, staged, submodules, nested: plan.nested })
    }
}

impl Repository {
    /// The tree object of a commit.
    pub(super) fn files_of(&self, commit: &Commit) -> Result<Commit, GitError> {
        files_of(self.call("read a commit")?, commit)
    }

    /// Whether the commits of `work` leave every file as it was where it parted from `known`.
    pub fn is_without_change(&self, work: &Commit, known: &Commit) -> Result<bool, GitError> {
        let parting = self
            .call(format!("compare {work} with {known}"))?
            .args(["merge-base", known.as_str(), work.as_str()])
            .optional_commit()?;
        match parting {
            Some(parting) => Ok(self.files_of(&parting)? == self.files_of(work)?),
            None => Ok(false),
        }
    }

    /// The tree object of a commit that our own repository has.
    pub fn tree_of(&self, commit: &Commit) -> Result<Commit, GitError> {
        files_of(self.own_call("read a commit"), commit)
    }

    /// Makes a commit that no branch knows.
    pub(super) fn write_commit(
        &self,
        files: &Commit,
        parents: &[&Commit],
        message: &str,
        author: &Signature,
    ) -> Result<Commit, GitError> {
        write_commit(self.call("save a commit")?, files, parents, message, author)
    }
}

fn files_of(call: GitCall, commit: &Commit) -> Result<Commit, GitError> {
    call.arg("rev-parse").arg(format!("{commit}^{{tree}}")).commit()
}

fn write_commit(
    call: GitCall,
    files: &Commit,
    parents: &[&Commit],
    message: &str,
    author: &Signature,
) -> Result<Commit, GitError> {
    let mut call = call.arg("commit-tree").arg(files.as_str());
    for parent in parents {
        call = call.args(["-p", parent.as_str()]);
    }
    call.signed(author).input(format!("{message}\n")).commit()
}

impl TreeSnapshotter<'_> {
    fn call(&self, deed: &str) -> GitCall {
        self.view.call(deed)
    }

    fn plan(&self, changes: &Changes, ledger: &mut RescueBudget) -> SnapshotPlan {
        let mut plan = SnapshotPlan::default();
        let known = changes.tracked.iter().chain(&changes.conflicts);
        let mut sized = Vec::new();
        for (rank, path) in
            known.map(|path| (0, path)).chain(changes.untracked.iter().map(|path| (1, path)))
        {
            let place = self.tree.path().join(path);
            match place.symlink_metadata() {
                Ok(file) if special(&file).is_some() => {
                    // It is named with the others of its kind; the file that stood there before is
                    // gone.
                    plan.removed.push(path.clone());
                }
                Ok(file) if file.is_dir() && rank == 1 => plan.nested.push(path.clone()),
                // A submodule, or untracked files in the place of a file.
                Ok(file) if file.is_dir() && place.join(".git").exists() => {
                    plan.added.push(path.clone());
                }
                Ok(file) if file.is_dir() => plan.removed.push(path.clone()),
                Ok(file) => sized.push((rank, file.len(), path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    plan.removed.push(path.clone());
                }
                // A file stands where its directory was.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    plan.removed.push(path.clone());
                }
                Err(error) => {
                    ledger.leave_out(self.inside.join(path), Reason::Unreadable(error.to_string()));
                }
            }
        }
        sized.sort_unstable();
        for (_, bytes, path) in sized {
            if ledger.admits(bytes) {
                plan.added.push(path.clone());
            } else {
                ledger.leave_out(self.inside.join(path), Reason::TooLarge { bytes });
                if changes.conflicts.contains(path) {
                    plan.removed.push(path.clone());
                }
            }
        }
        plan
    }

    fn remove(&self, paths: &[PathBuf]) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        self.call("leave files out")
            .args(["update-index", "-z", "--force-remove", "--stdin"])
            .input(joined(paths))
            .done()
            .map(drop)
    }

    /// Adds files to our index. If git stumbles over one (it may be unreadable), that one is left out.
    fn add(&self, paths: &[PathBuf], ledger: &mut RescueBudget) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        let answer = self
            .call("save files")
            .args(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"])
            .input(joined(paths))
            .answer()?;
        match paths {
            _ if answer.succeeded() => Ok(()),
            [path] => {
                let reason = Reason::Unreadable(answer.reason());
                ledger.leave_out(self.inside.join(path), reason);
                Ok(())
            }
            _ if answer.complaint.contains("No space left") => {
                Err(GitError::Failed { deed: "save files".to_owned(), message: answer.reason() })
            }
            _ => {
                let (first, second) = paths.split_at(paths.len() / 2);
                self.add(first, ledger)?;
                self.add(second, ledger)
            }
        }
    }

    /// Git passes over pipes, sockets and devices without a word. They are named, and never opened.
    fn name_special_files(
        &self,
        ignored: &[PathBuf],
        nested: &[PathBuf],
        ledger: &mut RescueBudget,
    ) {
        let root = self.tree.path();
        let passed_over = |path: &Path| {
            path.file_name().is_some_and(|name| name == ".git")
                || path.strip_prefix(root).is_ok_and(|inside| {
                    let same = |other: &PathBuf| other.components().eq(inside.components());
                    ignored.iter().chain(nested).any(same)
                })
        };
        let mut directories = vec![root.to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(file) = entry.metadata() else { continue };
                if passed_over(&path) {
                    continue;
                }
                if file.is_dir() && !path.join(".git").exists() {
                    directories.push(path);
                } else if let (Some(kind), Ok(inside)) = (special(&file), path.strip_prefix(root)) {
                    ledger.leave_out(self.inside.join(inside), Reason::NoFile(kind));
                }
            }
        }
    }
}

/// Git opens these files where it finds them, and opening a pipe blocks until a process writes to
/// it.
fn demand_readable(root: &Path) -> Result<(), GitError> {
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if kind.is_dir() && name != ".git" {
                directories.push(entry.path());
            } else if kind.is_fifo()
                && [".gitignore", ".gitattributes", ".gitmodules"].iter().any(|own| name == *own)
            {
                return Err(GitError::WouldBlock { path: entry.path() });
            }
        }
    }
    Ok(())
}

/// The kind of a path that is neither a file nor a link nor a directory.
fn special(file: &Metadata) -> Option<&'static str> {
    let kind = file.file_type();
    if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_char_device() || kind.is_block_device() {
        Some("a device")
    } else {
        None
    }
}
