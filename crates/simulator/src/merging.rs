//! Merge requests: passes over their queues, others who move the targets, and the decisions of people.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use gt_core::RigSlug;
use gt_core::checks::CheckDefinition;
use gt_core::merging::{
    MergeRequest, RequestHold, RequestPurpose, RequestState, ReviewDecision, convoy_of_branch,
};
use gt_core::schedule::{Run, RunId, Workplace};
use gt_execution::landing;
use gt_execution::merge_queue::{self, BuilderWait, PassReport, RequestReview};
use gt_executors::git::Commit;
use gt_store::Authorship;
use gt_town::{OperationError, Town, settings};

use crate::merge_machine::{MACHINES, SimulatedMachine};
use crate::origin::{FILES, SimulatedContent, SimulatedFiles, SimulatedOrigin};
use crate::planted::Planted;
use crate::simulation::Simulation;
use crate::violation::Invariant;
use crate::world::ProcessId;

/// The branch that all work lands on.
pub(crate) const TARGET: &str = "main";
/// Longer than a builder has a queue while it pushes.
const LEASE_TIME: Duration = Duration::from_mins(11);

/// A decision of a person about a merge request or a queue.
#[derive(Debug, Clone, Copy)]
enum MergeCommand {
    Pause,
    Resume,
    Retry,
    Cancel,
    Top,
    Fix,
    Approve,
    Reject,
    Comment,
    ChangeChecks,
    ChangeMethod,
    Revert,
    Sync,
}

/// Changes of other people to an origin.
#[derive(Debug, Clone, Copy)]
enum OriginEvent {
    Push,
    ForcePush,
    Delete,
    Restore,
    GoAway,
    ComeBack,
    Close,
    Open,
    /// The lease of a queue runs out.
    LeaseEnds,
}

impl Simulation {
    /// The origin of a rig that has one.
    pub(crate) fn with_origin<T>(
        &self,
        rig: &RigSlug,
        work: impl FnOnce(&mut SimulatedOrigin) -> T,
    ) -> T {
        let mut state = self.state();
        let number = state.origins.len() as u64;
        work(state.origins.entry(rig.clone()).or_insert_with(|| SimulatedOrigin::new(number)))
    }

    pub(crate) fn has_origin(&self, rig: &RigSlug) -> bool {
        self.state().origins.contains_key(rig)
    }

    /// Whether the work of a run is handed in as a merge request.
    pub(crate) fn hands_in(&self, run: &RunId) -> bool {
        self.read(|reader| reader.run(run)).is_some_and(|run| self.has_origin(&run.rig))
    }

    fn some_origin(&self) -> Option<RigSlug> {
        let mut state = self.state();
        let rigs: Vec<RigSlug> = state.origins.keys().cloned().collect();
        state.random.pick(&rigs).cloned()
    }

    /// Gives a rig with a repository its origin and the rules by which work lands there.
    pub(crate) fn add_origin(&self, town: &Town, name: &str) -> Result<(), OperationError> {
        let rig = RigSlug::parse(name)?;
        self.with_origin(&rig, |_| ());
        let set = |name: &str, value: &str| {
            settings::set(town, name, value, gt_scheduling::runtimes::check_name).map(|_| ())
        };
        let choice = self.choose(0, if self.has_hosting() { 5 } else { 4 });
        let method = match choice {
            _ if self.planted.is_some_and(Planted::needs_pull_requests) => "pr",
            0 => "direct",
            1 | 2 if self.has_hosting() => "pr",
            _ => "mr",
        };
        set(&format!("rig.{name}.merge"), method)?;
        if self.choose(0, 2) == 0 {
            set(&format!("rig.{name}.review"), "required")?;
        }
        if self.choose(0, 3) == 0 {
            set(&format!("rig.{name}.land"), "squash")?;
        }
        for number in 0..self.choose(0, 2) {
            gt_town::rigs::add_check(town, name, &check(&format!("check-{number}"), "true")?)?;
        }
        Ok(())
    }

    /// The place of a run: a branch from the target, or that of the merge request which it repairs.
    pub(crate) fn workplace_of(&self, id: &RunId) -> Workplace {
        let run = self.read(|reader| reader.run(id));
        let Some(run) = run.filter(|run| self.has_origin(&run.rig)) else {
            return Workplace::default();
        };
        let request = self.read(|reader| reader.open_merge_request(&id.bead));
        let (branch, base, base_commit) = if let Some(request) = request {
            (request.branch, request.target, request.base)
        } else {
            let context = self.read(|reader| reader.context_by_number(run.context));
            let base = context.and_then(|context| context.parameters.base_branch);
            let base = base.unwrap_or_else(|| TARGET.to_owned());
            let tip = self.with_origin(&run.rig, |origin| origin.begin_from(&base));
            let tip = tip.map(|tip| tip.to_string()).unwrap_or_default();
            (format!("polecat/{}-{}", id.bead, id.epoch), base, tip)
        };
        Workplace { branch, base, base_commit, ..Workplace::default() }
    }

    /// A change to some files.
    pub(crate) fn some_change(&self, is_good: bool) -> SimulatedFiles {
        let mut state = self.state();
        let random = &mut state.random;
        let mut changes = SimulatedFiles::new();
        for _ in 0..random.between(1, 2) {
            let is_bad = random.one_in(7) && !is_good;
            let side = (random.one_in(6) && !is_good).then(|| random.one_in(2));
            let (file, serial) = (random.below(FILES), random.below(u64::MAX));
            changes.insert(file, SimulatedContent { serial, is_bad, side });
        }
        changes
    }

    /// The commit of an agent: new work, or the repair of its merge request.
    pub(crate) fn commit_of(&self, run: &Run) -> Option<Commit> {
        let known = self
            .with_origin(&run.rig, |origin| origin.branches.get(&run.workplace.branch).cloned());
        let request = self.read(|reader| reader.open_merge_request(&run.id.bead));
        // The commit that was sent back may be what became of it on the target.
        let sent_back = request.as_ref().and_then(MergeRequest::run);
        let sent_back = sent_back.and_then(|id| self.read(|reader| reader.run(&id)));
        let is_new = request.as_ref().is_none_or(|request| {
            known.as_ref().is_none_or(|known| {
                let of_run =
                    sent_back.as_ref().is_some_and(|run| run.landing.accepted == known.as_str());
                known.as_str() == request.accepted || of_run
            })
        });
        if let Some(known) = known.clone().filter(|_| !is_new || request.is_none()) {
            return Some(known);
        }
        let changes = self.some_change(false);
        let repair = self.some_change(true);
        let state = request.map(|request| request.state);
        let made = self.with_origin(&run.rig, |origin| {
            let tip = origin.begin_from(&run.workplace.base)?;
            Some(match (state, known) {
                // The same files as others, with content that agrees with theirs.
                (Some(RequestState::Conflict), Some(known)) => {
                    let mut changes = origin.changes_of(&known);
                    for (content, new) in changes.values_mut().zip(repair.values().cycle()) {
                        content.serial ^= new.serial;
                    }
                    origin.commit_on(&tip, changes)
                }
                (Some(_), Some(known)) => {
                    let mut changes = origin.changes_of(&known);
                    for (content, new) in changes.values_mut().zip(repair.values().cycle()) {
                        let serial = content.serial ^ new.serial;
                        *content = SimulatedContent { serial, is_bad: false, side: None };
                    }
                    origin.commit_on(&known, changes)
                }
                _ => {
                    let base = Commit::parse(&run.workplace.base_commit).unwrap_or(tip);
                    origin.commit_on(&base, changes)
                }
            })
        })?;
        let branch = run.workplace.branch.clone();
        self.tell(format!("{} commits {made} on {branch}", run.id));
        self.with_origin(&run.rig, |origin| origin.branches.insert(branch, made.clone()));
        Some(made)
    }

    /// Hands in the work of a run: its commit becomes a merge request.
    pub(crate) fn hand_in(&self, town: &Town, id: &RunId) -> Result<String, OperationError> {
        let Some(run) = self.read(|reader| reader.run(id)) else {
            return Err(OperationError::rejected(format!("there is no run {id}")));
        };
        let Some(commit) = self.commit_of(&run) else {
            return Err(OperationError::rejected(format!("{id} has no commit")));
        };
        let is_looked_at = !self.fault(3);
        let applies = self.with_origin(&run.rig, |origin| match origin.tip(&run.workplace.base) {
            Some(tip) if is_looked_at && !origin.is_away => origin.applies(&tip, &commit),
            _ => true,
        });
        if !applies {
            // The agent rebases, and says again that it is done.
            self.with_origin(&run.rig, |origin| {
                if let Some(tip) = origin.begin_from(&run.workplace.base) {
                    let changes = origin.changes_of(&commit);
                    let rebased = origin.commit_on(&tip, changes);
                    origin.branches.insert(run.workplace.branch.clone(), rebased);
                }
            });
            return Err(OperationError::rejected(format!("{commit} does not apply")));
        }
        let request = landing::submit_accepted(town, id, commit.as_str())?;
        if self.planted == Some(Planted::ApprovalCarriedOver) {
            self.carry_approval_over(&request);
        }
        Ok(format!("{} has {commit}", request.id))
    }

    /// One pass over the queues by a new process.
    pub(crate) fn work_on_queues(&self) {
        let at = usize::from(self.fault(3));
        self.plant_in_queues();
        self.as_process("queue pass", |process| {
            let town = self.town(process, "refinery");
            let machine = self.machine(process, at);
            let done = merge_queue::pass_on(&town, &machine, BuilderWait::Skips);
            if let Some(report) = self.reached("a pass over the queues", done) {
                self.tell_pass(process, report);
            }
        });
    }

    /// The machine of a process; `at` is one of two where hosts have no leases.
    fn machine(&self, process: ProcessId, at: usize) -> SimulatedMachine<'_> {
        let name = if self.is_fleet() {
            self.host_named(self.host_of(process))
        } else {
            MACHINES[at].to_owned()
        };
        SimulatedMachine { simulation: self, process, name, fetches: Cell::new(0) }
    }

    fn tell_pass(&self, process: ProcessId, report: PassReport) {
        for (queue, problem) in report.problems {
            // The last request of a convoy is made when its origin answers and has the branch that it goes to.
            let is_of_convoy = convoy_of_branch(&queue.target).is_some();
            let is_gone = problem.contains(&format!("has no branch {TARGET}"));
            let is_of_convoy = is_of_convoy && (is_gone || problem.contains("does not answer"));
            let is_cut = self.is_fleet() && problem.contains("cannot reach the store");
            if !is_of_convoy && !is_cut {
                let found = format!("the queue of {}: {problem}", queue.rig);
                self.violated(Invariant::Soundness, found);
            }
        }
        for request in report.changed {
            self.tell(format!("{process} leaves {} {}", request.id, request.state));
        }
    }

    /// Others do something to an origin.
    pub(crate) fn disturb_origin(&self) {
        let Some(rig) = self.some_origin() else { return };
        let events = vec![
            (5, OriginEvent::Push),
            (1, OriginEvent::ForcePush),
            (1, OriginEvent::Delete),
            (3, OriginEvent::Restore),
            (1, OriginEvent::GoAway),
            (3, OriginEvent::ComeBack),
            (1, OriginEvent::Close),
            (3, OriginEvent::Open),
            (3, OriginEvent::LeaseEnds),
        ];
        let Some(event) = self.state().random.weighted(events) else { return };
        let changes = self.some_change(self.choose(0, 2) > 0);
        match event {
            OriginEvent::LeaseEnds => self.end_lease(&rig, TARGET),
            _ => self.with_origin(&rig, |origin| disturb(origin, event, changes)),
        }
        self.tell(format!("{event:?} at the origin of {rig}"));
        self.observe_origins();
    }

    /// So much time passes that the lease of a queue is over.
    pub(crate) fn end_lease(&self, rig: &RigSlug, target: &str) {
        // A clock that was set back does not tell a builder how long its push has taken.
        if self.is_fleet() {
            self.pass_time(LEASE_TIME);
            return;
        }
        if self.state().set_back {
            return;
        }
        self.clock.advance(LEASE_TIME);
        self.release_lease(rig, target);
    }

    fn release_lease(&self, rig: &RigSlug, target: &str) {
        let by = Authorship { actor: "time".to_owned(), at: self.clock.peek(), worker: None };
        let ended = self.store.write(&by, |writer| match writer.merge_queue(rig, target)? {
            Some(queue) => writer.release_queue(rig, target, &queue.builder),
            None => Ok(()),
        });
        self.certain("the end of a lease", ended.map_err(Into::into));
    }

    /// A command of a person about a merge request or a queue.
    pub(crate) fn person_merges(&self) {
        self.as_process("command about merging", |id| {
            let said = self.decide_merge(id, &self.town(id, "person"));
            self.tell(format!("{id} {said}"));
        });
    }

    /// A person decides about a merge request or a queue.
    pub(crate) fn decide_merge(&self, process: ProcessId, town: &Town) -> String {
        let Some(rig) = self.some_origin() else { return "no rig has an origin".to_owned() };
        let open = self.read(|reader| reader.open_merge_requests());
        let waiting: Vec<MergeRequest> =
            open.iter().filter(|open| open.state == RequestState::Review).cloned().collect();
        let mut commands = vec![
            (1, MergeCommand::Pause),
            (3, MergeCommand::Resume),
            (2, MergeCommand::Retry),
            (1, MergeCommand::Cancel),
            (1, MergeCommand::Top),
            (1, MergeCommand::Fix),
            (6, MergeCommand::Approve),
            (2, MergeCommand::Reject),
            (1, MergeCommand::Comment),
            (1, MergeCommand::ChangeChecks),
            (1, MergeCommand::ChangeMethod),
        ];
        if self.has_hosting() {
            commands.extend([(3, MergeCommand::Revert), (2, MergeCommand::Sync)]);
        }
        let (command, request, review) = {
            let random = &mut self.state().random;
            let Some(command) = random.weighted(commands) else { return String::new() };
            (command, random.pick(&open).cloned(), random.pick(&waiting).cloned())
        };
        let review = review.or_else(|| request.clone());
        let answer = match (command, request, review) {
            (MergeCommand::Pause, ..) => {
                merge_queue::pause(town, &rig, TARGET, true).map(|done| done.to_string())
            }
            (MergeCommand::Resume, ..) => {
                merge_queue::pause(town, &rig, TARGET, false).map(|done| done.to_string())
            }
            (MergeCommand::ChangeChecks, ..) => self.change_checks(town, &rig),
            (MergeCommand::ChangeMethod, ..) => {
                let methods = if self.has_hosting() { 2 } else { 1 };
                let method =
                    ["direct", "mr", "pr"][usize::try_from(self.choose(0, methods)).unwrap_or(0)];
                let (name, check) =
                    (format!("rig.{rig}.merge"), gt_scheduling::runtimes::check_name);
                settings::set(town, &name, method, check).map(|_| method.to_owned())
            }
            (MergeCommand::Revert, ..) => self.undo(process, town),
            (MergeCommand::Sync, ..) => {
                let machine = self.machine(process, 0);
                merge_queue::sync_on(town, &machine, None, BuilderWait::Skips).map(|report| {
                    self.tell_pass(process, report);
                    "looked".to_owned()
                })
            }
            (MergeCommand::Retry, Some(request), _) => {
                merge_queue::retry(town, &request.id.to_string()).map(|request| shown(&request))
            }
            (MergeCommand::Cancel, Some(request), _) => {
                // Noted first: the command may die after it has written, and before it says so.
                self.state().reopened.insert(request.id.bead.clone());
                merge_queue::cancel_request(town, &request.id.to_string())
                    .map(|request| shown(&request))
            }
            (MergeCommand::Top, Some(request), _) => {
                merge_queue::put_on_top(town, &request.id.to_string(), false)
                    .map(|request| shown(&request))
            }
            (MergeCommand::Fix, Some(request), _) => {
                merge_queue::put_on_top(town, &request.id.to_string(), true)
                    .map(|request| shown(&request))
            }
            (MergeCommand::Approve, _, Some(request)) => self.approve(town, &request),
            (MergeCommand::Reject, _, Some(request)) => {
                let review = review_of(ReviewDecision::Rejected);
                merge_queue::review(town, &request.id.to_string(), &review)
                    .map(|request| shown(&request))
            }
            (MergeCommand::Comment, _, Some(request)) => {
                let review = review_of(ReviewDecision::Comment);
                let made = merge_queue::comment(town, &request.id.to_string(), &review);
                made.map(|made| made.number.to_string())
            }
            _ => Ok("nothing waits to be merged".to_owned()),
        };
        let answer = self.sound(&format!("{command:?}"), answer);
        format!("{command:?}: {}", answer.unwrap_or_else(|refused| refused))
    }

    /// A person undoes landed work.
    fn undo(&self, process: ProcessId, town: &Town) -> Result<String, OperationError> {
        let landed = self.snapshot().requests.into_values().flatten().filter(|request| {
            request.state == RequestState::Landed && request.purpose == RequestPurpose::Work
        });
        let landed: Vec<MergeRequest> = landed.collect();
        let Some(request) = self.state().random.pick(&landed).cloned() else {
            return Ok("nothing has landed".to_owned());
        };
        let bead = request.id.bead.clone();
        // Noted first: the command may die after it has written, and before it says so.
        self.state().reopened.insert(bead.clone());
        let machine = self.machine(process, 0);
        let input = request.id.to_string();
        let undoing = merge_queue::revert_on(town, &machine, &input, "not wanted")?;
        if self.planted == Some(Planted::RevertClosesBead) {
            self.close_reverted(&bead);
        }
        Ok(format!("{} undoes {input}", undoing.id))
    }

    /// A person approves a request.
    pub(crate) fn approve(
        &self,
        town: &Town,
        request: &MergeRequest,
    ) -> Result<String, OperationError> {
        let review = review_of(ReviewDecision::Approved);
        let approved = merge_queue::review(town, &request.id.to_string(), &review)?;
        self.state().approved.insert((approved.id.clone(), approved.accepted.clone()));
        Ok(shown(&approved))
    }

    /// An agent tries to approve a request, its own or another. That must be refused.
    pub(crate) fn approve_as_agent(
        &self,
        town: &Town,
        run: &RunId,
    ) -> Result<String, OperationError> {
        let open = self.read(|reader| reader.open_merge_requests());
        let own = open.iter().find(|request| request.id.bead == run.bead).cloned();
        let Some(request) = own.or_else(|| open.into_iter().next()) else {
            return Ok("nothing waits to be merged".to_owned());
        };
        let review = review_of(ReviewDecision::Approved);
        let approved = merge_queue::review(town, &request.id.to_string(), &review)?;
        let found = format!("{run} approves {}", approved.id);
        self.violated(Invariant::Approved, found)
    }

    /// A person changes the checks while a builder has run them.
    pub(crate) fn change_checks_meanwhile(&self, rig: &RigSlug) {
        let changed = self.change_checks(&self.town_without_seam("person"), rig);
        let changed = self.sound("other checks", changed);
        self.tell(format!("meanwhile {changed:?}"));
    }

    /// Another command for a check of a rig: earlier passes do not count for it.
    fn change_checks(&self, town: &Town, rig: &RigSlug) -> Result<String, OperationError> {
        let checks = gt_town::rigs::checks(town, rig)?;
        let Some(old) = checks.first() else { return Ok(format!("{rig} has no check")) };
        let command = format!("true {}", self.choose(0, 1000));
        gt_town::rigs::remove_check(town, rig.as_str(), &old.name)?;
        gt_town::rigs::add_check(town, rig.as_str(), &check(&old.name, &command)?)?;
        Ok(format!("{} of {rig} is {command}", old.name))
    }

    /// Nothing disturbs the origins any more, and people decide about everything that waits for them.
    pub(crate) fn calm_origins(&self) {
        let town = self.town_without_seam("caretaker");
        let rigs: Vec<RigSlug> = self.state().origins.keys().cloned().collect();
        for rig in rigs {
            let fix = self.some_change(true);
            self.with_origin(&rig, |origin| {
                origin.is_away = false;
                origin.is_closed = false;
                let tip = origin.last_target();
                origin.move_target(tip);
                mend(origin, TARGET, &fix);
            });
            let open = self.read(|reader| reader.open_merge_requests());
            let targets: BTreeSet<String> = open
                .into_iter()
                .filter(|request| request.rig == rig)
                .map(|request| request.target)
                .chain([TARGET.to_owned()])
                .collect();
            for target in targets {
                self.certain("resume", merge_queue::pause(&town, &rig, &target, false));
                self.release_lease(&rig, &target);
            }
        }
        self.calm_services();
    }

    /// One round at the end: a pass, and an approval of everything that waits for one.
    pub(crate) fn finish_merging(&self) {
        // Also where no rig has an origin: a convoy with a branch of its own lands in a pass.
        self.work_on_queues();
        if self.state().origins.is_empty() {
            return;
        }
        self.mend_red_targets();
        let town = self.town_without_seam("caretaker");
        for request in self.read(|reader| reader.open_merge_requests()) {
            match request.state {
                RequestState::Review => {
                    self.certain("approve", self.approve(&town, &request));
                }
                RequestState::Held(RequestHold::PullRequestChanged) => {
                    self.certain("retry", merge_queue::retry(&town, &request.id.to_string()));
                }
                _ => {}
            }
        }
        self.calm_services();
        self.merge_pulls();
    }

    /// A person mends every branch on which a check fails.
    fn mend_red_targets(&self) {
        for queue in self.read(|reader| reader.merge_queues()) {
            if queue.red.is_some() {
                let fix = self.some_change(true);
                self.with_origin(&queue.rig, |origin| mend(origin, &queue.target, &fix));
            }
        }
    }
}

/// A person pushes a commit on which checks pass to a branch. A check that failed by chance is run again when it moves.
fn mend(origin: &mut SimulatedOrigin, branch: &str, fix: &SimulatedFiles) {
    let Some(tip) = origin.tip(branch) else { return };
    let mut files = origin.files(&tip);
    if origin.is_green(&tip) {
        files.clear();
    }
    for (content, new) in files.values_mut().zip(fix.values().cycle()) {
        let serial = content.serial ^ new.serial;
        *content = SimulatedContent { serial, is_bad: false, side: None };
    }
    let mended = origin.commit_on(&tip, files);
    origin.move_branch(branch, Some(mended));
}

fn disturb(origin: &mut SimulatedOrigin, event: OriginEvent, changes: SimulatedFiles) {
    let tip = origin.last_target();
    match event {
        OriginEvent::Push => {
            if let Some(tip) = origin.target.clone() {
                let pushed = origin.commit_on(&tip, changes);
                origin.move_target(Some(pushed));
            }
        }
        OriginEvent::ForcePush => {
            let before = tip.and_then(|tip| origin.parent(&tip));
            if let Some(before) = before {
                let pushed = origin.commit_on(&before, changes);
                origin.move_target(Some(pushed));
            }
        }
        OriginEvent::Delete => origin.move_target(None),
        OriginEvent::Restore => origin.move_target(tip),
        OriginEvent::GoAway => origin.is_away = true,
        OriginEvent::ComeBack => origin.is_away = false,
        OriginEvent::Close => origin.is_closed = true,
        OriginEvent::Open => origin.is_closed = false,
        OriginEvent::LeaseEnds => {}
    }
}

fn check(name: &str, command: &str) -> Result<CheckDefinition, OperationError> {
    Ok(CheckDefinition::new(name, command, Duration::from_mins(1), 0, Vec::new())?)
}

fn review_of(decision: ReviewDecision) -> RequestReview<'static> {
    RequestReview { decision, file: "", line: None, body: "looked at", process: None }
}

fn shown(request: &MergeRequest) -> String {
    format!("{} is {}", request.id, request.state)
}
