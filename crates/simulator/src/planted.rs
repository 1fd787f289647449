//! Steps that are wrong on purpose. The simulation has to find each of them.

use gt_beads::containers::update_containers_in;
use gt_core::decide::{Cap, ConvoyState, LANDED, WaitReason, integration_base};
use gt_core::hosting::{PullRequestFeedback, PullRequestRepair, PullRequestState};
use gt_core::merging::{
    MergeRequest, RequestHold, RequestPurpose, RequestState, Review, ReviewDecision,
};
use gt_core::schedule::{CloseReason, ContextOrigin, ParkSubject, Run, RunState};
use gt_core::settings::Layers;
use gt_core::{Bead, BeadChangeKind, BeadId, ExecutorKind, Outcome, RigSlug, RunId, Status, Uid};
use gt_scheduling::dispatch::{CycleCaller, Spawner as _};
use gt_scheduling::queue;
use gt_store::{Authorship, NewContext, StoreError, Writer};

use crate::cycle::SimulatedSpawner;
use crate::hosting::SimulatedPull;
use crate::simulation::Simulation;

/// A step that is wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A start looks at the caps before its transaction, and not in it.
    CapOutsideTransaction,
    /// A start does not ask again whether the scheduler was paused meanwhile.
    PauseOutsideTransaction,
    /// A start does not ask again whether the bead was blocked or put off, or its rig parked, meanwhile.
    StandingOutsideTransaction,
    /// A start does not ask whether its runtime or account is parked.
    ParkIgnored,
    /// A supervisor does not apply the limits of its run.
    LimitIgnored,
    /// The context is closed when its worker is spawned, not when that has taken the run.
    ContextClosedBeforeSwap,
    /// The supervisor executes the agent, and asks afterwards.
    ExecBeforeClaim,
    /// Recovery believes that no run has a process.
    RecoverIgnoresLock,
    /// Recovery schedules a lost run again without ending it.
    LostWithoutEnd,
    /// A supervisor whose run was taken back takes the next one of the same bead.
    EpochIgnored,
    /// A supervisor does not look whether an earlier run of its bead is gone.
    EarlierIgnored,
    /// A supervisor does not check that the previous run has left the tree that its run was given.
    TreeIgnored,
    /// Recovery schedules again a bead whose run a person or its worker has ended.
    EndIgnored,
    /// A start does not ask for the cap of a convoy.
    ConvoyCapIgnored,
    /// A start does not ask whether a convoy is paused.
    ConvoyPauseIgnored,
    /// The daemon lands a convoy that is done without asking whether it has landed.
    LandsAgain,
    /// The daemon schedules staged convoys too.
    StagedIsFed,
    /// A bead that is open again is not scheduled in the same change.
    ReopenedNotScheduled,
    /// A pass of a check is recorded that was not run.
    LandsUnchecked,
    /// The checks run on another tree than that of the candidate.
    ChecksOtherTree,
    /// A builder does not ask whether the target has a commit already.
    LandsTwice,
    /// The bead is closed before the push.
    ClosesBeforePush,
    /// A push goes on when the lease of its builder is over.
    PushesWithoutLease,
    /// A worker's approval of its own work counts.
    ApprovesItself,
    /// The approval of a commit counts for other commits too.
    ApprovalCarriedOver,
    /// A pull request is opened without looking whether it is there.
    OpensTwice,
    /// Work has landed as soon as the service says that its pull request is merged.
    LandsWhenMerged,
    /// A comment that has had a repair starts another one.
    AnswersTwice,
    /// A comment of a person who may not write starts a repair.
    AnswersStranger,
    /// A revert leaves its bead closed, and has not landed.
    RevertClosesBead,
    /// A convoy with a branch of its own lands when its members are done.
    ConvoyLandsEarly,
    /// A host counts the age of its lease by its wall clock.
    TrustsOwnClock,
    /// A host that was gone hands in the work of a run that was declared lost.
    GoneHostLands,
}

impl Planted {
    pub(crate) fn replaces_cycles(self) -> bool {
        matches!(
            self,
            Self::CapOutsideTransaction
                | Self::PauseOutsideTransaction
                | Self::StandingOutsideTransaction
                | Self::ParkIgnored
                | Self::ConvoyCapIgnored
                | Self::ConvoyPauseIgnored
        )
    }
}

impl Planted {
    /// Whether it shows only where work becomes pull requests: then all work does, which saves seeds.
    pub(crate) fn needs_pull_requests(self) -> bool {
        matches!(
            self,
            Self::OpensTwice | Self::LandsWhenMerged | Self::AnswersTwice | Self::AnswersStranger
        )
    }

    /// Whether it shows only where rigs have origins.
    pub(crate) fn needs_origins(self) -> bool {
        self.needs_pull_requests() || self == Self::GoneHostLands
    }

    /// Whether it shows only where there are several hosts.
    fn needs_fleet(self) -> bool {
        matches!(self, Self::TrustsOwnClock | Self::GoneHostLands)
    }

    /// Whether it shows only where there are pull requests, reverts or branches of convoys.
    fn needs_hosting(self) -> bool {
        self.needs_pull_requests()
            || matches!(self, Self::RevertClosesBead | Self::ConvoyLandsEarly)
    }
}

/// Seeds from here on know pull requests, reverts and branches of convoys. Histories with them are long, and the seeds below
/// stay as quick as they were.
const HOSTED_SEEDS: u64 = 1_000_000;

/// Seeds from here on know several hosts with leases.
const FLEET_SEEDS: u64 = 2_000_000;

impl Simulation {
    /// Whether several hosts work on the town in this history.
    pub(crate) fn has_fleet(&self) -> bool {
        self.seed >= FLEET_SEEDS || self.planted.is_some_and(Planted::needs_fleet)
    }

    /// Whether people and programs use pull requests, reverts and branches of convoys in this history.
    pub(crate) fn has_hosting(&self) -> bool {
        (HOSTED_SEEDS..FLEET_SEEDS).contains(&self.seed)
            || self.planted.is_some_and(Planted::needs_hosting)
    }
}

impl Simulation {
    fn author(&self) -> Authorship {
        Authorship { actor: "planted".to_owned(), at: self.clock.peek(), worker: None }
    }

    fn write<T>(&self, work: impl FnOnce(&mut Writer<'_>) -> Result<T, StoreError>) -> T {
        let written = self.store.write(&self.author(), work);
        self.certain("a planted step", written.map_err(Into::into))
    }

    /// The run of a bead that is starting.
    pub(crate) fn starting_run_of(&self, bead: &BeadId) -> Option<RunId> {
        let live = self.read(|reader| reader.live_run(bead));
        live.filter(|run| run.state == RunState::Starting).map(|run| run.id)
    }

    pub(crate) fn close_context_too_early(&self, run: &Run) {
        self.write(|writer| match writer.context_by_number(run.context)? {
            Some(context) if context.closed.is_none() => {
                writer.close_context(&context, CloseReason::Dispatched, "")
            }
            _ => Ok(()),
        });
    }

    /// Schedules a bead that has lost its worker, and leaves its run as it is.
    pub(crate) fn reschedule_without_end(&self) {
        for run in self.read(|reader| reader.live_runs()) {
            let gone = !self.state().world.is_held(&run.id);
            if run.state != RunState::Running || !gone {
                continue;
            }
            self.write(|writer| {
                let Some(context) = writer.latest_context(&run.id.bead)? else { return Ok(()) };
                if context.closed.is_none() {
                    return Ok(());
                }
                writer.insert_contexts(vec![NewContext {
                    parameters: context.parameters,
                    attempts: context.attempts,
                    ..NewContext::plain(
                        context.bead,
                        context.rig,
                        context.priority,
                        ContextOrigin::Recovery,
                    )
                }])?;
                Ok(())
            });
        }
    }

    /// Schedules beads whose last run was cancelled.
    pub(crate) fn reschedule_cancelled(&self) {
        for bead in &self.beads {
            self.write(|writer| {
                let last = writer.runs_of(bead)?.into_iter().next();
                let open = writer.bead(bead)?.is_some_and(|bead| bead.status == Status::Open);
                let latest = writer.latest_context(bead)?;
                let ended = last.zip(latest).filter(|(run, latest)| {
                    run.state == RunState::Cancelled && run.context == latest.number
                });
                let Some((_, latest)) = ended.filter(|_| open) else { return Ok(()) };
                writer.insert_contexts(vec![NewContext {
                    parameters: latest.parameters,
                    ..NewContext::plain(
                        latest.bead,
                        latest.rig,
                        latest.priority,
                        ContextOrigin::Recovery,
                    )
                }])?;
                Ok(())
            });
        }
    }

    /// Closes the beads of a candidate that is about to be pushed.
    pub(crate) fn close_before_push(&self, rig: &RigSlug, target: &str) {
        self.write(|writer| {
            for candidate in writer.landing_candidates(rig, target)? {
                for part in &candidate.parts {
                    let Some(old) = writer.merge_request(&part.request)? else { continue };
                    let (state, landed) = (RequestState::Landed, part.after.clone());
                    let new = MergeRequest { state, landed, ..old.clone() };
                    writer.save_merge_request(old.state, &new)?;
                }
            }
            Ok(())
        });
    }

    /// Records an approval of a request that waits for one, as if a person had looked at it.
    fn approve_in(
        writer: &mut Writer<'_>,
        request: &MergeRequest,
        actor: &str,
    ) -> Result<(), StoreError> {
        let review = Review {
            number: 0,
            request: request.id.clone(),
            actor: actor.to_owned(),
            decision: ReviewDecision::Approved,
            accepted: request.accepted.clone(),
            base: request.base.clone(),
            file: String::new(),
            line: None,
            body: String::new(),
            created_at: writer.now(),
        };
        writer.insert_review(review, &request.rig)?;
        if request.state == RequestState::Review {
            let queued = MergeRequest { state: RequestState::Queued, ..request.clone() };
            writer.save_merge_request(request.state, &queued)?;
        }
        Ok(())
    }

    /// Workers approve their own work.
    fn approve_own_work(&self) {
        self.write(|writer| {
            for request in writer.open_merge_requests()? {
                let run = match request.run().filter(|_| request.state == RequestState::Review) {
                    Some(run) => writer.run(&run)?,
                    None => None,
                };
                if let Some(run) = run {
                    Self::approve_in(writer, &request, &run.agent)?;
                }
            }
            Ok(())
        });
    }

    /// Any approval that a person has given counts for this request too.
    pub(crate) fn carry_approval_over(&self, request: &MergeRequest) {
        let is_any = !self.state().approved.is_empty();
        self.write(|writer| match writer.merge_request(&request.id)?.filter(|_| is_any) {
            Some(request) => Self::approve_in(writer, &request, "person"),
            None => Ok(()),
        });
    }

    /// Wrong steps that come before a pass over the queues.
    pub(crate) fn plant_in_queues(&self) {
        match self.planted {
            Some(Planted::ApprovesItself) => self.approve_own_work(),
            Some(Planted::LandsWhenMerged) => self.land_when_merged(),
            Some(Planted::AnswersTwice | Planted::AnswersStranger) => self.answer_wrongly(),
            _ => {}
        }
    }

    /// Lands the work of every pull request that the service says is merged.
    fn land_when_merged(&self) {
        for request in self.read(|reader| reader.open_merge_requests()) {
            let merged = self.with_origin(&request.rig, |origin| {
                let is_it = |pull: &&SimulatedPull| {
                    pull.branch == request.pull_request.branch
                        && pull.state == PullRequestState::Merged
                };
                let pull = origin.hosting.pulls.iter().find(is_it);
                let merged = pull.and_then(|pull| pull.merge_commit.clone());
                merged.filter(|commit| !origin.was_seen(&request.target, commit))
            });
            let is_held = request.state == RequestState::Held(RequestHold::PullRequestOpen);
            let Some(merged) = merged.filter(|_| is_held) else { continue };
            self.write(|writer| {
                let (state, landed) = (RequestState::Landed, merged.to_string());
                let new = MergeRequest { state, landed, ..request.clone() };
                writer.save_merge_request(request.state, &new).map(drop)
            });
        }
    }

    /// Lets the open request of a pull request answer a comment that was answered before, or one of a stranger.
    fn answer_wrongly(&self) {
        for request in self.read(|reader| reader.open_merge_requests()) {
            let comments = self.with_origin(&request.rig, |origin| {
                origin.hosting.feedback_of(&request.pull_request.branch)
            });
            let answered = self.read(|reader| reader.repaired_feedback(&request.id.bead));
            let is_wrong = |text: &PullRequestFeedback| match self.planted {
                Some(Planted::AnswersStranger) => !text.may_write,
                _ => answered.contains(&text.id),
            };
            let feedback: Vec<PullRequestFeedback> =
                comments.into_iter().filter(is_wrong).collect();
            if !feedback.is_empty() {
                let repair = PullRequestRepair { checks: Vec::new(), feedback };
                self.write(|writer| writer.add_pull_request_repair(&request.id, &repair));
            }
        }
    }

    /// Hands in the work of a run that was declared lost, as if it were live.
    pub(crate) fn hand_in_lost_work(&self, id: &RunId) {
        let lost = self.read(|reader| reader.run(id)).filter(|run| run.state == RunState::Lost);
        let Some(run) = lost else { return };
        let Some(commit) = self.commit_of(&run) else { return };
        let is_open = self.read(|reader| reader.open_merge_request(&id.bead)).is_some();
        if is_open {
            return;
        }
        self.write(|writer| {
            let (rig, target) = (run.rig.clone(), run.workplace.base.clone());
            let purpose = RequestPurpose::Work;
            let new = MergeRequest::new(id.bead.clone(), purpose, rig, target, writer.now());
            let accepted = commit.to_string();
            let (branch, base) = (run.workplace.branch.clone(), run.workplace.base_commit.clone());
            let epoch = Some(id.epoch);
            let request = MergeRequest { epoch, branch, accepted, base, ..new };
            writer.insert_merge_request(request).map(drop)
        });
    }

    /// Closes the bead of a revert that is on its way.
    pub(crate) fn close_reverted(&self, bead: &BeadId) {
        self.write(|writer| match writer.bead(bead)? {
            Some(old) => {
                let closed_at = Some(writer.now());
                let closed = Bead { status: Status::Closed, closed_at, ..old.clone() };
                writer.save_bead(&old, &closed, BeadChangeKind::Closed).map(drop)
            }
            None => Ok(()),
        });
    }

    /// Lands every convoy with a branch of its own whose members are done.
    pub(crate) fn land_before_last_request(&self) {
        self.write(|writer| {
            for tally in writer.convoys_without_open_members()? {
                let Some(convoy) = writer.bead(&tally.convoy)? else { continue };
                let is_open = ConvoyState::of(&convoy) == ConvoyState::Open;
                if is_open && integration_base(&convoy).is_some() && tally.members.are_done() {
                    land_in(writer, &convoy)?;
                }
            }
            Ok(())
        });
    }

    /// Lands every convoy of which everything is done, whether it has landed or not.
    pub(crate) fn land_all_that_are_done(&self) {
        self.write(|writer| {
            for tally in writer.convoy_tallies()?.iter().filter(|tally| tally.members.are_done()) {
                if let Some(convoy) =
                    writer.bead(&tally.convoy)?.filter(|b| b.issue_type.is_convoy())
                {
                    land_in(writer, &convoy)?;
                }
            }
            Ok(())
        });
    }

    /// Schedules the members of staged convoys.
    pub(crate) fn feed_staged_convoys(&self) {
        self.write(|writer| {
            for tally in writer.convoy_tallies()? {
                let convoy = writer.bead(&tally.convoy)?;
                let is_staged = |convoy: &Bead| ConvoyState::of(convoy) == ConvoyState::Staged;
                let Some(convoy) = convoy.filter(is_staged) else { continue };
                for edge in writer.edges_from(&convoy.id)? {
                    let Some(bead) = writer.bead(&edge.target)? else { continue };
                    // A bead that was scheduled before may be for people to look at, which is
                    // another matter.
                    let is_free =
                        bead.status == Status::Open && writer.latest_context(&bead.id)?.is_none();
                    let Some(rig) = bead.rig.clone().filter(|_| is_free) else { continue };
                    let mut new = NewContext::plain(
                        bead.id.clone(),
                        rig,
                        bead.priority,
                        ContextOrigin::Convoy,
                    );
                    new.parameters.convoy = Some(convoy.id.clone());
                    writer.insert_contexts(vec![new])?;
                }
            }
            Ok(())
        });
    }

    /// Opens a bead again and settles its containers, but schedules nothing.
    pub(crate) fn reopen_alone(&self, id: &BeadId) -> String {
        let written = self.store.write(&self.author(), |writer| {
            let old = writer.bead(id)?.filter(|bead| bead.status == Status::Closed);
            let Some(old) = old else { return Ok(()) };
            let (status, outcome) = (Status::Open, None);
            let new = Bead { status, outcome, closed_at: None, ..old.clone() };
            let new = Bead { assignee: String::new(), close_reason: String::new(), ..new };
            writer.save_bead(&old, &new, BeadChangeKind::Reopened)?;
            update_containers_in(writer, &Layers::default()).map(drop)
        });
        self.certain("a planted step", written);
        format!("{id} is open again")
    }

    /// A cycle that looks first, lets others act, and then starts the beads that it saw, checking
    /// again everything but one condition.
    pub(crate) fn wrong_cycle(
        &self,
        caller: CycleCaller,
        starter: &str,
        spawner: &SimulatedSpawner<'_>,
    ) {
        let town = self.town_without_seam("planted");
        let list = self.certain("list", queue::list(&town, caller));
        let ignored = |reason: &WaitReason| match self.planted {
            Some(Planted::ParkIgnored) => {
                ["runtime-parked", "account-limited"].contains(&reason.code())
            }
            Some(Planted::ConvoyCapIgnored) => {
                matches!(reason, WaitReason::NoSlot(Cap::Convoy(..)))
            }
            Some(Planted::ConvoyPauseIgnored) => reason.code() == "convoy-paused",
            _ => false,
        };
        let seen = list.into_iter().filter(|queued| queued.reasons.iter().all(ignored));
        let seen: Vec<u64> = seen.map(|queued| queued.context.number).collect();
        self.seam(spawner.process);
        for number in seen {
            // The last moment at which everything is checked, but for the omitted condition.
            let list = self.certain("list", queue::list(&town, caller));
            let again = list.iter().find(|queued| queued.context.number == number);
            let Some(again) = again else { continue };
            let overlooked = |reason: &WaitReason| match self.planted {
                Some(Planted::CapOutsideTransaction) => reason.code() == "no-slot",
                Some(Planted::PauseOutsideTransaction) => reason.code() == "paused",
                Some(Planted::StandingOutsideTransaction) => {
                    ["blocked", "blocker-failed", "deferred", "rig-parked"].contains(&reason.code())
                }
                _ => ignored(reason),
            };
            if again.reasons.iter().all(overlooked)
                && let Some(run) = self.start_anyway(number, starter)
            {
                self.tell(format!("{} starts {}", spawner.process, run.id));
                // Recovery finds the run, even if the start fails.
                let _ = spawner.spawn(&run);
            }
        }
    }

    fn start_anyway(&self, number: u64, starter: &str) -> Option<Run> {
        self.write(|writer| {
            let context = writer.context_by_number(number)?.filter(|c| c.closed.is_none());
            let Some(context) = context else { return Ok(None) };
            let Some(bead) = writer.bead(&context.bead)? else { return Ok(None) };
            let run = Run {
                agent: format!("{}/process", context.rig),
                host: self.host_named(0),
                gated: context.gated,
                starter: starter.to_owned(),
                created_by: "planted".to_owned(),
                ..Run::begun(
                    writer.next_run_id(&bead.id)?,
                    Uid::fresh(),
                    number,
                    context.rig.clone(),
                    ExecutorKind::Process,
                    writer.now(),
                )
            };
            writer.insert_run(&run)?;
            if self.planted != Some(Planted::ParkIgnored) {
                for means in ParkSubject::of_run(&run) {
                    writer.set_trial(&means, &run.id)?;
                }
            }
            writer.set_starting(&context, true)?;
            let mut hooked = bead.clone();
            hooked.assignee.clone_from(&run.agent);
            hooked.status = Status::Hooked;
            writer.save_bead(&bead, &hooked, BeadChangeKind::StatusChanged)?;
            Ok(Some(run))
        })
    }
}

fn land_in(writer: &mut Writer<'_>, convoy: &Bead) -> Result<(), StoreError> {
    let landed = Bead {
        status: Status::Closed,
        outcome: Some(Outcome::Success),
        closed_at: Some(writer.now()),
        close_reason: LANDED.to_owned(),
        ..convoy.clone()
    };
    writer.land_convoy(convoy, &landed).map(drop)
}
