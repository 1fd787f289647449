//! The work queue over HTTP: our server and bare ones, each in a process of its own, asked by the same client.

mod bare;
mod claims;
mod client;
mod crowd;
mod fill;
mod queues;
mod serving;
mod telemetry;

use std::path::Path;
use std::time::Duration;

pub(crate) use bare::serve_file;
pub(crate) use claims::{ONE_BY_ONE, TOGETHER, run as run_claims, serve_claims};
pub(crate) use queues::run as run_queues;
pub(crate) use telemetry::run as run_telemetry;

use self::client::{ask_all, request};
use self::fill::{OF_AGENT, agent_of, fill_file, uid_of};
use self::serving::{SUBMISSION, ServerProcess, make_file, text};
use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;
use crate::sample::SampleRandom;

/// How many ask at the same time.
const CONNECTIONS: u32 = 64;
/// The least share of a bare server's speed.
const SPEED_SHARE_MIN: f64 = 0.5;
/// The most that a list may take longer in a store that is a hundred times as large.
const LIST_RATIO_MAX: f64 = 2.0;
/// The part that serves a file without any logic.
pub(crate) const BARE: &str = "bare-http";

/// All of it but claims, which take a server of PostgreSQL and much longer.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let mut rows = submissions(lab)?;
    rows.extend(reads_and_lists(lab)?);
    rows.extend(crowd::run(lab)?);
    Ok(rows)
}

/// `POST /work`, each durable before it is answered, against a bare group commit of the same rows.
fn submissions(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let each = lab.scale.creates_per_thread;
    let submit = |address| {
        ask_all(address, CONNECTIONS, each, |_, _| request("POST", "/work", SUBMISSION), |_| Ok(()))
    };
    let arm = |start: fn(&Lab, &str) -> BenchmarkResult<ServerProcess>| -> Arm<'_> {
        Box::new(move || {
            let path = make_file(lab, "http-submit")?;
            let took = submit(start(lab, text(&path)?)?.address);
            remove(&path)?;
            took
        })
    };
    let bare = |lab: &Lab, url: &str| ServerProcess::bare(lab, BARE, url);
    let times = alternate(lab.scale.long_rounds, [arm(ServerProcess::ours), arm(bare)])?;
    let name =
        format!("http: durable `POST /work`, {CONNECTIONS} connections, against a bare server");
    let count = CONNECTIONS * each;
    Ok(vec![ReportRow::speeds(
        name,
        count,
        median(&times[0]),
        median(&times[1]),
        Some(SPEED_SHARE_MIN),
    )])
}

/// Removes a store and the directory it was made in.
fn remove(path: &Path) -> BenchmarkResult<()> {
    Ok(std::fs::remove_dir_all(path.parent().ok_or("no directory around a store")?)?)
}

/// `GET /work/:id` against a bare server with one read, and lists in stores of very different sizes.
fn reads_and_lists(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let (huge, middle) = (lab.scale.huge, lab.scale.middle);
    let mut servers = Vec::new();
    let mut paths = Vec::new();
    for (name, items) in [("http-huge", huge), ("http-middle", middle)] {
        let path = make_file(lab, name)?;
        fill_file(&path, items)?;
        servers.push(ServerProcess::ours(lab, text(&path)?)?);
        paths.push(path);
    }
    let bare = ServerProcess::bare(lab, BARE, text(&paths[1])?)?;
    let each = lab.scale.creates_per_thread;
    let read = |serving: &ServerProcess| {
        let item = |connection: u32, number: u32| {
            let mut random = SampleRandom::new(u64::from(connection * each + number));
            let path = format!("/work/{}", uid_of(below(&mut random, middle)));
            request("GET", &path, "")
        };
        ask_all(serving.address, CONNECTIONS, each, item, |_| Ok(()))
    };
    let arm = |serving| -> Arm<'_> { Box::new(move || read(serving)) };
    let times = alternate(lab.scale.long_rounds * 2, [arm(&servers[1]), arm(&bare)])?;
    let name = format!(
        "http: `GET /work/:id`, {CONNECTIONS} connections, against a bare server with one read"
    );
    let count = CONNECTIONS * each;
    let mut rows = vec![ReportRow::speeds(
        name,
        count,
        median(&times[0]),
        median(&times[1]),
        Some(SPEED_SHARE_MIN),
    )];

    let lists = |serving, items| -> Arm<'_> {
        let mut random = SampleRandom::new(7);
        Box::new(move || list(serving, &agent_of(below(&mut random, items))))
    };
    let rounds = lab.scale.short_rounds;
    let times = alternate(rounds, [lists(&servers[0], huge), lists(&servers[1], middle)])?;
    let name = format!(
        "http: `GET /work?agent=…&status=…`, {OF_AGENT} items of {huge} against {OF_AGENT} of {middle}"
    );
    rows.push(ReportRow::times(name, median(&times[0]), median(&times[1]), Some(LIST_RATIO_MAX)));
    drop((servers, bare));
    for path in paths {
        remove(&path)?;
    }
    Ok(rows)
}

/// The list of an agent that the store may not have been asked about before.
fn list(serving: &ServerProcess, agent: &str) -> BenchmarkResult<Duration> {
    let path = format!("/work?agent={agent}&status=queued,in_progress");
    let expected = usize::try_from(OF_AGENT)?;
    ask_all(
        serving.address,
        1,
        1,
        |_, _| request("GET", &path, ""),
        |answer| {
            let found = std::str::from_utf8(answer)?.matches(r#""assigned_agent":"#).count();
            if found == expected {
                Ok(())
            } else {
                Err(format!("{agent} has {found} items").into())
            }
        },
    )
}

fn below(random: &mut SampleRandom, bound: u32) -> u32 {
    u32::try_from(random.number() % u64::from(bound)).unwrap_or(0)
}
