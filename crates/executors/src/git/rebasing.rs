//! Puts work on top of the commits of others, without losing either.

use std::fs;
use std::path::{Path, PathBuf};

use super::call::{GitCall, entries, path_of};
use super::commit::{Commit, Signature};
use super::error::GitError;
use super::links::replace;
use super::repository::Repository;
use super::scratch::Scratch;

/// Work that is to be put on top of something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkToRebase<'a> {
    /// Its newest commit.
    pub commit: &'a Commit,
    /// Where it began, if that is known: nothing before is part of it.
    pub base: Option<&'a Commit>,
}

/// The result of a rebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebased {
    /// A commit that contains both.
    Clean(Commit),
    /// Both sides have changed the same.
    Conflict {
        /// In these files.
        paths: Vec<PathBuf>,
        /// Where the work began, if its base was taken back: a rebase by hand begins after this.
        since: Option<Commit>,
        /// Whether the work has merges, of which a rebase by hand would forget what no other commit has.
        has_merges: bool,
    },
}

/// Two commits whose merge has the work and everything else.
struct MergeSides {
    ours: Commit,
    theirs: Commit,
}

/// The result of one way to bring two histories together.
enum MergeResult {
    There(Commit),
    Torn(Vec<PathBuf>),
}

/// A rebase in a worktree of its own, which our own repository does not know.
struct Rebase<'a> {
    repository: &'a Repository,
    /// The files.
    tree: &'a Path,
    /// Its `HEAD` and its index.
    git_directory: &'a Path,
    work: WorkToRebase<'a>,
    /// Where the work began, if that was taken back.
    since: Option<&'a Commit>,
    onto: &'a Commit,
    committer: &'a Signature,
}

impl Repository {
    /// The work on top of `onto`, in a temporary worktree. No other tree, branch or index changes.
    ///
    /// If one of them contains the other, nothing is done. If `onto` does not contain the base of
    /// the work, that base was taken back: only the commits after it come along. Commits are
    /// replayed one by one, unless there are merges among them or something would be missing at the
    /// end: a rebase forgets changes that only a merge has. Then the work is merged, or becomes one
    /// commit if a merge would bring back the commits that were taken back.
    pub fn rebase_onto(
        &self,
        work: WorkToRebase<'_>,
        onto: &Commit,
        committer: &Signature,
    ) -> Result<Rebased, GitError> {
        self.import(work.commit)?;
        let since = self.taken_back(work, onto)?;
        if since.is_none() {
            if self.own_contains(work.commit, onto)? {
                return Ok(Rebased::Clean(work.commit.clone()));
            }
            if self.own_contains(onto, work.commit)? {
                return Ok(Rebased::Clean(onto.clone()));
            }
        }
        let scratch = Scratch::new(self)?;
        let (tree, git_directory) = (scratch.path().join("tree"), scratch.path().join("git"));
        let (tree, git_directory) = (&tree, &git_directory);
        let rebase = Rebase { repository: self, tree, git_directory, work, since, onto, committer };
        rebase.run()
    }

    /// Where the work began, if `onto` does not contain it any more.
    fn taken_back<'a>(
        &self,
        work: WorkToRebase<'a>,
        onto: &Commit,
    ) -> Result<Option<&'a Commit>, GitError> {
        let Some(base) = work.base.filter(|base| *base != onto) else { return Ok(None) };
        // A worker that has rebased its work needs it no more, and then it may be gone.
        let is_taken_back = self.owns(base)?
            && !self.own_contains(onto, base)?
            && self.own_contains(work.commit, base)?;
        Ok(is_taken_back.then_some(base))
    }
}

impl Rebase<'_> {
    fn run(&self) -> Result<Rebased, GitError> {
        self.make_tree()?;
        let has_merges = self.has_merges()?;
        let replayed = if has_merges { None } else { Some(self.replay()?) };
        let brought = match replayed {
            Some(MergeResult::There(commit)) if !self.is_whole(&commit)? => self.combine()?,
            Some(replayed) => replayed,
            None => self.combine()?,
        };
        Ok(match brought {
            MergeResult::There(commit) => Rebased::Clean(commit),
            MergeResult::Torn(paths) => {
                Rebased::Conflict { paths, since: self.since.cloned(), has_merges }
            }
        })
    }

    fn within(&self, deed: &str) -> GitCall {
        // Contents that git-lfs keeps need not be here to be brought along.
        self.plainly(deed).committed(self.committer).env("GIT_LFS_SKIP_SMUDGE", "1")
    }

    fn plainly(&self, deed: &str) -> GitCall {
        GitCall::in_tree(self.tree, self.git_directory, &self.repository.own_path(), deed)
    }

    fn make_tree(&self) -> Result<(), GitError> {
        for directory in [self.tree, self.git_directory] {
            fs::create_dir(directory).map_err(GitError::file("make", directory))?;
        }
        replace(&self.git_directory.join("HEAD"), format!("{}\n", self.work.commit).as_bytes())?;
        self.go_to(self.work.commit)
    }

    fn go_to(&self, commit: &Commit) -> Result<(), GitError> {
        self.within("fill a worktree to rebase in")
            .args(["reset", "--quiet", "--hard", commit.as_str()])
            .done()
            .map(drop)
    }

    fn has_merges(&self) -> Result<bool, GitError> {
        let output = self
            .repository
            .own_call("look for merges")
            .args(["rev-list", "--merges", "--max-count=1", self.work.commit.as_str(), "--not"])
            .arg(self.onto.as_str())
            .args(self.since.map(Commit::as_str))
            .done()?;
        Ok(!output.is_empty())
    }

    /// One commit after the other. Also those that others have had already: they may have taken them back.
    fn replay(&self) -> Result<MergeResult, GitError> {
        let rebase = self
            .within("rebase")
            .args(["-c", "rebase.updateRefs=false", "-c", "rebase.autoStash=false"])
            .args(["-c", "rebase.autoSquash=false", "-c", "rebase.backend=merge"])
            .args(["-c", "core.editor=true", "-c", "sequence.editor=true"])
            .args(["rebase", "--quiet", "--no-verify", "--no-fork-point", "--no-rebase-merges"])
            .arg("--reapply-cherry-picks");
        let mut rebase = match self.since {
            Some(since) => rebase.args(["--onto", self.onto.as_str(), since.as_str()]),
            None => rebase.arg(self.onto.as_str()),
        };
        let brought = self.outcome(&mut rebase)?;
        if matches!(brought, MergeResult::Torn(_)) {
            self.within("give a rebase up").args(["rebase", "--abort"]).done()?;
        }
        Ok(brought)
    }

    /// Whether a commit has what a merge would have. Where that is not known (there is no clean merge, or git is older
    /// than 2.38), every commit was replayed, and that is enough.
    fn is_whole(&self, commit: &Commit) -> Result<bool, GitError> {
        let MergeSides { ours, theirs } = self.sides()?;
        // In the worktree, so that the attributes of its files count as they did for the rebase.
        let mut merge = self.within("merge without a worktree").args([
            "merge-tree",
            "--write-tree",
            "--no-messages",
            ours.as_str(),
            theirs.as_str(),
        ]);
        let answer = merge.answer()?;
        if !answer.succeeded() {
            return Ok(true);
        }
        let files = self.repository.own_files_of(commit)?;
        Ok(String::from_utf8_lossy(&answer.output).trim() == files.as_str())
    }

    /// Both, in one step.
    fn combine(&self) -> Result<MergeResult, GitError> {
        let MergeSides { ours, theirs } = self.sides()?;
        let name = &self.committer.name;
        self.go_to(&ours)?;
        let mut merge = self
            .within("merge")
            .signed(self.committer)
            .args(["-c", "merge.autoStash=false"])
            .args(["merge", "--quiet", "--no-verify", "--no-verify-signatures", "--no-ff"])
            .args(["--no-edit", "-m", &format!("Merge the work of {name}"), theirs.as_str()]);
        let brought = self.outcome(&mut merge)?;
        let (Some(_), MergeResult::There(merged)) = (self.since, &brought) else {
            return Ok(brought);
        };
        let files = self.repository.own_files_of(merged)?;
        if files == self.repository.own_files_of(self.onto)? {
            // Everything in it is there already.
            return Ok(MergeResult::There(self.onto.clone()));
        }
        let message = format!("The work of {name}\n\n{}", self.words()?);
        let commit = self.repository.own_commit(&files, &[self.onto], &message, self.committer)?;
        Ok(MergeResult::There(commit))
    }

    /// The two sides of the merge. Where commits were taken back, the two sides have only the files
    /// of the base in common; otherwise those commits would count as work.
    fn sides(&self) -> Result<MergeSides, GitError> {
        let (onto, commit) = (self.onto, self.work.commit);
        let Some(since) = self.since else {
            return Ok(MergeSides { ours: onto.clone(), theirs: commit.clone() });
        };
        let side = |of: &Commit, parents: &[&Commit]| {
            let files = self.repository.own_files_of(of)?;
            self.repository.own_commit(
                &files,
                parents,
                &format!("The files of {of}"),
                self.committer,
            )
        };
        let base = side(since, &[])?;
        Ok(MergeSides { ours: side(onto, &[&base])?, theirs: side(commit, &[&base])? })
    }

    /// The messages of the commits of the work.
    fn words(&self) -> Result<String, GitError> {
        let output = self
            .repository
            .own_call("read what commits say")
            .args(["log", "--reverse", "--no-merges", "--format=%B", self.work.commit.as_str()])
            .args(["--not", self.onto.as_str()])
            .args(self.since.map(Commit::as_str))
            .done()?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    }

    /// Makes a call that ends with a commit or with conflicts.
    fn outcome(&self, call: &mut GitCall) -> Result<MergeResult, GitError> {
        let answer = call.answer()?;
        if answer.succeeded() {
            return self
                .plainly("find HEAD")
                .args(["rev-parse", "--verify", "HEAD^{commit}"])
                .commit()
                .map(MergeResult::There);
        }
        let output = self
            .plainly("list conflicts")
            .args(["diff", "--name-only", "--diff-filter=U", "-z"])
            .done()?;
        let paths: Vec<PathBuf> = entries(&output).map(path_of).collect();
        if paths.is_empty() { Err(call.failed(&answer)) } else { Ok(MergeResult::Torn(paths)) }
    }
}
