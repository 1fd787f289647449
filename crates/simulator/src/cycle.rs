//! Cycles and recovery: the real ones, with a spawner and a world of ours.

use std::time::Duration;

use gt_core::decide::LossFacts;
use gt_core::schedule::Run;
use gt_execution::runs;
use gt_scheduling::dispatch::{CycleCaller, Dispatcher, SpawnError, Spawner};
use gt_scheduling::processes::{Alive, ProcessProbe};
use gt_town::scheduler_settings::Overrides;

use crate::planted::Planted;
use crate::simulation::{CycleOverrides, Simulation};
use crate::world::{ProcessId, SimulatedAnswer};

/// The simulated world, as one process sees it.
pub(crate) struct ProcessView<'a> {
    simulation: &'a Simulation,
    process: ProcessId,
    /// The host that it is on.
    host: String,
}

impl<'a> ProcessView<'a> {
    pub(crate) fn of(simulation: &'a Simulation, process: ProcessId) -> Self {
        let host = simulation.host_named(simulation.host_of(process));
        Self { simulation, process, host }
    }

    /// From another machine, on which nothing of it can be seen.
    fn from_elsewhere(simulation: &'a Simulation, process: ProcessId) -> Self {
        Self { simulation, process, host: "elsewhere".to_owned() }
    }
}

impl ProcessProbe for ProcessView<'_> {
    fn host(&self) -> &str {
        &self.host
    }

    fn starter_of(&self, run: &Run) -> Alive {
        self.simulation.seam(self.process);
        if !run.is_on(&self.host) {
            return Alive::Unknown;
        }
        let id = run.starter.strip_prefix("starter-").and_then(|id| id.parse::<u32>().ok());
        let state = self.simulation.state();
        let alive = id.is_some_and(|id| state.world.processes.contains_key(&id));
        if alive { Alive::Yes } else { Alive::No }
    }

    fn worker_of(&self, run: &Run) -> Alive {
        self.simulation.seam(self.process);
        if !run.is_on(&self.host) {
            return Alive::Unknown;
        }
        if self.simulation.planted == Some(Planted::RecoverIgnoresLock) {
            return Alive::No;
        }
        let held = self.simulation.state().world.is_held(&run.id);
        if held { Alive::Yes } else { Alive::No }
    }

    fn traces_of(&self, run: &Run) -> LossFacts {
        self.simulation.state().world.traces.get(&run.id).copied().unwrap_or_default()
    }

    fn end_worker(&self, run: &Run, _: Duration) -> gt_town::Result<()> {
        for _ in 0..20 {
            self.simulation.seam(self.process);
            let state = self.simulation.state();
            if !state.world.is_held(&run.id) {
                return Ok(());
            }
            let supervisor = state.world.holders(&run.id).supervisor;
            drop(state);
            self.simulation.ask_to_end(&run.id);
            if let Some(supervisor) = supervisor {
                self.simulation.supervise(supervisor);
            }
        }
        Err(gt_town::OperationError::rejected("something of it does not end"))
    }
}

/// Starts simulated supervisors for one starter.
pub(crate) struct SimulatedSpawner<'a> {
    pub(crate) simulation: &'a Simulation,
    pub(crate) process: ProcessId,
}

impl Spawner for SimulatedSpawner<'_> {
    fn spawn(&self, run: &Run) -> Result<(), SpawnError> {
        let Self { simulation, process } = *self;
        if simulation.planted == Some(Planted::ContextClosedBeforeSwap) {
            simulation.close_context_too_early(run);
        }
        simulation.seam(process);
        if simulation.fault(12) {
            simulation.tell(format!("{process} cannot start a supervisor for {}", run.id));
            return Err(SpawnError::Failed("no such program".to_owned()));
        }
        let supervisor = simulation.start_supervisor(&run.id, simulation.host_of(process));
        if simulation.fault(25) {
            // Longer than any start may take: recovery notices, and a cycle starts it again.
            simulation.pass_time(Duration::from_mins(6));
            simulation.recover();
            simulation.pass_time(Duration::from_mins(1));
            simulation.cycle();
        }
        loop {
            simulation.seam(process);
            match simulation.word_of(supervisor) {
                Some(SimulatedAnswer::Started) => return Ok(()),
                Some(SimulatedAnswer::Busy(why)) => return Err(SpawnError::Busy(why)),
                Some(SimulatedAnswer::Taken(why)) => return Err(SpawnError::Taken(why)),
                Some(SimulatedAnswer::Failed(why)) => return Err(SpawnError::Failed(why)),
                None => simulation.supervise(supervisor),
            }
        }
    }
}

impl Simulation {
    /// One dispatch cycle of a new process, by hand or by a daemon.
    pub(crate) fn cycle(&self) {
        let (by_hand, limit, cap) = {
            let random = &mut self.state().random;
            let limit = if random.one_in(4) { random.between(1, 3) } else { 0 };
            let cap = random.one_in(10).then(|| random.between(0, 4));
            (random.one_in(2), u32::try_from(limit).ok(), cap)
        };
        let cap = cap.filter(|_| by_hand).and_then(|cap| i64::try_from(cap).ok());
        let overrides = Overrides {
            max_polecats: cap,
            batch_size: limit.filter(|limit| *limit > 0),
            spawn_parallelism: Some(1),
        };
        let liberties = CycleOverrides { cap, by_hand };
        self.as_process("cycle", |id| self.dispatch(id, liberties, overrides, None));
    }

    /// The steps of a process that dispatches.
    pub(crate) fn dispatch(
        &self,
        id: ProcessId,
        liberties: CycleOverrides,
        overrides: Overrides,
        only: Option<Vec<u64>>,
    ) {
        let (town, starter) = (self.town(id, "daemon"), format!("starter-{id}"));
        let replaced = self.planted.is_some_and(Planted::replaces_cycles);
        // A cycle that is wrong knows of no other cap than that of the settings.
        let liberties =
            if replaced { CycleOverrides { cap: None, ..liberties } } else { liberties };
        self.state().liberties.insert(starter.clone(), liberties);
        let spawner = SimulatedSpawner { simulation: self, process: id };
        let caller = if liberties.by_hand { CycleCaller::Hand } else { CycleCaller::Daemon };
        if replaced {
            self.wrong_cycle(caller, &starter, &spawner);
            return;
        }
        let host = self.host_named(self.host_of(id));
        let mut dispatcher = Dispatcher::new(&town, &spawner)
            .with_caller(caller)
            .with_overrides(overrides)
            .with_starter(&starter, &host)
            .with_pause(|time| {
                self.seam(id);
                self.pass_time(time);
            });
        if let Some(only) = only {
            dispatcher = dispatcher.with_only(only);
        }
        let Some(done) = self.reached("dispatch", dispatcher.dispatch()) else { return };
        let started: Vec<_> = done.dispatched.iter().map(|started| started.bead.as_str()).collect();
        if !started.is_empty() || !done.errors.is_empty() {
            self.tell(format!("{id} has started {started:?}, errors {:?}", done.errors));
        }
    }

    /// One pass of recovery by a new process.
    pub(crate) fn recover(&self) {
        self.as_process("recovery", |id| {
            let town = self.town(id, "deacon");
            if self.planted == Some(Planted::LostWithoutEnd) {
                self.reschedule_without_end();
            }
            if self.planted == Some(Planted::EndIgnored) {
                self.reschedule_cancelled();
            }
            let world = if !self.is_fleet() && self.fault(5) {
                ProcessView::from_elsewhere(self, id)
            } else {
                ProcessView::of(self, id)
            };
            let recovered = gt_daemon::reconcile::liveness(&town, &world);
            let Some(recovered) = self.reached("recover", recovered) else { return };
            if recovered != runs::Recovered::default() {
                self.tell(format!("{id} recovered {recovered:?}"));
            }
        });
    }
}
