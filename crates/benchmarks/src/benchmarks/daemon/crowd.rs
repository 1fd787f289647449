//! Many workers at once, and many more one after the other.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use super::super::queue::{gt, rig};
use super::super::site::{DaemonTown, linger};
use crate::BenchmarkResult;
use crate::lab::{BenchmarkTown, Lab};
use crate::report::ReportRow;

/// How many beads there are, and how many of them may be worked on at once.
const BEADS: u32 = 2_000;
const CAP: u32 = 200;
/// How long each worker works.
const WORK: Duration = Duration::from_secs(2);
/// How often all processes of the machine are looked at.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// How often it is asked whether all is done.
const DONE_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How long it may take before it is taken for stuck.
const LIMIT: Duration = Duration::from_mins(5);

pub(super) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let (beads, cap) =
        if lab.scale.long_rounds > 1 { (BEADS, CAP) } else { (BEADS / 20, CAP / 20) };
    let town = lab.empty_town("crowd")?;
    rig(lab, &town, "web")?;
    Ok(vec![through(lab, &town, "as processes", beads, cap)?])
}

/// Has all beads worked on, and looks from outside how many workers there are.
fn through(
    lab: &Lab,
    town: &BenchmarkTown,
    how: &str,
    beads: u32,
    cap: u32,
) -> BenchmarkResult<ReportRow> {
    let (arrivals, sockets) = (lab.path().join("arrivals-crowd"), lab.path().join("t-crowd"));
    for directory in [&arrivals, &sockets] {
        fs::create_dir_all(directory)?;
    }
    let worker = lab.part("arrive")?;
    let command =
        format!("'{}' arrive '{}' {{bead}}", worker.get_program().display(), arrivals.display());
    gt(lab, town, &["config", "set", "rig.web.command", &command])?;
    gt(lab, town, &["config", "set", "scheduler.max_polecats", &cap.to_string()])?;
    let site = DaemonTown::up(lab, town, &arrivals, &sockets)?;
    linger(&arrivals, WORK)?;
    let ids: Vec<String> = (0..beads).map(|number| format!("web-{number}")).collect();
    let start = Instant::now();
    site.schedule(&ids, false)?;
    let (mut most, mut samples, mut asked) = (0, 0_u32, Instant::now());
    loop {
        most = most.max(site.workers().len());
        samples += 1;
        std::thread::sleep(SAMPLE_INTERVAL);
        if asked.elapsed() >= DONE_CHECK_INTERVAL {
            asked = Instant::now();
            if site.count("closed")? == beads {
                break;
            }
        }
        if start.elapsed() > LIMIT {
            return Err(format!("{} of {beads} beads are done", site.count("closed")?).into());
        }
    }
    let took = start.elapsed();
    let begun = site.all_begun();
    let once: HashSet<&String> = begun.iter().collect();
    let (lost, twice) = (ids.len() - once.len(), begun.len() - once.len());
    let ideal = WORK * beads.div_ceil(cap);
    Ok(ReportRow {
        name: format!(
            "daemon: {beads} beads {how}, {cap} at once, each of {} s: {lost} lost, {twice} begun twice, at most {most} workers \
             seen in {samples} looks; against as many that start and end at once",
            WORK.as_secs()
        ),
        ours: format!("{:.1} s", took.as_secs_f64()),
        baseline: format!("{:.1} s", ideal.as_secs_f64()),
        ratio: format!("{:.3}", took.as_secs_f64() / ideal.as_secs_f64()),
        target: format!("all, once, ≤ {cap}"),
        met: Some(lost == 0 && twice == 0 && most <= usize::try_from(cap)?),
    })
}
