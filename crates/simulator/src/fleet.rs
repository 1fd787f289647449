//! Several hosts on one store: leases, partitions, pauses, wrong clocks, restarts and copies of a directory.
//!
//! The lease of a host is renewed and watched by threads of its daemon and its supervisors, which act whenever time passes. All
//! other processes of a host act when the seed says so.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gt_core::decide::{HostState, LossFacts, WorkerStep};
use gt_core::schedule::{Run, RunId, host_identity};
use gt_core::settings::{Layers, SettingOrigin};
use gt_core::{Clock, Timestamp};
use gt_scheduling::Consequences;
use gt_scheduling::fleet::{self, GoneWatch, declare_gone};
use gt_store::{HostDeclaration, HostRow};
use gt_town::{Actor, HostLease, LeaseHost, OperationError, StoreError, Town, hosts, settings};

use crate::clock::SimulatedClock;
use crate::planted::Planted;
use crate::simulation::Simulation;
use crate::violation::Invariant;
use crate::world::{ProcessId, SimulatedAgentEnd};

/// The number of a host in the order in which hosts came.
pub(crate) type HostNumber = usize;

/// The name of the only host of a town without leases.
const LONE_HOST: &str = "simulated";
/// The names of the hosts.
const NAMES: [&str; 4] = ["one", "two", "three", "four"];
/// So many hosts there are at most, copies included.
const HOSTS_MAX: usize = 6;
/// The label that some hosts have and some rigs ask for.
const LABEL: &str = "gpu";
/// The grace of every host.
const GRACE: Duration = Duration::from_mins(2);
/// The time between two renewals with that grace: the daemons and supervisors act so often.
const TICK: Duration = Duration::from_secs(20);
/// How far a clock is set.
const CLOCK_SHIFT_MAX_S: u64 = 4_000;

/// A host.
#[derive(Debug)]
pub(crate) struct HostMachine {
    id: String,
    name: String,
    /// Its settings name it; otherwise it has the name of its machine.
    has_given_name: bool,
    has_label: bool,
    cap: u64,
    /// How far its wall clock is from the true time, in nanoseconds.
    skew: i64,
    boots: u32,
    booted_at: Timestamp,
    paused_at: Timestamp,
    renewal: Option<(Duration, Duration)>,
    /// It cannot reach the store.
    pub(crate) is_cut: bool,
    /// The whole machine stands still.
    pub(crate) is_paused: bool,
    pub(crate) is_off: bool,
    has_daemon: bool,
    /// A renewal is on its way.
    is_renewing: bool,
    /// The answer to the next renewal is lost.
    loses_answer: bool,
    /// It counts the age of its lease by its wall clock, which is wrong.
    trusts_wall_clock: bool,
    watch: GoneWatch,
}

/// A host with its clock, as all its processes share it.
#[derive(Debug)]
pub(crate) struct HostCell {
    host: Mutex<HostMachine>,
    clock: Arc<SimulatedClock>,
}

impl HostCell {
    pub(crate) fn host(&self) -> MutexGuard<'_, HostMachine> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wall_time(&self) -> Timestamp {
        Timestamp::from_nanos(self.clock.peek().as_nanos() + self.host().skew)
    }

    /// Its declarations. The programs of the machine that runs the simulation are not among them.
    fn declaration(&self) -> HostDeclaration {
        let host = self.host();
        HostDeclaration {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: host.has_label.then(|| LABEL.to_owned()).into_iter().collect(),
            max_runs: u32::try_from(host.cap).unwrap_or(0),
            grace: GRACE,
            ..HostDeclaration::default()
        }
    }

    /// The host, as runs name it.
    pub(crate) fn full_name(&self) -> String {
        let host = self.host();
        format!("{}/{}", host.name, host.id)
    }
}

impl Clock for HostCell {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.clock.now().as_nanos() + self.host().skew)
    }
}

impl LeaseHost for HostCell {
    fn row(&self) -> HostRow {
        let host = self.host();
        HostRow {
            id: host.id.clone(),
            name: host.name.clone(),
            machine: format!("machine of {}", host.id),
            path: format!("/towns/{}", host.id),
            incarnation: host.boots.to_string(),
        }
    }

    fn settings(&self) -> Layers {
        let host = self.host();
        let mut values = vec![("host.max_polecats".to_owned(), host.cap.to_string())];
        if host.has_given_name {
            values.push(("host.name".to_owned(), host.name.clone()));
        }
        if host.has_label {
            values.push(("host.labels".to_owned(), LABEL.to_owned()));
        }
        let mut layers = Layers::default();
        layers
            .add(values, &SettingOrigin::File("settings/config.json".to_owned()))
            .expect("the settings of a simulated host are right");
        layers
    }

    fn since_boot(&self) -> Duration {
        let trusts_wall_clock = self.host().trusts_wall_clock;
        let now = if trusts_wall_clock { self.wall_time() } else { self.clock.peek() };
        now.since(self.host().booted_at)
    }

    fn last_renewal(&self) -> Option<(Duration, Duration)> {
        self.host().renewal
    }

    fn record_renewal(&self, sent: Duration, grace: Duration) {
        let mut host = self.host();
        if std::mem::take(&mut host.loses_answer) {
            return;
        }
        if host.renewal.is_none_or(|(last, _)| last < sent || host.trusts_wall_clock) {
            host.renewal = Some((sent, grace));
        }
    }
}

/// The events of a fleet.
#[derive(Debug, Clone, Copy)]
enum FleetAction {
    Cut,
    Heal,
    Pause,
    GoOn,
    SetClock,
    SetServerClock,
    Restart,
    PowerOff,
    PowerOn,
    DaemonStops,
    DaemonStarts,
    Copy,
}

/// The commands of people about hosts.
#[derive(Debug, Clone, Copy)]
enum HostCommand {
    Drain,
    Resume,
    Remove,
    RemoveByForce,
}

impl Simulation {
    /// Whether several hosts work on this town.
    pub(crate) fn is_fleet(&self) -> bool {
        !self.hosts().is_empty()
    }

    pub(crate) fn hosts(&self) -> Vec<Arc<HostCell>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn host_cell(&self, at: HostNumber) -> Option<Arc<HostCell>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).get(at).cloned()
    }

    /// The host, as runs name it.
    pub(crate) fn host_named(&self, at: HostNumber) -> String {
        self.host_cell(at).map_or_else(|| LONE_HOST.to_owned(), |cell| cell.full_name())
    }

    fn number_of_host(&self, host: &str) -> Option<HostNumber> {
        self.hosts().iter().position(|cell| cell.host().id == host_identity(host))
    }

    /// Furnishes the hosts, and lets each of them renew its lease.
    pub(crate) fn add_hosts(&self, town: &Town) -> Result<(), OperationError> {
        let count = usize::try_from(self.choose(2, 4)).unwrap_or(2);
        for name in &NAMES[..count] {
            let has_label = self.choose(0, 1) == 0 || *name == NAMES[0];
            let host = self.new_host(name, has_label);
            self.add_host(host);
        }
        let grace = format!("{}s", GRACE.as_secs());
        settings::set(town, "host.grace", &grace, gt_scheduling::runtimes::check_name)?;
        if self.choose(0, 2) == 0 {
            let name = format!("rig.{}.host_labels", self.rigs[0]);
            settings::set(town, &name, LABEL, gt_scheduling::runtimes::check_name)?;
        }
        // Times of different clocks are in one town from the beginning.
        self.state().set_back = true;
        for at in 0..count {
            self.renew_lease(at);
        }
        Ok(())
    }

    fn new_host(&self, name: &str, has_label: bool) -> HostMachine {
        HostMachine {
            id: format!("h{}", self.hosts().len() + 1),
            name: name.to_owned(),
            has_given_name: self.choose(0, 1) == 0,
            has_label,
            cap: u64::try_from(self.choose(0, 3)).unwrap_or(0),
            skew: 0,
            boots: 1,
            booted_at: Timestamp::from_nanos(self.clock.peek().as_nanos() - 1_000_000_000),
            paused_at: self.clock.peek(),
            renewal: None,
            is_cut: false,
            is_paused: false,
            is_off: false,
            has_daemon: true,
            is_renewing: false,
            loses_answer: false,
            trusts_wall_clock: self.planted == Some(Planted::TrustsOwnClock),
            watch: GoneWatch::default(),
        }
    }

    fn add_host(&self, host: HostMachine) {
        let cell = HostCell { host: Mutex::new(host), clock: Arc::clone(&self.clock) };
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(cell));
    }

    /// The town as a process of a host opens it, without anything that interrupts it.
    pub(crate) fn town_on(&self, at: HostNumber, name: &str) -> Town {
        let Some(cell) = self.host_cell(at) else { return self.town_without_seam(name) };
        let actor = Actor { name: name.to_owned(), owner: String::new() };
        let clock: Arc<HostCell> = Arc::clone(&cell);
        Town::over(self.store.clone(), actor, clock, Arc::new(Consequences)).with_lease_host(cell)
    }

    /// The town for questions, from a host that can answer them.
    pub(crate) fn observer_town(&self) -> Town {
        self.town_on(self.some_awake_host(), "observer")
    }

    /// Whether the machine of a host runs.
    pub(crate) fn is_awake(&self, at: HostNumber) -> bool {
        self.host_cell(at).is_none_or(|cell| {
            let host = cell.host();
            !host.is_paused && !host.is_off
        })
    }

    /// A host whose machine runs. There always is one.
    fn some_awake_host(&self) -> HostNumber {
        (0..self.hosts().len()).find(|at| self.is_awake(*at)).unwrap_or(0)
    }

    /// Decides on which host the next step is.
    pub(crate) fn choose_host(&self) -> HostNumber {
        let awake: Vec<HostNumber> =
            (0..self.hosts().len()).filter(|at| self.is_awake(*at)).collect();
        if awake.len() < 2 {
            return awake.first().copied().unwrap_or(0);
        }
        self.state().random.pick(&awake).copied().unwrap_or(0)
    }

    /// The answer of the network to a process that wants to reach the store.
    pub(crate) fn reach_store(&self, at: HostNumber) -> Result<(), StoreError> {
        let is_cut = self.host_cell(at).is_some_and(|cell| cell.host().is_cut);
        if !is_cut {
            return Ok(());
        }
        let source = Box::new(io::Error::other("the network is cut"));
        Err(StoreError::Unreachable { server: "the store".to_owned(), why: "wait", source })
    }

    /// Time passes. Where hosts have leases, their daemons and supervisors renew and watch them meanwhile.
    pub(crate) fn pass_time(&self, time: Duration) {
        if !self.is_fleet() {
            self.clock.advance(time);
            return;
        }
        let mut left = time;
        while !left.is_zero() {
            let part = left.min(TICK);
            left -= part;
            self.clock.advance(part);
            let nanos = i64::try_from(part.as_nanos()).unwrap_or(0);
            self.server_clock.fetch_add(nanos, Ordering::Relaxed);
            for at in 0..self.hosts().len() {
                if self.is_awake(at) {
                    self.watch_workers(at);
                    self.renew_lease(at);
                }
            }
        }
    }

    /// Time passes at once, while no agent is alive and nothing goes wrong.
    pub(crate) fn pass_quiet_time(&self, time: Duration) {
        let nanos = i64::try_from(time.as_nanos()).unwrap_or(0);
        self.clock.advance(time);
        self.server_clock.fetch_add(nanos, Ordering::Relaxed);
        for at in 0..self.hosts().len() {
            self.renew_lease(at);
        }
    }

    /// The agents on a host.
    fn agents_on(&self, at: HostNumber) -> Vec<RunId> {
        let state = self.state();
        let on_host = |run: &&RunId| state.world.holders(run).host == at;
        state.world.agents().filter(on_host).cloned().collect()
    }

    /// Stops, continues or ends the agents of a host by the age of its lease.
    fn watch_workers(&self, at: HostNumber) {
        let Some(cell) = self.host_cell(at) else { return };
        let has_daemon = cell.host().has_daemon;
        let Some((age, times)) = HostLease::Host(cell).age() else { return };
        let step = times.worker_step(age);
        for run in self.agents_on(at) {
            let holders = self.state().world.holders(&run);
            if holders.supervisor.is_none() && !has_daemon {
                // No process is left that could look at the clock.
                if step == WorkerStep::End {
                    self.state().world.hold(&run, |holders| holders.is_excepted = true);
                }
                continue;
            }
            match step {
                WorkerStep::Work if holders.is_stopped => {
                    self.state().world.hold(&run, |holders| holders.is_stopped = false);
                    self.tell(format!("the agent of {run} continues"));
                }
                WorkerStep::Stop if !holders.is_stopped => {
                    self.state().world.hold(&run, |holders| holders.is_stopped = true);
                    self.tell(format!("the agent of {run} is stopped"));
                }
                WorkerStep::End => {
                    let end = match self.planted {
                        Some(Planted::GoneHostLands) => SimulatedAgentEnd::Well,
                        _ => SimulatedAgentEnd::OutOfSight,
                    };
                    self.state().world.end_agent(&run, end);
                    self.tell(format!("the agent of {run} is ended with the lease of its host"));
                }
                WorkerStep::Work | WorkerStep::Stop => {}
            }
        }
    }

    /// The daemon of a host renews its lease if that is due, and judges the others. Without a daemon a supervisor renews.
    fn renew_lease(&self, at: HostNumber) {
        let Some(cell) = self.host_cell(at) else { return };
        let age = HostLease::Host(cell.clone()).age();
        let has_daemon = cell.host().has_daemon;
        let is_renewing = cell.host().is_renewing;
        let factor = if has_daemon { 2 } else { 3 };
        let is_due = age.is_none_or(|(age, times)| age * 2 >= times.renew_every() * factor);
        let has_supervisor = || {
            let state = self.state();
            let mut supervisors = state.world.processes.values();
            supervisors.any(|process| process.supervisor.is_some() && process.host == at)
        };
        if is_renewing || !is_due || !(has_daemon || has_supervisor()) {
            return;
        }
        cell.host().is_renewing = true;
        if self.fault(30) {
            cell.host().loses_answer = true;
        }
        let town = self.lease_town(at);
        let renewed = hosts::renew(&town, &cell.declaration(), has_daemon);
        cell.host().loses_answer = false;
        if self.sound("renew", renewed).is_ok() && has_daemon {
            let mut watch = std::mem::take(&mut cell.host().watch);
            let gone = self.sound("judge others", declare_gone(&town, &mut watch));
            cell.host().watch = watch;
            for lost in gone.unwrap_or_default() {
                let here = self.host_named(at);
                self.tell(format!("{here} declares {} gone, {:?} lost", lost.host, lost.runs));
            }
        }
        cell.host().is_renewing = false;
    }

    /// The town of the threads that look after the lease. Others act meanwhile, and no crash is in between: a daemon that
    /// dies is an event of its own.
    fn lease_town(&self, at: HostNumber) -> Town {
        let me = self.weak();
        self.town_on(at, "daemon").with_seam(move || {
            let Some(simulation) = me.upgrade() else { return Ok(()) };
            simulation.observe();
            if simulation.fault(40) {
                simulation.step_within();
            }
            simulation.reach_store(at)
        })
    }

    /// Something happens to a host, or to the clock of the store.
    pub(crate) fn disturb_fleet(&self) {
        let events = vec![
            (4, FleetAction::Cut),
            (5, FleetAction::Heal),
            (2, FleetAction::Pause),
            (4, FleetAction::GoOn),
            (3, FleetAction::SetClock),
            (1, FleetAction::SetServerClock),
            (1, FleetAction::Restart),
            (1, FleetAction::PowerOff),
            (2, FleetAction::PowerOn),
            (1, FleetAction::DaemonStops),
            (3, FleetAction::DaemonStarts),
            (1, FleetAction::Copy),
        ];
        let count = self.hosts().len();
        let Some(event) = self.state().random.weighted(events) else { return };
        let at = usize::try_from(self.choose(0, 99)).unwrap_or(0) % count.max(1);
        let Some(cell) = self.host_cell(at) else { return };
        let others_awake = (0..count).any(|other| other != at && self.is_awake(other));
        match event {
            FleetAction::Cut => self.cut_off(&cell),
            FleetAction::Heal => cell.host().is_cut = false,
            FleetAction::Pause if others_awake => self.pause_host(at, &cell),
            FleetAction::GoOn => self.let_host_go_on(&cell),
            FleetAction::SetClock => self.set_clock_of(&cell),
            FleetAction::SetServerClock => {
                let seconds = self.choose(0, 600);
                self.server_clock.fetch_add(seconds * 1_000_000_000, Ordering::Relaxed);
            }
            FleetAction::Restart => self.restart_host(at, &cell),
            FleetAction::PowerOff if others_awake => {
                self.restart_host(at, &cell);
                cell.host().is_off = true;
            }
            FleetAction::PowerOn => cell.host().is_off = false,
            FleetAction::DaemonStops => {
                let mut host = cell.host();
                host.has_daemon = false;
                host.watch = GoneWatch::default();
            }
            FleetAction::DaemonStarts => cell.host().has_daemon = true,
            FleetAction::Copy if count < HOSTS_MAX => {
                let (name, has_label, has_given_name, cap) = {
                    let host = cell.host();
                    (host.name.clone(), host.has_label, host.has_given_name, host.cap)
                };
                let copy = self.new_host(&name, has_label);
                self.add_host(HostMachine { has_given_name, cap, ..copy });
            }
            FleetAction::Pause | FleetAction::PowerOff | FleetAction::Copy => return,
        }
        self.tell(format!("{event:?} at {}", cell.full_name()));
    }

    /// A host cannot reach the store any more. A fault that shows only then is found sooner if that lasts.
    fn cut_off(&self, cell: &HostCell) {
        cell.host().is_cut = true;
        match self.planted {
            Some(Planted::TrustsOwnClock) => {
                cell.host().skew -= i64::try_from(CLOCK_SHIFT_MAX_S).unwrap_or(0) * 1_000_000_000;
                self.pass_time(GRACE * 2);
            }
            Some(Planted::GoneHostLands) => self.pass_time(GRACE * 2),
            _ => {}
        }
    }

    /// The whole machine stands still. Its agents may be alive for a moment when it goes on.
    fn pause_host(&self, at: HostNumber, cell: &HostCell) {
        let now = self.clock.peek();
        {
            let mut host = cell.host();
            if !host.is_paused {
                (host.is_paused, host.paused_at) = (true, now);
            }
        }
        self.except_agents_on(at);
    }

    /// Two agents may be alive for these: the guide names the cases.
    fn except_agents_on(&self, at: HostNumber) {
        let held: Vec<RunId> = {
            let state = self.state();
            let on_host = |run: &&RunId| state.world.holders(run).host == at;
            state.world.held().filter(on_host).cloned().collect()
        };
        for run in held {
            self.state().world.hold(&run, |holders| holders.is_excepted = true);
        }
    }

    /// A machine goes on. A virtual one may not have counted the time in which it stood still.
    fn let_host_go_on(&self, cell: &HostCell) {
        let counts_pause = self.choose(0, 1) == 0;
        let now = self.clock.peek();
        let mut host = cell.host();
        if host.is_paused && !counts_pause {
            host.booted_at = host.booted_at.plus(now.since(host.paused_at));
        }
        host.is_paused = false;
    }

    fn set_clock_of(&self, cell: &HostCell) {
        let shift = i64::try_from(CLOCK_SHIFT_MAX_S).unwrap_or(0);
        cell.host().skew = self.choose(-shift, shift) * 1_000_000_000;
    }

    /// Everything on a host ends, and the clock since its boot begins again.
    fn restart_host(&self, at: HostNumber, cell: &HostCell) {
        self.end_everything_on(at, LossFacts { rebooted: true, server_gone: true });
        let wall = cell.wall_time();
        let mut host = cell.host();
        host.boots += 1;
        host.booted_at = if host.trusts_wall_clock { wall } else { self.clock.peek() };
        (host.renewal, host.is_paused, host.is_renewing) = (None, false, false);
        host.watch = GoneWatch::default();
    }

    /// A command of a person about a host.
    pub(crate) fn command_host(&self, town: &Town) -> Result<String, OperationError> {
        let commands = vec![
            (2, HostCommand::Drain),
            (5, HostCommand::Resume),
            (1, HostCommand::Remove),
            (1, HostCommand::RemoveByForce),
        ];
        let (command, at) = {
            let count = self.hosts().len() as u64;
            let random = &mut self.state().random;
            let Some(command) = random.weighted(commands) else { return Ok(String::new()) };
            (command, usize::try_from(random.below(count.max(1))).unwrap_or(0))
        };
        let id = host_identity(&self.host_named(at)).to_owned();
        let done = match command {
            HostCommand::Drain => fleet::drain(town, &id).map(|(_, is_new)| is_new.to_string()),
            HostCommand::Resume => fleet::resume(town, &id).map(|(_, is_new)| is_new.to_string()),
            HostCommand::Remove => fleet::remove(town, &id, false).map(|_| "gone".to_owned()),
            HostCommand::RemoveByForce => {
                // Noted first: the command may die after it has written, and before it says so.
                self.except_agents_on(at);
                fleet::remove(town, &id, true).map(|removed| format!("{:?}", removed.lost))
            }
        };
        done.map(|done| format!("{command:?} {id}: {done}"))
    }

    /// A host that a person may ask for.
    pub(crate) fn some_host_name(&self) -> Option<String> {
        let hosts = self.hosts();
        let cell = self.state().random.pick(&hosts).cloned()?;
        Some(host_identity(&cell.full_name()).to_owned())
    }

    /// Everything works again: the network, the machines, their daemons and clocks.
    pub(crate) fn heal_fleet(&self) {
        if !self.is_fleet() {
            return;
        }
        let town = self.town_without_seam("caretaker");
        for cell in self.hosts() {
            let id = {
                let mut host = cell.host();
                (host.is_cut, host.is_paused, host.is_off) = (false, false, false);
                (host.has_daemon, host.skew) = (true, 0);
                // A person gives each copy a name of its own.
                host.has_given_name = false;
                host.id.clone()
            };
            let is_known = self.read(|reader| reader.hosts()).iter().any(|(row, _)| row.id == id);
            if is_known {
                self.certain("resume", fleet::resume(&town, &id));
            }
        }
        self.pass_time(TICK * 2);
    }

    /// Every host starts what it may, as its daemon does.
    pub(crate) fn recover_everywhere(&self) {
        for at in 0..self.hosts().len().max(1) {
            self.state().here = at;
            self.recover();
        }
        self.state().here = self.some_awake_host();
    }

    /// A run starts on a host that is active, has the label and is below its cap.
    pub(crate) fn check_placement(&self, live: &[Run], run: &Run) {
        let Some(at) = self.number_of_host(&run.host) else { return };
        let Some(cell) = self.host_cell(at) else { return };
        if !run.executor.takes_slot() {
            return;
        }
        let (id, cap, has_label) = {
            let host = cell.host();
            (host.id.clone(), host.cap, host.has_label)
        };
        let fleet = self.read(|reader| reader.fleet());
        let state = fleet.iter().find(|record| record.host.id == id).map(|record| record.state());
        if state != Some(HostState::Active) {
            let found = format!("{} starts on {id}, which is {state:?}", run.id);
            self.violated(Invariant::Placement, found);
        }
        let town = self.town_without_seam("observer");
        let settings = self.certain("settings", town.scheduler_settings());
        if settings.rig_labels.contains_key(&run.rig) && !has_label {
            self.violated(Invariant::Placement, format!("{} starts on {id} without label", run.id));
        }
        let count = live.iter().filter(|run| run.holds_slot() && run.is_on(&id)).count() as u64;
        if cap > 0 && count > cap {
            let found = format!("the cap of {id} is {cap}, {count} are live: {}", run.id);
            self.violated(Invariant::Cap, found);
        }
    }

    /// The time by the clock of the host that started a run.
    pub(crate) fn time_of(&self, run: &Run) -> Timestamp {
        let cell = self.number_of_host(&run.host).and_then(|at| self.host_cell(at));
        cell.map_or_else(|| self.clock.peek(), |cell| cell.wall_time())
    }

    /// The time by the clock of the host that answers questions.
    pub(crate) fn observer_time(&self) -> Timestamp {
        let cell = self.host_cell(self.some_awake_host());
        cell.map_or_else(|| self.clock.peek(), |cell| cell.wall_time())
    }

    /// The host of a process.
    pub(crate) fn host_of(&self, process: ProcessId) -> HostNumber {
        self.state().world.processes.get(&process).map_or(0, |process| process.host)
    }
}
