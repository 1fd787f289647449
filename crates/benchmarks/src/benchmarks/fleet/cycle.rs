//! One dispatch cycle of a host, among many hosts and alone, with the same contexts and live runs.

use std::time::Instant;

use gt_core::{BeadId, RigSlug};
use gt_scheduling::dispatch::{CycleCaller, Dispatcher, MemorySpawner, StartedRun};
use gt_simulator::{host_of_number, renew_hosts, schedule_with_live_runs};
use gt_store::{HostDeclaration, HostRow};
use gt_testkit::Cluster;
use gt_town::{Town, hosts};

use super::super::queue::{FREE_SLOTS, finish, gt, line, open, refill, rig};
use super::super::server::DURABLE;
use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// The hosts of the large fleet.
const HOSTS: u32 = 64;
/// Ten for each of them: this host, with fewer, leaves no start to another.
const LIVE_RUNS: usize = 640;
const RATIO_MAX: f64 = 2.0;

pub(super) fn run(lab: &Lab) -> BenchmarkResult<ReportRow> {
    let is_long = lab.scale.long_rounds > 1;
    let (live, waiting) = (LIVE_RUNS, if is_long { 1_000 } else { 100 });
    let cluster = Cluster::start(DURABLE);
    let fleet = |name, hosts| ScheduledFleet::new(lab, &cluster, name, hosts, [live, waiting]);
    let (many, alone) = (fleet("fleet-many", HOSTS)?, fleet("fleet-alone", 1)?);
    let times = alternate(lab.scale.bursts, [many.arm(), alone.arm()])?;
    let name = format!(
        "fleet: a cycle of the daemon with {FREE_SLOTS} free slots on PostgreSQL, {HOSTS} active hosts against one, \
         {live} live runs and {waiting} contexts in both"
    );
    Ok(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(RATIO_MAX)))
}

/// A town in which all slots but a few are taken, by runs on the other hosts if there are any.
struct ScheduledFleet {
    town: Town,
    here: String,
    others: Vec<HostRow>,
}

impl ScheduledFleet {
    fn new(
        lab: &Lab,
        cluster: &Cluster,
        name: &str,
        hosts: u32,
        [live, waiting]: [usize; 2],
    ) -> BenchmarkResult<Self> {
        let place = lab.town_on(name, &cluster.fresh_database())?;
        rig(lab, &place, "web")?;
        let cap = (live + FREE_SLOTS).to_string();
        gt(lab, &place, &["config", "set", "scheduler.max_polecats", &cap])?;
        let ids: Vec<String> = (0..live + waiting).map(|number| format!("web-{number}")).collect();
        let source = lab.path().join(format!("{name}.jsonl"));
        std::fs::write(&source, ids.iter().map(|id| line(id, 2, None)).collect::<String>())?;
        lab.time(lab.bd(&place, ["import"])?.arg(&source))?;

        let town = open(&place)?;
        let here = hosts::host_of(&town)?;
        let fleet = Self { town, here, others: (1..hosts).map(host_of_number).collect() };
        fleet.renew_others()?;
        let ids = ids.iter().map(|id| BeadId::parse(id)).collect::<Result<Vec<_>, _>>()?;
        let rig = RigSlug::parse("web")?;
        schedule_with_live_runs(&fleet.town, &rig, &ids, live, |run| fleet.host_of_run(run))?;
        Ok(fleet)
    }

    fn arm(&self) -> Arm<'_> {
        let mut round = 0_u32;
        Box::new(move || {
            round += 1;
            // None of them is away when the cycle looks.
            self.renew_others()?;
            let start = Instant::now();
            let started = self.cycle()?;
            let took = start.elapsed();
            if started.len() != FREE_SLOTS {
                return Err(format!("{} of {FREE_SLOTS} slots were filled", started.len()).into());
            }
            finish(&self.town, &started)?;
            refill(&self.town, &round.to_string())?;
            Ok(took)
        })
    }

    fn cycle(&self) -> BenchmarkResult<Vec<StartedRun>> {
        let spawner = MemorySpawner::default();
        let dispatcher = Dispatcher::new(&self.town, &spawner)
            .with_counts(false)
            .with_caller(CycleCaller::Daemon)
            .with_starter("starter", &self.here);
        Ok(dispatcher.dispatch()?.dispatched)
    }

    fn renew_others(&self) -> BenchmarkResult<()> {
        let declared = HostDeclaration {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            grace: std::time::Duration::from_mins(15),
            ..HostDeclaration::default()
        };
        Ok(renew_hosts(&self.town, &self.others, &declared)?)
    }

    /// The host of a live run: one of the others in turn, or this one if it is alone.
    fn host_of_run(&self, number: usize) -> String {
        match self.others.get(number % self.others.len().max(1)) {
            Some(host) => format!("{}/{}", host.name, host.id),
            None => self.here.clone(),
        }
    }
}
