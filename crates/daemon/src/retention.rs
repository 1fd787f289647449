//! Records that are kept for a while: trees in the trash, events, messages that were read, the files of runs and the
//! outputs of checks.
//!
//! Deleting takes long, and no command waits for it. Each dispatch pass only looks whether there are old records. At
//! most once a day it starts a copy of the program that deletes them.

use std::sync::Arc;
use std::time::Duration;

use gt_beads::tombstones::forget_old_tombstones;
use gt_core::decide::DiskGuard;
use gt_core::schedule::{RunId, TrashState, Trashed};
use gt_core::settings::Layers;
use gt_core::{Status, Timestamp};
use gt_executors::machine::disk_of;
use gt_executors::runs::{RunFiles, runs_with_files, sweep_control_groups};
use gt_store::{Guard, Reader, SettingScope, Writer};

use crate::{background_helper, notice_helper};
use gt_execution::checks::forget_check_logs;
use gt_execution::trees::{PURGE_NOTICE_PERIOD, delete_for_good, is_due_soon};
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_town::hosts::host_of;
use gt_town::settings::{file_layers, history_kept, layers, layers_over};
use gt_town::tree_paths::shared_repository;
use gt_town::{OperationError, Result, Town};

/// The first argument that makes a program the helper; the town follows.
pub const HELPER: &str = "__keep-house";

/// How many events are deleted at a time: no other writer gets the store meanwhile.
const EVENTS_AT_ONCE: u32 = 5_000;

/// How many runs are asked for at a time.
const RUNS_AT_ONCE: usize = 500;

/// The outputs of younger checks are not removed to make room: a merge request may name them.
const CHECK_LOG_AGE_MIN: Duration = Duration::from_hours(24);

/// Younger commits that the merge queue built are kept: a request for them may just be made.
const CANDIDATE_AGE_MIN: Duration = Duration::from_hours(24);

/// How often retention runs.
const RETENTION_INTERVAL: Duration = Duration::from_hours(24);

/// The result of a retention pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionResult {
    /// The trees that were announced, because they go next.
    pub announced: Vec<Trashed>,
    /// The trees that are gone.
    pub purged: Vec<Trashed>,
    /// How many messages are gone.
    pub messages: u64,
    /// How many events are gone.
    pub events: u64,
    /// How many runs have no files any more.
    pub runs: u64,
    /// How many outputs of checks are gone.
    pub check_logs: u64,
}

/// Starts the helper, if there are old records and no process has run retention today.
pub fn catch_up(town: &Town, host: &str) -> Result<()> {
    if town.has_directory() {
        make_room(town)?;
    }
    if !town.has_directory() || !town.read(|reader| has_old(town, reader, host))? {
        return Ok(());
    }
    let files = file_layers(town)?;
    if town.read(|reader| is_due(town, reader, &files, host))? {
        // A helper that cannot be started today can be tomorrow.
        let _ = background_helper::start(town.root(), HELPER);
    }
    Ok(())
}

/// The helper: runs retention for the town.
pub fn run(town: Town) -> Result<()> {
    apply_retention(&town.with_commit_hook(Arc::new(notice_helper::SendNotices))).map(drop)
}

/// Announces the trees that are deleted next. Deletes the trees that were announced long enough ago, the events that
/// are not kept any longer, and messages that were read before those. Nothing happens if another process has done it
/// in the last day. A tree that was not announced is not deleted, however long retention did not run.
pub fn apply_retention(town: &Town) -> Result<RetentionResult> {
    let processes = LocalProcesses::of(town)?;
    let files = file_layers(town)?;
    let found = town.write(|writer| {
        if !is_due(town, writer, &files, processes.host())? {
            return Ok(None);
        }
        let now = writer.now().to_string();
        writer.put_setting(SettingScope::Store, &mark_of(processes.host()), Some(&now))?;
        let messages = writer.purge_messages(forgotten_before(town, writer, &files)?)?;
        forget_old_tombstones(writer)?;
        writer.forget_run_outputs(logs_forgotten_before(town, writer, &files)?)?;
        let (announced, due) = announce(writer, processes.host())?;
        Ok(Some((messages, announced, due)))
    })?;
    let Some((messages, announced, due)) = found else { return Ok(RetentionResult::default()) };
    let purged = delete_for_good(town, due)?;
    let runs = forget_run_files(town)?;
    let before = town.read(|reader| logs_forgotten_before(town, reader, &files))?;
    let check_logs = forget_check_logs(town, before)?;
    forget_candidates(town)?;
    let events = forget_events(town)?;
    Ok(RetentionResult { announced, purged, messages, events, runs, check_logs })
}

/// Removes the files of runs that are over and have not changed for `logs.keep`; returns the number of runs. The latest run of
/// a bead that is not closed keeps them, and so does the last run of a polecat.
pub fn forget_run_files(town: &Town) -> Result<u64> {
    sweep_control_groups(&town.runs_directory());
    let files = file_layers(town)?;
    let before = town.read(|reader| logs_forgotten_before(town, reader, &files))?;
    remove_run_files(town, before, || false)
}

/// Removes the oldest files of runs that are over, and outputs of checks, until the disk of the town has so much room that
/// the disk guard opens; returns the number of runs. Nothing happens on a disk with room.
pub fn make_room(town: &Town) -> Result<u64> {
    let minimum_mb = layers(town)?.guard_disk_min_mb()?;
    let minimum_mb = u64::try_from(minimum_mb).unwrap_or(0);
    let Some(guard) = disk_guard(town, minimum_mb)?.filter(DiskGuard::is_shut) else {
        return Ok(0);
    };
    let has_room = || disk_of(town.root()).is_none_or(|disk| disk.free_mb >= guard.reopens_mb);
    let gone = remove_run_files(town, town.now(), has_room)?;
    if !has_room() {
        forget_check_logs(town, town.now().minus(CHECK_LOG_AGE_MIN))?;
    }
    Ok(gone)
}

/// The disk guard of the town on this machine as it stands; none if it is off or the disk cannot be looked at.
pub(crate) fn disk_guard(town: &Town, minimum_mb: u64) -> Result<Option<DiskGuard>> {
    let Some(disk) = disk_of(town.root()) else { return Ok(None) };
    let host = host_of(town)?;
    let shut = town.read(|reader| Ok(reader.shut_guards(&host)?))?;
    Ok(DiskGuard::new(disk, minimum_mb, shut.contains(&Guard::Disk)))
}

/// Removes the files of runs that may be forgotten and have not changed since `before`, the oldest first, until `is_enough`.
fn remove_run_files(town: &Town, before: Timestamp, is_enough: impl Fn() -> bool) -> Result<u64> {
    let runs_directory = town.runs_directory();
    let failed =
        |source| OperationError::File { action: "clean", path: runs_directory.clone(), source };
    let mut all = runs_with_files(&runs_directory).map_err(failed)?;
    all.sort_by_key(|(_, changed)| *changed);
    let old = all.into_iter().filter(|(_, changed)| *changed < before);
    let old: Vec<RunId> = old.filter_map(|(run, _)| RunId::parse(&run).ok()).collect();
    let mut gone = 0;
    for some in old.chunks(RUNS_AT_ONCE) {
        let forgotten = town.read(|reader| {
            let polecats = reader.polecats()?;
            let mut forgotten = Vec::new();
            for run in some {
                let is_last = polecats.iter().any(|polecat| polecat.last_run.as_ref() == Some(run));
                if !is_last && may_be_forgotten(reader, run)? {
                    forgotten.push(run);
                }
            }
            Ok(forgotten)
        })?;
        for run in forgotten {
            if is_enough() {
                return Ok(gone);
            }
            let files = RunFiles::of(&runs_directory, &run.to_string());
            gone += u64::from(files.remove().map_err(failed)?);
        }
    }
    Ok(gone)
}

/// Deletes the references that keep commits of merge requests which have ended, in the repositories on this machine. A repository
/// that cannot be read keeps them; it is repaired when it is used next.
fn forget_candidates(town: &Town) -> Result<()> {
    let (rigs, open) = town.read(|reader| Ok((reader.rigs()?, reader.open_merge_requests()?)))?;
    let before = town.now().minus(CANDIDATE_AGE_MIN).as_nanos() / 1_000_000_000;
    for rig in rigs {
        let of_rig = || open.iter().filter(|request| request.rig == rig.slug);
        // A candidate that is being landed is named after its base.
        let is_used = of_rig().any(|request| request.state.moves_by_itself());
        if let Some(repository) = shared_repository(town, &rig).filter(|_| !is_used) {
            let beads: Vec<&str> = of_rig().map(|request| request.id.bead.as_str()).collect();
            let _ = repository.forget_candidates(before, &beads);
        }
    }
    Ok(())
}

/// Whether a run is over, and its bead closed or worked on by a later run. A run that the store does not know any more is
/// over.
fn may_be_forgotten(reader: &Reader<'_>, id: &RunId) -> Result<bool> {
    let Some(run) = reader.run(id)? else { return Ok(true) };
    if run.state.is_live() {
        return Ok(false);
    }
    let is_closed = reader.bead(&id.bead)?.is_none_or(|bead| bead.status == Status::Closed);
    Ok(is_closed || reader.runs_of(&id.bead)?.iter().any(|other| other.id.epoch > id.epoch))
}

/// Deletes the events that are not kept any longer; says how many. A reader that goes on after one of them is told
/// so.
pub fn forget_events(town: &Town) -> Result<u64> {
    let files = file_layers(town)?;
    let oldest = town.read(|reader| {
        let before = forgotten_before(town, reader, &files)?;
        Ok(reader.oldest_event_at()?.filter(|at| *at < before).map(|_| before))
    })?;
    let Some(before) = oldest else { return Ok(0) };
    let mut gone = 0;
    loop {
        let now = town.write(|writer| Ok(writer.purge_events(before, EVENTS_AT_ONCE)?))?;
        gone += now;
        if now < EVENTS_AT_ONCE.into() {
            return Ok(gone);
        }
    }
}

/// Announces the trees that are due soon; gives those and the trees that may be deleted, because they were announced
/// in time.
fn announce(writer: &mut Writer<'_>, host: &str) -> Result<(Vec<Trashed>, Vec<Trashed>)> {
    let now = writer.now();
    let (mut announced, mut due) = (Vec::new(), Vec::new());
    for trashed in soon(writer, host, now)? {
        match writer.purge_announced_at(&trashed)? {
            Some(told) if told.plus(PURGE_NOTICE_PERIOD) <= now && trashed.purge_at <= now => {
                due.push(trashed);
            }
            Some(_) => {}
            None => {
                writer.announce_purge(
                    &trashed,
                    trashed.purge_at.max(now.plus(PURGE_NOTICE_PERIOD)),
                )?;
                announced.push(trashed);
            }
        }
    }
    Ok((announced, due))
}

/// The trees of this host that are due soon.
fn soon(reader: &Reader<'_>, host: &str, now: Timestamp) -> Result<Vec<Trashed>> {
    let mut soon = reader.trash()?;
    soon.retain(|one| one.state == TrashState::Kept && one.host == host && is_due_soon(one, now));
    Ok(soon)
}

/// Whether there may be old records. Every pass asks this, and most often the answer is no.
fn has_old(town: &Town, reader: &Reader<'_>, host: &str) -> Result<bool> {
    let now = town.now();
    let any = !soon(reader, host, now)?.is_empty() || reader.oldest_message_at()?.is_some();
    Ok(any || reader.oldest_event_at()?.is_some_and(|at| at.plus(RETENTION_INTERVAL) < now))
}

/// Whether there may be something to do, and no process has looked in the last day.
fn is_due(town: &Town, reader: &Reader<'_>, files: &Layers, host: &str) -> Result<bool> {
    let now = town.now();
    let forgotten_before = forgotten_before(town, reader, files)?;
    let oldest = [reader.oldest_message_at()?, reader.oldest_event_at()?];
    // A run and a check leave events, so that logs are not older than the oldest event.
    let before = forgotten_before.max(logs_forgotten_before(town, reader, files)?);
    let any_old = oldest.into_iter().flatten().any(|at| at < before);
    if !any_old && soon(reader, host, now)?.is_empty() {
        return Ok(false);
    }
    let last = reader.setting(SettingScope::Store, &mark_of(host))?;
    let last = last.and_then(|last| Timestamp::parse(&last).ok());
    // A mark in the future was set by a clock that has jumped since.
    Ok(last.is_none_or(|last| last.plus(RETENTION_INTERVAL) <= now || last > now))
}

/// The key for the time of the last retention pass of a host.
fn mark_of(host: &str) -> String {
    format!("retention.{host}")
}

/// Events before this time, and messages read before it, need not be found any more.
fn forgotten_before(town: &Town, reader: &Reader<'_>, files: &Layers) -> Result<Timestamp> {
    Ok(town.now().minus(history_kept(&layers_over(files, reader)?)?))
}

/// The files of runs and the outputs of checks that have not changed since this time need not be kept.
fn logs_forgotten_before(town: &Town, reader: &Reader<'_>, files: &Layers) -> Result<Timestamp> {
    Ok(town.now().minus(layers_over(files, reader)?.logs_keep()?))
}

#[cfg(test)]
mod tests;
