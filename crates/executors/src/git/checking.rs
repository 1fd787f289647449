//! Git for checks: the contents of a commit, and a worktree that is exactly at it.

use std::fs;
use std::path::{Path, PathBuf};

use super::call::{GitCall, entries};
use super::commit::Commit;
use super::error::GitError;
use super::links::{canonical, common_directory, git_directory, linked_tree};
use super::repository::Repository;
use super::tree::Tree;
use super::tree_view::TreeView;

/// The largest file that is read of a commit, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// A file or a submodule of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its path. Bytes that are no text are replaced.
    pub path: String,
    /// Its mode, kind and hash; of a submodule, the hash of its commit.
    pub content: String,
}

impl Repository {
    /// All files and submodules of a commit, in git's order.
    pub fn entries_of(&self, commit: &Commit) -> Result<Vec<TreeEntry>, GitError> {
        let call = self.call(format!("list the files of {commit}"))?;
        let output = call.args(["ls-tree", "-r", "-z", "--full-tree", commit.as_str()]).done()?;
        let entry = |bytes: &[u8]| {
            let tab = bytes.iter().position(|byte| *byte == b'\t')?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Some(TreeEntry { content: text(&bytes[..tab]), path: text(&bytes[tab + 1..]) })
        };
        Ok(entries(&output).filter_map(entry).collect())
    }

    /// The text of those of these files that a commit has, with their names.
    pub fn files(
        &self,
        commit: &Commit,
        names: &[&str],
    ) -> Result<Vec<(String, String)>, GitError> {
        let call = self.call(format!("read files of {commit}"))?;
        read_files(call, commit.as_str(), names)
    }

    /// Removes a worktree for checks, and what git knows of it. No work is in it.
    pub fn discard_check_tree(&self, path: &Path) -> Result<(), GitError> {
        let _registry = self.registry()?;
        let place = canonical(path);
        for data in self.worktree_data() {
            if linked_tree(&data).is_some_and(|tree| tree == path || canonical(&tree) == place) {
                let index = self.indexes_path().join(data.file_name().unwrap_or_default());
                let _ = fs::remove_file(index);
                fs::remove_dir_all(&data).map_err(GitError::file("remove", &data))?;
            }
        }
        crate::private::delete_directory(path).map_err(GitError::file("remove", path))
    }
}

impl Tree {
    /// Puts the tree at a commit, and on no branch. Changes and files that are not ignored are removed; ignored files stay.
    /// If something else is left, such as a submodule at another commit, it is [`GitError::NotClean`]. Only for a tree for
    /// checks in which no process works.
    pub fn reset_to(&self, commit: &Commit) -> Result<(), GitError> {
        if let Some(unfinished) = self.unfinished()? {
            return Err(GitError::Unfinished { operation: unfinished.command() });
        }
        self.free_index()?;
        let view = TreeView::open(self)?;
        let deed = || format!("put {} at {commit}", self.path().display());
        let checkout = ["checkout", "--quiet", "--force", "--detach", commit.as_str(), "--"];
        view.call(deed()).args(checkout).done()?;
        // Twice, because a directory of its own repository is removed only by force.
        view.call(deed()).args(["clean", "--quiet", "-d", "-f", "-f"]).done()?;
        let left = view.files_left()?;
        if left.is_empty() {
            return view.give_index();
        }
        Err(GitError::NotClean { path: self.path().to_owned(), left })
    }
}

/// The text of those of these files that a revision of a repository on this machine has, with their names.
pub fn files_of_checkout(
    repository: &Path,
    revision: &str,
    names: &[&str],
) -> Result<Vec<(String, String)>, GitError> {
    let call = GitCall::in_checkout(repository, format!("read files of {}", repository.display()));
    read_files(call, revision, names)
}

/// The checkout that a directory is in; nothing if it is in none.
pub fn checkout_around(directory: &Path) -> Result<Option<PathBuf>, GitError> {
    let call = GitCall::in_checkout(directory, format!("look at {}", directory.display()));
    match call.args(["rev-parse", "--show-toplevel"]).done() {
        Ok(output) => {
            let path = String::from_utf8_lossy(&output);
            let path = path.strip_suffix('\n').unwrap_or(&path);
            Ok(Some(PathBuf::from(path)).filter(|path| path.is_absolute()))
        }
        Err(GitError::Failed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The repository that the linked worktree around `directory` belongs to: its main checkout, or itself if it is bare. Git is not
/// asked, and both sides must name each other: a directory that was unpacked from somewhere belongs to no repository of ours.
pub fn repository_of_worktree(directory: &Path) -> Option<PathBuf> {
    let tree = directory.ancestors().find(|at| at.join(".git").is_file())?;
    let data = git_directory(tree).ok()?;
    if canonical(&linked_tree(&data)?) != canonical(tree) {
        return None;
    }
    let common = canonical(&common_directory(&data));
    let is_in_checkout = common.file_name().is_some_and(|name| name == ".git");
    if is_in_checkout { common.parent().map(Path::to_owned) } else { Some(common) }
}

fn read_files(
    call: GitCall,
    revision: &str,
    names: &[&str],
) -> Result<Vec<(String, String)>, GitError> {
    let wanted: Vec<String> = names.iter().map(|name| format!("{revision}:{name}\n")).collect();
    let output = call.args(["cat-file", "--batch"]).input(wanted.concat()).done()?;
    let mut rest = output.as_slice();
    let mut files = Vec::new();
    for name in names {
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { break };
        let header = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        // `<hash> blob <size>`, or `<revision>:<name> missing`.
        let mut words = header.rsplit(' ');
        let (size, kind) = (words.next(), words.next());
        let Some(size) = size.and_then(|size| size.parse::<usize>().ok()) else { continue };
        let Some(content) = rest.get(..size) else { break };
        if kind == Some("blob") && size <= FILE_BYTES_MAX {
            files.push(((*name).to_owned(), String::from_utf8_lossy(content).into_owned()));
        }
        rest = rest.get(size + 1..).unwrap_or_default();
    }
    Ok(files)
}
