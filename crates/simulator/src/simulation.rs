//! The scheduler of the simulation: one step at a time, with a crash or a step of another process
//! between any two.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use gt_core::decide::{LossFacts, RunProgress};
use gt_core::merging::MergeRequestId;
use gt_core::{BeadId, MessageId, RigSlug};
use gt_execution::merge_queue::QueueName;
use gt_scheduling::Consequences;
use gt_store::Store;
use gt_testkit::Random;
use gt_town::{Actor, OperationError, Town};

use crate::SeedOutcome;
use crate::check::CheckHistory;
use crate::clock::SimulatedClock;
use crate::fleet::{HostCell, HostNumber};
use crate::origin::SimulatedOrigin;
use crate::planted::Planted;
use crate::stores::SeedStore;
use crate::violation::{Invariant, Violation};
use crate::world::{
    ProcessId, SimulatedAgentEnd, SimulatedAnswer, Supervisor, SupervisorStage, World,
};

/// How deep steps may be nested: a process between two transactions waits for the others.
const DEPTH_MAX: u32 = 4;
/// How many of the last steps are kept for the report of a violation.
const STEPS_KEPT: usize = 60;

/// How many steps are mostly about merge requests.
const MERGING_STEPS: u32 = 80;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

/// A process dies here.
struct Crash;
/// The simulation is over: something was not true.
struct SimulationOver;

/// The differences of a cycle from the settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CycleOverrides {
    pub(crate) cap: Option<i64>,
    pub(crate) by_hand: bool,
}

/// The mutable state.
pub(crate) struct SimulationState {
    pub(crate) random: Random,
    pub(crate) world: World,
    pub(crate) steps: u64,
    depth: u32,
    /// Whether anything may go wrong by itself.
    pub(crate) faults: bool,
    trace: VecDeque<String>,
    /// The digest of the whole trace.
    digest: DefaultHasher,
    pub(crate) violation: Option<Violation>,
    pub(crate) memory: CheckHistory,
    /// The permissions of each starter.
    pub(crate) liberties: BTreeMap<String, CycleOverrides>,
    /// The beads that a person opened again.
    pub(crate) reopened: BTreeSet<BeadId>,
    /// The contexts that a command has acknowledged.
    pub(crate) acknowledged: BTreeSet<u64>,
    /// The clock was set back at some time.
    pub(crate) set_back: bool,
    /// Every agent comes to nothing.
    pub(crate) sick: bool,
    /// The messages that were acknowledged as sent, and the steps that were acknowledged as done.
    pub(crate) sent: BTreeSet<MessageId>,
    pub(crate) ticked: BTreeMap<gt_core::RunId, BTreeSet<String>>,
    /// Work is finished and merged, and little else happens.
    is_merging: bool,
    /// The origins of the rigs that have one.
    pub(crate) origins: BTreeMap<RigSlug, SimulatedOrigin>,
    /// The queues that a process works on, by machine.
    pub(crate) queue_locks: BTreeSet<(String, QueueName)>,
    /// The origins that a process pushes to, by machine.
    pub(crate) turns: BTreeSet<(String, RigSlug)>,
    /// The commits that a person has approved.
    pub(crate) approved: BTreeSet<(MergeRequestId, String)>,
    /// The host on which the next process begins.
    pub(crate) here: HostNumber,
    /// The progress of the runs whose agents were asked to hand over, in that moment.
    pub(crate) asked_to_hand_over: BTreeMap<gt_core::RunId, RunProgress>,
}

/// One simulated town with everything that happens to it.
pub(crate) struct Simulation {
    pub(crate) seed: u64,
    pub(crate) planted: Option<Planted>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<SimulatedClock>,
    pub(crate) rigs: Vec<&'static str>,
    pub(crate) beads: Vec<BeadId>,
    /// Some of the beads are parts of this.
    pub(crate) epic: BeadId,
    state: Mutex<SimulationState>,
    /// The hosts, where they have leases.
    pub(crate) hosts: Mutex<Vec<Arc<HostCell>>>,
    /// The clock of the store's server, which is moved where hosts have leases.
    pub(crate) server_clock: Arc<AtomicI64>,
    me: Weak<Self>,
}

/// The actions that may come next.
enum Action {
    Supervise(ProcessId),
    AgentEnds,
    AgentActs,
    /// An agent makes a model call.
    AgentSpends,
    Cycle,
    Recover,
    /// The daemon looks after all convoys.
    Scan,
    /// The deacon feeds convoys.
    Feed,
    /// A pass over the merge queues.
    Merge,
    /// A person decides about merge requests.
    Decide,
    /// Others do something to an origin.
    Disturb,
    /// People and programs do something to a pull request.
    AtService,
    Person,
    Clock,
    Kill,
    PowerCut,
    /// The server of all sessions dies, and everything in them.
    ServerDies,
    /// Something happens to a host.
    Fleet,
    /// From now on agents come to nothing, or do so no more.
    Spell,
}

impl Simulation {
    pub(crate) fn new(seed: u64, store: SeedStore, planted: Option<Planted>) -> Arc<Self> {
        let mut random = Random::new(seed);
        let rigs = match random.between(2, 3) {
            2 => vec!["web", "api"],
            _ => vec!["web", "api", "ops"],
        };
        let beads = (0..random.between(4, 12)).map(|number| {
            let rig = random.pick(&rigs).copied().unwrap_or("web");
            BeadId::trusted(format!("{rig}-{number}"))
        });
        let beads = beads.collect();
        let clock = Arc::new(SimulatedClock::new());
        let SeedStore { store, clock: server_clock } = store;
        server_clock.store(clock.peek().as_nanos(), Ordering::Relaxed);
        Arc::new_cyclic(|me| Self {
            seed,
            planted,
            store,
            clock,
            server_clock,
            hosts: Mutex::default(),
            rigs,
            beads,
            epic: BeadId::trusted("web-epic".to_owned()),
            state: Mutex::new(SimulationState {
                random,
                world: World::default(),
                steps: 0,
                depth: 0,
                faults: true,
                trace: VecDeque::new(),
                digest: DefaultHasher::new(),
                violation: None,
                memory: CheckHistory::default(),
                liberties: BTreeMap::new(),
                reopened: BTreeSet::new(),
                acknowledged: BTreeSet::new(),
                set_back: false,
                sick: false,
                sent: BTreeSet::new(),
                ticked: BTreeMap::new(),
                is_merging: false,
                origins: BTreeMap::new(),
                queue_locks: BTreeSet::new(),
                turns: BTreeSet::new(),
                approved: BTreeSet::new(),
                here: 0,
                asked_to_hand_over: BTreeMap::new(),
            }),
            me: Weak::clone(me),
        })
    }

    /// The mutable state. The lock must not be kept while others act.
    pub(crate) fn state(&self) -> MutexGuard<'_, SimulationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lives through so many steps, and then to the end of everything that is under way.
    pub(crate) fn live(&self, steps: u64) -> SeedOutcome {
        let lived = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..steps {
                self.step();
            }
            if !self.state().origins.is_empty() {
                self.state().is_merging = true;
                for _ in 0..MERGING_STEPS {
                    self.step();
                }
            }
            self.state().faults = false;
            self.come_to_rest();
        }));
        let mut state = self.state();
        match lived {
            Err(payload) if !payload.is::<SimulationOver>() => {
                drop(state);
                resume_unwind(payload)
            }
            _ => SeedOutcome {
                steps: state.steps,
                digest: state.digest.finish(),
                violation: state.violation.take(),
            },
        }
    }

    /// Adds a line to the trace.
    pub(crate) fn tell(&self, what: impl Into<String>) {
        let mut state = self.state();
        let indented = format!("{}{}", "  ".repeat(state.depth as usize), what.into());
        indented.hash(&mut state.digest);
        if state.trace.len() == STEPS_KEPT {
            state.trace.pop_front();
        }
        state.trace.push_back(indented);
    }

    /// Ends the simulation: this should have been true.
    pub(crate) fn violated(&self, invariant: Invariant, found: impl Into<String>) -> ! {
        let mut state = self.state();
        let steps = state.trace.iter().cloned().collect();
        let violation = Violation { seed: self.seed, invariant, found: found.into(), steps };
        state.violation.get_or_insert(violation);
        drop(state);
        resume_unwind(Box::new(SimulationOver))
    }

    /// The town as this process sees it: others act, and it may die, before each of its transactions.
    pub(crate) fn town(&self, process: ProcessId, name: &str) -> Town {
        let (me, host) = (self.weak(), self.host_of(process));
        self.town_on(host, name).with_seam(move || {
            let Some(simulation) = me.upgrade() else { return Ok(()) };
            simulation.seam(process);
            simulation.reach_store(host)
        })
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        Weak::clone(&self.me)
    }

    /// The town for a process that is never interrupted.
    pub(crate) fn town_without_seam(&self, name: &str) -> Town {
        let actor = Actor { name: name.to_owned(), owner: String::new() };
        let clock: Arc<SimulatedClock> = Arc::clone(&self.clock);
        Town::over(self.store.clone(), actor, clock, Arc::new(Consequences))
    }

    /// A moment between two steps of a process.
    pub(crate) fn seam(&self, process: ProcessId) {
        self.observe();
        let mut others = {
            let mut state = self.state();
            state.steps += 1;
            let go_first = state.faults && state.depth < DEPTH_MAX && state.random.one_in(6);
            if go_first { state.random.between(1, 3) } else { 0 }
        };
        self.die_if_due(process);
        while others > 0 {
            others -= 1;
            self.step();
            self.die_if_killed(process);
        }
        // A process of a machine that stands still, or is off, does not go on.
        if !self.is_awake(self.host_of(process)) {
            self.die(process);
        }
    }

    /// Another process acts, if there is room for that.
    pub(crate) fn step_within(&self) {
        let is_deep = self.state().depth >= DEPTH_MAX;
        if !is_deep {
            self.step();
        }
    }

    fn die_if_due(&self, process: ProcessId) {
        let dies = {
            let mut state = self.state();
            state.faults && state.random.one_in(50)
        };
        if dies {
            self.kill(process);
        }
        self.die_if_killed(process);
    }

    /// Ends a process at once.
    pub(crate) fn die(&self, process: ProcessId) -> ! {
        self.kill(process);
        resume_unwind(Box::new(Crash))
    }

    fn die_if_killed(&self, process: ProcessId) {
        let doomed = self.state().world.processes.get(&process).is_none_or(|known| known.doomed);
        if doomed {
            resume_unwind(Box::new(Crash));
        }
    }

    /// Runs all steps of a process in one go. Nothing comes back if it died on the way.
    pub(crate) fn as_process<T>(&self, what: &str, work: impl FnOnce(ProcessId) -> T) -> Option<T> {
        let id = {
            let mut state = self.state();
            let here = state.here;
            state.world.begin(what.to_owned(), here, None)
        };
        let done = self.guarded(id, || work(id));
        self.state().world.end(id);
        done
    }

    /// Catches the death of a process, and nothing else.
    fn guarded<T>(&self, id: ProcessId, work: impl FnOnce() -> T) -> Option<T> {
        let depth = self.state().depth;
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => Some(done),
            Err(payload) if payload.is::<Crash>() => {
                self.state().depth = depth;
                self.tell(format!("{id} is dead"));
                None
            }
            Err(payload) => resume_unwind(self.explained(payload)),
        }
    }

    /// A panic of the engine is a violation like any other.
    fn explained(&self, payload: Box<dyn Any + Send>) -> Box<dyn Any + Send> {
        if payload.is::<SimulationOver>() {
            return payload;
        }
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        self.violated(Invariant::Soundness, format!("a panic: {}", text.unwrap_or_default()))
    }

    /// One step of one process.
    pub(crate) fn step(&self) {
        let before = self.state().here;
        let here = self.choose_host();
        self.state().here = here;
        let is_fleet = self.is_fleet();
        let awake: Vec<bool> = (0..self.hosts().len()).map(|at| self.is_awake(at)).collect();
        let action = {
            let mut state = self.state();
            state.steps += 1;
            state.depth += 1;
            let state = &mut *state;
            let mut actions: Vec<(u64, Action)> = vec![
                (5, Action::Cycle),
                (3, Action::Recover),
                (1, Action::Scan),
                (1, Action::Feed),
                (8, Action::Person),
                (2, Action::Clock),
                (1, Action::Kill),
                (1, Action::Spell),
            ];
            if is_fleet {
                actions.extend([(8, Action::Fleet), (8, Action::Clock), (3, Action::Recover)]);
            }
            if state.is_merging {
                actions = vec![(4, Action::Cycle), (1, Action::Recover), (2, Action::Person)];
                actions.extend([(4, Action::Decide), (9, Action::Merge), (1, Action::Disturb)]);
            } else if !state.origins.is_empty() {
                actions.extend([(5, Action::Merge), (2, Action::Disturb)]);
            }
            if state.origins.values().any(|origin| !origin.hosting.pulls.is_empty()) {
                actions.extend([(5, Action::AtService), (2, Action::Clock)]);
            }
            let supervisors = state.world.idle_supervisors();
            let is_awake = |id: &ProcessId| {
                let process = state.world.processes.get(id);
                process.is_none_or(|process| awake.get(process.host).copied().unwrap_or(true))
            };
            let supervisors: Vec<ProcessId> = supervisors.into_iter().filter(is_awake).collect();
            actions.extend(supervisors.into_iter().map(|id| (6, Action::Supervise(id))));
            if state.world.agents().next().is_some() {
                let agents =
                    [(4, Action::AgentEnds), (3, Action::AgentActs), (3, Action::AgentSpends)];
                actions.extend(agents);
            }
            if state.random.one_in(150) {
                actions = vec![(1, Action::PowerCut), (1, Action::ServerDies)];
            }
            state.random.weighted(actions)
        };
        match action {
            Some(Action::Supervise(id)) => self.supervise(id),
            Some(Action::AgentEnds) => self.agent_ends(),
            Some(Action::AgentActs) => self.agent_acts(),
            Some(Action::AgentSpends) => self.agent_spends(),
            Some(Action::Cycle) => self.cycle(),
            Some(Action::Recover) => self.recover(),
            Some(Action::Scan) => self.scan_convoys(),
            Some(Action::Feed) => self.feed_convoys(),
            Some(Action::Merge) => self.work_on_queues(),
            Some(Action::Decide) => self.person_merges(),
            Some(Action::Disturb) => self.disturb_origin(),
            Some(Action::AtService) => self.act_at_service(),
            Some(Action::Person) => self.person(),
            Some(Action::Clock) => self.move_clock(),
            Some(Action::Kill) => self.kill_one(),
            Some(Action::PowerCut) => self.cut_power(),
            Some(Action::ServerDies) => self.kill_server(),
            Some(Action::Fleet) => self.disturb_fleet(),
            Some(Action::Spell) => {
                let mut state = self.state();
                state.sick = !state.sick;
            }
            None => {}
        }
        self.observe();
        self.state().depth -= 1;
        self.look_closely();
        self.state().here = before;
    }

    /// Lets a supervisor take a step.
    pub(crate) fn supervise(&self, id: ProcessId) {
        let begun = {
            let mut state = self.state();
            let process = state.world.processes.get_mut(&id).filter(|process| !process.busy);
            process.map(|process| process.busy = true).is_some()
        };
        if !begun {
            return;
        }
        let stays = self.guarded(id, || self.supervisor_step(id)).unwrap_or(false);
        let mut state = self.state();
        match state.world.processes.get_mut(&id) {
            Some(process) if stays && !process.doomed => process.busy = false,
            _ => state.world.end(id),
        }
    }

    /// Starts a supervisor, which goes on without its starter.
    pub(crate) fn start_supervisor(&self, run: &gt_core::RunId, host: HostNumber) -> ProcessId {
        let supervisor = Supervisor { run: run.clone(), stage: SupervisorStage::Begun };
        let id = self.state().world.begin(format!("supervisor of {run}"), host, Some(supervisor));
        self.tell(format!("{id} begins as the supervisor of {run}"));
        id
    }

    /// The first word of a supervisor, or nothing if it has not spoken yet; an empty failure if it
    /// never will.
    pub(crate) fn word_of(&self, supervisor: ProcessId) -> Option<SimulatedAnswer> {
        let mut state = self.state();
        if let Some(said) = state.world.said.remove(&supervisor) {
            return Some(said);
        }
        let gone = !state.world.processes.contains_key(&supervisor);
        gone.then(|| SimulatedAnswer::Failed("its supervisor ended without a word".to_owned()))
    }

    fn agent_ends(&self) {
        let (run, end) = {
            let agents = self.acting_agents();
            let mut state = self.state();
            let Some(run) = state.random.pick(&agents).cloned() else { return };
            let ends = if state.sick {
                vec![(2, SimulatedAgentEnd::Badly), (2, SimulatedAgentEnd::Killed)]
            } else {
                vec![
                    (6, SimulatedAgentEnd::Well),
                    (2, SimulatedAgentEnd::Badly),
                    (2, SimulatedAgentEnd::Killed),
                    (1, SimulatedAgentEnd::Limited),
                ]
            };
            let end = state.random.weighted(ends).unwrap_or(SimulatedAgentEnd::Well);
            state.world.end_agent(&run, end);
            (run, end)
        };
        self.tell(format!("the agent of {run} ends: {end:?}"));
    }

    /// The agents that can act: those that are stopped, or whose machine stands still, cannot.
    pub(crate) fn acting_agents(&self) -> Vec<gt_core::RunId> {
        let agents: Vec<_> = self.state().world.agents().cloned().collect();
        let can_act = |run: &gt_core::RunId| {
            let holders = self.state().world.holders(run);
            !holders.is_stopped && self.is_awake(holders.host)
        };
        agents.into_iter().filter(can_act).collect()
    }

    fn move_clock(&self) {
        if self.is_fleet() {
            let seconds = {
                let random = &mut self.state().random;
                if random.one_in(4) { random.between(60, 400) } else { random.between(1, 60) }
            };
            self.tell(format!("{seconds} s pass"));
            self.pass_time(SECOND * u32::try_from(seconds).unwrap_or(1));
            return;
        }
        let (back, by) = {
            let random = &mut self.state().random;
            // In every other seed it only goes on.
            match random.below(12) + 2 * (self.seed % 2) {
                0 => (true, SECOND * u32::try_from(random.between(1, 900)).unwrap_or(1)),
                1 => (true, MINUTE * 60 * 24),
                2 => (false, MINUTE * 60 * 24),
                3..=5 => (false, MINUTE * u32::try_from(random.between(1, 20)).unwrap_or(1)),
                _ => (false, SECOND * u32::try_from(random.between(1, 30)).unwrap_or(1)),
            }
        };
        if back {
            self.state().set_back = true;
            self.clock.set_back(by);
        } else {
            self.clock.advance(by);
        }
        let jump = if back { "back" } else { "on" };
        self.tell(format!("the clock goes {jump} {by:?} to {}", self.clock.peek()));
    }

    /// Kills a process; one that stands between two transactions never comes to the second.
    fn kill(&self, id: ProcessId) {
        let mut state = self.state();
        let Some(process) = state.world.processes.get_mut(&id) else { return };
        process.doomed = true;
        let (what, idle) = (process.what.clone(), !process.busy);
        if idle {
            state.world.end(id);
        }
        drop(state);
        self.tell(format!("{id} ({what}) is killed"));
    }

    fn kill_one(&self) {
        let (victim, agent) = {
            let mut state = self.state();
            let agents: Vec<_> = state.world.agents().cloned().collect();
            let processes: Vec<ProcessId> = state.world.processes.keys().copied().collect();
            if state.random.one_in(2) {
                (state.random.pick(&processes).copied(), None)
            } else {
                (None, state.random.pick(&agents).cloned())
            }
        };
        if let Some(id) = victim {
            self.kill(id);
        }
        if let Some(run) = agent {
            self.state().world.end_agent(&run, SimulatedAgentEnd::Killed);
            self.tell(format!("the agent of {run} is killed"));
        }
    }

    /// Everything on a host ends at once.
    fn cut_power(&self) {
        self.tell("the power is cut");
        let here = self.state().here;
        self.end_everything_on(here, LossFacts { rebooted: true, server_gone: true });
    }

    /// Every process on a host ends.
    pub(crate) fn end_everything_on(&self, host: HostNumber, traces: LossFacts) {
        let processes: Vec<ProcessId> = {
            let mut state = self.state();
            state.world.leave_traces(host, traces);
            let processes = state.world.processes.iter();
            processes.filter(|(_, process)| process.host == host).map(|(id, _)| *id).collect()
        };
        self.end_processes(&processes, host);
    }

    fn end_processes(&self, processes: &[ProcessId], host: HostNumber) {
        for id in processes {
            self.kill(*id);
        }
        let mut state = self.state();
        let agents: Vec<_> = state.world.agents().cloned().collect();
        for run in agents {
            if state.world.holders(&run).host == host {
                state.world.hold(&run, |holders| holders.agent = false);
            }
        }
    }

    /// The server of all sessions of a host is gone, and every supervisor and agent with it.
    fn kill_server(&self) {
        self.tell("the server of the sessions is killed");
        let (here, supervisors) = {
            let mut state = self.state();
            let here = state.here;
            state.world.leave_traces(here, LossFacts { rebooted: false, server_gone: true });
            let processes = state.world.processes.iter().filter(|(_, it)| it.host == here);
            let supervisors = processes.filter(|(_, process)| process.supervisor.is_some());
            (here, supervisors.map(|(id, _)| *id).collect::<Vec<_>>())
        };
        self.end_processes(&supervisors, here);
    }

    /// The answer of an operation. It may refuse, but not break.
    pub(crate) fn sound<T>(
        &self,
        what: &str,
        answer: Result<T, OperationError>,
    ) -> Result<T, String> {
        match answer {
            Ok(done) => Ok(done),
            Err(error) => {
                if let OperationError::Store(store) = &error
                    && !(self.is_fleet() && store.may_pass())
                {
                    self.violated(Invariant::Soundness, format!("{what}: {store:?}"));
                }
                Err(error.to_string())
            }
        }
    }

    /// The same for an operation that has no reason to refuse.
    pub(crate) fn certain<T>(&self, what: &str, answer: Result<T, OperationError>) -> T {
        match self.sound(what, answer) {
            Ok(done) => done,
            Err(refused) => self.violated(Invariant::Soundness, format!("{what}: {refused}")),
        }
    }

    /// The same for an operation that is refused only where a host is cut off or may not work; nothing then.
    pub(crate) fn reached<T>(&self, what: &str, answer: Result<T, OperationError>) -> Option<T> {
        if !self.is_fleet() {
            return Some(self.certain(what, answer));
        }
        match self.sound(what, answer) {
            Ok(done) => Some(done),
            Err(refused) => {
                self.tell(format!("{what}: {refused}"));
                None
            }
        }
    }

    /// A choice of the seed, and no fault at all when nothing may go wrong.
    pub(crate) fn fault(&self, one_in: u64) -> bool {
        let mut state = self.state();
        state.faults && state.random.one_in(one_in)
    }
}
