//! The questions that people ask, and whether their answers are true and agree.

use gt_core::decide::{Cap, ParkHold, WaitReason};
use gt_core::schedule::{CloseReason, DoneStatus, ParkSubject, ParkSubjectKind, RunState};
use gt_core::{BeadId, RigState, Status};
use gt_scheduling::dispatch::{CycleCaller, Dispatcher, MemorySpawner};
use gt_scheduling::queue::{self, QueuedBead};

use crate::check::StoreSnapshot;
use crate::simulation::Simulation;
use crate::violation::Invariant;

impl Simulation {
    /// Now and then, asks everything that can be asked.
    pub(crate) fn look_closely(&self) {
        let bead = {
            let mut state = self.state();
            if !state.random.one_in(12) {
                return;
            }
            state.random.pick(&self.beads).cloned()
        };
        self.check_agreement();
        if let Some(bead) = bead {
            self.check_reasons(&self.snapshot(), &bead);
        }
    }

    /// The list names exactly the beads that a cycle would start, and the numbers fit.
    pub(crate) fn check_agreement(&self) {
        let town = self.observer_town();
        let list = self.certain("list", queue::list(&town, CycleCaller::Hand));
        let startable = |queued: &&QueuedBead| queued.reasons.is_empty();
        let listed: Vec<&BeadId> =
            list.iter().filter(startable).map(|queued| &queued.context.bead).collect();
        let spawner = MemorySpawner::default();
        let host = self.host_named(0);
        let rehearsal = Dispatcher::new(&town, &spawner)
            .with_starter("", &host)
            .with_dry_run(true)
            .with_limit(0);
        let rehearsed = self.certain("dry run", rehearsal.dispatch());
        let dispatched: Vec<&BeadId> =
            rehearsed.dispatched.iter().map(|started| &started.bead).collect();
        if listed != dispatched {
            self.violated(
                Invariant::Agreement,
                format!(
                    "the list would start {listed:?}, a cycle {dispatched:?}; the lanes are {:?}",
                    self.read(|reader| reader.lanes())
                ),
            );
        }
        let status = self.certain("status", queue::status(&town));
        let live = self.read(|reader| reader.live_runs());
        let live = live.into_iter().filter(|run| run.executor.takes_slot()).count();
        let waiting: Vec<&QueuedBead> =
            list.iter().filter(|queued| !queued.context.starting).collect();
        let ready = waiting.iter().filter(|queued| queued.is_ready()).count();
        // A bead that was woken stays awake when the clock is set back; the evaluator still looks
        // at the date.
        let ready = if self.state().set_back { status.ready } else { ready as u64 };
        let counted = (status.queued, status.ready, status.live as usize);
        let found = (waiting.len() as u64, ready, live);
        if counted != found {
            self.violated(
                Invariant::Agreement,
                format!(
                    "(queued, ready, live) is {counted:?} in the status, {found:?} in the list"
                ),
            );
        }
    }

    /// A bead that is not running has reasons, each of them true; without any it is the next to start.
    pub(crate) fn check_reasons(&self, snapshot: &StoreSnapshot, id: &BeadId) {
        let town = self.observer_town();
        let why = self.certain("why", queue::why(&town, id.as_str()));
        let wrong = |what: String| -> ! {
            self.violated(Invariant::Reason, format!("{id}: {what}; it says {:?}", why.reasons))
        };
        if why.remedies.len() != why.reasons.len() {
            wrong(format!("{} remedies", why.remedies.len()));
        }
        let (live, latest) = (snapshot.live(id), snapshot.latest.get(id));
        let open = latest.is_some_and(|context| context.closed.is_none());
        if let Some(run) = live {
            let held = match why.reasons.as_slice() {
                [WaitReason::WithCrew(_, held)] => {
                    *held == run.id && run.executor == gt_core::ExecutorKind::None
                }
                [WaitReason::StartInProgress(held)] => {
                    run.state == RunState::Starting && *held == run.id
                }
                [WaitReason::Running(held)] => run.state != RunState::Starting && *held == run.id,
                _ => false,
            };
            if !held {
                wrong(format!("{} is live", run.id));
            }
            return;
        }
        let daemon = self.certain("list", queue::list(&town, CycleCaller::Daemon));
        let listed = daemon.iter().find(|queued| queued.context.bead == *id);
        if open && listed.is_none_or(|queued| queued.reasons != why.reasons) {
            wrong(format!("the list says {:?}", listed.map(|queued| &queued.reasons)));
        }
        if !open && why.reasons.is_empty() {
            wrong("it is not scheduled".to_owned());
        }
        let Some(row) = snapshot.beads.get(id) else { return };
        let blockers = snapshot.blockers(row);
        let says = |kind: fn(&WaitReason) -> bool| why.reasons.iter().any(kind);
        let over = row.bead.status == Status::Closed;
        let blocked = says(|reason| {
            matches!(reason, WaitReason::BlockedBy(_) | WaitReason::BlockerFailed(_))
        });
        let merging = says(|reason| matches!(reason, WaitReason::Merging(_)));
        if !over && !merging && blocked == blockers.is_empty() {
            wrong(format!("{blockers:?} block it"));
        }
        if open && says(|reason| matches!(reason, WaitReason::Paused(..))) != snapshot.paused {
            wrong(format!("paused is {}", snapshot.paused));
        }
        for reason in &why.reasons {
            if !self.is_true(snapshot, row, reason) {
                wrong(format!("{reason} is not true"));
            }
        }
    }

    /// Whether something is parked like this.
    fn is_held(
        &self,
        snapshot: &StoreSnapshot,
        kind: ParkSubjectKind,
        name: &str,
        hold: &ParkHold,
    ) -> bool {
        let means = ParkSubject { kind, name: name.to_owned() };
        let park = snapshot.parks.iter().find(|park| park.means == means);
        let Some((park, closed)) = park.and_then(|park| Some((park, park.closed?))) else {
            return false;
        };
        match hold {
            ParkHold::Until(until) => closed.until == *until && self.observer_time() < *until,
            ParkHold::Once => false,
            // One that goes before it and has no run yet.
            ParkHold::Trial(run) if run.epoch == 0 => self.beads.contains(&run.bead),
            ParkHold::Trial(run) => {
                let live = snapshot.live(&run.bead).is_some_and(|live| live.id == *run);
                live && park.trial.as_ref() == Some(run)
            }
            ParkHold::Ramp(most, next) => {
                let now = self.observer_time();
                park.is_limit() && *most >= 2 && *next > now && now >= closed.until
            }
        }
    }

    /// Whether a reason holds, as far as it can be told without the evaluator.
    fn is_true(
        &self,
        snapshot: &StoreSnapshot,
        row: &gt_store::BeadRow,
        reason: &WaitReason,
    ) -> bool {
        let (bead, now) = (&row.bead, self.observer_time());
        let latest = snapshot.latest.get(&bead.id);
        let closed_as = |reason: CloseReason| {
            let closed = latest.and_then(|context| context.closed.as_ref());
            closed.is_some_and(|closed| closed.reason == reason)
        };
        let last_run = snapshot.last_run(&bead.id);
        let last = last_run.map(|run| run.state);
        let said = |what: DoneStatus| {
            last_run.is_some_and(|run| run.state == RunState::Cancelled && run.said == Some(what))
        };
        let state_of = |slug: &gt_core::RigSlug| {
            snapshot.rigs.iter().find(|rig| rig.slug == *slug).map(|rig| rig.state)
        };
        match reason {
            WaitReason::BlockedBy(ids) | WaitReason::BlockerFailed(ids) => {
                let blockers = snapshot.blockers(row);
                !ids.is_empty() && ids.iter().all(|id| blockers.contains(id))
            }
            WaitReason::DeferredUntil(until) => *until > now && bead.defer_until == Some(*until),
            WaitReason::Deferred => bead.status == Status::Deferred && bead.defer_until.is_none(),
            WaitReason::Status(status) => bead.status == *status,
            WaitReason::ClaimedByHand(by) => {
                bead.status == Status::InProgress && bead.assignee == *by
            }
            WaitReason::AssignedTo(name) => bead.assignee == *name && !name.is_empty(),
            WaitReason::NotScheduled => latest.is_none_or(|context| context.closed.is_some()),
            WaitReason::Cleared(_) => closed_as(CloseReason::Cleared),
            WaitReason::CircuitBroken(_) => closed_as(CloseReason::CircuitBroken),
            WaitReason::Quarantined(_) => closed_as(CloseReason::Quarantined),
            WaitReason::RunCancelled(_) => {
                last == Some(RunState::Cancelled) && last_run.is_some_and(|run| run.said.is_none())
            }
            WaitReason::Escalated(_) => said(DoneStatus::Escalated),
            WaitReason::PutOff(_) => said(DoneStatus::Deferred),
            WaitReason::AttemptsUsedUp(_) => last == Some(RunState::Lost),
            WaitReason::OverLimit(run, limit) => {
                let is_it =
                    |last: &&gt_core::Run| last.id == *run && last.over_limit == Some(*limit);
                last == Some(RunState::Lost) && last_run.as_ref().is_some_and(is_it)
            }
            WaitReason::RigParked(rig) => state_of(rig) == Some(RigState::Parked),
            WaitReason::Backoff(at) => {
                *at > now && latest.is_some_and(|context| context.next_attempt_at == Some(*at))
            }
            WaitReason::Paused(..) => snapshot.paused,
            WaitReason::RigDocked(rig) => state_of(rig) == Some(RigState::Docked),
            WaitReason::ConvoyPaused(convoy, ..) => snapshot.convoys.iter().any(|seen| {
                seen.bead.id == *convoy
                    && seen.tracks(&bead.id)
                    && seen.is_paused()
                    && !seen.is_over()
            }),
            WaitReason::ConvoyStaged(convoy) => snapshot
                .convoys
                .iter()
                .any(|seen| seen.bead.id == *convoy && seen.tracks(&bead.id) && seen.is_staged()),
            WaitReason::NoSlot(Cap::Convoy(convoy, cap)) => snapshot.convoys.iter().any(|seen| {
                let is_it = seen.bead.id == *convoy && seen.tracks(&bead.id);
                is_it && seen.cap() == *cap && !seen.is_over()
            }),
            WaitReason::QueueGate => latest.is_some_and(|context| context.gated),
            WaitReason::RuntimeParked(name, hold) => {
                self.is_held(snapshot, ParkSubjectKind::Runtime, name, hold)
            }
            WaitReason::AccountLimited(name, hold) => {
                self.is_held(snapshot, ParkSubjectKind::Account, name, hold)
            }
            WaitReason::NoSlot(_) | WaitReason::OnePerAgent(..) | WaitReason::Budget(_) => {
                latest.is_some_and(|context| context.closed.is_none())
            }
            WaitReason::Placement(_) | WaitReason::PreferredHost(..) => self.is_fleet(),
            WaitReason::Merging(request) => {
                snapshot.open_request(&bead.id).is_some_and(|open| **request == *open)
            }
            WaitReason::MembersOpen(_) => bead.issue_type.is_convoy(),
            // Nothing that is simulated makes these true.
            WaitReason::ParentDeferred(..)
            | WaitReason::Pinned
            | WaitReason::NotWork(_)
            | WaitReason::Ephemeral
            | WaitReason::Running(_)
            | WaitReason::StartInProgress(_)
            | WaitReason::NotSlingable(_)
            | WaitReason::TownLevel
            | WaitReason::Review
            | WaitReason::ReviewsWaiting { .. }
            | WaitReason::WithCrew(..)
            | WaitReason::CannotStart(_)
            | WaitReason::RigGone(_)
            | WaitReason::RigCannotRun(_)
            | WaitReason::OtherHost(..)
            | WaitReason::Memory { .. }
            | WaitReason::Disk { .. }
            | WaitReason::Load(_)
            | WaitReason::WaitsForPullAgent
            | WaitReason::ExecutorRemoved(_) => false,
        }
    }
}
