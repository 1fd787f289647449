//! The cost of decisions in a large fleet: the real admission, leases and recovery over many hosts and live runs.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gt_beads::beads::{self, NewBead};
use gt_core::settings::Layers;
use gt_core::{Bead, BeadId, Clock, EventKind, ExecutorKind, RigSlug, Timestamp, Uid};
use gt_scheduling::dispatch::{CycleCaller, Dispatcher, MemorySpawner};
use gt_scheduling::fleet::{GoneWatch, declare_gone};
use gt_scheduling::{Consequences, queue};
use gt_store::{HostDeclaration, HostRow};
use gt_town::{Actor, LeaseHost, OperationError, Result, Town, hosts, rigs, settings};

use crate::SeedStore;
use crate::busy_fleet::{host_of_number, renew_hosts, schedule_with_live_runs, write};

/// The rig of all beads.
const RIG: &str = "web";
/// How often a step is repeated for its average.
const REPEATS: u32 = 5;
const GRACE: Duration = Duration::from_mins(2);

/// The times of a fleet of one size.
#[derive(Debug, Clone, Copy)]
pub struct FleetTimes {
    /// How many hosts there are.
    pub hosts: u32,
    /// How many runs are live.
    pub runs: u32,
    /// One cycle that starts one run.
    pub cycle: Duration,
    /// The explanation of one bead that waits.
    pub why: Duration,
    /// One renewal of a lease, with the judgement of all other hosts.
    pub renewal: Duration,
    /// One host is declared gone, and all its runs are lost, each with a successor.
    pub loss: Duration,
    /// How many runs that were.
    pub lost: usize,
}

impl fmt::Display for FleetTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hosts, runs, lost, .. } = self;
        let [cycle, why, renewal, loss] =
            [self.cycle, self.why, self.renewal, self.loss].map(|time| time.as_secs_f64() * 1e3);
        write!(
            f,
            "{hosts} hosts, {runs} live runs: cycle {cycle:.1} ms, why {why:.1} ms, renewal {renewal:.1} ms, \
             loss of a host with {lost} runs {loss:.1} ms"
        )
    }
}

/// One clock for the hosts and the store.
struct SharedClock(Arc<AtomicI64>);

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.fetch_add(1_000, Ordering::Relaxed))
    }
}

/// The host that acts.
struct ActingHost {
    clock: Arc<AtomicI64>,
    renewal: Mutex<Option<(Duration, Duration)>>,
}

impl LeaseHost for ActingHost {
    fn row(&self) -> HostRow {
        host_of_number(0)
    }

    fn settings(&self) -> Layers {
        Layers::default()
    }

    fn since_boot(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.clock.load(Ordering::Relaxed)).unwrap_or(0))
    }

    fn last_renewal(&self) -> Option<(Duration, Duration)> {
        *self.renewal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_renewal(&self, sent: Duration, grace: Duration) {
        *self.renewal.lock().unwrap_or_else(PoisonError::into_inner) = Some((sent, grace));
    }
}

fn declaration() -> HostDeclaration {
    HostDeclaration { version: "1".to_owned(), grace: GRACE, ..HostDeclaration::default() }
}

/// Makes a town with so many hosts and live runs, and measures what its decisions cost.
pub fn measure_fleet(hosts: u32, runs: u32, store: SeedStore) -> Result<FleetTimes> {
    let SeedStore { store, clock } = store;
    clock.store(1_790_000_000_000_000_000, Ordering::Relaxed);
    let actor = Actor { name: "person".to_owned(), owner: String::new() };
    let acting = ActingHost { clock: Arc::clone(&clock), renewal: Mutex::default() };
    let shared = SharedClock(Arc::clone(&clock));
    let town = Town::over(store, actor, Arc::new(shared), Arc::new(Consequences))
        .with_lease_host(Arc::new(acting));
    furnish(&town)?;
    let all: Vec<HostRow> = (0..hosts).map(host_of_number).collect();
    renew_hosts(&town, &all, &declaration())?;
    hosts::renew(&town, &declaration(), true)?;
    let waiting = begin_runs(&town, hosts, runs)?;
    let spawner = MemorySpawner::default();
    let cycle = average(|| {
        let dispatcher = Dispatcher::new(&town, &spawner)
            .with_caller(CycleCaller::Hand)
            .with_starter("starter", "host0/h0")
            .with_limit(1);
        let done = dispatcher.dispatch()?;
        if done.dispatched.len() == 1 {
            return Ok(());
        }
        Err(OperationError::rejected(format!("the cycle started {:?}", done.dispatched)))
    })?;
    let last = waiting.last().map(ToString::to_string).unwrap_or_default();
    let why = average(|| queue::why(&town, &last).map(drop))?;
    let mut watch = GoneWatch::default();
    let renewal = average(|| {
        hosts::renew(&town, &declaration(), true)?;
        declare_gone(&town, &mut watch).map(drop)
    })?;
    // All but the last host renew; the last one is gone after its lease and its grace.
    let others = &all[..all.len() - 1];
    let mut lost = 0;
    let mut loss = Duration::ZERO;
    for _ in 0..8 {
        clock.fetch_add(30_000_000_000, Ordering::Relaxed);
        renew_hosts(&town, others, &declaration())?;
        hosts::renew(&town, &declaration(), true)?;
        let began = Instant::now();
        let gone = declare_gone(&town, &mut watch)?;
        if !gone.is_empty() {
            loss = began.elapsed();
            lost = gone.iter().map(|host| host.runs.len()).sum();
        }
    }
    Ok(FleetTimes { hosts, runs, cycle, why, renewal, loss, lost })
}

fn average(mut step: impl FnMut() -> Result<()>) -> Result<Duration> {
    let began = Instant::now();
    for _ in 0..REPEATS {
        step()?;
    }
    Ok(began.elapsed() / REPEATS)
}

fn furnish(town: &Town) -> Result<()> {
    let check = gt_scheduling::runtimes::check_name;
    rigs::add(
        town,
        &rigs::NewRig {
            name: RIG,
            repository: None,
            prefix: Some(RIG),
            branch: None,
            executor: ExecutorKind::Process,
        },
    )?;
    settings::set(town, "rig.web.command", "/bin/true {bead}", check)?;
    settings::set(town, "scheduler.max_polecats", "100000", check)?;
    settings::set(town, "host.grace", "2m", check)?;
    let (id, title) = (Some("web-first".to_owned()), "work".to_owned());
    beads::create(town, &NewBead { id, title, ..NewBead::default() }, false).map(drop)
}

/// Makes beads for the runs, spread over the hosts, and a few more that wait; returns those.
fn begin_runs(town: &Town, hosts: u32, runs: u32) -> Result<Vec<BeadId>> {
    let first = town.read(|reader| {
        let first = reader.bead(&BeadId::trusted("web-first".to_owned()))?;
        first.ok_or_else(|| OperationError::NoBead("web-first".to_owned()))
    })?;
    let waiting = REPEATS + 1;
    let ids: Vec<BeadId> =
        (0..runs + waiting).map(|number| BeadId::trusted(format!("web-{number}"))).collect();
    write(town, |writer| {
        for id in &ids {
            let bead = Bead { id: id.clone(), uid: Uid::fresh(), ..first.clone() };
            writer.insert_bead(&bead, EventKind::Created)?;
        }
        Ok(())
    })?;
    schedule_with_live_runs(town, &RigSlug::parse(RIG)?, &ids, runs as usize, |number| {
        let host = host_of_number(u32::try_from(number).unwrap_or(0) % hosts);
        format!("{}/{}", host.name, host.id)
    })?;
    Ok(ids[runs as usize..].to_vec())
}
