//! Whether two ranges of commits make the same changes.

use gt_core::hexadecimal::digits_of;
use sha2::{Digest as _, Sha256};

use super::call::GitCall;
use super::commit::{Commit, one_per_line};
use super::commit_object::CommitObject;
use super::error::GitError;
use super::repository::Repository;

/// The change of a commit, wherever in its files it is made: equal for a commit and what a rebase makes of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PatchId(String);

/// The parts of a file that are hashed: the lines that are removed and added, with the line before and after them, and of contents that
/// are no text the objects. Line numbers and the borders of hunks do not count.
///
/// The lines next to a change say where it is made. Others cannot change those without a conflict, so every change that git
/// puts on another commit without one keeps its hash.
///
/// `git patch-id` passes over white space and over contents that are no text, and both can break a program.
#[derive(Default)]
struct PatchHash {
    hash: Sha256,
    /// The objects of the file, until it is known whether it is text.
    objects: Vec<u8>,
    in_hunk: bool,
}

impl PatchHash {
    fn line(&mut self, line: &[u8]) {
        if self.in_hunk && line.first().is_some_and(|byte| b" +-\\".contains(byte)) {
            self.add(line);
            return;
        }
        self.in_hunk = false;
        if line.starts_with(b"index ") {
            self.objects = line.to_vec();
        } else if line.starts_with(b"@@ ") {
            self.in_hunk = true;
        } else if line == b"GIT binary patch" || line.starts_with(b"Binary files ") {
            let objects = std::mem::take(&mut self.objects);
            self.add(&objects);
        } else {
            self.add(line);
        }
    }

    fn add(&mut self, line: &[u8]) {
        self.hash.update(line);
        self.hash.update(b"\n");
    }

    fn finish(self) -> PatchId {
        PatchId(digits_of(&self.hash.finalize()))
    }
}

impl Repository {
    /// The changes of the commits that `commit` has and `base` has not, oldest first. A merge is only equal to one with the
    /// same files.
    pub fn patch_ids(&self, base: &Commit, commit: &Commit) -> Result<Vec<PatchId>, GitError> {
        self.import(commit)?;
        self.import(base)?;
        let graph = self.commits_beyond(base, &[commit])?;
        self.patch_ids_of(&graph.commits())
    }

    fn patch_ids_of(&self, commits: &[(&Commit, &CommitObject)]) -> Result<Vec<PatchId>, GitError> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let input = one_per_line(commits.iter().map(|(commit, _)| *commit));
        let output =
            self.patch_call().args(["--stdin", "--root", "--always"]).input(input).done()?;
        let mut lines = output.split(|byte| *byte == b'\n').peekable();
        let mut ids = Vec::new();
        for (at, (_, object)) in commits.iter().enumerate() {
            let next = commits.get(at + 1).map(|(next, _)| next.as_str().as_bytes());
            // Each patch begins with a line that has only the commit.
            lines.next();
            let mut hash = PatchHash::default();
            while let Some(line) = lines.next_if(|line| Some(*line) != next) {
                hash.line(line);
            }
            if object.parents.len() > 1 {
                hash.add(object.tree.as_str().as_bytes());
            }
            ids.push(hash.finish());
        }
        Ok(ids)
    }

    /// A call that prints patches as they are hashed.
    fn patch_call(&self) -> GitCall {
        self.own_call("compare commits")
            .args(["-c", "diff.orderFile=/dev/null", "-c", "diff.suppressBlankEmpty=false"])
            .args(["diff-tree", "-p", "-r", "--no-renames", "--unified=1"])
            .args(["--full-index", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative"])
            .args(["--diff-algorithm=myers", "--no-indent-heuristic", "--submodule=short"])
            .args(["--ignore-submodules=none", "--inter-hunk-context=0"])
            .args(["--src-prefix=a/", "--dst-prefix=b/", "--ws-error-highlight=none"])
    }

    /// The change from one commit to another as a whole.
    fn whole_patch_id(&self, from: &Commit, to: &Commit) -> Result<PatchId, GitError> {
        let output = self.patch_call().args([from.as_str(), to.as_str()]).done()?;
        let mut hash = PatchHash::default();
        output.split(|byte| *byte == b'\n').for_each(|line| hash.line(line));
        Ok(hash.finish())
    }

    /// Whether `before` and `after` differ as a whole by what `work` changes: since the newest commit that it has in common with
    /// `before` or, if `before` has lost the base of the work, since that base.
    pub fn is_same_change(
        &self,
        (base, work): (&Commit, &Commit),
        (before, after): (&Commit, &Commit),
    ) -> Result<bool, GitError> {
        for commit in [base, work, before, after] {
            self.import(commit)?;
        }
        let since = if self.own_contains(before, base)? {
            self.merge_base(work, before)?
        } else {
            Some(base.clone())
        };
        let Some(since) = since else { return Ok(false) };
        Ok(self.whole_patch_id(&since, work)? == self.whole_patch_id(before, after)?)
    }

    /// Whether the commits from `before` to `after` make the changes of `work`. Those are made by the commits that neither
    /// `base`, where the work began, nor `before` has: work that was rebased has commits of others after its base.
    pub fn is_same_work(
        &self,
        (base, work): (&Commit, &Commit),
        (before, after): (&Commit, &Commit),
    ) -> Result<bool, GitError> {
        for commit in [base, work, before, after] {
            self.import(commit)?;
        }
        let (since_base, since_before) =
            (self.commits_beyond(base, &[work])?, self.commits_beyond(before, &[work])?);
        let mut own = since_base.commits();
        own.retain(|(commit, _)| since_before.new_commit(commit).is_some());
        Ok(self.patch_ids_of(&own)? == self.patch_ids(before, after)?)
    }
}
