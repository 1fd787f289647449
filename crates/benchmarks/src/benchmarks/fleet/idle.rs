//! The cost of one more idle host for the server.

use std::time::{Duration, Instant};

use gt_testkit::Cluster;

use super::super::server::DURABLE;
use super::super::site::DaemonTown;
use super::join;
use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::report::ReportRow;

/// How many hosts are added to the first one.
const MORE_HOSTS: u32 = 3;
/// How long statements are counted: some renewals of the lease, and scans of the daemon.
const COUNTED: Duration = Duration::from_mins(1);
/// How often a daemon looks at everything until it is at rest, and how long after the last event it is.
const SCAN_EVERY: &str = "2s";
const SETTLE: Duration = Duration::from_secs(30);
const STATEMENTS_MAX: f64 = 0.2;
/// Marks the statements of this program, which are not counted.
const OWN: &str = "/* gt-benchmarks */";

pub(super) fn run(lab: &Lab) -> BenchmarkResult<ReportRow> {
    let is_long = lab.scale.long_rounds > 1;
    let counted = if is_long { COUNTED } else { COUNTED / 10 };
    let settings =
        "shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.max = 10000\n";
    let cluster = Cluster::start(&format!("{DURABLE}{settings}"));
    let url = cluster.fresh_database();
    let database = url.rsplit('/').next().unwrap_or_default();
    cluster.sql(database, "CREATE EXTENSION pg_stat_statements");
    let sockets = lab.path().join("t-idle");
    std::fs::create_dir_all(&sockets)?;
    let up = |number: u32| -> BenchmarkResult<DaemonTown<'_>> {
        let host = join(lab, &format!("fleet-idle-{number}"), &url, 0)?;
        DaemonTown::up(lab, &host, &sockets, &sockets)
    };
    let per_second = || -> BenchmarkResult<f64> {
        std::thread::sleep(SETTLE);
        let (start, before) = (Instant::now(), statements(&cluster, database)?);
        std::thread::sleep(counted);
        Ok((statements(&cluster, database)? - before) / start.elapsed().as_secs_f64())
    };
    let first = up(0)?;
    first.gt(&["config", "set", "daemon.scan_every", SCAN_EVERY])?;
    let one = per_second()?;
    let more = (1..=MORE_HOSTS).map(up).collect::<BenchmarkResult<Vec<_>>>()?;
    let all = per_second()?;
    drop((first, more));
    let each = (all - one) / f64::from(MORE_HOSTS);
    Ok(ReportRow {
        name: format!(
            "fleet: statements a second of each of {MORE_HOSTS} more idle hosts, counted by the server for {} s; the first host \
             beside it",
            counted.as_secs()
        ),
        ours: format!("{each:.2}/s"),
        baseline: format!("{one:.2}/s"),
        ratio: "–".to_owned(),
        target: format!("≤ {STATEMENTS_MAX}"),
        met: Some(each <= STATEMENTS_MAX),
    })
}

/// How many statements the server has carried out in this database.
fn statements(cluster: &Cluster, database: &str) -> BenchmarkResult<f64> {
    let sql = format!(
        "{OWN} SELECT COALESCE(SUM(calls), 0) FROM pg_stat_statements s \
         JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database() WHERE query NOT LIKE '{OWN}%'"
    );
    Ok(cluster.sql(database, &sql).parse()?)
}
