//! A repository as our git sees it: its objects and references, and a configuration that only gt writes.
//!
//! Workers write the configuration, attributes and excludes of the repository that they share. Git has no option that
//! leaves those files out. So our git gets another common directory: one with links to objects, references and
//! worktrees, and with files of our own for everything else.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::call::GitCall;
use super::error::GitError;
use super::links::replace;
use super::scratch::unique_name;
use crate::private;

/// The parts of a repository that a view shows. None of them is a configuration.
const SHOWN: [&str; 7] = ["objects", "refs", "packed-refs", "logs", "worktrees", "modules", "lfs"];

/// A repository inside a tree may be a shallow clone. The shared one is not, even if a worker
/// fetched into it.
const SHOWN_OF_OTHERS: [&str; 2] = ["shallow", "reftable"];

/// The extensions without which git cannot read a repository of another format.
const FORMATS: [&str; 2] = ["objectformat", "refstorage"];

/// A directory that git takes for the common directory of a repository.
#[derive(Debug)]
pub(super) struct CommonDirectoryView {
    directory: PathBuf,
    is_temporary: bool,
}

impl CommonDirectoryView {
    /// The view of the shared repository, at `directory`, with the configuration `configuration`. It is completed and put
    /// right where it is not as it should be.
    pub(super) fn keep(
        directory: &Path,
        repository: &Path,
        configuration: &[u8],
    ) -> Result<(), GitError> {
        let info = directory.join("info");
        fs::create_dir_all(&info).map_err(GitError::file("make", &info))?;
        for name in SHOWN {
            link(&repository.join(name), &directory.join(name))?;
        }
        write(&directory.join("HEAD"), b"ref: refs/heads/main\n")?;
        // It comes last: a view without it is not used.
        write(&directory.join("config"), configuration)
    }

    /// The view at a directory where [`Self::keep`] has made one.
    pub(super) fn kept(directory: &Path) -> Option<Self> {
        let is_made = directory.join("config").is_file();
        is_made.then(|| Self { directory: directory.to_owned(), is_temporary: false })
    }

    /// A view of any repository, for as long as the value lives.
    pub(super) fn temporary(repository: &Path) -> Result<Self, GitError> {
        let directory = std::env::temp_dir().join(unique_name("gt-view"));
        private::create_dir(&directory).map_err(GitError::file("make", &directory))?;
        let view = Self { directory, is_temporary: true };
        for name in SHOWN.iter().chain(&SHOWN_OF_OTHERS) {
            let shown = repository.join(name);
            if shown.symlink_metadata().is_ok() {
                link(&absolute(&shown), &view.directory.join(name))?;
            }
        }
        let head = repository.join("HEAD");
        let head = fs::read(&head).map_err(GitError::file("read", &head))?;
        write(&view.directory.join("HEAD"), &head)?;
        let configuration = configuration_of(repository)?;
        write(&view.directory.join("config"), configuration.as_bytes())?;
        Ok(view)
    }

    pub(super) fn path(&self) -> &Path {
        &self.directory
    }
}

impl Drop for CommonDirectoryView {
    fn drop(&mut self) {
        if self.is_temporary {
            // It has only links and small files.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// The least configuration with which git reads a repository: its formats.
fn configuration_of(repository: &Path) -> Result<String, GitError> {
    let theirs = repository.join("config");
    let text = fs::read_to_string(&theirs).unwrap_or_default().to_ascii_lowercase();
    let mut extensions = String::new();
    for name in FORMATS.into_iter().filter(|name| text.contains(name)) {
        let answer = GitCall::anywhere("read the format of a repository")
            .args(["config", "--file"])
            .arg(absolute(&theirs))
            .args(["--get", &format!("extensions.{name}")])
            .answer_once()?;
        let value = String::from_utf8_lossy(&answer.output).trim().to_owned();
        let is_word = value.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if answer.succeeded() && is_word {
            // Writing to a string cannot fail.
            let _ = writeln!(extensions, "\t{name} = {value}");
        }
    }
    let version = u8::from(!extensions.is_empty());
    Ok(format!(
        "[core]\n\trepositoryformatversion = {version}\n\tbare = true\n[extensions]\n{extensions}"
    ))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Makes `link` lead to `target`.
fn link(target: &Path, link: &Path) -> Result<(), GitError> {
    if fs::read_link(link).is_ok_and(|present| present == target) {
        return Ok(());
    }
    let beside = link.with_file_name(unique_name("link"));
    symlink(target, &beside).map_err(GitError::file("make", &beside))?;
    fs::rename(&beside, link).map_err(GitError::file("make", link))
}

fn write(file: &Path, content: &[u8]) -> Result<(), GitError> {
    match fs::read(file) {
        Ok(present) if present == content => Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(GitError::file("read", file)(error))
        }
        _ => replace(file, content),
    }
}
