//! The errors of git.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why git failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git, or it cannot be started.
    #[error("cannot start git; is it installed and on the path?")]
    Start {
        /// The error of the system.
        source: io::Error,
    },
    /// Git refused; only its message is known.
    #[error("git cannot {deed}: {message}")]
    Failed {
        /// The action that failed.
        deed: String,
        /// The message of git.
        message: String,
    },
    /// Another git holds a lock, or one that was killed has left it.
    #[error("git cannot {deed}: {lock} is there; if no git is running, remove it")]
    Locked {
        /// The action that failed.
        deed: String,
        /// The file that is the lock.
        lock: String,
    },
    /// Git gives files to git-lfs, and there is none.
    #[error(
        "git cannot {deed}: git-lfs is not installed on this machine, and git is set up to use it; install it (apt install \
             git-lfs, brew install git-lfs)"
    )]
    NoLfs {
        /// The action that failed.
        deed: String,
    },
    /// The origin does not answer, or does not let us in.
    #[error("cannot reach {origin}: {message}")]
    Unreachable {
        /// Its URL or path, without secrets.
        origin: String,
        /// The message of git.
        message: String,
    },
    /// The origin has no commit, so there is nothing that work could begin from.
    #[error("{origin} has no commit yet; make a first one there and try again")]
    Empty {
        /// Its URL or path, without secrets.
        origin: String,
    },
    /// There is something where something new should be made.
    #[error("{} is in the way; move it away first", .path.display())]
    Exists {
        /// The path that is in the way.
        path: PathBuf,
    },
    /// There is nothing where something should be.
    #[error("there is nothing at {}", .path.display())]
    Missing {
        /// The missing path.
        path: PathBuf,
    },
    /// A branch of this name has commits that would be forgotten.
    #[error("branch {branch} exists already, at another commit")]
    BranchExists {
        /// The branch.
        branch: String,
    },
    /// A tree holds files that would be lost.
    #[error("{} is not clean: {}", .path.display(), listed(.left))]
    NotClean {
        /// The tree.
        path: PathBuf,
        /// The files in it.
        left: Vec<PathBuf>,
    },
    /// Git would wait for ever to read one of its own files.
    #[error("{} is a pipe, and git would wait for ever to read it; remove it, or move the tree", .path.display())]
    WouldBlock {
        /// The pipe.
        path: PathBuf,
    },
    /// A rebase, a merge or the like has begun in a tree and is not over.
    #[error(
        "a {operation} has begun and is not over; finish it with `git {operation} --continue`, \
             or give it up with `git {operation} --abort`"
    )]
    Unfinished {
        /// Its name as git's command.
        operation: &'static str,
    },
    /// Files still have both sides of a conflict in them.
    #[error("conflict markers (<<<<<<< … >>>>>>>) are left in {}; resolve them", listed(.paths))]
    ConflictMarkers {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// Files are larger than the limit.
    #[error("larger than {bytes_max} bytes: {}; remove them, add them to .gitignore, or give them to git-lfs (git lfs track)", listed(.paths))]
    Oversize {
        /// The files.
        paths: Vec<PathBuf>,
        /// The maximum size.
        bytes_max: u64,
    },
    /// Repositories inside the tree that are not submodules. A commit would only name their commits.
    #[error("{} is a repository of its own; remove its .git, make it a submodule, or add it to .gitignore",
            listed(.paths))]
    Nested {
        /// The directories.
        paths: Vec<PathBuf>,
    },
    /// Submodules with work that a commit of the tree around them would not contain.
    #[error("submodule {} has changes that are not committed, or commits that are not published; \
             commit and publish them there first", listed(.paths))]
    Submodules {
        /// The submodules.
        paths: Vec<PathBuf>,
    },
    /// A push that would forget commits of the branch.
    #[error("{commit} does not contain {expected}, so branch {branch} cannot move to it")]
    NotForward {
        /// The branch.
        branch: String,
        /// The commit to push.
        commit: String,
        /// Where the branch is.
        expected: String,
    },
    /// Something can only be moved within a file system.
    #[error("{} and {} are on different file systems; nothing was moved", .from.display(), .to.display())]
    OtherFileSystem {
        /// The source of the move.
        from: PathBuf,
        /// Its destination.
        to: PathBuf,
    },
    /// A file could not be read, written or moved.
    #[error("cannot {deed} {}", .path.display())]
    File {
        /// The action that failed.
        deed: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it did not.
        source: io::Error,
    },
}

/// How many paths an error names before it only counts them.
const NAMED_MAX: usize = 10;

fn listed(paths: &[PathBuf]) -> String {
    let named: Vec<String> =
        paths.iter().take(NAMED_MAX).map(|path| path.display().to_string()).collect();
    let more = paths.len().saturating_sub(NAMED_MAX);
    let named = named.join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

impl GitError {
    /// Turns an error of the file system into one of ours.
    pub(super) fn file(deed: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { deed, path: path.to_owned(), source }
    }
}
