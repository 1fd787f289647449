//! The end of a seed: nothing goes wrong any more, and everything that can be done is done.

use std::time::Duration;

use gt_core::decide::{HostRefusal, WaitReason};
use gt_core::merging::{RequestHold, RequestState};
use gt_core::schedule::Run;
use gt_core::{RigState, Status};
use gt_scheduling::dispatch::CycleCaller;
use gt_scheduling::queue;
use gt_town::rigs;
use gt_town::scheduler_settings::Overrides;

use crate::simulation::{CycleOverrides, Simulation};
use crate::violation::Invariant;
use crate::world::SimulatedAgentEnd;

/// So many rounds are enough for every backoff, cooldown and attempt there can be.
const ROUNDS_MAX: u32 = 600;
/// The longest that anything waits by itself is a cooldown of forty minutes.
const QUIET_ROUNDS: u32 = 30;

impl Simulation {
    /// Lets everything come to rest, and looks whether it should have.
    pub(crate) fn come_to_rest(&self) {
        self.tell("from now on nothing goes wrong");
        let town = self.town_without_seam("caretaker");
        self.certain("resume", queue::resume(&town));
        self.state().sick = false;
        self.lift_budgets();
        for rig in &self.rigs {
            self.certain(
                "unpark",
                rigs::set_state(
                    &town,
                    rig,
                    &[RigState::Parked, RigState::Docked],
                    RigState::Active,
                ),
            );
        }
        self.resume_convoys();
        self.heal_fleet();
        self.calm_origins();
        // Dates that were set before the clock went back may be days ahead.
        let dates = self.snapshot().beads.into_values().filter_map(|row| row.bead.defer_until);
        if let Some(last) = dates.max() {
            self.clock.advance(last.since(self.clock.peek()));
            self.heal_fleet();
        }
        let (mut quiet, mut last_event) = (0, 0);
        for _ in 0..ROUNDS_MAX {
            self.recover_everywhere();
            self.scan_convoys();
            self.finish_everything();
            self.finish_merging();
            let liberties = CycleOverrides { cap: None, by_hand: true };
            let overrides = Overrides { spawn_parallelism: Some(1), ..Overrides::default() };
            for here in 0..self.hosts().len().max(1) {
                self.state().here = here;
                self.as_process("cycle", |id| self.dispatch(id, liberties, overrides, None));
            }
            self.observe();
            let now = self.read(|reader| reader.last_event_number());
            quiet = if now == last_event { quiet + 1 } else { 0 };
            last_event = now;
            if quiet > QUIET_ROUNDS {
                break;
            }
            self.pass_quiet_time(Duration::from_mins(2));
        }
        self.check_rest();
    }

    /// Every supervisor goes on, and every agent ends.
    fn finish_everything(&self) {
        loop {
            let (supervisors, agent, end) = {
                let mut state = self.state();
                let agent = state.world.agents().next().cloned();
                let ends = vec![
                    (8, SimulatedAgentEnd::Well),
                    (1, SimulatedAgentEnd::Badly),
                    (1, SimulatedAgentEnd::Killed),
                ];
                let end = state.random.weighted(ends).unwrap_or(SimulatedAgentEnd::Well);
                state.steps += 1;
                (state.world.idle_supervisors(), agent, end)
            };
            if supervisors.is_empty() && agent.is_none() {
                return;
            }
            for id in supervisors {
                self.supervise(id);
                self.observe();
            }
            if let Some(run) = agent {
                self.state().world.end_agent(&run, end);
                self.tell(format!("the agent of {run} ends: {end:?}"));
            }
        }
    }

    fn check_rest(&self) {
        let stuck = |what: String| -> ! { self.violated(Invariant::Progress, what) };
        let snapshot = self.snapshot();
        // A run of a person lasts until they end it.
        let ends_by_itself = |run: &&Run| run.state.is_live() && run.executor.takes_slot();
        if let Some(run) = snapshot.runs.iter().find(ends_by_itself) {
            stuck(format!("{} is {} for ever", run.id, run.state.as_str()));
        }
        let left = self.state().world.processes.values().map(|left| left.what.clone()).next();
        if let Some(what) = left {
            stuck(format!("{what} never ends"));
        }
        let town = self.observer_town();
        self.check_agreement();
        for queued in self.certain("list", queue::list(&town, CycleCaller::Hand)) {
            if !queued.reasons.iter().any(needs_a_person) {
                stuck(format!("{} waits for {:?}", queued.context.bead, queued.reasons));
            }
        }
        for (id, row) in &snapshot.beads {
            self.check_reasons(&snapshot, id);
            let why = self.certain("why", queue::why(&town, id.as_str()));
            let over = row.bead.status == Status::Closed || snapshot.live(id).is_some();
            if !over && !why.reasons.iter().any(needs_a_person) {
                stuck(format!("{id} waits for {:?}", why.reasons));
            }
        }
        self.check_said();
        self.check_branches_arrived(&snapshot);
        self.check_nothing_stranded();
        let acknowledged = self.state().acknowledged.clone();
        for number in acknowledged {
            if self.read(|reader| reader.context_by_number(number)).is_none() {
                self.violated(Invariant::Kept, format!("the context {number} is gone"));
            }
        }
        if let Some(first) = self.read(|reader| reader.differences()).first() {
            self.violated(Invariant::Derived, first.clone());
        }
    }
}

/// Whether a person has to act before this reason goes away. A blocking bead is looked at itself.
fn needs_a_person(reason: &WaitReason) -> bool {
    match reason {
        // A host was asked for that does not have what the rig needs.
        WaitReason::Placement(answer) => answer.hosts.iter().all(|(_, refusal)| match refusal {
            None
            | Some(
                HostRefusal::State(_)
                | HostRefusal::EarlierRun(_)
                | HostRefusal::Full(_)
                | HostRefusal::Memory,
            ) => false,
            Some(
                HostRefusal::NotAskedFor(_)
                | HostRefusal::NotOfRig(..)
                | HostRefusal::OtherRigs(_)
                | HostRefusal::NoLabel(_)
                | HostRefusal::NoRuntime(_),
            ) => true,
        }),
        WaitReason::Merging(request) => match request.state {
            RequestState::Conflict
            | RequestState::Failed
            | RequestState::Held(RequestHold::Unmerged) => true,
            RequestState::Queued
            | RequestState::Building
            | RequestState::Checking
            | RequestState::Landing
            | RequestState::Review
            | RequestState::Held(_)
            | RequestState::Landed
            | RequestState::Cancelled
            | RequestState::Superseded => false,
        },
        WaitReason::BlockedBy(_)
        | WaitReason::BlockerFailed(_)
        | WaitReason::Deferred
        | WaitReason::Status(_)
        | WaitReason::Pinned
        | WaitReason::NotWork(_)
        | WaitReason::Ephemeral
        | WaitReason::ClaimedByHand(_)
        | WaitReason::AssignedTo(_)
        | WaitReason::NotSlingable(_)
        | WaitReason::TownLevel
        | WaitReason::ConvoyStaged(_)
        | WaitReason::ConvoyPaused(..)
        | WaitReason::MembersOpen(_)
        | WaitReason::NotScheduled
        | WaitReason::Cleared(_)
        | WaitReason::CircuitBroken(_)
        | WaitReason::Quarantined(_)
        | WaitReason::RunCancelled(_)
        | WaitReason::AttemptsUsedUp(_)
        | WaitReason::OverLimit(..)
        | WaitReason::Review
        | WaitReason::Escalated(_)
        | WaitReason::PutOff(_)
        | WaitReason::ReviewsWaiting { .. }
        | WaitReason::WithCrew(..)
        | WaitReason::CannotStart(_)
        | WaitReason::RigGone(_)
        | WaitReason::RigDocked(_)
        | WaitReason::RigCannotRun(_) => true,
        WaitReason::DeferredUntil(_)
        | WaitReason::ParentDeferred(..)
        | WaitReason::Running(_)
        | WaitReason::StartInProgress(_)
        | WaitReason::RigParked(_)
        | WaitReason::ExecutorRemoved(_)
        | WaitReason::Backoff(_)
        | WaitReason::Paused(..)
        | WaitReason::QueueGate
        | WaitReason::WaitsForPullAgent
        | WaitReason::OtherHost(..)
        | WaitReason::PreferredHost(..)
        | WaitReason::OnePerAgent(..)
        | WaitReason::NoSlot(_)
        | WaitReason::RuntimeParked(..)
        | WaitReason::AccountLimited(..)
        | WaitReason::Budget(_)
        | WaitReason::Memory { .. }
        | WaitReason::Disk { .. }
        | WaitReason::Load(_) => false,
    }
}
