//! Work that many agents take and end, beside other queues on the same server.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use gt_testkit::Cluster;

use super::CONNECTIONS;
use super::claims::template;
use super::client::{ClientConnection, field, request, runtime};
use super::serving::ServerProcess;
use crate::BenchmarkResult;
use crate::benchmarks::server::DURABLE;
use crate::lab::Lab;
use crate::measure::{alternate, median};
use crate::report::ReportRow;

/// How many items each agent takes and ends in a round.
const ITEMS_EACH: u32 = 40;
/// Where `scripts/bench` puts the programs of the other queues, beside this one.
const PEERS: &str = "queue-peers";

/// Another queue: a program takes and ends so many jobs with so many workers, and prints how many nanoseconds that took.
struct QueuePeer {
    /// Its name and what it is called with; the first word is a program of the system, or one of its own.
    name: &'static str,
    interpreter: Option<&'static str>,
    program: &'static str,
}

const ALL_PEERS: [QueuePeer; 2] = [
    QueuePeer {
        name: "graphile-worker",
        interpreter: Some("node"),
        program: "graphile-worker/jobs.mjs",
    },
    QueuePeer { name: "River", interpreter: None, program: "river/jobs" },
];

impl QueuePeer {
    fn path(&self, lab: &Lab) -> PathBuf {
        lab.binaries().join(PEERS).join(self.program)
    }

    fn run(&self, lab: &Lab, cluster: &Cluster, jobs: u32) -> BenchmarkResult<Duration> {
        let program = self.path(lab);
        let url = cluster.fresh_database();
        let database = url.rsplit('/').next().ok_or("no name in a URL")?;
        let mut command = match self.interpreter {
            Some(interpreter) => {
                let mut command = lab.system(interpreter, lab.path())?;
                command.arg(program);
                command
            }
            None => lab.system(program.to_str().ok_or("a path is not UTF-8")?, lab.path())?,
        };
        command.args([jobs.to_string(), CONNECTIONS.to_string()]);
        command.env("PGHOST", cluster.directory()).env("PGUSER", "postgres");
        let printed = lab.output(command.env("PGDATABASE", database))?;
        let left = cluster.sql(database, "SELECT count(*) FROM unfinished");
        if left != "0" {
            return Err(format!("{left} jobs of {} were not ended", self.name).into());
        }
        Ok(Duration::from_nanos(printed.trim().parse()?))
    }
}

/// Items that are taken and ended by ours, and by each other queue that is installed.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let cluster = &Cluster::start(DURABLE);
    let each = if lab.scale.long_rounds > 1 { ITEMS_EACH } else { ITEMS_EACH / 10 };
    let count = each * CONNECTIONS;
    let template = &template(lab, cluster, count)?;
    let mut rows = Vec::new();
    for peer in ALL_PEERS {
        let name = format!(
            "queues: items that {CONNECTIONS} agents take and end on PostgreSQL, against {}",
            peer.name
        );
        if !peer.path(lab).exists() {
            eprintln!("queues: {} is not installed: skipped", peer.name);
            continue;
        }
        let times = alternate(
            lab.scale.long_rounds.min(3),
            [
                Box::new(|| take_and_end(lab, &cluster.clone_database(template), each)),
                Box::new(|| peer.run(lab, cluster, count)),
            ],
        )?;
        rows.push(ReportRow::speeds(name, count, median(&times[0]), median(&times[1]), None));
    }
    Ok(rows)
}

/// Each agent asks for an item and reports that it is done, again and again.
fn take_and_end(lab: &Lab, url: &str, each: u32) -> BenchmarkResult<Duration> {
    let serving = &ServerProcess::ours(lab, url)?;
    runtime()?.block_on(async {
        let connect = || ClientConnection::connect(serving.address);
        let lines = try_join_all((0..CONNECTIONS).map(|_| connect())).await?;
        let start = Instant::now();
        try_join_all(lines.into_iter().zip(0..).map(|(mut line, agent)| async move {
            let body = format!(r#"{{"agent":"agent-{agent}","lease_s":3600}}"#);
            let next = request("POST", "/work/next", &body);
            for _ in 0..each {
                let answer = std::str::from_utf8(line.ask(&next).await?)?;
                let part = |name| {
                    field(answer, name).ok_or_else(|| format!("nothing was given: {answer}"))
                };
                let path = format!("/work/{}", part("id")?);
                let body = format!(
                    r#"{{"status":"completed","outcome":"success","run_id":"{}"}}"#,
                    part("run_id")?
                );
                line.ask(&request("PATCH", &path, &body)).await?;
            }
            Ok::<(), Box<dyn std::error::Error>>(())
        }))
        .await?;
        Ok(start.elapsed())
    })
}
