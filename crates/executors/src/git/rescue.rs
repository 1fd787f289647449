//! Keeps the work of a tree, so that it survives the tree.

use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::commit::{Commit, Signature};
use super::error::GitError;
use super::links::canonical;
use super::nested_repositories::PartsKeeper;
use super::repository::Repository;
use super::snapshot::{RescueBudget, TreeSnapshot};
use super::tree::Tree;

/// The work of a tree, kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescue {
    /// Everything that was in the tree, on top of its `HEAD`; `HEAD` itself if there was no more.
    pub commit: Commit,
    /// The files that are not in it.
    pub left_out: Vec<LeftOutFile>,
    /// How much was kept that is not committed: the sizes of files, and of repositories inside.
    pub bytes: u64,
    /// Repositories inside the tree that have commits of their own.
    pub parts: Vec<RescuedRepository>,
}

/// Something that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutFile {
    /// Where it is, from the top of the tree.
    pub path: PathBuf,
    /// Why it was not kept.
    pub reason: Reason,
}

/// Why something was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// There was no room for it under the maximum.
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// It is a pipe, a socket or a device.
    NoFile(&'static str),
    /// It could not be read.
    Unreadable(String),
    /// Of a repository inside the tree, only the present files were kept.
    HistoryOnly(&'static str),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => write!(f, "too large ({bytes} bytes)"),
            Self::NoFile(kind) => write!(f, "{kind}"),
            Self::Unreadable(message) => write!(f, "cannot be read: {message}"),
            Self::HistoryOnly(why) => write!(f, "its files are kept, its history is not: {why}"),
        }
    }
}

/// The relation of a repository inside a tree to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RescuedRepositoryKind {
    /// A submodule.
    Submodule,
    /// A repository that the tree knows nothing about.
    Nested,
}

/// A repository inside the tree, kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RescuedRepository {
    /// Where it is, from the top of the tree.
    pub path: PathBuf,
    /// Its relation to the tree.
    pub kind: RescuedRepositoryKind,
    /// Everything that was in it, on top of its `HEAD`.
    pub commit: Commit,
    /// The prefix of the references that keep it: `<prefix>/commit` is [`Self::commit`], and its
    /// own references are under `<prefix>/refs/`.
    pub prefix: String,
}

impl Tree {
    /// Keeps everything that is in the tree and not ignored (tracked or not, up to `bytes_max`) as a commit
    /// that `reference` names, in the shared repository. Index, `HEAD`, branches and files of the tree stay
    /// as they are, in the middle of a merge too.
    ///
    /// Repositories inside the tree, submodules or not, are kept with their commits under
    /// `refs/gt/rescue-parts`. The tree itself is kept there too if it was made a repository of its
    /// own. Files that are left out are listed, here and in the message of the commit. The previous
    /// commit of the reference becomes a parent, so that it is not forgotten. `beside` is a commit that is kept
    /// although it is not in the history of `HEAD`.
    pub fn rescue(
        &self,
        repository: &Repository,
        reference: &str,
        message: &str,
        author: &Signature,
        bytes_max: u64,
        beside: Option<&Commit>,
    ) -> Result<Rescue, GitError> {
        let ledger = RescueBudget { bytes_free: bytes_max, bytes: 0, left_out: Vec::new() };
        let mut keeper = PartsKeeper {
            repository,
            prefix: prefix_of_parts(reference),
            author,
            ledger,
            parts: Vec::new(),
        };
        let top = Path::new("");
        let is_shared = canonical(self.repository()?.path()) == canonical(repository.path());
        let work = if is_shared {
            let snapshot = self.snapshot(top, &mut keeper.ledger)?;
            keeper.keep_parts(self, top, &snapshot);
            let TreeSnapshot { head, files, staged, .. } = snapshot;
            WorkToKeep { head, files, staged, beside: beside.cloned() }
        } else {
            let commit = keeper.keep_whole(self)?;
            let (files, beside) = (repository.files_of(&commit)?, beside.cloned());
            WorkToKeep { files, head: Some(commit), staged: None, beside }
        };
        let PartsKeeper { ledger, parts, .. } = keeper;
        let previous = repository.resolve(reference)?;
        let message = described(message, &parts, &ledger.left_out);
        let commit = work.commit(repository, previous.as_ref(), &message, author)?;
        repository.set_reference(reference, &commit, previous.as_ref())?;
        // A second copy, for when the shared repository is lost. The first one is enough until then.
        let _ = repository.import_rescues();
        Ok(Rescue { commit, left_out: ledger.left_out, bytes: ledger.bytes, parts })
    }
}

/// The work to keep, as objects that are in the shared repository.
struct WorkToKeep {
    head: Option<Commit>,
    files: Commit,
    staged: Option<Commit>,
    /// Commits that are not in the history of the head.
    beside: Option<Commit>,
}

impl WorkToKeep {
    /// The commit that keeps it, with the previously kept commits as parents.
    fn commit(
        &self,
        repository: &Repository,
        previous: Option<&Commit>,
        message: &str,
        author: &Signature,
    ) -> Result<Commit, GitError> {
        let Self { head, files, staged, beside } = self;
        let contains = |commit: &Commit, other: Option<&Commit>| match other {
            Some(other) => repository.is_ancestor(other, commit),
            None => Ok(true),
        };
        if let Some(previous) = previous
            && staged.is_none()
            && repository.files_of(previous)? == *files
            && contains(previous, head.as_ref())?
            && contains(previous, beside.as_ref())?
        {
            // The same again, perhaps after a crash.
            return Ok(previous.clone());
        }
        if let Some(head) = head
            && staged.is_none()
            && repository.files_of(head)? == *files
            && contains(head, previous)?
            && contains(head, beside.as_ref())?
        {
            return Ok(head.clone());
        }
        let staged = match staged {
            Some(staged) => {
                let parents: Vec<&Commit> = head.iter().collect();
                Some(repository.write_commit(staged, &parents, "What was staged", author)?)
            }
            None => None,
        };
        let mut parents: Vec<&Commit> = head.iter().chain(&staged).chain(previous).collect();
        if let Some(beside) = beside
            && !parents.contains(&beside)
        {
            parents.push(beside);
        }
        repository.write_commit(files, &parents, message, author)
    }
}

/// Where the parts of a rescue are kept. They cannot stand under its own reference: git has no directory
/// where it has a name.
fn prefix_of_parts(reference: &str) -> String {
    let rest = reference.strip_prefix("refs/gt/rescue/").unwrap_or(reference);
    format!("refs/gt/rescue-parts/{rest}")
}

/// The message, with the facts for a person who finds only the commit.
fn described(message: &str, parts: &[RescuedRepository], left_out: &[LeftOutFile]) -> String {
    const LISTED_MAX: usize = 200;
    let mut text = format!("{}\n", message.trim_end());
    if !parts.is_empty() || !left_out.is_empty() {
        text.push('\n');
    }
    for RescuedRepository { path, prefix, .. } in parts.iter().take(LISTED_MAX) {
        let _ = writeln!(text, "Kept apart: {} as {prefix}/commit", path.display());
    }
    for LeftOutFile { path, reason } in left_out.iter().take(LISTED_MAX) {
        let _ = writeln!(text, "Left out: {}: {reason}", path.display());
    }
    let more = (parts.len() + left_out.len()).saturating_sub(LISTED_MAX);
    if more > 0 {
        let _ = writeln!(text, "And up to {more} more");
    }
    text
}
