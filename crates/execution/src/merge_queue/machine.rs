//! The machine of a pass over the merge queues: a repository, a runner of checks, and locks.
//!
//! [`super::local_machine`] implements it with git and processes; the simulator with a commit graph in memory.

use std::time::Duration;

use gt_core::Rig;
use gt_core::checks::CheckPurpose;
use gt_executors::git::{
    CandidateBuild, CandidateMember, Commit, GitError, LandMethod, Push, Signature,
};

use super::queue_name::QueueName;
use crate::checks::CheckReport;
use gt_town::{Result, Town};

/// A lock that is held until it is dropped.
pub trait MergeLock {}

/// Whether a pass waits for another process that works on the same queue on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuilderWait {
    /// Until it is done; what was added meanwhile is landed afterwards.
    Waits,
    /// It skips that queue.
    Skips,
}

/// The repository of a rig, and its origin.
pub trait MergeRepository {
    /// Waits for the turn to push to the origin from this machine.
    fn turn(&self) -> std::result::Result<Box<dyn MergeLock + '_>, GitError>;

    /// The same without waiting; nothing if another process has it.
    fn turn_if_free(&self) -> std::result::Result<Option<Box<dyn MergeLock + '_>>, GitError> {
        self.turn().map(Some)
    }

    /// Asks the origin for its branches.
    fn fetch(&self) -> std::result::Result<(), GitError>;

    /// The commit of a branch of the origin, as it was fetched last.
    fn tip(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError>;

    /// Whether a branch of the origin, as it was fetched last, contains a commit.
    fn origin_has(&self, branch: &str, commit: &Commit) -> std::result::Result<bool, GitError>;

    /// Whether the repository of this machine has a commit.
    fn has(&self, commit: &Commit) -> std::result::Result<bool, GitError>;

    /// Applies the members on top of `base`, one after the other; those that do not apply are left out. The result is kept
    /// under the name of its base.
    fn build_candidate(
        &self,
        base: &Commit,
        members: &[CandidateMember],
        method: LandMethod,
    ) -> std::result::Result<CandidateBuild, GitError>;

    /// Does not keep the candidate of a base any longer.
    fn drop_candidate(&self, base: &str) -> std::result::Result<(), GitError>;

    /// Whether the commits of a candidate from one to another make the changes of work that began at a base.
    fn is_same_work(
        &self,
        work: (&Commit, &Commit),
        candidate: (&Commit, &Commit),
    ) -> std::result::Result<bool, GitError>;

    /// The same of a candidate in which the work is one commit: it changes the same as a whole.
    fn is_same_change(
        &self,
        work: (&Commit, &Commit),
        candidate: (&Commit, &Commit),
    ) -> std::result::Result<bool, GitError>;

    /// Moves a branch of the origin from `expected`, or from nothing, to a commit. `landing` names this landing among all others. It is ended
    /// after `limit`.
    fn deliver(
        &self,
        commit: &Commit,
        branch: &str,
        expected: Option<&Commit>,
        landing: &str,
        limit: Duration,
    ) -> std::result::Result<Push, GitError>;

    /// Removes the traces of a landing that is over.
    fn forget_candidate(&self, branch: &str, landing: &str) -> std::result::Result<(), GitError>;

    /// Deletes a branch of the origin that we pushed, if it is still at this commit. By default there is none.
    fn delete_pushed(&self, _branch: &str, _tip: &Commit) -> std::result::Result<(), GitError> {
        Ok(())
    }

    /// Reports commits of workers on a branch of the origin that no landing brought there. The branch is at `tip`, as it was
    /// fetched last.
    fn look_at_target(&self, town: &Town, branch: &str, tip: &Commit) -> Result<()>;

    /// Records that a landing brought this commit to a branch of the origin.
    fn note_target(&self, town: &Town, branch: &str, commit: &Commit) -> Result<()>;
}

/// Checks to be run on a commit of a rig.
pub struct CandidateCheckOrder<'a> {
    /// The town.
    pub town: &'a Town,
    /// The rig.
    pub rig: &'a Rig,
    /// The commit.
    pub commit: &'a Commit,
    /// What they are run for.
    pub purpose: CheckPurpose,
    /// Asked about once a second; a check whose caller says no is ended.
    pub keep_going: &'a dyn Fn() -> bool,
}

/// The machine that works on queues.
pub trait MergeMachine {
    /// The name under which it has the lease of a queue.
    fn host(&self, town: &Town) -> Result<String>;

    /// The lock of the process that works on a queue on this machine; nothing if another process has it.
    fn lock_queue(
        &self,
        town: &Town,
        name: &QueueName,
        wait: BuilderWait,
    ) -> Result<Option<Box<dyn MergeLock + '_>>>;

    /// The repository of a rig; nothing if it has none.
    fn repository<'a>(
        &'a self,
        town: &'a Town,
        rig: &'a Rig,
    ) -> Option<Box<dyn MergeRepository + 'a>>;

    /// The person who is the author of what lands; nothing if no identity is configured.
    fn person(&self, rig: &Rig) -> Option<Signature>;

    /// Runs the checks of a rig on a commit in their order, up to the first that does not pass.
    fn check(&self, order: &CandidateCheckOrder<'_>) -> Result<Vec<CheckReport>>;
}
