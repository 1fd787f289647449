//! One dispatch cycle of a host, among many hosts and alone, with the same contexts and live runs.

use std::time::Instant;

use gt_core::schedule::{CloseReason, ContextOrigin, Run, RunState, Workplace};
use gt_core::{BeadChangeKind, BeadId, ExecutorKind, RigSlug, Status, Uid};
use gt_scheduling::dispatch::{CycleCaller, Dispatcher, MemorySpawner, StartedRun};
use gt_store::{Authorship, HostDeclaration, HostRow, NewContext, StoreError, Writer};
use gt_testkit::Cluster;
use gt_town::{OperationError, Town, hosts};

use super::super::queue::{FREE_SLOTS, finish, gt, line, open, refill, rig};
use super::super::server::DURABLE;
use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// The hosts of the large fleet.
const HOSTS: usize = 64;
/// Ten for each of them: this host, with fewer, leaves no start to another.
const LIVE_RUNS: usize = 640;
const RATIO_MAX: f64 = 2.0;

pub(super) fn run(lab: &Lab) -> BenchmarkResult<ReportRow> {
    let is_long = lab.scale.long_rounds > 1;
    let (live, waiting) = (LIVE_RUNS, if is_long { 1_000 } else { 100 });
    let cluster = Cluster::start(DURABLE);
    let fleet = |name, hosts| ScheduledFleet::new(lab, &cluster, name, [hosts, live, waiting]);
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
        [hosts, live, waiting]: [usize; 3],
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
        let fleet = Self { town, here, others: (1..hosts).map(other_host).collect() };
        fleet.renew_others()?;
        let ids = ids.iter().map(|id| BeadId::parse(id)).collect::<Result<Vec<_>, _>>()?;
        fleet.schedule(&ids, live)?;
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
        self.write(|writer| {
            self.others.iter().try_for_each(|host| writer.renew_host(host, &declared, true))
        })
    }

    /// Schedules all beads, and has the first of them worked on by the other hosts, or by this one if it is alone.
    fn schedule(&self, ids: &[BeadId], live: usize) -> BenchmarkResult<()> {
        let rig = RigSlug::parse("web")?;
        self.write(|writer| {
            let priority = gt_core::Priority::default();
            let new = ids.iter().map(|id| {
                NewContext::plain(id.clone(), rig.clone(), priority, ContextOrigin::Sling)
            });
            let contexts = writer.insert_contexts(new.collect())?;
            for (number, context) in contexts.iter().take(live).enumerate() {
                let begun = Run::begun(
                    writer.next_run_id(&context.bead)?,
                    Uid::fresh(),
                    context.number,
                    context.rig.clone(),
                    ExecutorKind::Process,
                    writer.now(),
                );
                let host = match self.others.get(number % self.others.len().max(1)) {
                    Some(host) => format!("{}/{}", host.name, host.id),
                    None => self.here.clone(),
                };
                let run = Run { agent: format!("web/process-{number}"), host, ..begun };
                writer.insert_run(&run)?;
                writer.claim_run(&run, &Workplace::default())?;
                writer.close_context(context, CloseReason::Dispatched, "")?;
                if let Some(old) = writer.bead(&context.bead)? {
                    let (status, assignee) = (Status::InProgress, run.agent.clone());
                    let new = gt_core::Bead { status, assignee, ..old.clone() };
                    writer.save_bead(&old, &new, BeadChangeKind::StatusChanged)?;
                }
            }
            Ok(())
        })?;
        let runs = self.town.read(|reader| Ok::<_, OperationError>(reader.live_runs()?))?;
        let running = runs.iter().filter(|run| run.state == RunState::Running).count();
        if running == live {
            Ok(())
        } else {
            Err(format!("{running} of {live} runs are live").into())
        }
    }

    fn write(
        &self,
        work: impl FnOnce(&mut Writer<'_>) -> Result<(), StoreError>,
    ) -> BenchmarkResult<()> {
        let by = Authorship { actor: "bench".to_owned(), at: self.town.now(), worker: None };
        Ok(self.town.store().write(&by, work)?)
    }
}

fn other_host(number: usize) -> HostRow {
    HostRow {
        id: format!("h{number}"),
        name: format!("host{number}"),
        machine: format!("m{number}"),
        path: "/town".to_owned(),
        incarnation: "1".to_owned(),
    }
}
