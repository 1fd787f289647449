//! The life of a supervisor, step by step; each of them may be its last.

use std::time::Duration;

use gt_core::BeadId;
use gt_core::schedule::{Run, RunId, RunState};
use gt_scheduling::run_transitions::Claim;

use crate::planted::Planted;
use crate::simulation::Simulation;
use crate::world::{ProcessId, SimulatedAgentEnd, SimulatedAnswer, SupervisorStage};

impl Simulation {
    /// Takes the next step; `false` if it was the last.
    pub(crate) fn supervisor_step(&self, id: ProcessId) -> bool {
        let supervisor = {
            let state = self.state();
            state.world.processes.get(&id).and_then(|process| process.supervisor.clone())
        };
        let Some(supervisor) = supervisor else { return false };
        let run = supervisor.run;
        match supervisor.stage {
            SupervisorStage::Begun => self.take_lock(id, &run),
            SupervisorStage::Locked => self.look_for_earlier(id, &run),
            SupervisorStage::Alone => self.take_place(id, &run),
            SupervisorStage::Housed if self.planted == Some(Planted::ExecBeforeClaim) => {
                self.execute(id, &run);
                self.claim(id, &run)
            }
            SupervisorStage::Housed => self.claim(id, &run),
            SupervisorStage::Claimed => self.start_agent(id, &run),
            SupervisorStage::Working => {
                self.tell(format!("{id} ends the agent of {run}, as it was asked"));
                self.state().world.end_agent(&run, SimulatedAgentEnd::Cancelled);
                true
            }
            SupervisorStage::Ended(end) => self.write_end(id, &run, end),
        }
    }

    fn enter(&self, id: ProcessId, stage: SupervisorStage) -> bool {
        let mut state = self.state();
        let process = state.world.processes.get_mut(&id);
        let supervisor = process.and_then(|process| process.supervisor.as_mut());
        supervisor.map(|supervisor| supervisor.stage = stage).is_some()
    }

    /// Its first word, after which it ends unless it has started something.
    fn say(&self, id: ProcessId, said: SimulatedAnswer) {
        self.tell(format!("{id} says {said:?}"));
        self.state().world.said.insert(id, said);
    }

    fn take_lock(&self, id: ProcessId, run: &RunId) -> bool {
        let host = self.host_of(id);
        let taken = {
            let mut state = self.state();
            let free = !state.world.is_held(run);
            if free {
                state.world.hold(run, |holders| {
                    (holders.supervisor, holders.host) = (Some(id), host);
                });
            }
            free
        };
        if taken {
            self.tell(format!("{id} locks {run}"));
            return self.enter(id, SupervisorStage::Locked);
        }
        self.say(id, SimulatedAnswer::Failed("another supervisor has it".to_owned()));
        false
    }

    /// Asks the supervisor of a run to end it; the agent of one without a supervisor is killed.
    pub(crate) fn ask_to_end(&self, run: &RunId) {
        let mut state = self.state();
        if state.world.holders(run).supervisor.is_some() {
            state.world.asked.insert(run.clone());
        } else if state.world.is_held(run) {
            state.world.end_agent(run, SimulatedAgentEnd::Killed);
            drop(state);
            self.tell(format!("what is left of {run} is killed"));
        }
    }

    /// Ends the processes of a bead's runs on this process's host that are over in the store, because a person cancelled
    /// them or their worker said so.
    pub(crate) fn end_cancelled(&self, process: ProcessId, bead: &BeadId) {
        let host = self.host_of(process);
        for run in self.read(|reader| reader.runs_of(bead)) {
            if self.state().world.holders(&run.id).host == host {
                self.end_if_over(&run);
            }
        }
    }

    pub(crate) fn end_if_over(&self, run: &Run) {
        if matches!(run.state, RunState::Cancelled | RunState::Done) {
            self.ask_to_end(&run.id);
        }
    }

    fn look_for_earlier(&self, id: ProcessId, run: &RunId) -> bool {
        let ignored = self.planted == Some(Planted::EarlierIgnored);
        let host = self.host_of(id);
        let earlier = self.state().world.earlier(host, run).filter(|_| !ignored);
        match earlier {
            None => self.enter(id, SupervisorStage::Alone),
            Some(earlier) => {
                self.end_cancelled(id, &earlier.bead);
                self.say(id, SimulatedAnswer::Busy(format!("{earlier} has not ended yet")));
                false
            }
        }
    }

    /// Takes the tree that its run was given, unless the previous run is still there.
    fn take_place(&self, id: ProcessId, run: &RunId) -> bool {
        let known = self.read(|reader| reader.run(run));
        let Some(place) = known.and_then(|run| run.place).filter(|place| !place.is_crew()) else {
            return self.enter(id, SupervisorStage::Housed);
        };
        let ignored = self.planted == Some(Planted::TreeIgnored);
        let key = (self.host_of(id), place.clone());
        let before = {
            let mut state = self.state();
            let before = state.world.places.get(&key).cloned();
            let before = before.filter(|before| before != run && state.world.is_held(before));
            if before.is_none() || ignored {
                state.world.places.insert(key, run.clone());
            }
            before.filter(|_| !ignored)
        };
        let Some(before) = before else { return self.enter(id, SupervisorStage::Housed) };
        if let Some(run) = self.read(|reader| reader.run(&before)) {
            self.end_if_over(&run);
        }
        self.say(id, SimulatedAnswer::Taken(format!("{before} has not left {place} yet")));
        false
    }

    fn claim(&self, id: ProcessId, run: &RunId) -> bool {
        let town = self.town(id, "supervisor");
        let claimed =
            gt_scheduling::run_transitions::claim(&town, run, &self.workplace_of(run), None);
        let Some(mut answer) = self.reached("claim", claimed) else {
            self.say(id, SimulatedAnswer::Failed("the store does not answer".to_owned()));
            return false;
        };
        if self.planted == Some(Planted::EpochIgnored)
            && matches!(answer, Claim::Refused(_))
            && let Some(other) = self.starting_run_of(&run.bead)
        {
            answer = self.certain(
                "claim",
                gt_scheduling::run_transitions::claim(
                    &town,
                    &other,
                    &self.workplace_of(&other),
                    None,
                ),
            );
        }
        self.observe();
        match answer {
            Claim::Granted(_) => {
                self.tell(format!("{id} claims {run}"));
                self.enter(id, SupervisorStage::Claimed);
                // Where hosts have leases no time may pass here, as if the machine stood still.
                if self.is_fleet() { self.start_agent(id, run) } else { true }
            }
            Claim::Refused(why) => {
                self.say(id, SimulatedAnswer::Failed(why));
                false
            }
        }
    }

    fn start_agent(&self, id: ProcessId, run: &RunId) -> bool {
        if self.fault(15) {
            let town = self.town(id, "supervisor");
            let why = "no such program";
            let failed = gt_scheduling::run_transitions::exec_failed(&town, run, why);
            if self.reached("exec_failed", failed).is_none() {
                return true;
            }
            self.say(id, SimulatedAnswer::Failed(why.to_owned()));
            return false;
        }
        self.execute(id, run);
        self.say(id, SimulatedAnswer::Started);
        self.enter(id, SupervisorStage::Working)
    }

    fn execute(&self, id: ProcessId, run: &RunId) {
        self.tell(format!("{id} executes the agent of {run}"));
        self.state().world.hold(run, |holders| holders.agent = true);
        self.observe_world();
    }

    fn write_end(&self, id: ProcessId, run: &RunId, end: SimulatedAgentEnd) -> bool {
        let town = self.town(id, "supervisor");
        if end == SimulatedAgentEnd::Well && self.hands_in(run) {
            let handed_in = self.sound("hand in", self.hand_in(&town, run));
            self.tell(format!("{id} writes the end of {run}: {handed_in:?}"));
            // Work that conflicts with the target is rebased, and handed in again.
            let is_live =
                self.read(|reader| reader.run(run)).is_some_and(|run| run.state.is_live());
            if !is_live && self.planted == Some(Planted::GoneHostLands) {
                self.hand_in_lost_work(run);
            }
            return is_live;
        }
        let followed = if end == SimulatedAgentEnd::Limited {
            let minutes = self.state().random.between(0, 30);
            let until = self.clock.peek().plus(Duration::from_mins(minutes));
            let limited =
                gt_scheduling::run_transitions::limited(&town, run, until, "come back later");
            self.reached("limited", limited)
        } else {
            let finished =
                gt_scheduling::run_transitions::finish(&town, run, &self.end_of(run, end));
            self.reached("finish", finished)
        };
        // It tries again until the store answers.
        let Some(followed) = followed else { return true };
        self.tell(format!("{id} writes the end of {run}: {end:?}, {followed:?}"));
        false
    }
}
