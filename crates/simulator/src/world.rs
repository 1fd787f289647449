//! The simulated machine: processes, locks and agents.

use std::collections::{BTreeMap, BTreeSet};

use gt_core::decide::LossFacts;
use gt_core::schedule::{RunEnd, RunId, RunLoss, RunState, WorkerPlace};

use crate::fleet::HostNumber;

/// The number of a simulated process. None is given twice.
pub(crate) type ProcessId = u32;

/// A simulated process.
#[derive(Debug)]
pub(crate) struct SimulatedProcess {
    /// Its task, for the trace.
    pub(crate) what: String,
    /// It has been killed, and does nothing any more when its turn comes.
    pub(crate) doomed: bool,
    /// It is in the middle of a step: others act while it stands between two transactions.
    pub(crate) busy: bool,
    /// The host that it is on.
    pub(crate) host: HostNumber,
    /// Its stage, if it supervises a run; all other processes do everything in one step.
    pub(crate) supervisor: Option<Supervisor>,
}

/// The life of a supervisor.
#[derive(Debug, Clone)]
pub(crate) struct Supervisor {
    pub(crate) run: RunId,
    pub(crate) stage: SupervisorStage,
}

/// How far a supervisor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SupervisorStage {
    /// It has been started.
    Begun,
    /// It has the lock of its run.
    Locked,
    /// It has seen that nothing of an earlier run is left.
    Alone,
    /// It has the tree of its polecat, if its run has one.
    Housed,
    /// The run is its own.
    Claimed,
    /// Its agent works.
    Working,
    /// Its agent has ended, and that is not in the store yet.
    Ended(SimulatedAgentEnd),
}

/// How an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimulatedAgentEnd {
    Well,
    Badly,
    Killed,
    Cancelled,
    /// Its account had reached its limit.
    Limited,
    /// Its host could not renew its lease.
    OutOfSight,
}

impl SimulatedAgentEnd {
    /// The end of its run, as the real supervisor reports it.
    pub(crate) fn run_end(self) -> RunEnd {
        let plain = |state, reason| RunEnd::without_status(state, reason);
        match self {
            Self::Well => RunEnd { exit_code: Some(0), ..plain(RunState::Done, "exit status 0") },
            Self::Badly => {
                RunEnd { exit_code: Some(1), ..plain(RunState::Failed, "exit status 1") }
            }
            // The simulation does not parse the output of agents, so a usage limit looks like any
            // other end.
            Self::Killed | Self::Limited => {
                RunEnd { exit_signal: Some(9), ..plain(RunState::Lost, "signal 9") }
            }
            Self::OutOfSight => RunEnd {
                loss: RunLoss::Host,
                exit_signal: Some(9),
                ..plain(RunState::Lost, "signal 9")
            },
            Self::Cancelled => plain(RunState::Cancelled, "it was cancelled"),
        }
    }
}

/// The first word of a supervisor to its starter.
#[derive(Debug, Clone)]
pub(crate) enum SimulatedAnswer {
    Started,
    Busy(String),
    /// The previous run in its place has not left it.
    Taken(String),
    Failed(String),
}

/// The holders of the lock of a run: it is free when there are none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Holders {
    pub(crate) supervisor: Option<ProcessId>,
    pub(crate) agent: bool,
    /// The host that the lock is on.
    pub(crate) host: HostNumber,
    /// The agent is stopped, because its host could not renew its lease.
    pub(crate) is_stopped: bool,
    /// Another agent may be alive beside this one: its host was paused, was removed by force, or has no process left that
    /// could stop it.
    pub(crate) is_excepted: bool,
}

/// Everything that is really there.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) processes: BTreeMap<ProcessId, SimulatedProcess>,
    last: ProcessId,
    locks: BTreeMap<RunId, Holders>,
    /// The words that their starters have not heard yet.
    pub(crate) said: BTreeMap<ProcessId, SimulatedAnswer>,
    /// The runs whose supervisor was asked to end them.
    pub(crate) asked: BTreeSet<RunId>,
    /// The run that had each polecat last.
    pub(crate) places: BTreeMap<(HostNumber, WorkerPlace), RunId>,
    /// The traces of runs that ended in a power cut, or with the server of their sessions.
    pub(crate) traces: BTreeMap<RunId, LossFacts>,
}

impl World {
    pub(crate) fn begin(
        &mut self,
        what: String,
        host: HostNumber,
        supervisor: Option<Supervisor>,
    ) -> ProcessId {
        self.last += 1;
        let busy = supervisor.is_none();
        let process = SimulatedProcess { what, doomed: false, busy, host, supervisor };
        self.processes.insert(self.last, process);
        self.last
    }

    /// The process is gone, and its locks are free; its agent stays.
    pub(crate) fn end(&mut self, id: ProcessId) {
        let Some(process) = self.processes.remove(&id) else { return };
        if let Some(supervisor) = process.supervisor
            && self.holders(&supervisor.run).supervisor == Some(id)
        {
            self.hold(&supervisor.run, |holders| holders.supervisor = None);
        }
    }

    pub(crate) fn holders(&self, run: &RunId) -> Holders {
        self.locks.get(run).copied().unwrap_or_default()
    }

    pub(crate) fn is_held(&self, run: &RunId) -> bool {
        self.locks.contains_key(run)
    }

    pub(crate) fn hold(&mut self, run: &RunId, change: impl FnOnce(&mut Holders)) {
        let mut holders = self.holders(run);
        change(&mut holders);
        if holders.supervisor.is_none() && !holders.agent {
            self.locks.remove(run);
        } else {
            self.locks.insert(run.clone(), holders);
        }
    }

    /// The runs that have a live agent.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &RunId> {
        self.locks.iter().filter(|(_, holders)| holders.agent).map(|(run, _)| run)
    }

    /// The runs whose lock is held.
    pub(crate) fn held(&self) -> impl Iterator<Item = &RunId> {
        self.locks.keys()
    }

    /// An agent is over; its supervisor, if it has one, learns of it.
    pub(crate) fn end_agent(&mut self, run: &RunId, end: SimulatedAgentEnd) {
        let supervisor = self.holders(run).supervisor;
        self.hold(run, |holders| (holders.agent, holders.is_stopped) = (false, false));
        let process = supervisor.and_then(|id| self.processes.get_mut(&id));
        if let Some(supervisor) = process.and_then(|process| process.supervisor.as_mut())
            && supervisor.run == *run
        {
            supervisor.stage = SupervisorStage::Ended(end);
        }
    }

    /// Everything on a host that has the lock of a run is about to end, for this reason.
    pub(crate) fn leave_traces(&mut self, host: HostNumber, traces: LossFacts) {
        let here = self.locks.iter().filter(|(_, holders)| holders.host == host);
        let held: Vec<RunId> = here.map(|(run, _)| run.clone()).collect();
        self.traces.extend(held.into_iter().map(|run| (run, traces)));
    }

    /// Whether anything of an earlier run of the same bead is left on a host.
    pub(crate) fn earlier(&self, host: HostNumber, run: &RunId) -> Option<RunId> {
        let earlier = |held: &RunId| held.bead == run.bead && held.epoch < run.epoch;
        let mut here = self.locks.iter().filter(|(_, holders)| holders.host == host);
        here.find(|(held, _)| earlier(held)).map(|(held, _)| held.clone())
    }

    /// The supervisors that can take a step.
    pub(crate) fn idle_supervisors(&self) -> Vec<ProcessId> {
        let can_act = |process: &SimulatedProcess| {
            let Some(supervisor) = &process.supervisor else { return false };
            let waits = supervisor.stage == SupervisorStage::Working
                && !self.asked.contains(&supervisor.run);
            !process.busy && !waits
        };
        self.processes.iter().filter(|(_, process)| can_act(process)).map(|(id, _)| *id).collect()
    }
}
