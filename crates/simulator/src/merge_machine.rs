//! The machines that work on merge queues: simulated locks, repositories and checks around the real pass.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use gt_core::checks::{CheckDefinition, CheckError, CheckResult, CheckRun, check_cache_key};
use gt_core::hosting::PullRequestTrust;
use gt_core::merging::{CandidateState, convoy_of_branch};
use gt_core::{Rig, RigSlug};
use gt_execution::checks::CheckReport;
use gt_execution::merge_queue::{
    BuilderWait, CandidateCheckOrder, HostingService, MergeLock, MergeMachine, MergeRepository,
    QueueName,
};
use gt_executors::git::{
    CandidateBuild, CandidateMember, Commit, GitError, LandMethod, LandedRange, MemberOutcome,
    OriginRefusal, Push, RefusalKind, RevertCommit, Signature,
};
use gt_town::hosting::NoHosting;
use gt_town::{Result, Town};

use crate::hosting::SimulatedHostingClient;
use crate::merging::TARGET;
use crate::origin::SimulatedOrigin;
use crate::planted::Planted;
use crate::simulation::Simulation;
use crate::violation::Invariant;
use crate::world::ProcessId;

/// The machines on which passes are made.
pub(crate) const MACHINES: [&str; 2] = ["here", "there"];
/// So many looks at the origin are enough for any pass.
const FETCHES_MAX: u32 = 400;

/// A machine, as a process on it sees it.
pub(crate) struct SimulatedMachine<'a> {
    pub(crate) simulation: &'a Simulation,
    pub(crate) process: ProcessId,
    pub(crate) name: String,
    pub(crate) fetches: Cell<u32>,
}

/// The repository of a rig on a machine.
struct SimulatedRepository<'a> {
    machine: &'a SimulatedMachine<'a>,
    rig: &'a Rig,
}

/// The lock of a queue on a machine.
struct SimulatedQueueLock<'a> {
    simulation: &'a Simulation,
    key: (String, QueueName),
}

/// The turn to push to an origin from a machine.
struct SimulatedTurn<'a> {
    simulation: &'a Simulation,
    key: (String, RigSlug),
}

impl MergeLock for SimulatedTurn<'_> {}
impl MergeLock for SimulatedQueueLock<'_> {}

impl Drop for SimulatedQueueLock<'_> {
    fn drop(&mut self) {
        self.simulation.state().queue_locks.remove(&self.key);
    }
}

impl Drop for SimulatedTurn<'_> {
    fn drop(&mut self) {
        self.simulation.state().turns.remove(&self.key);
    }
}

impl MergeMachine for SimulatedMachine<'_> {
    fn host(&self, _: &Town) -> Result<String> {
        Ok(self.name.clone())
    }

    fn lock_queue(
        &self,
        _: &Town,
        name: &QueueName,
        _: BuilderWait,
    ) -> Result<Option<Box<dyn MergeLock + '_>>> {
        let key = (self.name.clone(), name.clone());
        if !self.simulation.state().queue_locks.insert(key.clone()) {
            return Ok(None);
        }
        Ok(Some(Box::new(SimulatedQueueLock { simulation: self.simulation, key })))
    }

    fn repository<'r>(
        &'r self,
        _: &'r Town,
        rig: &'r Rig,
    ) -> Option<Box<dyn MergeRepository + 'r>> {
        let has_origin = self.simulation.state().origins.contains_key(&rig.slug);
        has_origin.then(|| Box::new(SimulatedRepository { machine: self, rig }) as _)
    }

    fn hosting<'r>(
        &'r self,
        _: &'r Town,
        rig: &'r Rig,
    ) -> Result<std::result::Result<Box<dyn HostingService + 'r>, NoHosting>> {
        let trust = PullRequestTrust::default();
        Ok(Ok(Box::new(SimulatedHostingClient { machine: self, rig, trust })))
    }

    fn person(&self, _: &Rig) -> Option<Signature> {
        None
    }

    fn check(&self, order: &CandidateCheckOrder<'_>) -> Result<Vec<CheckReport>> {
        let mut reports = Vec::new();
        for check in gt_town::rigs::checks(order.town, &order.rig.slug)? {
            let report = self.run_check(order, &check)?;
            let is_passed = report.is_passed();
            reports.push(report);
            if !is_passed {
                break;
            }
        }
        if self.simulation.fault(20) {
            self.simulation.change_checks_meanwhile(&order.rig.slug);
        }
        Ok(reports)
    }
}

impl SimulatedMachine<'_> {
    pub(crate) fn with_origin<T>(
        &self,
        rig: &Rig,
        work: impl FnOnce(&mut SimulatedOrigin) -> T,
    ) -> T {
        self.simulation.with_origin(&rig.slug, work)
    }

    fn run_check(
        &self,
        order: &CandidateCheckOrder<'_>,
        check: &CheckDefinition,
    ) -> Result<CheckReport> {
        let CandidateCheckOrder { town, rig, commit, purpose, keep_going } = *order;
        self.simulation.seam(self.process);
        let other = self.simulation.planted == Some(Planted::ChecksOtherTree);
        let (checked, tree, is_green) = self.with_origin(rig, |origin| {
            let base = origin.parent(commit).filter(|_| other);
            let checked = base.unwrap_or_else(|| commit.clone());
            (checked.clone(), origin.tree(&checked).to_string(), origin.is_green(&checked))
        });
        let cache_key = check_cache_key(check, &tree, "");
        let report = |run, cached| CheckReport {
            check: check.clone(),
            run,
            cached,
            last_lines: String::new(),
        };
        let before =
            town.read(|reader| Ok(reader.passed_check(&rig.slug, &check.name, &cache_key)?))?;
        if let Some(run) = before {
            return Ok(report(run, true));
        }
        let is_skipped = self.simulation.planted == Some(Planted::LandsUnchecked);
        let result = if is_skipped {
            CheckResult::Passed
        } else if self.simulation.fault(12) || !keep_going() {
            CheckResult::Error
        } else if is_green != self.simulation.fault(20) {
            CheckResult::Passed
        } else {
            CheckResult::Failed
        };
        let run = CheckRun {
            id: 0,
            rig: rig.slug.clone(),
            name: check.name.clone(),
            definition: check.hash(),
            cache_key,
            commit: checked.to_string(),
            tree: tree.clone(),
            purpose,
            result,
            error: (result == CheckResult::Error).then_some(CheckError::Killed),
            exit_code: match result {
                CheckResult::Passed => Some(0),
                CheckResult::Failed => Some(1),
                CheckResult::Error => None,
            },
            attempt: 1,
            flaky: false,
            started_at: town.now(),
            duration_ms: 1,
            host: self.name.clone(),
            log: String::new(),
        };
        if result == CheckResult::Passed && !is_skipped {
            self.with_origin(rig, |origin| origin.passed.insert((tree.clone(), check.hash())));
        }
        let run = town.write(|writer| Ok(writer.insert_check_run(&run)?))?;
        let (process, name) = (self.process, &check.name);
        self.simulation.tell(format!("{process} checks {checked} with {name}: {result:?}"));
        Ok(report(run, false))
    }
}

impl SimulatedRepository<'_> {
    fn seam(&self) {
        self.machine.simulation.seam(self.machine.process);
    }

    fn with_origin<T>(&self, work: impl FnOnce(&mut SimulatedOrigin) -> T) -> T {
        self.machine.with_origin(self.rig, work)
    }

    fn fault(&self, one_in: u64) -> bool {
        self.machine.simulation.fault(one_in)
    }

    /// The only push that is allowed is one whose intent is recorded, by the machine that has the lease.
    fn check_push(&self, commit: &Commit, branch: &str, expected: &Commit) {
        let simulation = self.machine.simulation;
        let (rig, machine) = (&self.rig.slug, &self.machine.name);
        let (candidates, is_leased) = simulation.read(|reader| {
            let candidates = reader.landing_candidates(rig, branch)?;
            Ok((candidates, reader.has_queue_lease(rig, branch, machine)?))
        });
        if !is_leased {
            let found = format!("{machine} pushes {commit} to {rig}, and does not have the lease");
            simulation.violated(Invariant::QueueLease, found);
        }
        let is_intended = candidates.iter().any(|candidate| {
            candidate.state == CandidateState::Landing
                && candidate.tip == commit.as_str()
                && candidate.base == expected.as_str()
        });
        if !is_intended {
            let found = format!("{machine} pushes {commit} to {rig} without a recorded intent");
            simulation.violated(Invariant::QueueLease, found);
        }
    }
}

impl MergeRepository for SimulatedRepository<'_> {
    fn turn(&self) -> std::result::Result<Box<dyn MergeLock + '_>, GitError> {
        let (simulation, process) = (self.machine.simulation, self.machine.process);
        let key = (self.machine.name.clone(), self.rig.slug.clone());
        if !simulation.state().turns.insert(key.clone()) {
            // The holder goes on when this process has ended, so it is killed while it waits.
            simulation.die(process);
        }
        Ok(Box::new(SimulatedTurn { simulation, key }))
    }

    fn fetch(&self) -> std::result::Result<(), GitError> {
        self.seam();
        let machine = self.machine;
        machine.fetches.set(machine.fetches.get() + 1);
        if machine.fetches.get() > FETCHES_MAX {
            let found = format!("a pass over the queue of {} does not end", self.rig.slug);
            machine.simulation.violated(Invariant::Progress, found);
        }
        let is_away = self.with_origin(|origin| {
            if !origin.is_away {
                origin.fetch(&machine.name);
            }
            origin.is_away
        });
        if is_away || self.fault(40) {
            let message = "it does not answer".to_owned();
            return Err(GitError::Unreachable { origin: self.rig.repo.clone(), message });
        }
        Ok(())
    }

    fn tip(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError> {
        Ok(self.with_origin(|origin| origin.fetched(&self.machine.name, branch)))
    }

    fn find_branch(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError> {
        self.fetch()?;
        self.tip(branch)
    }

    fn has_in_history(
        &self,
        descendant: &Commit,
        ancestor: &Commit,
    ) -> std::result::Result<bool, GitError> {
        Ok(self.with_origin(|origin| origin.contains(Some(descendant), ancestor)))
    }

    fn merge_base(
        &self,
        one: &Commit,
        other: &Commit,
    ) -> std::result::Result<Option<Commit>, GitError> {
        Ok(self.with_origin(|origin| origin.merge_base(one, other)))
    }

    fn changed_paths(&self, _: &Commit, _: &Commit) -> std::result::Result<Vec<PathBuf>, GitError> {
        // No rig of the simulation protects any path.
        Ok(Vec::new())
    }

    fn conflicting_paths(
        &self,
        work: &Commit,
        tip: &Commit,
    ) -> std::result::Result<Vec<PathBuf>, GitError> {
        let merged = self.with_origin(|origin| origin.merge(tip, work, LandMethod::Rebase));
        Ok(match merged {
            MemberOutcome::Conflict { paths, .. } => paths,
            _ => Vec::new(),
        })
    }

    fn build_revert(
        &self,
        name: &str,
        tip: &Commit,
        landed: &LandedRange,
        _: &RevertCommit,
    ) -> std::result::Result<CandidateBuild, GitError> {
        self.seam();
        let outcome = self.with_origin(|origin| origin.revert(tip, landed));
        let built = match &outcome {
            MemberOutcome::Applied { after, .. } => after.clone(),
            _ => tip.clone(),
        };
        let tree = self.with_origin(|origin| {
            origin.keep(&format!("{name}-{built}"), built.clone());
            origin.tree(&built)
        });
        Ok(CandidateBuild { tree, tip: built, members: vec![outcome], unsigned: None })
    }

    fn has(&self, _: &Commit) -> std::result::Result<bool, GitError> {
        Ok(true)
    }

    fn origin_has(&self, branch: &str, commit: &Commit) -> std::result::Result<bool, GitError> {
        if self.machine.simulation.planted == Some(Planted::LandsTwice) {
            return Ok(false);
        }
        Ok(self.with_origin(|origin| {
            let tip = origin.fetched(&self.machine.name, branch);
            origin.contains(tip.as_ref(), commit)
        }))
    }

    fn build_candidate(
        &self,
        name: &str,
        base: &Commit,
        members: &[CandidateMember],
        method: LandMethod,
    ) -> std::result::Result<CandidateBuild, GitError> {
        self.seam();
        let is_blind = self.machine.simulation.planted == Some(Planted::LandsTwice);
        let built = self.with_origin(|origin| {
            let mut built = origin.build(base, members, method);
            if is_blind && built.tip == *base {
                for (member, outcome) in members.iter().zip(&mut built.members) {
                    if *outcome == MemberOutcome::AlreadyThere {
                        let before = built.tip.clone();
                        built.tip = origin.copy(&before, &member.commit);
                        let (after, commits) = (built.tip.clone(), Vec::new());
                        let applied_as = gt_executors::git::AppliedAs::Commits;
                        *outcome = MemberOutcome::Applied { before, after, commits, applied_as };
                    }
                }
                built.tree = origin.tree(&built.tip);
            }
            origin.keep(name, built.tip.clone());
            built
        });
        let (process, tip) = (self.machine.process, &built.tip);
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        self.machine.simulation.tell(format!("{process} builds {tip} on {base} from {names:?}"));
        Ok(built)
    }

    fn drop_candidate(&self, name: &str) -> std::result::Result<(), GitError> {
        self.with_origin(|origin| origin.forget(name));
        Ok(())
    }

    fn delete_pushed(&self, branch: &str, tip: &Commit) -> std::result::Result<(), GitError> {
        self.seam();
        self.with_origin(|origin| {
            if origin.tip(branch).as_ref() == Some(tip) {
                origin.move_branch(branch, None);
            }
        });
        Ok(())
    }

    fn is_same_work(
        &self,
        work: (&Commit, &Commit),
        candidate: (&Commit, &Commit),
    ) -> std::result::Result<bool, GitError> {
        Ok(self.with_origin(|origin| origin.is_same_work(work, candidate)))
    }

    fn is_same_change(
        &self,
        work: (&Commit, &Commit),
        candidate: (&Commit, &Commit),
    ) -> std::result::Result<bool, GitError> {
        self.is_same_work(work, candidate)
    }

    fn deliver(
        &self,
        commit: &Commit,
        branch: &str,
        expected: Option<&Commit>,
        _: &str,
        limit: Duration,
    ) -> std::result::Result<Push, GitError> {
        let simulation = self.machine.simulation;
        let is_target = branch == TARGET || convoy_of_branch(branch).is_some();
        let Some(expected) = expected.filter(|_| is_target) else {
            // The branch of a worker, which nothing depends on.
            return Ok(Push::Done);
        };
        if simulation.planted == Some(Planted::ClosesBeforePush) {
            simulation.close_before_push(&self.rig.slug, branch);
        }
        let began = simulation.clock.peek();
        self.seam();
        if self.fault(4) || simulation.planted == Some(Planted::PushesWithoutLease) {
            simulation.tell(format!("{} takes too long to push {commit}", self.machine.process));
            simulation.end_lease(&self.rig.slug, branch);
            simulation.work_on_queues();
        }
        let is_late = simulation.clock.peek().since(began) >= limit;
        if is_late && simulation.planted != Some(Planted::PushesWithoutLease) {
            simulation.tell(format!("{} is too late to push {commit}", self.machine.process));
            return Ok(Push::Unreachable("it took too long".to_owned()));
        }
        let (is_away, is_closed, is_moved) = self.with_origin(|origin| {
            (origin.is_away, origin.is_closed, origin.tip(branch).as_ref() != Some(expected))
        });
        if is_away || self.fault(30) {
            return Ok(Push::Unreachable("it does not answer".to_owned()));
        }
        if is_closed {
            let words = "protected branch hook declined".to_owned();
            return Ok(Push::Rejected(OriginRefusal { kind: RefusalKind::ProtectedBranch, words }));
        }
        if is_moved {
            return Ok(Push::LostRace("stale info".to_owned()));
        }
        self.check_push(commit, branch, expected);
        self.with_origin(|origin| origin.move_branch(branch, Some(commit.clone())));
        simulation.tell(format!("{} pushes {commit}", self.machine.process));
        simulation.observe_origins();
        self.seam();
        if self.fault(12) {
            return Ok(Push::Unreachable("its answer is lost".to_owned()));
        }
        Ok(Push::Done)
    }

    fn forget_candidate(&self, _: &str, _: &str) -> std::result::Result<(), GitError> {
        Ok(())
    }

    fn look_at_target(&self, _: &Town, _: &str, _: &Commit) -> Result<()> {
        Ok(())
    }

    fn note_target(&self, _: &Town, _: &str, _: &Commit) -> Result<()> {
        Ok(())
    }
}
