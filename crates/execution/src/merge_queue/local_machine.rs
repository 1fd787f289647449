//! This machine: git, files as locks, and processes that run checks.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_core::Rig;
use gt_core::hexadecimal::file_name_of;
use gt_executors::git::{
    CandidateBuild, CandidateMember, Commit, GitError, LandMethod, LandedRange, OriginTurn, Push,
    Rebased, Repository, RevertCommit, Signature, WorkToRebase, ask_origin,
};

use super::machine::{
    BuilderWait, CandidateCheckOrder, HostingService, MergeLock, MergeMachine, MergeRepository,
};
use super::pull_requests::HostedRig;
use super::queue_name::QueueName;
use crate::checks::{CheckOrder, CheckReport, run_checks};
use crate::trees::{look_at_target, note_target};
use gt_town::hosting::NoHosting;
use gt_town::hosts::host_of;
use gt_town::landing_identity::person_of;
use gt_town::tree_paths::Trees;
use gt_town::{Environment, OperationError, Result, Town};

/// The longest time that deleting a branch may take.
pub(super) const DELETE_TIME_MAX: Duration = Duration::from_mins(1);

/// This machine.
pub(super) struct LocalMachine<'a> {
    /// Our program, which watches over checks.
    pub(super) program: &'a Path,
}

/// A rig's repository on this machine.
struct LocalRepository<'a> {
    rig: &'a Rig,
    repository: Repository,
}

fn lock_directory(town: &Town) -> PathBuf {
    town.root().join(".gt/merge-queue")
}

/// The file that a process of this host locks while it works on a queue.
fn lock_path(town: &Town, name: &QueueName) -> PathBuf {
    let escaped = file_name_of(&format!("{}/{}", name.rig, name.target));
    lock_directory(town).join(format!("{escaped}.lock"))
}

/// Whether a process of this host works on a queue.
pub(super) fn is_queue_locked(town: &Town, name: &QueueName) -> bool {
    let file = File::open(lock_path(town, name));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl MergeLock for File {}
impl MergeLock for OriginTurn {}

impl MergeMachine for LocalMachine<'_> {
    fn host(&self, town: &Town) -> Result<String> {
        host_of(town)
    }

    fn lock_queue(
        &self,
        town: &Town,
        name: &QueueName,
        wait: BuilderWait,
    ) -> Result<Option<Box<dyn MergeLock + '_>>> {
        let directory = lock_directory(town);
        let path = lock_path(town, name);
        let wrong =
            |action, path: PathBuf| move |source| OperationError::File { action, path, source };
        gt_executors::private::create_dir_all(&directory)
            .map_err(wrong("create", directory.clone()))?;
        let file = gt_executors::private::options().create(true).append(true).open(&path);
        let file = file.map_err(wrong("open", path.clone()))?;
        match wait {
            BuilderWait::Waits => file.lock().map_err(wrong("lock", path))?,
            BuilderWait::Skips => match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(source)) => return Err(wrong("lock", path)(source)),
            },
        }
        Ok(Some(Box::new(file)))
    }

    fn repository<'r>(
        &'r self,
        town: &'r Town,
        rig: &'r Rig,
    ) -> Option<Box<dyn MergeRepository + 'r>> {
        let trees = Trees::of(town, rig)?;
        Some(Box::new(LocalRepository { rig, repository: trees.repository() }))
    }

    fn hosting<'r>(
        &'r self,
        town: &'r Town,
        rig: &'r Rig,
    ) -> Result<std::result::Result<Box<dyn HostingService + 'r>, NoHosting>> {
        Ok(HostedRig::of(town, rig)?.map(|hosted| Box::new(hosted) as Box<dyn HostingService>))
    }

    fn person(&self, rig: &Rig) -> Option<Signature> {
        person_of(rig, &Environment::from_process())
    }

    fn check(&self, order: &CandidateCheckOrder<'_>) -> Result<Vec<CheckReport>> {
        let CandidateCheckOrder { town, rig, commit, purpose, keep_going } = *order;
        let program = self.program;
        run_checks(&CheckOrder { town, program, rig, commit, purpose, only: None, keep_going })
    }
}

impl MergeRepository for LocalRepository<'_> {
    fn turn(&self) -> std::result::Result<Box<dyn MergeLock + '_>, GitError> {
        Ok(Box::new(self.repository.turn()?))
    }

    fn turn_if_free(&self) -> std::result::Result<Option<Box<dyn MergeLock + '_>>, GitError> {
        let turn = self.repository.turn_if_free()?;
        Ok(turn.map(|turn| Box::new(turn) as Box<dyn MergeLock>))
    }

    fn repair(&self) -> std::result::Result<bool, GitError> {
        if self.repository.problem().is_none() {
            return Ok(false);
        }
        self.repository.repair().map(|()| true)
    }

    fn fetch(&self) -> std::result::Result<(), GitError> {
        self.repository.fetch()
    }

    fn tip(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError> {
        self.repository.tip(branch)
    }

    fn origin_has(&self, branch: &str, commit: &Commit) -> std::result::Result<bool, GitError> {
        self.repository.origin_has(branch, commit)
    }

    fn has(&self, commit: &Commit) -> std::result::Result<bool, GitError> {
        Ok(self.repository.resolve(commit.as_str())?.is_some())
    }

    fn find_branch(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError> {
        let origin = &self.rig.repo;
        if !self.repository.exists() && !ask_origin(origin)?.iter().any(|found| found == branch) {
            return Ok(None);
        }
        // Another host may have landed work on the branch, and this one never had the repository.
        let repository = Repository::clone_from(origin, self.repository.path().to_owned())?;
        repository.fetch()?;
        repository.tip(branch)
    }

    fn has_in_history(
        &self,
        descendant: &Commit,
        ancestor: &Commit,
    ) -> std::result::Result<bool, GitError> {
        self.repository.has_in_history(descendant, ancestor)
    }

    fn merge_base(
        &self,
        one: &Commit,
        other: &Commit,
    ) -> std::result::Result<Option<Commit>, GitError> {
        self.repository.merge_base(one, other)
    }

    fn changed_paths(
        &self,
        from: &Commit,
        to: &Commit,
    ) -> std::result::Result<Vec<PathBuf>, GitError> {
        self.repository.changed_paths(from, to)
    }

    fn conflicting_paths(
        &self,
        work: &Commit,
        tip: &Commit,
    ) -> std::result::Result<Vec<PathBuf>, GitError> {
        let signature = Signature { name: "gt".to_owned(), email: "gt@gt.invalid".to_owned() };
        let work = WorkToRebase { commit: work, base: None };
        Ok(match self.repository.rebase_onto(work, tip, &signature)? {
            Rebased::Conflict { paths, .. } => paths,
            Rebased::Clean(_) => Vec::new(),
        })
    }

    fn build_revert(
        &self,
        name: &str,
        tip: &Commit,
        landed: &LandedRange,
        how: &RevertCommit,
    ) -> std::result::Result<CandidateBuild, GitError> {
        self.repository.build_revert(name, tip, landed, how)
    }

    fn build_candidate(
        &self,
        name: &str,
        base: &Commit,
        members: &[CandidateMember],
        method: LandMethod,
    ) -> std::result::Result<CandidateBuild, GitError> {
        self.repository.build_candidate(name, base, members, method)
    }

    fn drop_candidate(&self, name: &str) -> std::result::Result<(), GitError> {
        self.repository.drop_candidate(name)
    }

    fn is_same_work(
        &self,
        work: (&Commit, &Commit),
        candidate: (&Commit, &Commit),
    ) -> std::result::Result<bool, GitError> {
        self.repository.is_same_work(work, candidate)
    }

    fn is_same_change(
        &self,
        work: (&Commit, &Commit),
        candidate: (&Commit, &Commit),
    ) -> std::result::Result<bool, GitError> {
        self.repository.is_same_change(work, candidate)
    }

    fn deliver(
        &self,
        commit: &Commit,
        branch: &str,
        expected: Option<&Commit>,
        landing: &str,
        limit: Duration,
    ) -> std::result::Result<Push, GitError> {
        self.repository.deliver(commit, branch, expected, landing, limit)
    }

    fn forget_candidate(&self, branch: &str, landing: &str) -> std::result::Result<(), GitError> {
        self.repository.forget_candidate(branch, landing)
    }

    fn delete_pushed(&self, branch: &str, tip: &Commit) -> std::result::Result<(), GitError> {
        self.repository.delete_hosted(&self.rig.repo, branch, tip, DELETE_TIME_MAX).map(drop)
    }

    fn look_at_target(&self, town: &Town, branch: &str, tip: &Commit) -> Result<()> {
        look_at_target(town, self.rig, &self.repository, branch, tip)
    }

    fn note_target(&self, town: &Town, branch: &str, commit: &Commit) -> Result<()> {
        note_target(town, self.rig, branch, commit)
    }
}
