//! Convoys: staging very many beads, a close that makes a hundred ready, and the picture of ten thousand.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gt_beads::beads::{self, Close};
use gt_scheduling::Consequences;
use gt_town::{Actor, Environment, StoreOptions, SystemClock};
use rusqlite::{Connection, OpenFlags};

use super::memory::{megabytes, peak};
use super::queue::{gt, line, rig};
use crate::BenchmarkResult;
use crate::lab::{BenchmarkTown, Lab};
use crate::measure::{Arm, alternate, median};
use crate::report::{ReportRow, milliseconds};

/// How many beads wait for the one that is closed.
const UNBLOCKED: u32 = 100;
/// How many beads a large convoy has, and a small one.
const LARGE: u32 = 10_000;
const SMALL: u32 = 200;
/// How much memory a stage may need.
const LIMIT_KIB: u64 = 300_000_000 / 1024;

/// Runs the three measurements of convoys.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let mut rows = stage(lab)?;
    rows.push(close(lab)?);
    rows.push(status(lab)?);
    Ok(rows)
}

/// Staging an epic with three dependencies for each of its parts, against one pass over the same rows.
fn stage(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let beads = lab.scale.large;
    let town = lab.empty_town("staged")?;
    rig(lab, &town, "web")?;
    let source = lab.path().join("epic.jsonl");
    fs::write(&source, epic(beads))?;
    lab.time(lab.bd(&town, ["import"])?.arg(&source))?;
    let stage = |town: &BenchmarkTown| -> BenchmarkResult<Duration> {
        lab.time(lab.program("gt", &town.path)?.args(["convoy", "stage", "web-epic", "--json"]))
    };
    let ours: Arm<'_> = Box::new(|| {
        let took = stage(&town)?;
        // The next one makes a convoy of its own again, and finds as many rows.
        gt(lab, &town, &["bd", "delete", &staged(&town)?, "--force"])?;
        Ok(took)
    });
    let pass: Arm<'_> = Box::new(|| {
        let mut part = lab.part("scan")?;
        lab.time(part.arg(town.database()))
    });
    let times = alternate(lab.scale.long_rounds, [ours, pass])?;
    let name = format!(
        "convoys: `gt convoy stage` of {beads} beads with {} dependencies, against one pass over the same rows",
        3 * u64::from(beads)
    );
    let speed = ReportRow::times(name, median(&times[0]), median(&times[1]), Some(10.0));
    let (kib, took) = peak(lab, &town, &["gt", "convoy", "stage", "web-epic"])?;
    let memory = ReportRow {
        name: format!("convoys: memory of `gt convoy stage` of {beads} beads"),
        ours: format!("{} ({})", megabytes(kib), milliseconds(took)),
        baseline: "–".to_owned(),
        ratio: "–".to_owned(),
        target: "< 300 MB".to_owned(),
        met: Some(kib < LIMIT_KIB),
    };
    fs::remove_dir_all(&town.path)?;
    Ok(vec![speed, memory])
}

/// The convoy that is staged in a town.
fn staged(town: &BenchmarkTown) -> BenchmarkResult<String> {
    let connection =
        Connection::open_with_flags(town.database(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let sql = "SELECT id FROM beads WHERE issue_type = 'convoy' AND status LIKE 'staged%'";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// The whole of `gt-benchmarks scan`: every bead and every dependency of a store is read once.
pub(crate) fn scan(database: &Path) -> BenchmarkResult<()> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut bytes = 0;
    for table in ["beads", "labels", "dependencies"] {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
        let width = statement.column_count();
        let mut rows = statement.query([])?;
        let mut kept: Vec<rusqlite::types::Value> = Vec::new();
        while let Some(row) = rows.next()? {
            kept.clear();
            for column in 0..width {
                kept.push(row.get(column)?);
            }
            bytes += kept.len();
        }
    }
    println!("{bytes}");
    Ok(())
}

/// An epic with so many parts, each of which waits for three that are not far before it.
fn epic(parts: u32) -> String {
    let at = "\"created_at\":\"2026-11-01T00:00:00Z\"";
    let mut lines = format!(
        "{{\"id\":\"web-epic\",\"title\":\"All of it\",\"status\":\"open\",\"issue_type\":\"epic\",{at},\
         \"updated_at\":\"2026-11-01T00:00:00Z\"}}\n"
    );
    for number in 0..parts {
        let edge = |kind: &str, target: &str| {
            format!(
                "{{\"issue_id\":\"web-{number}\",\"depends_on_id\":\"{target}\",\"type\":\"{kind}\",{at}}}"
            )
        };
        let mut edges = vec![edge("parent-child", "web-epic")];
        // Three different ones, the same every time.
        for step in [1 + number % 7, 11 + number % 131, 150 + number % 1_777] {
            if let Some(target) = number.checked_sub(step) {
                edges.push(edge("blocks", &format!("web-{target}")));
            }
        }
        let _ = writeln!(
            lines,
            "{{\"id\":\"web-{number}\",\"title\":\"Work on {number}\",\"status\":\"open\",\"issue_type\":\"task\",\
             \"priority\":2,{at},\"updated_at\":\"2026-11-01T00:00:00Z\",\"dependencies\":[{}]}}",
            edges.join(",")
        );
    }
    lines
}

/// A town with convoys of so many beads. In each of the rounds, which are spread over them, a bead can be closed that a
/// hundred others of its convoy wait for; the rest waits for something else.
fn convoys(
    lab: &Lab,
    name: &str,
    beads: u32,
    convoys: u32,
    rounds: u32,
) -> BenchmarkResult<BenchmarkTown> {
    let town = lab.empty_town(name)?;
    rig(lab, &town, "web")?;
    gt(lab, &town, &["config", "set", "scheduler.max_polecats", "5"])?;
    gt(lab, &town, &["scheduler", "pause"])?;
    let mut lines = line("web-gate", 2, None);
    let mut tracked = vec![Vec::new(); convoys as usize];
    for round in 0..rounds {
        let members = &mut tracked[(round % convoys) as usize];
        let first = format!("web-first{round}");
        lines += &line(&first, 2, None);
        for number in 0..UNBLOCKED {
            let id = format!("web-next{round}x{number}");
            lines += &line(&id, 2, Some(&first));
            members.push(id);
        }
        members.push(first);
    }
    for (convoy, members) in tracked.iter_mut().enumerate() {
        for number in members.len()..beads as usize {
            let id = format!("web-rest{convoy}x{number}");
            lines += &line(&id, 2, Some("web-gate"));
            members.push(id);
        }
    }
    let source = lab.path().join(format!("{name}.jsonl"));
    fs::write(&source, lines)?;
    lab.time(lab.bd(&town, ["import"])?.arg(&source))?;
    for members in &tracked {
        let mut create = lab.program("gt", &town.path)?;
        lab.time(create.args(["convoy", "create", "Benchmark"]).args(members))?;
    }
    Ok(town)
}

fn open(town: &BenchmarkTown) -> BenchmarkResult<gt_town::Town> {
    let actor = Actor::find(Some("bench"), &Environment::default(), &town.path);
    let (clock, options) = (Arc::new(SystemClock), StoreOptions::default());
    let environment = Environment::default();
    Ok(gt_town::Town::open(
        &town.path,
        &town.path,
        &environment,
        actor,
        clock,
        options,
        Arc::new(Consequences),
    )?)
}

/// A close that makes a hundred ready, in a large convoy against a small one.
fn close(lab: &Lab) -> BenchmarkResult<ReportRow> {
    let rounds = u32::try_from(lab.scale.bursts)? + 1;
    let large = LARGE.min(lab.scale.large);
    let towns = [
        convoys(lab, "convoy-large", large, 1, rounds)?,
        convoys(lab, "convoy-small", SMALL, rounds, rounds)?,
    ];
    let opened = [open(&towns[0])?, open(&towns[1])?];
    let arm = |town: &'_ gt_town::Town| -> Arm<'_> {
        let town = town.clone();
        let mut round = 0;
        Box::new(move || {
            let bead = [format!("web-first{round}")];
            round += 1;
            let start = Instant::now();
            for closed in beads::close(&town, &bead, &Close::default())? {
                closed?;
            }
            Ok(start.elapsed())
        })
    };
    let times = alternate(lab.scale.bursts, [arm(&opened[0]), arm(&opened[1])])?;
    let name = format!(
        "convoys: a close that makes {UNBLOCKED} beads ready, in a convoy of {large} against one of {SMALL}"
    );
    drop(opened);
    for town in towns {
        fs::remove_dir_all(town.path)?;
    }
    Ok(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(2.0)))
}

/// The picture of a large convoy, against reading its rows once.
fn status(lab: &Lab) -> BenchmarkResult<ReportRow> {
    let large = LARGE.min(lab.scale.large);
    let town = convoys(lab, "convoy-shown", large, 1, 1)?;
    let id = {
        let connection =
            Connection::open_with_flags(town.database(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let sql = "SELECT id FROM beads WHERE issue_type = 'convoy'";
        connection.query_row(sql, [], |row| row.get::<_, String>(0))?
    };
    let ours: Arm<'_> = Box::new(|| {
        lab.time(lab.program("gt", &town.path)?.args(["convoy", "status", &id, "--json"]))
    });
    let rows: Arm<'_> =
        Box::new(|| lab.time(&mut lab.bd(&town, ["list", "--all", "--limit", "0", "--json"])?));
    let times = alternate(lab.scale.bursts, [ours, rows])?;
    let name = format!(
        "convoys: `gt convoy status --json` of {large} beads, against `bd list --all --json` of the same rows"
    );
    fs::remove_dir_all(&town.path)?;
    Ok(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(3.0)))
}
