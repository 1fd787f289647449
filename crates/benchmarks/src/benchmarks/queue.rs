//! Scheduling, one cycle, and the status of the queue, in towns where little and where much is scheduled.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gt_beads::beads::{self, NewBead};
use gt_core::schedule::{ContextOrigin, RunEnd, RunState};
use gt_core::{BeadId, Clock, Priority, RigSlug};
use gt_scheduling::dispatch::{Dispatcher, MemorySpawner, StartedRun};
use gt_scheduling::schedule::{SlingOptions, SlingRequest, sling};
use gt_store::{Authorship, NewContext, Options, PostgresAddress, Store, StoreAddress, StoreError};
use gt_testkit::Cluster;
use gt_town::{Actor, Environment, StoreOptions, SystemClock};

use super::server::DURABLE;
use crate::BenchmarkResult;
use crate::lab::{BenchmarkTown, Lab};
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;

/// How many slots are free in every cycle.
pub(super) const FREE_SLOTS: usize = 8;
/// How many beads one command schedules.
const SCHEDULED: u32 = 1_000;
/// How long `gt scheduler status` may take. It counts everything that waits.
const STATUS_TIME_MAX: Duration = Duration::from_millis(50);
/// The share of contexts that stand ahead in line and cannot start.
const STUCK_PERCENT: u32 = 90;

/// Scheduling against importing, and a cycle and the status over many contexts against few.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let mut rows = vec![schedule(lab)?];
    rows.extend(compare(lab, "SQLite", |name, contexts| crowd(lab, name, contexts, None))?);
    let cluster = Cluster::start(DURABLE);
    rows.extend(compare(lab, "PostgreSQL", |name, contexts| {
        crowd(lab, name, contexts, Some(&cluster.fresh_database()))
    })?);
    Ok(rows)
}

/// One `gt sling` of a thousand beads, against the `bd import` that brought them.
fn schedule(lab: &Lab) -> BenchmarkResult<ReportRow> {
    let count = SCHEDULED.min(lab.scale.large / 10);
    let source = lab.path().join("to-schedule.jsonl");
    let ids: Vec<String> = (0..count).map(|number| format!("web-{number}")).collect();
    let lines: Vec<String> = ids.iter().map(|id| line(id, 2, None)).collect();
    fs::write(&source, lines.concat())?;
    let town = || -> BenchmarkResult<BenchmarkTown> {
        let town = lab.empty_town("schedule")?;
        rig(lab, &town, "web")?;
        gt(lab, &town, &["config", "set", "scheduler.max_polecats", "5"])?;
        Ok(town)
    };
    let ours: Arm<'_> = Box::new(|| {
        let town = town()?;
        lab.time(lab.bd(&town, ["import"])?.arg(&source))?;
        let mut command = lab.program("gt", &town.path)?;
        let took = lab.time(command.arg("sling").args(&ids).arg("--no-boot"))?;
        fs::remove_dir_all(&town.path)?;
        Ok(took)
    });
    let baseline: Arm<'_> = Box::new(|| {
        let town = town()?;
        let took = lab.time(lab.bd(&town, ["import"])?.arg(&source))?;
        fs::remove_dir_all(&town.path)?;
        Ok(took)
    });
    let times = alternate(lab.scale.long_rounds, [ours, baseline])?;
    let name = format!("queue: `gt sling` of {count} beads, against `bd import` of them");
    Ok(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(2.0)))
}

/// A cycle with eight free slots, and `gt scheduler status`, over many contexts against few.
fn compare(
    lab: &Lab,
    engine: &str,
    crowd: impl Fn(&str, u32) -> BenchmarkResult<CrowdedTown>,
) -> BenchmarkResult<Vec<ReportRow>> {
    let (many, few) = (lab.scale.large, 100);
    let (large, small) = (crowd("crowd-many", many)?, crowd("crowd-few", few)?);
    let times = alternate(lab.scale.bursts, [large.arm(), small.arm()])?;
    let cycle = ReportRow::times(
        format!(
            "queue: a cycle with {FREE_SLOTS} free slots on {engine}, {many} contexts against {few}, \
             {STUCK_PERCENT}% ahead in line and stuck"
        ),
        median(&times[0]),
        median(&times[1]),
        Some(3.0),
    );
    let middle = crowd("crowd-middle", lab.scale.small)?;
    let status = |crowd: &CrowdedTown| -> BenchmarkResult<Duration> {
        let mut command = lab.program("gt", &crowd.place)?;
        lab.time(command.args(["scheduler", "status"]))
    };
    let (of_large, of_middle): (Arm<'_>, Arm<'_>) =
        (Box::new(|| status(&large)), Box::new(|| status(&middle)));
    let times = alternate(lab.scale.short_rounds, [of_large, of_middle])?;
    let name = format!(
        "queue: `gt scheduler status` on {engine}, {many} contexts against {}",
        lab.scale.small
    );
    let status = ReportRow::within(name, median(&times[0]), median(&times[1]), STATUS_TIME_MAX);
    for crowd in [large, small, middle] {
        fs::remove_dir_all(crowd.place)?;
    }
    Ok(vec![cycle, status])
}

/// A town in which much is scheduled and little can start.
struct CrowdedTown {
    place: PathBuf,
    town: gt_town::Town,
}

impl CrowdedTown {
    fn arm(&self) -> Arm<'_> {
        let mut round = 0_u32;
        Box::new(move || {
            round += 1;
            let start = Instant::now();
            let started = self.cycle()?;
            let took = start.elapsed();
            if started.len() != FREE_SLOTS {
                return Err(format!("{} of {FREE_SLOTS} slots were filled", started.len()).into());
            }
            finish(&self.town, &started)?;
            refill(&self.town, &format!("{round}"))?;
            Ok(took)
        })
    }

    fn cycle(&self) -> BenchmarkResult<Vec<StartedRun>> {
        let spawner = MemorySpawner::default();
        // Like the daemon, which counts nothing.
        Ok(Dispatcher::new(&self.town, &spawner).with_counts(false).dispatch()?.dispatched)
    }
}

/// Ends what was started, so that the next cycle finds as many slots.
pub(super) fn finish(town: &gt_town::Town, started: &[StartedRun]) -> BenchmarkResult<()> {
    for run in started.iter().filter_map(|started| started.run.as_ref()) {
        gt_scheduling::run_transitions::claim(town, &run.id, &run.workplace, None)?;
        gt_scheduling::run_transitions::finish(
            town,
            &run.id,
            &RunEnd::without_status(RunState::Done, "done"),
        )?;
    }
    Ok(())
}

/// Schedules as much as was started.
pub(super) fn refill(town: &gt_town::Town, round: &str) -> BenchmarkResult<()> {
    let mut arguments = Vec::new();
    for number in 0..FREE_SLOTS {
        let id = format!("web-more{round}x{number}");
        let new = NewBead { title: id.clone(), id: Some(id.clone()), ..NewBead::default() };
        beads::create(town, &new, false)?;
        arguments.push(id);
    }
    let flags = SlingOptions { no_convoy: true, ..SlingOptions::default() };
    sling(town, &SlingRequest { arguments, flags, ..SlingRequest::default() })?;
    Ok(())
}

/// A town with so many contexts: nine tenths of them are urgent, first in line, and parked, blocked, backing
/// off, or over the cap of their rig.
fn crowd(lab: &Lab, name: &str, contexts: u32, url: Option<&str>) -> BenchmarkResult<CrowdedTown> {
    let town = match url {
        Some(url) => lab.town_on(name, url)?,
        None => lab.empty_town(name)?,
    };
    for name in ["web", "parked", "capped"] {
        rig(lab, &town, name)?;
    }
    let free = (FREE_SLOTS + 1).to_string();
    gt(lab, &town, &["config", "set", "scheduler.max_polecats", &free])?;
    gt(lab, &town, &["config", "set", "rig.capped.max_polecats", "1"])?;
    gt(lab, &town, &["rig", "park", "parked"])?;

    let mut lines = line("web-gate", 2, None);
    let mut scheduled = Vec::new();
    for number in 0..contexts {
        let is_stuck = number < contexts * STUCK_PERCENT / 100;
        let (rig, blocker) = match number % 4 {
            _ if !is_stuck => ("web", None),
            0 => ("parked", None),
            1 => ("web", Some("web-gate")),
            2 => ("web", None),
            _ => ("capped", None),
        };
        let id = format!("{rig}-{number}");
        let priority = if is_stuck { 0 } else { 2 };
        lines.push_str(&line(&id, priority, blocker));
        scheduled.push((id, rig, priority, is_stuck && number % 4 == 2));
    }
    let source = lab.path().join(format!("{name}.jsonl"));
    fs::write(&source, lines)?;
    lab.time(lab.bd(&town, ["import"])?.arg(&source))?;
    fs::remove_file(&source)?;

    let address = match url {
        Some(url) => StoreAddress::Server(Box::new(PostgresAddress::parse(url, None)?)),
        None => StoreAddress::File(town.database()),
    };
    let now = SystemClock.now();
    let store = Store::open(&address, now, Options::default())?;
    let by = Authorship { actor: "bench".to_owned(), at: now, worker: None };
    let contexts = scheduled.into_iter().map(|(id, rig, priority, backs_off)| {
        let (bead, rig) = (BeadId::parse(&id)?, RigSlug::parse(rig)?);
        Ok(NewContext {
            // As far off as a backoff can be; a longer one would be taken for a clock that jumped.
            next_attempt_at: backs_off.then(|| now.plus(Duration::from_secs(355))),
            ..NewContext::plain(bead, rig, Priority::new(priority)?, ContextOrigin::Sling)
        })
    });
    let contexts = contexts.collect::<BenchmarkResult<Vec<_>>>()?;
    store
        .write(&by, |writer| writer.insert_contexts(contexts).map(|_| ()))
        .map_err(|error: StoreError| error.to_string())?;
    drop(store);

    let opened = open(&town)?;
    let crowd = CrowdedTown { place: town.path, town: opened };
    // The first cycle also starts the one that the capped rig admits, and that one stays.
    let mut started = crowd.cycle()?;
    started.retain(|started| started.context.rig.as_str() != "capped");
    finish(&crowd.town, &started)?;
    refill(&crowd.town, "0")?;
    Ok(crowd)
}

/// Opens a town in this process.
pub(super) fn open(town: &BenchmarkTown) -> BenchmarkResult<gt_town::Town> {
    let environment = Environment::default();
    Ok(gt_town::Town::open(
        &town.path,
        &town.path,
        &environment,
        Actor::find(Some("bench"), &environment, &town.path),
        Arc::new(SystemClock),
        StoreOptions::default(),
        Arc::new(gt_scheduling::Consequences),
    )?)
}

/// A rig whose command does nothing.
pub(super) fn rig(lab: &Lab, town: &BenchmarkTown, name: &str) -> BenchmarkResult<()> {
    gt(lab, town, &["rig", "add", name, "--prefix", name])?;
    gt(lab, town, &["config", "set", &format!("rig.{name}.command"), "/bin/true"])
}

/// Runs `gt` in a town.
pub(super) fn gt(lab: &Lab, town: &BenchmarkTown, arguments: &[&str]) -> BenchmarkResult<()> {
    lab.time(lab.program("gt", &town.path)?.args(arguments))?;
    Ok(())
}

/// A record as `bd import` reads it.
pub(super) fn line(id: &str, priority: i64, blocker: Option<&str>) -> String {
    let at = "2026-11-01T00:00:00Z";
    let mut line = format!(
        "{{\"id\":\"{id}\",\"title\":\"Work on {id}\",\"status\":\"open\",\"priority\":{priority},\
         \"issue_type\":\"task\",\"created_at\":\"{at}\",\"updated_at\":\"{at}\""
    );
    if let Some(blocker) = blocker {
        let _ = write!(
            line,
            ",\"dependencies\":[{{\"issue_id\":\"{id}\",\"depends_on_id\":\"{blocker}\",\
             \"type\":\"blocks\",\"created_at\":\"{at}\",\"created_by\":\"bench\"}}]"
        );
    }
    line.push_str("}\n");
    line
}
