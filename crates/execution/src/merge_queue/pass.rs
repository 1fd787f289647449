//! A pass over the merge queues.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use gt_core::merging::{
    MergeMethod, MergeRequest, MergeRequestId, OriginAnswer, RequestAction, RequestHold,
    RequestPurpose, RequestState,
};
use gt_core::schedule::RunId;
use gt_core::{Rig, Timestamp};
use gt_executors::git::{Commit, GitError, LandMethod, Signature};

use super::batch::{BatchProgress, is_direct};
use super::integrate::{integrate_convoys, withdraw_incomplete};
use super::local_machine::LocalMachine;
use super::machine::{BuilderWait, MergeMachine, MergeRepository};
use super::pull_requests::{follow_due, next_poll};
use super::queue_name::QueueName;
use super::unmerged::{
    fetch_due_unmerged, is_left_to_people, next_look_at_unmerged, queues_with_merged,
};
use gt_beads::merge_requests::{RequestNote, act_in};
use gt_store::Reader;
use gt_town::hosts::other_host_of;
use gt_town::rigs::move_request_in;
use gt_town::settings::{file_layers, layers_over};
use gt_town::tree_paths::git_failed;
use gt_town::{OperationError, Result, Town, with_causes};

/// The seconds for which a builder has a queue without renewing it.
pub(super) const LEASE_SECONDS: i64 = 120;
/// The seconds for which a builder has a queue while it pushes. The push is killed before they are over.
pub(super) const PUSH_LEASE_SECONDS: i64 = 600;
/// The seconds after which the lease of a builder on another host does not count any more once it is over.
pub(super) const LEASE_GRACE_SECONDS: i64 = 10;
/// The delay before a queue that another process works on is looked at again.
const BUSY_DELAY: Duration = Duration::from_secs(1);
/// The same if it is on another host, which announces each change.
const ELSEWHERE_DELAY: Duration = Duration::from_secs(5);
/// The delay before an origin that does not answer is asked again.
pub(super) const UNREACHABLE_DELAY: Duration = Duration::from_secs(30);
/// The delay before a target that the origin does not have is looked for again.
pub(super) const TARGET_GONE_DELAY: Duration = Duration::from_mins(10);
/// The delay before a queue is tried again that an error of this machine has stopped.
pub(super) const ERROR_DELAY: Duration = Duration::from_secs(30);

/// The outcome of a pass.
#[derive(Debug, Clone, Default)]
pub struct PassReport {
    /// The requests whose state changed, as they are now.
    pub changed: Vec<MergeRequest>,
    /// The queues that could not be worked on, and why.
    pub problems: Vec<(QueueName, String)>,
    /// The queues that another host works on.
    pub elsewhere: Vec<QueueName>,
    /// When there is more to do, if nothing happens before.
    pub due: Option<Timestamp>,
}

impl PassReport {
    /// There is more to do at this time, or before.
    fn look_again(&mut self, at: Timestamp) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

/// The queues in which something can be done now, and when something is due in the others.
pub fn actionable_queues(town: &Town) -> Result<(BTreeSet<QueueName>, Option<Timestamp>)> {
    let now = town.now();
    let requests = town.read(|reader| Ok(reader.open_merge_requests()?))?;
    let mut queues = BTreeSet::new();
    let mut due: Option<Timestamp> = None;
    for request in requests {
        if !is_actionable(&request) {
            continue;
        }
        match request.waits_until(now) {
            Some(at) => due = Some(due.map_or(at, |due| due.min(at))),
            None => drop(queues.insert(QueueName::of(&request))),
        }
    }
    Ok((queues, due))
}

/// Whether a pass can do something about a request, now or when it is due.
pub(super) fn is_actionable(request: &MergeRequest) -> bool {
    match request.state {
        RequestState::Queued
        | RequestState::Building
        | RequestState::Checking
        | RequestState::Landing => true,
        RequestState::Held(_) => request.retry_at.is_some(),
        RequestState::Review
        | RequestState::Conflict
        | RequestState::Failed
        | RequestState::Landed
        | RequestState::Cancelled
        | RequestState::Superseded => false,
    }
}

/// Works on every queue until nothing more can be done in it now. Waits for other processes of this host that work on one.
pub fn pass(town: &Town, program: &Path) -> Result<PassReport> {
    pass_on(town, &LocalMachine { program }, BuilderWait::Waits)
}

/// The same for a caller that comes back: a queue that another process of this host works on is left to that process.
pub fn pass_if_free(town: &Town, program: &Path) -> Result<PassReport> {
    pass_on(town, &LocalMachine { program }, BuilderWait::Skips)
}

/// Makes the last requests of convoys and works on their queues, until no convoy needs another.
fn work_on_convoys(
    town: &Town,
    machine: &dyn MergeMachine,
    wait: BuilderWait,
    report: &mut PassReport,
) -> Result<()> {
    loop {
        let queues = integrate_convoys(town, machine, report)?;
        if queues.is_empty() {
            return Ok(());
        }
        for name in queues {
            work_on(town, machine, &name, PassScope::Everything(wait), report)?;
        }
    }
}

/// Withdraws the requests of convoys that have open work again, and replaces those in line whose convoy branch has moved since
/// they were made, before anything is built of them. Returns the queues that have a new request. Problems are told when the
/// convoys are worked on.
fn replace_moved(town: &Town, machine: &dyn MergeMachine) -> Result<Vec<QueueName>> {
    let open = town.read(|reader| Ok(reader.open_merge_requests()?))?;
    withdraw_incomplete(town, &open)?;
    let is_in_line = |request: &MergeRequest| {
        request.purpose == RequestPurpose::Integration && request.state == RequestState::Queued
    };
    if !open.iter().any(is_in_line) {
        return Ok(Vec::new());
    }
    integrate_convoys(town, machine, &mut PassReport::default())
}

/// Looks at pull requests that are due, works on every queue, and then on the requests that bring the branches of convoys to
/// their bases.
pub fn pass_on(town: &Town, machine: &dyn MergeMachine, wait: BuilderWait) -> Result<PassReport> {
    let mut report = PassReport::default();
    follow_due(town, machine, wait, &mut report)?;
    fetch_due_unmerged(town, machine)?;
    replace_moved(town, machine)?;
    let (mut queues, due) = actionable_queues(town)?;
    report.due = due;
    queues.extend(queues_with_merged(town, machine, None)?);
    for name in queues {
        work_on(town, machine, &name, PassScope::Everything(wait), &mut report)?;
    }
    let soonest = town.now().plus(BUSY_DELAY);
    let looks = next_poll(town, machine)?.into_iter().chain(next_look_at_unmerged(town, machine)?);
    report.due = report.due.into_iter().chain(looks.map(|at| at.max(soonest))).min();
    work_on_convoys(town, machine, wait, &mut report)?;
    Ok(report)
}

/// The same for one queue; waits for another process of this host that works on it.
pub fn pass_for(town: &Town, program: &Path, name: &QueueName) -> Result<PassReport> {
    let mut report = PassReport::default();
    let machine = LocalMachine { program };
    let scope = PassScope::Everything(BuilderWait::Waits);
    let replaced = replace_moved(town, &machine)?;
    work_on(town, &machine, name, scope, &mut report)?;
    for other in replaced.iter().filter(|other| *other != name) {
        work_on(town, &machine, other, scope, &mut report)?;
    }
    work_on_convoys(town, &machine, BuilderWait::Waits, &mut report)?;
    Ok(report)
}

/// Lands the work of a run that has just been accepted, as far as its process has to: everything in its queue where no daemon
/// does it, and work that does not wait for its turn in any case.
pub fn land_own(
    town: &Town,
    program: &Path,
    name: &QueueName,
    is_attended: bool,
) -> Result<PassReport> {
    if !is_attended {
        return pass_for(town, program, name);
    }
    let mut report = PassReport::default();
    work_on(town, &LocalMachine { program }, name, PassScope::Direct, &mut report)?;
    Ok(report)
}

/// The same for the request that a run has made; nothing if it has made none that is open.
pub fn land_own_of(town: &Town, program: &Path, run: &RunId, is_attended: bool) -> Result<()> {
    let request = town.read(|reader| Ok(reader.open_merge_request(&run.bead)?))?;
    if let Some(request) = request.filter(|request| request.run().as_ref() == Some(run)) {
        land_own(town, program, &QueueName::of(&request), is_attended)?;
    }
    Ok(())
}

/// The part of a queue that a pass works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassScope {
    /// All of it. This says whether it waits for another process of this host.
    Everything(BuilderWait),
    /// Requests that do not wait for their turn.
    Direct,
}

pub(super) fn work_on(
    town: &Town,
    machine: &dyn MergeMachine,
    name: &QueueName,
    scope: PassScope,
    report: &mut PassReport,
) -> Result<()> {
    if scope == PassScope::Direct && !has_direct(town, name)? {
        return Ok(());
    }
    let rig = town.read(|reader| Ok(reader.rig(name.rig.as_str())?))?;
    let repository = rig.as_ref().and_then(|rig| machine.repository(town, rig));
    let Some((rig, repository)) = rig.as_ref().zip(repository) else {
        report.problems.push((name.clone(), format!("the rig {} has no repository", name.rig)));
        return Ok(());
    };
    let town = &town.as_system();
    let builder = machine.host(town)?;
    if let Some(host) = other_host_of(town, &rig.slug, &builder)? {
        // A caller that comes back would say so each time.
        if scope == PassScope::Everything(BuilderWait::Waits) {
            let why = format!("only the host {host} works on this rig");
            report.problems.push((name.clone(), why));
        }
        return Ok(());
    }
    let mut lock = machine.lock_queue(town, name, BuilderWait::Skips)?;
    if lock.is_none() {
        // The other process has the lease of this host, and may be running checks. Direct requests do not wait for them.
        let mut beside =
            QueueBuilder::new(town, machine, rig, repository.as_ref(), name, &builder)?;
        beside.is_sole = false;
        let worked = beside.work(PassScope::Direct);
        let changed = beside.changed;
        record(town, name, worked.map(|()| changed), report)?;
        if scope != PassScope::Everything(BuilderWait::Waits) {
            report.look_again(town.now().plus(BUSY_DELAY));
            return Ok(());
        }
        lock = machine.lock_queue(town, name, BuilderWait::Waits)?;
    }
    let has_lease = |seconds| {
        town.write(|writer| {
            let (rig, target) = (&name.rig, name.target.as_str());
            Ok(writer.lease_queue(rig, target, &builder, seconds, LEASE_GRACE_SECONDS)?)
        })
    };
    if !has_lease(LEASE_SECONDS)? {
        report.elsewhere.push(name.clone());
        report.look_again(town.now().plus(ELSEWHERE_DELAY));
        return Ok(());
    }
    let mut worked = QueueBuilder::new(town, machine, rig, repository.as_ref(), name, &builder)
        .and_then(|mut builder| builder.work_or_hold(scope, report).map(|()| builder));
    town.write(|writer| Ok(writer.release_queue(&name.rig, &name.target, &builder)?))?;
    drop(lock);
    if worked.as_ref().is_ok_and(|builder| builder.is_turn_taken) {
        report.look_again(town.now().plus(BUSY_DELAY));
    }
    let moved_to = worked.as_mut().ok().and_then(|builder| builder.moved_to.take());
    record(town, name, worked.map(|builder| builder.changed), report)?;
    match moved_to {
        Some(name) => work_on(town, machine, &name, scope, report),
        None => Ok(()),
    }
}

/// Whether the target of a request was chosen for its work, and is not simply the branch of its rig.
fn has_chosen_target(reader: &Reader<'_>, request: &MergeRequest) -> Result<bool> {
    let run = match request.run() {
        Some(run) => reader.run(&run)?,
        None => None,
    };
    let context = match run {
        Some(run) => reader.context_by_number(run.context)?,
        None => None,
    };
    Ok(context.is_none_or(|context| context.parameters.base_branch.is_some()))
}

/// Whether a request of a queue does not wait for its turn.
fn has_direct(town: &Town, name: &QueueName) -> Result<bool> {
    let line = town.read(|reader| Ok(reader.merge_line(&name.rig, &name.target)?))?;
    Ok(line.iter().any(|request| request.state == RequestState::Queued && is_direct(request)))
}

/// Adds the outcome of a pass over one queue to the report.
fn record(
    town: &Town,
    name: &QueueName,
    worked: Result<BTreeSet<MergeRequestId>>,
    report: &mut PassReport,
) -> Result<()> {
    match worked {
        Ok(changed) => {
            for id in changed {
                report.changed.extend(town.read(|reader| Ok(reader.merge_request(&id)?))?);
            }
            Ok(())
        }
        Err(error) if error.is_of_store() => Err(error),
        Err(error) => {
            report.problems.push((name.clone(), with_causes(&error)));
            Ok(())
        }
    }
}

/// The process that works on a queue.
pub(super) struct QueueBuilder<'a> {
    pub(super) town: &'a Town,
    /// The machine that it works on.
    pub(super) machine: &'a dyn MergeMachine,
    pub(super) rig: &'a Rig,
    pub(super) name: &'a QueueName,
    /// The host that has the lease.
    pub(super) builder: &'a str,
    pub(super) repository: &'a dyn MergeRepository,
    pub(super) method: LandMethod,
    /// The author of landed commits; nothing if that is the agent.
    pub(super) person: Option<Signature>,
    pub(super) batch_max: usize,
    pub(super) repairs_max: u32,
    /// Whether no other process of this host works on the queue.
    pub(super) is_sole: bool,
    /// Whether the last landing has just asked the origin for its branches, so that the next batch need not ask.
    pub(super) is_fetched: bool,
    /// Whether it has stopped because another process pushes to the origin.
    is_turn_taken: bool,
    /// The queue to which requests of this one were moved, because its branch was renamed.
    moved_to: Option<QueueName>,
    /// The requests that are tried each on its own in this pass: one of them is why a batch could not be checked or pushed.
    pub(super) alone: BTreeSet<MergeRequestId>,
    /// Why the commits of the candidate that was built last are not signed, if git is set up to sign.
    pub(super) unsigned: Option<String>,
    /// The requests that were changed.
    pub(super) changed: BTreeSet<MergeRequestId>,
}

impl<'a> QueueBuilder<'a> {
    fn new(
        town: &'a Town,
        machine: &'a dyn MergeMachine,
        rig: &'a Rig,
        repository: &'a dyn MergeRepository,
        name: &'a QueueName,
        builder: &'a str,
    ) -> Result<Self> {
        let files = file_layers(town)?;
        let layers = town.read(|reader| layers_over(&files, reader))?;
        let method = match layers.rig_land(&rig.slug)?.as_str() {
            "squash" => LandMethod::Squash,
            "merge" => LandMethod::Merge,
            _ => LandMethod::Rebase,
        };
        let person = match layers.rig_author(&rig.slug)?.as_str() {
            "agent" => None,
            _ => machine.person(rig),
        };
        Ok(Self {
            town,
            machine,
            rig,
            name,
            builder,
            repository,
            method,
            person,
            batch_max: usize::try_from(layers.mq_batch()?.max(1)).unwrap_or(1),
            repairs_max: u32::try_from(layers.mq_repairs()?).unwrap_or(0),
            is_sole: true,
            is_fetched: false,
            is_turn_taken: false,
            moved_to: None,
            alone: BTreeSet::new(),
            unsigned: None,
            changed: BTreeSet::new(),
        })
    }

    fn work(&mut self, scope: PassScope) -> Result<()> {
        while self.step(scope)? {}
        Ok(())
    }

    /// The same for the only process that works on the queue. An error that is not of the store is reported, and the requests
    /// that it stops are held for it; if the repository of this machine was damaged, it is repaired and used once more.
    fn work_or_hold(&mut self, scope: PassScope, report: &mut PassReport) -> Result<()> {
        let mut worked = self.work(scope);
        if worked.as_ref().is_err_and(|error| !error.is_of_store())
            && self.repository.repair().unwrap_or(false)
        {
            worked = self.work(scope);
        }
        match worked {
            Err(error) if !error.is_of_store() => {
                let why = with_causes(&error);
                self.hold_waiting(RequestHold::QueueError, &why, ERROR_DELAY)?;
                report.problems.push((self.name.clone(), why));
                Ok(())
            }
            worked => worked,
        }
    }

    /// Makes one batch. `false` if there is nothing more to do now.
    fn step(&mut self, scope: PassScope) -> Result<bool> {
        let failed = git_failed(self.rig);
        let target = &self.name.target;
        if !self.has_work(scope)? {
            return Ok(false);
        }
        let mut is_fetched = std::mem::take(&mut self.is_fetched);
        let turn = match self.repository.turn_if_free().map_err(&failed)? {
            Some(turn) => turn,
            None if scope == PassScope::Everything(BuilderWait::Skips) => {
                self.is_turn_taken = true;
                return Ok(false);
            }
            None => {
                // The process that had the turn may have moved the target.
                is_fetched = false;
                self.repository.turn().map_err(&failed)?
            }
        };
        if !is_fetched {
            match self.repository.fetch() {
                Ok(()) => {}
                Err(GitError::Unreachable { message, .. }) if self.is_sole => {
                    self.hold_waiting(RequestHold::OriginUnreachable, &message, UNREACHABLE_DELAY)?;
                    return Ok(false);
                }
                Err(GitError::Unreachable { .. }) => return Ok(false),
                Err(error) => return Err(failed(error)),
            }
        }
        if self.is_sole {
            self.settle()?;
        } else if self.is_pushing()? {
            // The process that works on the queue lands direct requests next.
            return Ok(false);
        }
        let Some(tip) = self.repository.tip(target).map_err(&failed)? else {
            let words = format!("the origin has no branch {target}");
            self.hold_waiting(RequestHold::TargetGone, &words, TARGET_GONE_DELAY)?;
            self.follow_renamed_branch()?;
            return Ok(false);
        };
        // If that fails, the next pass looks again.
        let _ = self.repository.look_at_target(self.town, target, &tip);
        self.require_reviews(&self.line()?)?;
        let Some(batch) = self.next_batch(&tip, scope)? else { return Ok(false) };
        if let [request] = batch.requests.as_slice()
            && request.method == MergeMethod::PullRequest
        {
            // Only pushes to the target take turns; the tool of the service may take its time.
            drop(turn);
            return Ok(self.publish(&tip, request)? == BatchProgress::GoOn);
        }
        match self.run_batch(turn, &tip, &batch)? {
            BatchProgress::GoOn => Ok(true),
            BatchProgress::Stop => Ok(false),
        }
    }

    /// Moves requests whose target is gone to the branch that the rig lands on now. `gt rig set` moves the others; these
    /// were being built. A branch that was chosen for the work is not replaced.
    fn follow_renamed_branch(&mut self) -> Result<()> {
        let (slug, target) = (&self.name.rig, self.name.target.as_str());
        let rig = self.town.read(|reader| Ok(reader.rig(slug.as_str())?))?;
        let branch = rig.map(|rig| rig.default_branch).filter(|branch| branch != target);
        let Some(branch) = branch else { return Ok(()) };
        if self.repository.tip(&branch).map_err(git_failed(self.rig))?.is_none() {
            return Ok(());
        }
        let moved = self.town.write(|writer| {
            let mut moved = Vec::new();
            for request in writer.merge_line(slug, target)? {
                if !has_chosen_target(writer, &request)?
                    && move_request_in(writer, &request, &branch)?
                {
                    moved.push(request.id);
                }
            }
            Ok(moved)
        })?;
        if !moved.is_empty() {
            self.moved_to = Some(QueueName { rig: slug.clone(), target: branch });
        }
        self.changed.extend(moved);
        Ok(())
    }

    /// Whether something can be done in the queue now.
    fn has_work(&self, scope: PassScope) -> Result<bool> {
        let now = self.town.now();
        Ok(self.line()?.iter().any(|request| {
            let is_due = request.waits_until(now).is_none();
            match scope {
                PassScope::Direct => {
                    request.state == RequestState::Queued && is_direct(request) && is_due
                }
                PassScope::Everything(_) => {
                    (is_actionable(request) && is_due)
                        || (is_left_to_people(request) && self.is_merged(request).unwrap_or(false))
                }
            }
        }))
    }

    /// Whether a candidate is being pushed to the target.
    fn is_pushing(&self) -> Result<bool> {
        let (rig, target) = (&self.name.rig, self.name.target.as_str());
        Ok(!self.town.read(|reader| Ok(reader.landing_candidates(rig, target)?))?.is_empty())
    }

    /// Lets something happen to requests. Those for which it does not follow from their state are left out.
    pub(super) fn act(
        &mut self,
        requests: &[MergeRequestId],
        action: RequestAction,
        origin: OriginAnswer,
        note: &RequestNote,
    ) -> Result<Vec<MergeRequest>> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let acted = self.town.write(|writer| {
            let mut acted = Vec::new();
            for id in requests {
                acted.extend(act_in(writer, id, action, origin, note.clone())?);
            }
            Ok(acted)
        })?;
        self.changed.extend(acted.iter().map(|request| request.id.clone()));
        Ok(acted)
    }

    /// Holds every request of the queue that waits for its turn.
    fn hold_waiting(&mut self, reason: RequestHold, words: &str, delay: Duration) -> Result<()> {
        let line = self.line()?;
        let unpushed: Vec<MergeRequestId> = line
            .iter()
            .filter(|request| self.is_unpushed(request))
            .map(|request| request.id.clone())
            .collect();
        let waiting: Vec<MergeRequestId> = line
            .into_iter()
            .filter(|request| {
                matches!(
                    request.state,
                    RequestState::Queued | RequestState::Building | RequestState::Checking
                ) || request.state == RequestState::Held(reason)
            })
            .map(|request| request.id)
            .collect();
        let note = RequestNote {
            detail: words.to_owned(),
            retry_at: Some(self.town.now().plus(delay)),
            ..RequestNote::default()
        };
        self.act(&waiting, RequestAction::Hold(reason), OriginAnswer::Unknown, &note)?;
        let unmerged = RequestAction::Hold(RequestHold::Unmerged);
        self.act(&unpushed, unmerged, OriginAnswer::Unknown, &note)?;
        Ok(())
    }

    /// The open requests of the queue.
    pub(super) fn line(&self) -> Result<Vec<MergeRequest>> {
        self.town.read(|reader| Ok(reader.merge_line(&self.name.rig, &self.name.target)?))
    }

    /// A commit that a row names.
    pub(super) fn commit(&self, text: &str) -> Result<Commit> {
        Commit::parse(text).ok_or_else(|| {
            OperationError::rejected(format!(
                "\"{text}\" in the queue of {} is no commit",
                self.rig.slug
            ))
        })
    }
}
