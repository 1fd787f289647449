//! How often a pass over a merge queue runs checks and asks the origin, counted on a machine in memory.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use gt_core::checks::{CheckDefinition, CheckError, CheckResult, CheckRun, check_cache_key};
use gt_core::inbox::InboxKind;
use gt_core::merging::{Candidate, CandidateState, MergeRequest, RequestHold, RequestState};
use gt_core::schedule::{CloseReason, ContextOrigin, Run, Workplace};
use gt_core::{ExecutorKind, Prefix, Priority, Rig, RigSlug, Status, Uid};
use gt_daemon::inbox::inbox;
use gt_execution::checks::CheckReport;
use gt_execution::merge_queue::{
    BuilderWait, CandidateCheckOrder, HostingService, MergeLock, MergeMachine, MergeRepository,
    QueueName, cancel_request, pass_on, put_on_top, story,
};
use gt_executors::git::{
    AppliedAs, CandidateBuild, CandidateMember, Commit, GitError, LandMethod, LandedRange,
    MemberOutcome, OriginRefusal, Push, RefusalKind, RevertCommit, Signature,
};
use gt_scheduling::dispatch::{Dispatcher, MemorySpawner};
use gt_scheduling::run_transitions::claim;
use gt_scheduling::schedule::retry;
use gt_store::{HostRow, NewContext};
use gt_town::hosting::NoHosting;
use gt_town::{Result, Town, rigs};

use crate::inbox::request_at;
use crate::scheduling::town_with_rig;
use crate::town::town;

const REQUESTS: u64 = 32;
const BATCH: usize = 8;

/// A machine whose commits are sets of requests. It counts.
#[derive(Default)]
struct CountingMachine {
    /// The requests in each commit.
    contents: RefCell<BTreeMap<Commit, BTreeSet<u64>>>,
    target: RefCell<Option<Commit>>,
    /// The request with which the check fails.
    culprit: Option<u64>,
    /// The request without which the check fails, also on the target.
    mender: Option<u64>,
    /// The request with which the check does not end.
    stuck: Option<u64>,
    /// Whether the check ends nowhere.
    is_all_stuck: bool,
    /// The request that the origin does not take.
    refused: Option<u64>,
    /// A commit that only another host has.
    missing: Option<Commit>,
    fetches: Cell<u32>,
    check_runs: Cell<u32>,
}

struct FreeLock;
impl MergeLock for FreeLock {}

struct CountingRepository<'a>(&'a CountingMachine);

fn commit(number: u64) -> Commit {
    Commit::parse(&format!("{number:040x}")).unwrap()
}

impl CountingMachine {
    fn new(culprit: Option<u64>) -> Self {
        let machine = Self { culprit, ..Self::default() };
        let first = machine.write(BTreeSet::new());
        machine.target.replace(Some(first));
        machine
    }

    /// The commit with these requests; the same for the same requests, like a tree.
    fn write(&self, content: BTreeSet<u64>) -> Commit {
        let mut contents = self.contents.borrow_mut();
        let known = contents.iter().find(|(_, other)| **other == content);
        if let Some((known, _)) = known {
            return known.clone();
        }
        let new = commit((1 << 32) + u64::try_from(contents.len()).unwrap());
        contents.insert(new.clone(), content);
        new
    }

    fn content(&self, commit: &Commit) -> BTreeSet<u64> {
        self.contents.borrow()[commit].clone()
    }
}

impl MergeMachine for CountingMachine {
    fn host(&self, _: &Town) -> Result<String> {
        Ok("here".to_owned())
    }

    fn lock_queue(
        &self,
        _: &Town,
        _: &QueueName,
        _: BuilderWait,
    ) -> Result<Option<Box<dyn MergeLock + '_>>> {
        Ok(Some(Box::new(FreeLock)))
    }

    fn repository<'a>(&'a self, _: &'a Town, _: &'a Rig) -> Option<Box<dyn MergeRepository + 'a>> {
        Some(Box::new(CountingRepository(self)))
    }

    fn hosting<'a>(
        &'a self,
        _: &'a Town,
        _: &'a Rig,
    ) -> Result<std::result::Result<Box<dyn HostingService + 'a>, NoHosting>> {
        Ok(Err(NoHosting("it has none".to_owned())))
    }

    fn person(&self, _: &Rig) -> Option<Signature> {
        None
    }

    fn check(&self, order: &CandidateCheckOrder<'_>) -> Result<Vec<CheckReport>> {
        let CandidateCheckOrder { town, rig, commit, purpose, .. } = *order;
        let mut reports = Vec::new();
        for check in rigs::checks(town, &rig.slug)? {
            let cache_key = check_cache_key(&check, commit.as_str(), "");
            let before =
                town.read(|reader| Ok(reader.passed_check(&rig.slug, &check.name, &cache_key)?))?;
            let last_lines = String::new();
            if let Some(run) = before {
                reports.push(CheckReport { check, run, cached: true, last_lines });
                continue;
            }
            self.check_runs.set(self.check_runs.get() + 1);
            let content = self.content(commit);
            let is_red = self.culprit.is_some_and(|culprit| content.contains(&culprit))
                || self.mender.is_some_and(|mender| !content.contains(&mender));
            let is_stuck =
                self.is_all_stuck || self.stuck.is_some_and(|stuck| content.contains(&stuck));
            let result = match (is_stuck, is_red) {
                (true, _) => CheckResult::Error,
                (false, true) => CheckResult::Failed,
                (false, false) => CheckResult::Passed,
            };
            let run = CheckRun {
                id: 0,
                rig: rig.slug.clone(),
                name: check.name.clone(),
                definition: check.hash(),
                cache_key,
                commit: commit.to_string(),
                tree: commit.to_string(),
                purpose,
                result,
                error: is_stuck.then_some(CheckError::Timeout),
                exit_code: Some(i32::from(is_red)),
                attempt: 1,
                flaky: false,
                started_at: town.now(),
                duration_ms: 1,
                host: "here".to_owned(),
                log: String::new(),
            };
            let run = town.write(|writer| Ok(writer.insert_check_run(&run)?))?;
            reports.push(CheckReport { check, run, cached: false, last_lines });
        }
        Ok(reports)
    }
}

impl MergeRepository for CountingRepository<'_> {
    fn turn(&self) -> std::result::Result<Box<dyn MergeLock + '_>, GitError> {
        Ok(Box::new(FreeLock))
    }

    fn fetch(&self) -> std::result::Result<(), GitError> {
        self.0.fetches.set(self.0.fetches.get() + 1);
        Ok(())
    }

    fn tip(&self, _: &str) -> std::result::Result<Option<Commit>, GitError> {
        Ok(self.0.target.borrow().clone())
    }

    fn has(&self, commit: &Commit) -> std::result::Result<bool, GitError> {
        Ok(self.0.missing.as_ref() != Some(commit))
    }

    fn origin_has(&self, _: &str, commit: &Commit) -> std::result::Result<bool, GitError> {
        Ok(self.0.target.borrow().as_ref() == Some(commit))
    }

    fn find_branch(&self, branch: &str) -> std::result::Result<Option<Commit>, GitError> {
        self.tip(branch)
    }

    fn has_in_history(&self, _: &Commit, _: &Commit) -> std::result::Result<bool, GitError> {
        Ok(false)
    }

    fn merge_base(&self, _: &Commit, _: &Commit) -> std::result::Result<Option<Commit>, GitError> {
        Ok(None)
    }

    fn changed_paths(
        &self,
        _: &Commit,
        to: &Commit,
    ) -> std::result::Result<Vec<PathBuf>, GitError> {
        let number = u64::from_str_radix(to.as_str(), 16).unwrap();
        Ok(vec![PathBuf::from(format!("file-{number}"))])
    }

    fn conflicting_paths(
        &self,
        _: &Commit,
        _: &Commit,
    ) -> std::result::Result<Vec<PathBuf>, GitError> {
        Ok(Vec::new())
    }

    fn build_revert(
        &self,
        name: &str,
        tip: &Commit,
        _: &LandedRange,
        _: &RevertCommit,
    ) -> std::result::Result<CandidateBuild, GitError> {
        self.build_candidate(name, tip, &[], LandMethod::Rebase)
    }

    fn build_candidate(
        &self,
        _: &str,
        base: &Commit,
        members: &[CandidateMember],
        _: LandMethod,
    ) -> std::result::Result<CandidateBuild, GitError> {
        let mut tip = base.clone();
        let mut outcomes = Vec::new();
        for member in members {
            let before = tip;
            let mut content = self.0.content(&before);
            content.insert(u64::from_str_radix(member.commit.as_str(), 16).unwrap());
            tip = self.0.write(content);
            let commits = vec![(member.commit.clone(), tip.clone())];
            let (after, applied_as) = (tip.clone(), AppliedAs::Commits);
            outcomes.push(MemberOutcome::Applied { before, after, commits, applied_as });
        }
        Ok(CandidateBuild { tree: tip.clone(), tip, members: outcomes, unsigned: None })
    }

    fn drop_candidate(&self, _: &str) -> std::result::Result<(), GitError> {
        Ok(())
    }

    fn is_same_work(
        &self,
        _: (&Commit, &Commit),
        _: (&Commit, &Commit),
    ) -> std::result::Result<bool, GitError> {
        Ok(true)
    }

    fn is_same_change(
        &self,
        _: (&Commit, &Commit),
        _: (&Commit, &Commit),
    ) -> std::result::Result<bool, GitError> {
        Ok(true)
    }

    fn deliver(
        &self,
        commit: &Commit,
        _: &str,
        expected: Option<&Commit>,
        _: &str,
        _: Duration,
    ) -> std::result::Result<Push, GitError> {
        assert_eq!(self.0.target.borrow().as_ref(), expected);
        if self.0.refused.is_some_and(|refused| self.0.content(commit).contains(&refused)) {
            let (kind, words) = (RefusalKind::Hook, "no such file here".to_owned());
            return Ok(Push::Rejected(OriginRefusal { kind, words }));
        }
        self.0.target.replace(Some(commit.clone()));
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

/// A town with requests in the queue of `web`, and one check.
fn town_with_queue() -> Town {
    let town = town();
    let (slug, prefix) = (RigSlug::parse("web").unwrap(), Prefix::parse("web").unwrap());
    let plain = Rig::new(slug, "web", prefix, "web", town.now());
    let rig = Rig { repo: "/nowhere".to_owned(), executor: ExecutorKind::Process, ..plain };
    town.write(|writer| Ok(writer.insert_rig(&rig)?)).unwrap();
    let minute = Duration::from_mins(1);
    let check = CheckDefinition::new("test", "true", minute, 0, Vec::new()).unwrap();
    rigs::add_check(&town, "web", &check).unwrap();
    for number in 1..=REQUESTS {
        request_at(&town, &format!("web-{number}"), RequestState::Queued, &commit(number));
    }
    town
}

/// Lands everything that lands; how many requests have.
fn land(town: &Town, machine: &CountingMachine) -> usize {
    let report = pass_on(town, machine, BuilderWait::Waits).unwrap();
    assert_eq!(report.problems, []);
    machine.content(machine.target.borrow().as_ref().unwrap()).len()
}

#[test]
fn a_batch_costs_one_check_run_and_one_question_to_the_origin() {
    let (town, machine) = (town_with_queue(), CountingMachine::new(None));
    assert_eq!(land(&town, &machine), 32);
    let batches = u32::try_from(REQUESTS).unwrap() / u32::try_from(BATCH).unwrap();
    assert_eq!(machine.check_runs.get(), batches);
    // One before the first batch, and one that confirms each.
    assert_eq!(machine.fetches.get(), 1 + batches);
}

#[test]
fn a_request_whose_push_was_dropped_and_never_released_lands_with_the_next_pass() {
    let (town, machine) = (town_with_queue(), CountingMachine::new(None));
    let request = request_at(&town, "web-lost", RequestState::Checking, &commit(77));
    let now = town.now();
    let candidate = Candidate {
        number: 0,
        rig: request.rig.clone(),
        target: request.target.clone(),
        base: commit(0).to_string(),
        tip: commit(78).to_string(),
        tree: commit(78).to_string(),
        state: CandidateState::Landing,
        builder: "gone".to_owned(),
        parts: Vec::new(),
        created_at: now,
        changed_at: now,
    };
    town.write(|writer| {
        let number = writer.insert_candidate(candidate, &[])?.number;
        writer.end_candidate(number, CandidateState::Dropped)?;
        let (state, candidate) = (RequestState::Landing, Some(number));
        let landing = MergeRequest { state, candidate, ..request.clone() };
        Ok(writer.save_merge_request(request.state, &landing)?)
    })
    .unwrap();

    assert_eq!(land(&town, &machine), 33);
}

/// Lets a run on the host `away/gone` have made a request.
fn made_elsewhere(town: &Town, request: &MergeRequest) -> MergeRequest {
    town.write(|writer| {
        let (bead, rig) = (request.id.bead.clone(), request.rig.clone());
        let plain = NewContext::plain(bead, rig.clone(), Priority::default(), ContextOrigin::Sling);
        let context = writer.insert_contexts(vec![plain])?.remove(0).number;
        let (id, now) = (writer.next_run_id(&request.id.bead)?, writer.now());
        let epoch = Some(id.epoch);
        let begun = Run::begun(id, Uid::fresh(), context, rig, ExecutorKind::Process, now);
        writer.insert_run(&Run { host: "away/gone".to_owned(), ..begun })?;
        Ok(writer.insert_merge_request(MergeRequest { epoch, ..request.clone() })?)
    })
    .unwrap()
}

#[test]
fn a_commit_that_only_a_host_has_that_is_away_is_held_and_a_person_is_asked() {
    let (town, missing) = (town_with_queue(), commit(77));
    let first = request_at(&town, "web-away", RequestState::Cancelled, &missing);
    let queued = MergeRequest { state: RequestState::Queued, ..first };
    let request = made_elsewhere(&town, &queued);
    let machine = CountingMachine { missing: Some(missing), ..CountingMachine::new(None) };
    let read = || town.read(|reader| Ok(reader.merge_request(&request.id)?)).unwrap().unwrap();

    // A host that was seen lately lands its work itself.
    let host = HostRow {
        id: "gone".to_owned(),
        name: "builder".to_owned(),
        machine: String::new(),
        path: "/srv/town".to_owned(),
        incarnation: String::new(),
    };
    town.write(|writer| Ok(writer.host_seen(&host)?)).unwrap();
    assert_eq!(land(&town, &machine), 32);
    assert_eq!(read().state, RequestState::Queued);

    // Now its run is of a host that the store has never seen.
    town.write(|writer| Ok(writer.adopt_host("gone", "away/lost")?)).unwrap();
    assert_eq!(land(&town, &machine), 32);
    let held = read();
    assert_eq!(held.state, RequestState::Held(RequestHold::CommitElsewhere));
    assert_eq!(held.detail, "only away has 000000000000");
    assert!(held.next_step().contains("gt up on that host"), "{}", held.next_step());
    let rows = inbox(&town).unwrap();
    assert!(rows.iter().any(|row| row.kind == InboxKind::CommitElsewhere), "{rows:?}");
}

#[test]
fn one_culprit_in_a_batch_of_8_costs_at_most_4_more_check_runs() {
    for culprit in 1..=REQUESTS {
        let (town, machine) = (town_with_queue(), CountingMachine::new(Some(culprit)));
        assert_eq!(land(&town, &machine), 31, "{culprit}");
        // Batches: the one that fails, and those of the other requests, which fill up again after it.
        let before = (culprit - 1) / 8 * 8;
        let passed_in_search = (culprit - 1) % 8;
        let after = REQUESTS - before - passed_in_search - 1;
        let batches = before / 8 + 1 + after.div_ceil(8);
        let extra = u64::from(machine.check_runs.get()) - batches;
        assert!(extra <= 4, "{culprit}: {extra} more than {batches} batches");
    }
}

/// Where a request stands.
fn state_of(town: &Town, number: u64) -> RequestState {
    story(town, &format!("web-{number}")).unwrap().request.state
}

#[test]
fn a_request_with_which_a_check_does_not_end_waits_alone() {
    let machine = CountingMachine { stuck: Some(3), ..CountingMachine::new(None) };
    let town = town_with_queue();
    assert_eq!(land(&town, &machine), 31);
    assert_eq!(state_of(&town, 3), RequestState::Held(RequestHold::CheckError));
    // The batch, its 8 requests one by one, the target without the one that is stuck, and the other batches.
    assert_eq!(machine.check_runs.get(), 1 + 8 + 1 + 3 - 1);

    // Tried again, it does not stop others: they go first, and it is not put together with them.
    request_at(&town, "web-40", RequestState::Queued, &commit(40));
    gt_execution::merge_queue::retry(&town, "web-3").unwrap();
    assert_eq!(land(&town, &machine), 32);
    assert_eq!(state_of(&town, 3), RequestState::Held(RequestHold::CheckError));
    assert_eq!(machine.check_runs.get(), 12 + 2, "the other one, and it alone");
}

#[test]
fn a_check_that_does_not_end_on_the_target_either_is_not_tried_for_each_request() {
    let machine = CountingMachine { is_all_stuck: true, ..CountingMachine::new(None) };
    let town = town_with_queue();
    assert_eq!(land(&town, &machine), 0);
    for number in [1, 8, 32] {
        assert_eq!(state_of(&town, number), RequestState::Held(RequestHold::CheckError));
    }
    assert_eq!(machine.check_runs.get(), 3, "the batch, one of its requests, the target");
}

#[test]
fn a_request_that_the_origin_does_not_take_waits_alone() {
    let machine = CountingMachine { refused: Some(3), ..CountingMachine::new(None) };
    let town = town_with_queue();
    assert_eq!(land(&town, &machine), 31);
    assert_eq!(state_of(&town, 3), RequestState::Held(RequestHold::OriginRefused));
}

#[test]
fn a_review_that_becomes_required_counts_for_requests_in_line() {
    let known = |_: &Town, _: &str| Ok(());
    let (town, machine) = (town_with_queue(), CountingMachine::new(None));
    gt_town::settings::set(&town, "rig.web.review", "required", known).unwrap();
    assert_eq!(land(&town, &machine), 0);
    for number in 1..=REQUESTS {
        assert_eq!(state_of(&town, number), RequestState::Review);
    }
}

#[test]
fn a_path_that_becomes_protected_counts_for_requests_in_line() {
    let known = |_: &Town, _: &str| Ok(());
    let (town, machine) = (town_with_queue(), CountingMachine::new(None));
    // Each request changes the file of its number.
    gt_town::settings::set(&town, "rig.web.protect", "file-3", known).unwrap();
    assert_eq!(land(&town, &machine), 31);
    assert_eq!(state_of(&town, 3), RequestState::Review);
}

#[test]
fn a_target_is_looked_at_again_after_a_change_of_the_checks() {
    let machine = CountingMachine { mender: Some(99), ..CountingMachine::new(None) };
    let town = town_with_queue();
    assert_eq!(land(&town, &machine), 0, "the target is red");
    rigs::remove_check(&town, "web", "test").unwrap();
    assert_eq!(land(&town, &machine), 32);
}

#[test]
fn work_in_the_queue_is_not_tried_again_by_another_run() {
    for (state, is_tried) in [
        (RequestState::Queued, false),
        (RequestState::Building, false),
        (RequestState::Held(RequestHold::OriginUnreachable), false),
        (RequestState::Failed, true),
        (RequestState::Conflict, true),
    ] {
        let town = town_with_rig(None);
        let bead = request_at(&town, "web-1", state, &commit(1)).id.bead;
        // The repair that was scheduled before did not start.
        let rig = RigSlug::parse("web").unwrap();
        let origin = ContextOrigin::Repair;
        town.write(|writer| {
            let new = NewContext::plain(bead.clone(), rig, Priority::default(), origin);
            for context in writer.insert_contexts(vec![new])? {
                writer.close_context(&context, CloseReason::CircuitBroken, "no such program")?;
            }
            Ok(())
        })
        .unwrap();
        let retried = retry(&town, &[bead.to_string()], false).unwrap().remove(0);
        assert_eq!(retried.is_ok(), is_tried, "{state}: {retried:?}");
        if let Err(refused) = retried {
            assert!(refused.to_string().contains("web-1@1"), "{refused}");
        }
    }
}

fn put_on_top_to_fix(town: &Town, number: u64) {
    put_on_top(town, &format!("web-{number}"), true).unwrap();
}

#[test]
fn the_last_fix_that_was_put_on_top_is_tried_first() {
    let machine = CountingMachine { mender: Some(20), ..CountingMachine::new(None) };
    let town = town_with_queue();
    assert_eq!(land(&town, &machine), 0, "the target is red");
    put_on_top_to_fix(&town, 1);
    put_on_top_to_fix(&town, 20);
    let before = machine.check_runs.get();
    assert_eq!(land(&town, &machine), 32);
    // The fix, and the batches of the 31 others.
    assert_eq!(machine.check_runs.get() - before, 1 + 4);
}

#[test]
fn a_fix_with_which_the_check_fails_gives_way_to_the_next() {
    let machine = CountingMachine { mender: Some(20), ..CountingMachine::new(None) };
    let town = town_with_queue();
    assert_eq!(land(&town, &machine), 0, "the target is red");
    put_on_top_to_fix(&town, 1);
    assert_eq!(land(&town, &machine), 0);
    let tried = story(&town, "web-1").unwrap().request;
    let said = tried.state_reason();
    assert!(said.contains("it was to mend that, and test fails with it, too"), "{said}");
    assert!(!tried.next_step().contains("by itself"), "{}", tried.next_step());

    put_on_top_to_fix(&town, 20);
    put_on_top_to_fix(&town, 1);
    assert_eq!(land(&town, &machine), 32);
}

/// Schedules a repair of a request in the rig `web`.
fn schedule_repair(town: &Town, request: &MergeRequest) {
    let (bead, rig) = (request.id.bead.clone(), request.rig.clone());
    let new = NewContext::plain(bead, rig, Priority::default(), ContextOrigin::Repair);
    town.write(|writer| Ok(writer.insert_contexts(vec![new])?)).unwrap();
}

#[test]
fn a_cancelled_request_ends_its_repair() {
    for is_running in [false, true] {
        let town = town_with_rig(None);
        let request = request_at(&town, "web-1", RequestState::Failed, &commit(1));
        schedule_repair(&town, &request);
        let start = || Dispatcher::new(&town, &MemorySpawner::default()).dispatch().unwrap();
        if is_running {
            let started = start().dispatched.remove(0).run.unwrap();
            claim(&town, &started.id, &Workplace::default(), None).unwrap();
        }

        let cancelled = cancel_request(&town, "web-1@1").unwrap();

        assert_eq!(cancelled.state, RequestState::Cancelled);
        assert!(start().dispatched.is_empty(), "no repair starts");
        let bead = &request.id.bead;
        let (context, live, status) = town
            .read(|reader| {
                let status = reader.bead(bead)?.map(|bead| bead.status);
                Ok((reader.open_context(bead)?, reader.live_run(bead)?, status))
            })
            .unwrap();
        assert!(context.is_none() && live.is_none(), "{context:?} {live:?}");
        assert_eq!(status, Some(Status::Open));
    }
}
