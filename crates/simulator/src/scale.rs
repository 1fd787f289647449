//! The cost of decisions in a large fleet: the real admission, leases and recovery over many hosts and live runs.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gt_beads::beads::{self, NewBead};
use gt_core::schedule::{CloseReason, ContextOrigin, Run, RunState, Workplace};
use gt_core::settings::Layers;
use gt_core::{
    Bead, BeadChangeKind, BeadId, Clock, EventKind, ExecutorKind, Status, Timestamp, Uid,
};
use gt_scheduling::dispatch::{CycleCaller, Dispatcher, MemorySpawner};
use gt_scheduling::fleet::{GoneWatch, declare_gone};
use gt_scheduling::{Consequences, queue};
use gt_store::{Authorship, HostDeclaration, HostRow, NewContext, StoreError, Writer};
use gt_town::{Actor, LeaseHost, OperationError, Result, Town, hosts, rigs, settings};

use crate::SeedStore;

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
        row_of(0)
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

fn row_of(number: u32) -> HostRow {
    HostRow {
        id: format!("h{number}"),
        name: format!("host{number}"),
        machine: format!("m{number}"),
        path: "/town".to_owned(),
        incarnation: "1".to_owned(),
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
    let all: Vec<u32> = (0..hosts).collect();
    renew_all(&town, &all)?;
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
        renew_all(&town, others)?;
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

fn write<T>(
    town: &Town,
    work: impl FnOnce(&mut Writer<'_>) -> std::result::Result<T, StoreError>,
) -> Result<T> {
    let by = Authorship { actor: "person".to_owned(), at: town.now(), worker: None };
    Ok(town.store().write(&by, work)?)
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

fn renew_all(town: &Town, hosts: &[u32]) -> Result<()> {
    write(town, |writer| {
        hosts
            .iter()
            .try_for_each(|number| writer.renew_host(&row_of(*number), &declaration(), true))
    })
}

/// Begins the runs, spread over the hosts, and schedules a few beads more; returns those.
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
        let new = ids.iter().filter_map(|id| {
            let rig = first.rig.clone()?;
            Some(NewContext::plain(id.clone(), rig, first.priority, ContextOrigin::Sling))
        });
        let contexts = writer.insert_contexts(new.collect())?;
        for (number, context) in contexts.iter().take(runs as usize).enumerate() {
            let host = u32::try_from(number).unwrap_or(0) % hosts;
            let begun = Run::begun(
                writer.next_run_id(&context.bead)?,
                Uid::fresh(),
                context.number,
                context.rig.clone(),
                ExecutorKind::Process,
                writer.now(),
            );
            let run = Run {
                agent: format!("web/process-{number}"),
                host: format!("host{host}/h{host}"),
                ..begun
            };
            writer.insert_run(&run)?;
            writer.claim_run(&run, &Workplace::default())?;
            writer.close_context(context, CloseReason::Dispatched, "")?;
            if let Some(old) = writer.bead(&context.bead)? {
                let (status, assignee) = (Status::InProgress, run.agent.clone());
                let new = Bead { status, assignee, ..old.clone() };
                writer.save_bead(&old, &new, BeadChangeKind::StatusChanged)?;
            }
        }
        Ok(())
    })?;
    let live = town.read(|reader| Ok(reader.live_runs()?))?;
    let is_running = |run: &&Run| run.state == RunState::Running;
    let count = live.iter().filter(is_running).count();
    if count != runs as usize {
        return Err(OperationError::rejected(format!("{count} of {runs} runs are live")));
    }
    Ok(ids[runs as usize..].to_vec())
}
