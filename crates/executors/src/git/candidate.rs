//! Candidates: commits that the merge queue builds on top of a branch of the origin.
//!
//! A candidate is built in our own repository, without a worktree: nothing that workers can write decides about it, and
//! no resolution of a conflict is replayed.

use std::collections::HashSet;
use std::path::PathBuf;

use gt_core::hexadecimal::percent_encoded;

use super::candidate_builder::CandidateBuilder;
use super::commit::{Commit, Signature, one_per_line};
use super::commit_object::CommitTrailer;
use super::error::GitError;
use super::own_repository::copy_from;
use super::repository::Repository;

/// Where candidates are kept in our own repository. Copies of `refs/gt` leave it out.
const CANDIDATES: &str = "refs/gt/candidates/";

/// The words of the system for a disk without space, which is no fault of a member.
const DISK_FULL: &str = "No space left";

/// How work becomes part of a branch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LandMethod {
    /// Each commit is put on top of the branch. Work is merged where that would lose content.
    #[default]
    Rebase,
    /// One commit with all changes.
    Squash,
    /// A merge commit, also where the branch could just move forward.
    Merge,
}

/// Work that is to become part of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateMember {
    /// Its newest commit.
    pub commit: Commit,
    /// Where it began, if that is known: nothing before is part of it.
    pub base: Option<Commit>,
    /// Its name in messages.
    pub name: String,
    /// The message of a commit that squashes or merges it; without, its name and its own messages.
    pub message: Option<String>,
    /// Lines that its commits get at the end of their messages where they lack them.
    pub trailers: Vec<CommitTrailer>,
    /// The committer of new commits, and the author of those that squash or merge it.
    pub signature: Signature,
    /// Commits by this author get `signature` as their author. All others keep their author.
    pub replaced_author: Option<Signature>,
}

/// How work was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppliedAs {
    /// Each commit has become one with the same change.
    Commits,
    /// One commit has all changes.
    Squashed,
    /// A merge commit has it.
    Merged,
}

/// The result for one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberOutcome {
    /// The candidate has it.
    Applied {
        /// The tip before.
        before: Commit,
        /// The tip with it.
        after: Commit,
        /// Commits of the work and those that they have become, oldest first. Commits without a change of their own on
        /// top of `before` are left out. If the work was squashed or merged, each has become `after`.
        commits: Vec<(Commit, Commit)>,
        /// How.
        applied_as: AppliedAs,
    },
    /// The candidate had all of it before.
    AlreadyThere,
    /// Both sides have changed the same; it is left out.
    Conflict {
        /// In these files.
        paths: Vec<PathBuf>,
        /// Where the work began, if its base was taken back: a rebase by hand begins after this.
        since: Option<Commit>,
        /// Whether the work has merges, of which a rebase by hand would forget what no other commit has.
        has_merges: bool,
    },
    /// Git cannot read or merge its commits, for this reason; it is left out. That may be another time.
    Unreadable(String),
}

/// A candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateBuild {
    /// The newest commit; the base if no member was applied.
    pub tip: Commit,
    /// The tree object of the tip.
    pub tree: Commit,
    /// The results of the members, in their order.
    pub members: Vec<MemberOutcome>,
    /// Why new commits are not signed, if git is set up to sign.
    pub unsigned: Option<String>,
}

/// Commits that have landed and are to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedRange {
    /// Where the branch was before.
    pub before: Commit,
    /// The newest of the commits.
    pub after: Commit,
}

/// A reference for a name that may have any characters.
pub(super) fn escaped_reference(directory: &str, name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    format!("{directory}{}", percent_encoded(name, is_plain))
}

impl Repository {
    /// Applies the members on top of `base`, one after the other; those that do not apply are left out.
    ///
    /// The reference `refs/gt/candidates/<id>` of our own repository keeps the result until [`Self::drop_candidate`].
    pub fn build_candidate(
        &self,
        id: &str,
        base: &Commit,
        members: &[CandidateMember],
        method: LandMethod,
    ) -> Result<CandidateBuild, GitError> {
        let built = self.apply_members(base, members, method)?;
        self.keep_candidate(id, base, &built)?;
        Ok(built)
    }

    /// Undoes commits that have landed, as one commit on top of `tip`. The only member of the result is the undoing. It is kept
    /// as a candidate is, under `<id>-<commit>`: of two commands at once, neither replaces what the other one keeps.
    ///
    /// The message, the trailers and the author are those of `how`.
    pub fn build_revert(
        &self,
        id: &str,
        tip: &Commit,
        landed: &LandedRange,
        how: &RevertCommit,
    ) -> Result<CandidateBuild, GitError> {
        let graph = self.commits_beyond(tip, &[])?;
        let mut builder = CandidateBuilder::new(self, graph, tip, LandMethod::Squash)?;
        let outcome = builder.revert(landed, how)?;
        let built = builder.finish(vec![outcome]);
        self.keep_candidate(&format!("{id}-{}", built.tip), tip, &built)?;
        Ok(built)
    }

    /// Deletes the reference of a candidate, if there is one.
    pub fn drop_candidate(&self, id: &str) -> Result<(), GitError> {
        let reference = escaped_reference(CANDIDATES, id);
        self.own_call("delete a candidate").args(["update-ref", "-d", &reference]).done().map(drop)
    }

    /// Deletes the references of candidates whose commit is from before this time, in seconds since 1970, and whose name has none of
    /// these words in it; says how many.
    pub fn forget_candidates(&self, before: i64, wanted: &[&str]) -> Result<u64, GitError> {
        let wanted: Vec<String> = wanted.iter().map(|word| escaped_reference("", word)).collect();
        let listed = self
            .own_call("list candidates")
            .args(["for-each-ref", "--format=%(committerdate:unix) %(refname)", CANDIDATES])
            .done()?;
        let listed = String::from_utf8_lossy(&listed);
        let old = listed.lines().filter_map(|line| {
            let (committed, reference) = line.split_once(' ')?;
            let is_old = committed.parse::<i64>().is_ok_and(|committed| committed < before);
            let is_wanted = wanted.iter().any(|word| reference.contains(word));
            (is_old && !is_wanted).then(|| format!("delete {reference}\n"))
        });
        let old: Vec<String> = old.collect();
        if !old.is_empty() {
            let delete = self.own_call("delete candidates").args(["update-ref", "--stdin"]);
            delete.input(old.concat()).done()?;
        }
        Ok(old.len() as u64)
    }

    fn keep_candidate(
        &self,
        id: &str,
        base: &Commit,
        built: &CandidateBuild,
    ) -> Result<(), GitError> {
        if built.tip == *base {
            return Ok(());
        }
        let reference = escaped_reference(CANDIDATES, id);
        self.own_call("keep a candidate")
            .args(["update-ref", "--no-deref", &reference, built.tip.as_str()])
            .done()
            .map(drop)
    }

    /// The same without a reference.
    pub(super) fn apply_members(
        &self,
        base: &Commit,
        members: &[CandidateMember],
        method: LandMethod,
    ) -> Result<CandidateBuild, GitError> {
        let commits: Vec<&Commit> = members.iter().map(|member| &member.commit).collect();
        let unreadable = self.import_each(&commits)?;
        let problem = |commit: &Commit| unreadable.iter().find(|(other, _)| other == commit);
        let readable: Vec<&Commit> =
            commits.into_iter().filter(|commit| problem(commit).is_none()).collect();
        let mut graph = self.commits_beyond(base, &readable)?;
        graph.find_attribute_changes(self)?;
        let mut builder = CandidateBuilder::new(self, graph, base, method)?;
        let mut outcomes = Vec::new();
        for member in members {
            outcomes.push(match problem(&member.commit) {
                Some((_, why)) => MemberOutcome::Unreadable(why.clone()),
                None => match builder.apply(member) {
                    // Objects of one member that git cannot deal with must not stop the others.
                    Err(GitError::Failed { message, .. }) if !message.contains(DISK_FULL) => {
                        MemberOutcome::Unreadable(message)
                    }
                    applied => applied?,
                },
            });
        }
        Ok(builder.finish(outcomes))
    }

    /// The commits that no branch of the origin has, as it was fetched last.
    pub(super) fn beyond_origin(&self, commit: &Commit) -> Result<HashSet<Commit>, GitError> {
        let call = self.own_call("list the commits of work");
        let listed = call.args(["rev-list", commit.as_str(), "--not", "--remotes"]).done()?;
        Ok(String::from_utf8_lossy(&listed).lines().filter_map(Commit::parse).collect())
    }

    /// Copies commits of workers into our own repository. The answer has those that cannot be read, and why.
    fn import_each(&self, commits: &[&Commit]) -> Result<Vec<(Commit, String)>, GitError> {
        let mut missing = self.missing(commits)?;
        missing.sort();
        missing.dedup();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        self.keep_objects()?;
        let wanted: Vec<&str> = missing.iter().map(Commit::as_str).collect();
        if copy_from(&self.own_path(), self, &wanted).is_ok() {
            return Ok(Vec::new());
        }
        let failed = |commit: Commit| Some((self.import(&commit).err()?.to_string(), commit));
        let problems = missing.into_iter().filter_map(failed);
        Ok(problems.map(|(why, commit)| (commit, why)).collect())
    }

    /// Those of some commits that our own repository does not have.
    pub(super) fn missing(&self, commits: &[&Commit]) -> Result<Vec<Commit>, GitError> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let input = one_per_line(commits.iter().copied());
        let output = self
            .own_call("look for commits")
            .args(["cat-file", "--batch-check=%(objecttype)"])
            .input(input)
            .done()?;
        let text = String::from_utf8_lossy(&output);
        let found = text.lines().map(|line| line == "commit");
        let absent = commits.iter().zip(found).filter(|(_, is_found)| !is_found);
        Ok(absent.map(|(commit, _)| (*commit).clone()).collect())
    }
}

/// The commit that undoes others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevertCommit {
    /// Its message.
    pub message: String,
    /// Lines at the end of its message.
    pub trailers: Vec<CommitTrailer>,
    /// Its author and committer.
    pub signature: Signature,
}
