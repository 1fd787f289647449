//! Many short runs over three hosts, against one host with a third of the slots.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use gt_testkit::Cluster;

use super::super::queue::{gt, line, rig};
use super::super::server::DURABLE;
use super::super::site::{DaemonTown, linger};
use super::join;
use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::report::ReportRow;

const HOSTS: u32 = 3;
/// The cap of each host.
const CAP: u32 = 4;
/// How long each worker sleeps: slots are the limit, and not the processors.
const WORK: Duration = Duration::from_secs(1);
/// How many times as many runs three hosts must end in the same time.
const SPEEDUP_MIN: f64 = 2.0;
/// How often it is asked whether all is done.
const DONE_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long it may take before it is taken for stuck.
const LIMIT: Duration = Duration::from_mins(8);

pub(super) fn run(lab: &Lab) -> BenchmarkResult<ReportRow> {
    let runs = if lab.scale.long_rounds > 1 { 1_000 } else { 36 };
    let cluster = Cluster::start(DURABLE);
    let three = through(lab, &cluster, "three", HOSTS, runs)?;
    let one = through(lab, &cluster, "one", 1, runs)?;
    let name = format!(
        "fleet: {runs} runs of {} s as processes over {HOSTS} hosts with a cap of {CAP} each on one PostgreSQL, against one \
         host with that cap",
        WORK.as_secs()
    );
    Ok(ReportRow::speeds(name, runs, three, one, Some(SPEEDUP_MIN)))
}

/// From the start of the daemons until every bead is closed.
fn through(
    lab: &Lab,
    cluster: &Cluster,
    what: &str,
    hosts: u32,
    runs: u32,
) -> BenchmarkResult<Duration> {
    let url = cluster.fresh_database();
    let places = (0..hosts)
        .map(|number| join(lab, &format!("fleet-{what}-{number}"), &url, CAP))
        .collect::<BenchmarkResult<Vec<_>>>()?;
    let first = places.first().ok_or("no host")?;
    let arrivals = lab.path().join(format!("arrivals-{what}"));
    let sockets = lab.path().join(format!("t-{what}"));
    for directory in [&arrivals, &sockets] {
        fs::create_dir_all(directory)?;
    }
    rig(lab, first, "web")?;
    let worker = lab.part("arrive")?;
    let command =
        format!("'{}' arrive '{}' {{bead}}", worker.get_program().display(), arrivals.display());
    gt(lab, first, &["config", "set", "rig.web.command", &command])?;
    gt(lab, first, &["config", "set", "scheduler.max_polecats", &(HOSTS * CAP).to_string()])?;
    let ids: Vec<String> = (0..runs).map(|number| format!("web-{number}")).collect();
    let source = arrivals.join("beads.jsonl");
    fs::write(&source, ids.iter().map(|id| line(id, 2, None)).collect::<String>())?;
    lab.time(lab.bd(first, ["import"])?.arg(&source))?;
    let mut sling = lab.program("gt", &first.path)?;
    lab.time(sling.arg("sling").args(&ids).args(["--no-boot", "--no-convoy"]))?;

    linger(&arrivals, WORK)?;
    let start = Instant::now();
    let sites = places
        .iter()
        .map(|place| DaemonTown::up(lab, place, &arrivals, &sockets))
        .collect::<BenchmarkResult<Vec<_>>>()?;
    let site = sites.first().ok_or("no host")?;
    while site.count("closed")? < runs {
        if start.elapsed() > LIMIT {
            return Err(format!("{} of {runs} beads are done", site.count("closed")?).into());
        }
        std::thread::sleep(DONE_CHECK_INTERVAL);
    }
    let took = start.elapsed();
    let begun = site.all_begun();
    let once: HashSet<&String> = begun.iter().collect();
    if begun.len() == once.len() && once.len() == ids.len() {
        Ok(took)
    } else {
        Err(format!("{} workers began for {} of {runs} beads", begun.len(), once.len()).into())
    }
}
