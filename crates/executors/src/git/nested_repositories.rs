//! Keeping repositories that lie inside a tree.

use std::path::{Path, PathBuf};

use super::call::entries;
use super::commit::{Commit, Signature};
use super::error::GitError;
use super::repository::Repository;
use super::rescue::{Reason, RescuedRepository, RescuedRepositoryKind};
use super::snapshot::{RescueBudget, TreeSnapshot};
use super::tree::Tree;

/// Keeps the repositories inside a tree in the shared repository.
#[derive(Debug)]
pub(super) struct PartsKeeper<'a> {
    pub(super) repository: &'a Repository,
    /// The prefix of the names of references.
    pub(super) prefix: String,
    pub(super) author: &'a Signature,
    pub(super) ledger: RescueBudget,
    pub(super) parts: Vec<RescuedRepository>,
}

impl PartsKeeper<'_> {
    /// Keeps what is inside a tree of which a snapshot was taken. One that cannot be kept is listed, and
    /// does not stop the others.
    pub(super) fn keep_parts(&mut self, tree: &Tree, inside: &Path, snapshot: &TreeSnapshot) {
        let submodules =
            snapshot.submodules.iter().map(|path| (path, RescuedRepositoryKind::Submodule));
        let nested = snapshot.nested.iter().map(|path| (path, RescuedRepositoryKind::Nested));
        for (path, kind) in submodules.chain(nested) {
            let inside = inside.join(path);
            if let Err(error) = self.keep(&Tree::at(tree.path().join(path)), &inside, kind) {
                self.ledger.leave_out(inside, Reason::Unreadable(error.to_string()));
            }
        }
    }

    /// Keeps a tree that has become a repository of its own.
    pub(super) fn keep_whole(&mut self, tree: &Tree) -> Result<Commit, GitError> {
        self.keep(tree, Path::new(""), RescuedRepositoryKind::Nested)?;
        // Those inside come before it.
        let kept = self.parts.last().filter(|part| part.path.as_os_str().is_empty());
        kept.map(|part| part.commit.clone()).ok_or_else(|| GitError::Failed {
            deed: format!("keep {}", tree.path().display()),
            message: "it is a repository of its own now, and too large".to_owned(),
        })
    }

    fn keep(
        &mut self,
        part: &Tree,
        inside: &Path,
        kind: RescuedRepositoryKind,
    ) -> Result<(), GitError> {
        let snapshot = part.snapshot(inside, &mut self.ledger)?;
        self.keep_parts(part, inside, &snapshot);
        if kind == RescuedRepositoryKind::Submodule && part.is_published(&snapshot)? {
            // A clone of the tree gets it from the submodule's own origin.
            return Ok(());
        }
        let history = self.history_of(part, inside, &snapshot)?;
        let parents: Vec<&Commit> = match history {
            HistoryMode::Kept => snapshot.head.iter().chain(&snapshot.staged).collect(),
            HistoryMode::LeftOut => Vec::new(),
        };
        if history == HistoryMode::LeftOut && !self.ledger.admits(part.bytes_of(&snapshot.files)?) {
            let bytes = part.bytes_of(&snapshot.files)?;
            self.ledger.leave_out(inside.to_owned(), Reason::TooLarge { bytes });
            return Ok(());
        }
        let message = format!("What was in {}", inside.display());
        let commit =
            part.repository()?.write_commit(&snapshot.files, &parents, &message, self.author)?;
        let number = self.parts.len();
        let prefix = format!("{}/{number}-{commit}", self.prefix);
        self.bring_over(part, &commit, &prefix, history)?;
        self.parts.push(RescuedRepository { path: plain(inside), kind, commit, prefix });
        Ok(())
    }

    /// Whether the commits of a part can be kept as well.
    fn history_of(
        &mut self,
        part: &Tree,
        inside: &Path,
        snapshot: &TreeSnapshot,
    ) -> Result<HistoryMode, GitError> {
        if snapshot.head.is_none() {
            return Ok(HistoryMode::LeftOut);
        }
        let why = if part.is_shallow()? {
            "the clone is shallow"
        } else if self.ledger.admits(part.bytes_of_objects()?) {
            return Ok(HistoryMode::Kept);
        } else {
            "it is too large"
        };
        self.ledger.leave_out(plain(inside), Reason::HistoryOnly(why));
        Ok(HistoryMode::LeftOut)
    }

    /// Copies the objects, and gives them names, so that they stay.
    fn bring_over(
        &self,
        part: &Tree,
        commit: &Commit,
        prefix: &str,
        history: HistoryMode,
    ) -> Result<(), GitError> {
        let source = part.view()?;
        let call = self
            .repository
            .call(format!("keep {}", part.path().display()))?
            .args(["-c", "protocol.file.allow=always"])
            .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"])
            // The commit is one that no reference over there names.
            .args(["--upload-pack", "git -c uploadpack.allowAnySHA1InWant=true upload-pack"])
            .arg("--")
            .arg(source.path())
            .arg(format!("+{commit}:{prefix}/commit"));
        let call = match history {
            HistoryMode::Kept => call.arg(format!("+refs/*:{prefix}/refs/*")),
            HistoryMode::LeftOut => call,
        };
        call.done().map(drop)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HistoryMode {
    Kept,
    LeftOut,
}

impl Tree {
    /// Whether everything that is in a submodule is also where it was cloned from.
    fn is_published(&self, snapshot: &TreeSnapshot) -> Result<bool, GitError> {
        let Some(head) = &snapshot.head else { return Ok(false) };
        if snapshot.staged.is_some() || self.repository()?.files_of(head)? != snapshot.files {
            return Ok(false);
        }
        let own = self
            .call("look for commits")?
            .args(["rev-list", "--max-count=1", "HEAD", "--branches", "--glob=refs/stash"])
            .args(["--not", "--remotes"])
            .done()?;
        Ok(own.is_empty())
    }

    fn is_shallow(&self) -> Result<bool, GitError> {
        let output =
            self.call("look at a part")?.args(["rev-parse", "--is-shallow-repository"]).done()?;
        Ok(output.starts_with(b"true"))
    }

    /// How large the objects of a repository are on disk.
    fn bytes_of_objects(&self) -> Result<u64, GitError> {
        let output = self.call("measure a part")?.args(["count-objects", "-v"]).done()?;
        let text = String::from_utf8_lossy(&output);
        let kibibytes = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            matches!(name, "size" | "size-pack").then(|| value.trim().parse::<u64>().ok())?
        });
        Ok(kibibytes.sum::<u64>().saturating_mul(1024))
    }

    /// How large the files of a tree object are.
    fn bytes_of(&self, files: &Commit) -> Result<u64, GitError> {
        let output = self
            .call("measure a part")?
            .args(["ls-tree", "-r", "-l", "-z", files.as_str()])
            .done()?;
        let sizes = entries(&output).filter_map(|entry| {
            let before_path = entry.split(|byte| *byte == b'\t').next()?;
            let size = before_path.rsplit(|byte| *byte == b' ').next()?;
            std::str::from_utf8(size).ok()?.parse::<u64>().ok()
        });
        Ok(sizes.sum())
    }
}

/// Git names a nested repository with a slash at its end.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}
