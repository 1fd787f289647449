//! Puts work on top of the commits of others, without losing either.

use std::path::PathBuf;

use super::candidate::{CandidateMember, LandMethod, MemberOutcome};
use super::commit::{Commit, Signature};
use super::error::GitError;
use super::repository::Repository;

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

impl Repository {
    /// The work on top of `onto`: a candidate with one member ([`Self::build_candidate`]) that no reference keeps. If one
    /// of them contains the other, nothing is done.
    pub fn rebase_onto(
        &self,
        work: WorkToRebase<'_>,
        onto: &Commit,
        committer: &Signature,
    ) -> Result<Rebased, GitError> {
        let member = CandidateMember {
            commit: work.commit.clone(),
            base: work.base.cloned(),
            name: committer.name.clone(),
            message: None,
            trailers: Vec::new(),
            signature: committer.clone(),
            replaced_author: None,
        };
        let built = self.apply_members(onto, &[member], LandMethod::Rebase)?;
        Ok(match built.members.into_iter().next() {
            Some(MemberOutcome::Conflict { paths, since, has_merges }) => {
                Rebased::Conflict { paths, since, has_merges }
            }
            Some(MemberOutcome::Unreadable(message)) => {
                let deed = format!("read {}", work.commit);
                return Err(GitError::Failed { deed, message });
            }
            Some(MemberOutcome::Applied { .. } | MemberOutcome::AlreadyThere) | None => {
                Rebased::Clean(built.tip)
            }
        })
    }
}
