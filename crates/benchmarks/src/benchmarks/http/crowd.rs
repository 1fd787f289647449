//! Very many listeners, and more connections that stay idle.

use std::time::Instant;

use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use gt_daemon::daemon::make_room_for_files;

use super::client::{ClientConnection, request, runtime};
use super::serving::{SUBMISSION, ServerProcess, make_file, text};
use crate::BenchmarkResult;
use crate::lab::Lab;
use crate::report::{ReportRow, milliseconds};

/// The most memory that the server may have had.
const LIMIT_KIB: u64 = 300 * 1000 * 1000 / 1024;
/// Connections that are made at the same time.
const CONNECTING_AT_ONCE: usize = 64;
/// Clients that submit at the same time.
const SUBMITTERS: u32 = 16;

/// Every listener hears of everything that is submitted, once and in order, while the others stay connected.
pub(super) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    make_room_for_files();
    let path = make_file(lab, "http-crowd")?;
    let serving = ServerProcess::ours(lab, text(&path)?)?;
    let (listeners, idle, each) =
        (lab.scale.listeners, lab.scale.idle, lab.scale.submissions / SUBMITTERS);
    let events = u64::from(each * SUBMITTERS);
    let (took, answered) = runtime()?.block_on(async {
        let connect = |count: u32| {
            stream::iter(0..count)
                .map(|_| ClientConnection::connect(serving.address))
                .buffered(CONNECTING_AT_ONCE)
                .try_collect::<Vec<ClientConnection>>()
        };
        let health = request("GET", "/health", "");
        let mut idle_lines = connect(idle).await?;
        for line in &mut idle_lines {
            line.ask(&health).await?;
        }
        let mut listening = connect(listeners).await?;
        for line in &mut listening {
            line.listen().await?;
        }
        let before = last_event(&mut idle_lines[0]).await?;
        let submitters = connect(SUBMITTERS).await?;
        let start = Instant::now();
        let submitted = try_join_all(submitters.into_iter().map(|mut line| async move {
            for _ in 0..each {
                line.ask(&request("POST", "/work", SUBMISSION)).await?;
            }
            Ok::<(), Box<dyn std::error::Error>>(())
        }));
        let heard =
            try_join_all(listening.iter_mut().map(|line| line.hear(before, before + events)));
        let (_, heard) = tokio::try_join!(submitted, heard)?;
        let took = start.elapsed();
        if heard.iter().any(|heard| *heard != events) {
            return Err("a listener missed something".into());
        }
        let mut answered = 0_u32;
        for line in &mut idle_lines {
            answered += u32::from(line.ask(&health).await.is_ok());
        }
        Ok::<_, Box<dyn std::error::Error>>((took, answered))
    })?;
    let kib = serving.peak_kib()?;
    Ok(vec![ReportRow {
        name: format!(
            "http: {listeners} listeners hear of {events} items each, {idle} idle connections stay"
        ),
        ours: format!(
            "{} MB ({}, {} lost)",
            kib * 1024 / 1_000_000,
            milliseconds(took),
            idle - answered
        ),
        baseline: "–".to_owned(),
        ratio: "–".to_owned(),
        target: "< 300 MB, none lost".to_owned(),
        met: Some(kib < LIMIT_KIB && answered == idle),
    }])
}

/// The number of the last event, as the server counts it.
async fn last_event(line: &mut ClientConnection) -> BenchmarkResult<u64> {
    let metrics = line.ask(&request("GET", "/metrics", "")).await?;
    let metrics = std::str::from_utf8(metrics)?;
    let number = metrics.lines().find_map(|line| line.strip_prefix("gt_last_event_number "));
    Ok(number.ok_or("the server does not say its last event")?.parse()?)
}
