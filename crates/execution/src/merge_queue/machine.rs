//! The machine of a pass over the merge queues: a repository, a runner of checks, and locks.
//!
//! [`super::local_machine`] implements it with git and processes; the simulator with a commit graph in memory.

use std::path::PathBuf;
use std::time::Duration;

use gt_core::Rig;
use gt_core::checks::CheckPurpose;
use gt_core::hosting::{PolledPullRequest, PullRequest, PullRequestTrust};
use gt_executors::git::{
    CandidateBuild, CandidateMember, Commit, GitError, LandMethod, LandedRange, Push, RevertCommit,
    Signature,
};
use gt_executors::hosting::{HostingError, NewPullRequest, OpenedPullRequest};

use super::queue_name::QueueName;
use crate::checks::CheckReport;
use gt_town::hosting::NoHosting;
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

    /// Repairs the repository of this machine. `false` if nothing is wrong with it, as by default.
    fn repair(&self) -> std::result::Result<bool, GitError> {
        Ok(false)
    }

    /// Asks the origin for its branches.
    fn fetch(&self) -> std::result::Result<(), GitError>;

    /// The commit of a branch of the origin, as it was fetched last.
    fn tip(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError>;

    /// Whether a branch of the origin, as it was fetched last, contains a commit.
    fn origin_has(&self, branch: &str, commit: &Commit) -> std::result::Result<bool, GitError>;

    /// Whether the repository of this machine has a commit.
    fn has(&self, commit: &Commit) -> std::result::Result<bool, GitError>;

    /// The commit of a branch of the origin, asked for now. Makes the repository of this machine first where it is missing and
    /// the origin has the branch.
    fn find_branch(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError>;

    /// Whether a commit has another one in its history.
    fn has_in_history(
        &self,
        descendant: &Commit,
        ancestor: &Commit,
    ) -> std::result::Result<bool, GitError>;

    /// The newest commit that two others have in common.
    fn merge_base(
        &self,
        one: &Commit,
        other: &Commit,
    ) -> std::result::Result<Option<Commit>, GitError>;

    /// The files that differ between two commits.
    fn changed_paths(
        &self,
        from: &Commit,
        to: &Commit,
    ) -> std::result::Result<Vec<PathBuf>, GitError>;

    /// The files in which the work of a commit conflicts with a tip.
    fn conflicting_paths(
        &self,
        work: &Commit,
        tip: &Commit,
    ) -> std::result::Result<Vec<PathBuf>, GitError>;

    /// Builds the commit that undoes landed commits on a tip, and keeps it under this name, followed by `-` and the commit.
    fn build_revert(
        &self,
        name: &str,
        tip: &Commit,
        landed: &LandedRange,
        how: &RevertCommit,
    ) -> std::result::Result<CandidateBuild, GitError>;

    /// Applies the members on top of `base`, one after the other; those that do not apply are left out. The result is kept
    /// under this name.
    fn build_candidate(
        &self,
        name: &str,
        base: &Commit,
        members: &[CandidateMember],
        method: LandMethod,
    ) -> std::result::Result<CandidateBuild, GitError>;

    /// Does not keep the candidate of this name any longer.
    fn drop_candidate(&self, name: &str) -> std::result::Result<(), GitError>;

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

/// The hosting service of a rig: its pull requests, and the branches that they are made of.
pub trait HostingService {
    /// The login that is used. This is also the test whether the tool is there and logged in.
    fn login(&self) -> std::result::Result<String, HostingError>;

    /// One pull request with its checks and texts.
    fn show(&self, number: u64) -> std::result::Result<PullRequest, HostingError>;

    /// The changes of these pull requests.
    fn poll(&self, numbers: &[u64]) -> std::result::Result<Vec<PolledPullRequest>, HostingError>;

    /// Opens a pull request of a branch, unless it is open already.
    fn open(
        &self,
        new: &NewPullRequest<'_>,
    ) -> std::result::Result<OpenedPullRequest, HostingError>;

    /// Writes the title and the text of a pull request.
    fn update(&self, number: u64, title: &str, body: &str)
    -> std::result::Result<(), HostingError>;

    /// The commit of a branch at the service, asked for now.
    fn hosted_tip(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError>;

    /// Moves a branch at the service from `there`, or from nothing, to a commit. It is ended after `limit`.
    fn push(
        &self,
        commit: &Commit,
        branch: &str,
        there: Option<&Commit>,
        limit: Duration,
    ) -> std::result::Result<Push, GitError>;

    /// Deletes a branch at the service, if it is still at this commit.
    fn delete(&self, branch: &str, tip: &Commit) -> std::result::Result<Push, GitError>;

    /// Whose comments start a repair.
    fn trust(&self) -> &PullRequestTrust;

    /// The time between two looks.
    fn poll_interval(&self) -> Duration;
}

/// Checks to be run on a commit of a rig.
pub struct CandidateCheckOrder<'a> {
    /// The town.
    pub town: &'a Town,
    /// The rig.
    pub rig: &'a Rig,
    /// The commit.
    pub commit: &'a Commit,
    /// The purpose of the run.
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

    /// The hosting service of a rig, or why it has none.
    fn hosting<'a>(
        &'a self,
        town: &'a Town,
        rig: &'a Rig,
    ) -> Result<std::result::Result<Box<dyn HostingService + 'a>, NoHosting>>;

    /// The person who is the author of what lands; nothing if no identity is configured.
    fn person(&self, rig: &Rig) -> Option<Signature>;

    /// Runs the checks of a rig on a commit in their order, up to the first that does not pass.
    fn check(&self, order: &CandidateCheckOrder<'_>) -> Result<Vec<CheckReport>>;
}
