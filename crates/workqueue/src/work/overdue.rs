//! Work whose agents say nothing any more.

use std::time::Duration;

use gt_core::schedule::{Run, RunEnd, RunState};
use gt_core::time::format_duration;
use gt_core::{BeadChangeKind, Status, Timestamp};
use gt_store::Writer;

use super::error::WorkResult;
use super::requests::Overdue;
use gt_scheduling::run_transitions::finish_in;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town};

/// How many runs one look takes.
const RUNS_MAX: usize = 500;

/// Blocks items that were taken without a lease and had no heartbeat for `work.stale_after`, and queues items again
/// whose lease has ended. The daemon and the server call this; `due` tells them when there may be more. It costs a few
/// reads if there is nothing.
pub fn check_overdue(town: &Town) -> WorkResult<Overdue> {
    let files = file_layers(town)?;
    let mut found = Overdue::default();
    loop {
        let now = town.now();
        let (lost, silent, due, limit) = town.read(|reader| {
            let limit = layers_over(&files, reader)?.work_stale_after()?;
            let lost = reader.expired_runs(reader.lease_time(now), RUNS_MAX)?;
            let silent = reader.silent_runs(now.minus(limit), RUNS_MAX)?;
            let stale_at = reader.longest_silent()?.map(|heard| heard.plus(limit));
            let due = [reader.next_expiry()?, stale_at].into_iter().flatten().min();
            Ok((lost, silent, due, limit))
        })?;
        if lost.is_empty() && silent.is_empty() {
            return Ok(Overdue { due, ..found });
        }
        let (lost, stale) = town.write(|writer| {
            let lost = lose(town, writer, &lost)?;
            Ok((lost, block(writer, &silent, now, limit)?))
        })?;
        let done = lost.len() + stale.len();
        found.lost.extend(lost.into_iter().map(|run| run.id));
        found.stale.extend(stale.into_iter().map(|run| run.id));
        // Another process has just done it, or a clock is wrong: not again at once.
        if done == 0 {
            return Ok(Overdue { due, ..found });
        }
    }
}

/// Ends runs whose leases have ended, unless their agents have spoken since.
fn lose(town: &Town, writer: &mut Writer<'_>, runs: &[Run]) -> Result<Vec<Run>> {
    let mut lost = Vec::new();
    for run in runs {
        let current = writer.run(&run.id)?.filter(|run| run.state == RunState::Running);
        let Some(run) = current else { continue };
        let Some(until) = run.lease_expires_at.filter(|until| *until <= writer.lease_now()) else {
            continue;
        };
        let why = format!("its lease ended at {until}, and {} had not renewed it", run.agent);
        finish_in(writer, town, &run.id, &RunEnd::without_status(RunState::Lost, why))?;
        lost.push(run);
    }
    Ok(lost)
}

/// Blocks what nothing has been heard of for so long.
fn block(
    writer: &mut Writer<'_>,
    runs: &[Run],
    now: Timestamp,
    limit: Duration,
) -> Result<Vec<Run>> {
    let mut blocked = Vec::new();
    for run in runs {
        let Some(old) = writer.bead(&run.id.bead)? else { continue };
        if old.updated_at > now.minus(limit) || old.status != Status::InProgress {
            continue;
        }
        let why = format!(
            "Stale: {} has said nothing since {}, for more than {}",
            run.agent,
            old.updated_at.floor_to_second(),
            format_duration(limit)
        );
        if !writer.block_run(run, &why, true)? {
            continue;
        }
        let mut new = old.clone();
        if !new.notes.is_empty() {
            new.notes.push('\n');
        }
        new.notes.push_str(&why);
        new.enter(Status::Blocked, writer.now());
        new.updated_at = writer.now().of_change_after(old.updated_at);
        writer.save_bead(&old, &new, BeadChangeKind::StatusChanged)?;
        blocked.push(run.clone());
    }
    Ok(blocked)
}
