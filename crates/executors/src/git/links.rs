//! The files by which a worktree and its repository find each other.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use super::error::GitError;
use super::scratch::unique_name;

/// The directory of the data that belongs to the tree alone: `.git` itself, or the directory that
/// it names.
pub(super) fn git_directory(tree: &Path) -> Result<PathBuf, GitError> {
    let link = tree.join(".git");
    let is_file = link.metadata().map_err(GitError::file("find", &link))?.is_file();
    if !is_file {
        return Ok(link);
    }
    let text = fs::read(&link).map_err(GitError::file("read", &link))?;
    let named = text.strip_prefix(b"gitdir:").map(trimmed).filter(|named| !named.is_empty());
    let named = named.ok_or_else(|| GitError::Failed {
        deed: format!("read {}", link.display()),
        message: "it names no directory".to_owned(),
    })?;
    Ok(normal(&tree.join(path(named))))
}

/// The directory of the data that belongs to the whole repository, given [`git_directory`].
pub(super) fn common_directory(git_directory: &Path) -> PathBuf {
    let named = fs::read(git_directory.join("commondir")).ok();
    let named = named.map(|text| normal(&git_directory.join(path(trimmed(&text)))));
    named.unwrap_or_else(|| git_directory.to_owned())
}

/// The data of the repository that git finds in this directory or above it. Git is not asked.
pub(super) fn repository_around(directory: &Path) -> Option<PathBuf> {
    let is_bare = |at: &Path| at.join("HEAD").is_file() && at.join("objects").is_dir();
    let directory = canonical(directory);
    let found = directory.ancestors().find(|at| at.join(".git").exists() || is_bare(at))?;
    if found.join(".git").exists() {
        git_directory(found).ok().map(|data| common_directory(&data))
    } else {
        Some(common_directory(found))
    }
}

/// Makes the tree name this directory as its own.
pub(super) fn link_tree(tree: &Path, git_directory: &Path) -> Result<(), GitError> {
    let text = [b"gitdir: ", git_directory.as_os_str().as_bytes(), b"\n"].concat();
    replace(&tree.join(".git"), &text)
}

/// The tree that a directory of a repository belongs to, as it is written there.
pub(super) fn linked_tree(git_directory: &Path) -> Option<PathBuf> {
    let text = fs::read(git_directory.join("gitdir")).ok()?;
    let link = normal(&git_directory.join(path(trimmed(&text))));
    link.parent().map(Path::to_owned)
}

/// Makes a directory of a repository name the tree that it belongs to.
pub(super) fn link_back(git_directory: &Path, tree: &Path) -> Result<(), GitError> {
    let link = tree.join(".git");
    replace(&git_directory.join("gitdir"), &[link.as_os_str().as_bytes(), b"\n"].concat())
}

/// Writes a file so that it is either the old one or the new one, whenever we are killed.
pub(super) fn replace(file: &Path, content: &[u8]) -> Result<(), GitError> {
    // Another process may replace the same file meanwhile.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = file.with_file_name(unique_name(&format!("{name}.gt-new")));
    let written = fs::write(&beside, content).and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map_err(GitError::file("write", file))
}

/// A path without `.` and `..`, as far as they can be taken away without looking.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if found.file_name().is_some() => {
                found.pop();
            }
            other => found.push(other),
        }
    }
    found
}

/// The same path with its links followed, as far as it exists.
pub(super) fn canonical(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !parent.as_os_str().is_empty() => {
            canonical(parent).join(name)
        }
        _ => path.to_owned(),
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    // Removes only the text that git itself puts around a path; a name may begin or end with a
    // space.
    let bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
    bytes.strip_suffix(b"\n").unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_normalized_without_reading_the_disk() {
        assert_eq!(normal(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(normal(Path::new("../a/../b")), Path::new("../b"));
        assert_eq!(normal(Path::new("/a/b/../../..")), Path::new("/.."));
    }

    #[test]
    fn a_file_is_replaced_by_several_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        std::thread::scope(|scope| {
            for number in 0..4 {
                let file = &file;
                scope.spawn(move || {
                    for _ in 0..200 {
                        replace(file, &[number; 100]).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read(&file).unwrap().len(), 100);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_go_both_ways_for_names_with_spaces_and_newlines() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().join("a tree\nof two lines ");
        let own = directory.path().join("own");
        fs::create_dir(&tree).unwrap();
        fs::create_dir(&own).unwrap();
        link_tree(&tree, &own).unwrap();
        link_back(&own, &tree).unwrap();
        assert_eq!(git_directory(&tree).unwrap(), own);
        assert_eq!(linked_tree(&own).unwrap(), tree);
    }
}
