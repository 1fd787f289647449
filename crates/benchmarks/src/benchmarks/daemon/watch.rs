//! How soon the end of a worker is noticed, and the cost of the daemon when nothing happens.

use std::fs;
use std::time::{Duration, Instant};

use super::super::queue::{gt, rig};
use super::super::site::DaemonTown;
use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::measure::median;
use crate::report::{ReportRow, milliseconds};

/// How many workers sleep in the long measurement.
const WORKERS: u32 = 200;
/// The end of a worker is to be noticed within this time.
const NOTICED_WITHIN: Duration = Duration::from_millis(50);
/// How long the cost of the daemon is measured.
const IDLE: Duration = Duration::from_mins(1);
/// The share of one processor that it may use then, in percent, and the megabytes.
const IDLE_PERCENT_MAX: f64 = 0.1;
const IDLE_MEGABYTES_MAX: f64 = 40.0;
/// How long after the last event it is idle.
const SETTLE: Duration = Duration::from_secs(5);

pub(super) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let is_long = lab.scale.long_rounds > 1;
    let (many, rounds) = if is_long { (WORKERS, 20) } else { (WORKERS / 20, 3) };
    let idle = if is_long { IDLE } else { IDLE / 30 };
    let town = lab.empty_town("watched")?;
    rig(lab, &town, "web")?;
    let (arrivals, sockets) = (lab.path().join("arrivals-watched"), lab.path().join("t-watched"));
    for directory in [&arrivals, &sockets] {
        fs::create_dir_all(directory)?;
    }
    let worker = lab.part("arrive")?;
    let command =
        format!("'{}' arrive '{}' {{bead}}", worker.get_program().display(), arrivals.display());
    gt(lab, &town, &["config", "set", "rig.web.command", &command])?;
    gt(lab, &town, &["config", "set", "scheduler.max_polecats", "1"])?;
    let site = DaemonTown::up(lab, &town, &arrivals, &sockets)?;
    let mut rows = vec![rest(&site, 0, idle)?];
    let mut beads = HeldBeads { site: &site, next: 1 };
    beads.at_work(1)?;
    rows.extend(ends(&mut beads, 1, rounds)?);
    gt(lab, &town, &["config", "set", "scheduler.max_polecats", &many.to_string()])?;
    beads.at_work(many - 1)?;
    rows.extend(ends(&mut beads, many, rounds)?);
    rows.push(rest(&site, many, idle)?);
    Ok(rows)
}

/// Beads with workers that are held.
struct HeldBeads<'a> {
    site: &'a DaemonTown<'a>,
    next: u32,
}

impl HeldBeads<'_> {
    /// Has so many more of them worked on.
    fn at_work(&mut self, count: u32) -> BenchmarkResult<Vec<String>> {
        let beads: Vec<String> = (0..count).map(|n| format!("web-{}", self.next + n)).collect();
        self.next += count;
        self.site.schedule(&beads, true)?;
        beads.iter().try_for_each(|bead| self.site.began(bead).map(drop))?;
        Ok(beads)
    }
}

/// How soon it is noticed that one of so many workers has ended, in order and not.
fn ends(beads: &mut HeldBeads<'_>, live: u32, rounds: u32) -> BenchmarkResult<Vec<ReportRow>> {
    let site = beads.site;
    let (mut in_order, mut killed, mut settled) = (Vec::new(), Vec::new(), Vec::new());
    // The one that began last is ended; the next then gets its slot.
    let mut current = format!("web-{}", beads.next - 1);
    for _ in 0..rounds {
        let after = site.log_length()?;
        site.release(&current)?;
        let told = site.told(after, "done", &current)?;
        in_order.push(told.duration_since(site.left(&current)?).unwrap_or_default());
        current = beads.at_work(1)?.remove(0);

        let after = site.log_length()?;
        let at = site.kill(&current)?;
        let told = site.told(after, "cut off", &current)?;
        killed.push(told.duration_since(at).unwrap_or_default());
        let told = site.told(after, "lost run", &current)?;
        settled.push(told.duration_since(at).unwrap_or_default());
        // It is done again, by another run.
        site.began(&current)?;
    }
    let workers = if live == 1 { "one worker".to_owned() } else { format!("{live} workers") };
    let row = |what: &str, mut times: Vec<Duration>, within: Option<Duration>| {
        times.sort();
        let time = median(&times);
        ReportRow {
            name: format!("daemon: {what}, with {workers}"),
            ours: milliseconds(time),
            baseline: "–".to_owned(),
            ratio: "–".to_owned(),
            target: within.map_or("–".to_owned(), |within| format!("≤ {}", milliseconds(within))),
            met: within.map(|within| time <= within),
        }
    };
    let within = Some(NOTICED_WITHIN);
    Ok(vec![
        row("the end of a worker is noticed", in_order, within),
        row("that a worker and its supervisor were killed is noticed", killed, within),
        // Before, it looks at all processes, for those that the worker may have left.
        row("what a killed worker had begun is back in line", settled, None),
    ])
}

/// The cost of the daemon while so many workers sleep.
fn rest(site: &DaemonTown<'_>, live: u32, time: Duration) -> BenchmarkResult<ReportRow> {
    std::thread::sleep(SETTLE);
    let daemon = site.daemon()?;
    let (before, start) = (processor_time(daemon)?, Instant::now());
    std::thread::sleep(time);
    let used = processor_time(daemon)?.saturating_sub(before);
    let percent = used.as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
    let megabytes = resident(daemon)?;
    Ok(ReportRow {
        name: format!(
            "daemon: what it needs in {} s while nothing happens, with {live} workers",
            time.as_secs()
        ),
        ours: format!("{percent:.3} % of a processor, {megabytes:.1} MB"),
        baseline: "–".to_owned(),
        ratio: "–".to_owned(),
        target: format!("< {IDLE_PERCENT_MAX} %, < {IDLE_MEGABYTES_MAX:.0} MB"),
        met: Some(percent < IDLE_PERCENT_MAX && megabytes < IDLE_MEGABYTES_MAX),
    })
}

/// How long all threads of a process have run.
fn processor_time(process: u32) -> BenchmarkResult<Duration> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanoseconds += text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// How many megabytes of a process are in memory.
fn resident(process: u32) -> BenchmarkResult<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes: f64 =
        line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?.parse()?;
    Ok(kibibytes * 1024.0 / 1e6)
}
