//! Waiting for the end of runs and starters that may die without a report.
//!
//! A killed process reports nothing. But the kernel releases its lock at that moment, and a thread that waits for the
//! lock sees it. This needs neither process numbers, which are reused, nor a complete list of processes.

use std::sync::{Arc, PoisonError};

use gt_core::schedule::{Run, RunId, RunState};
use gt_core::{Event, EventKind, ExecutorKind};
use gt_executors::runs::{Liveness, RunFiles, is_of_this_process, wait_for_end_of_starter};

use super::state::DaemonState;
use gt_scheduling::processes::ProcessProbe as _;
use gt_town::Result;

/// A run or a starter whose lock is free now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FreedLock {
    /// Every process of this run is gone.
    Run(RunId),
    /// The process that was about to start runs is gone.
    Starter,
}

/// How many are watched at once. The ends of further runs are found through the bell and by scans.
const WATCHED_MAX: usize = 2_000;
/// The stack of a thread that only waits.
const STACK_BYTES: usize = 64 * 1024;

/// Watches every live run of this machine. Returns how many of them have a live process.
pub(super) fn watch_all(state: &Arc<DaemonState>) -> Result<u64> {
    let runs = state.town.read(|reader| Ok(reader.live_runs()?))?;
    let mut alive = 0;
    for run in runs.iter().filter(|run| run.is_on(state.processes.host())) {
        watch(state, run);
        let files = state.processes.files_of(run);
        alive += u64::from(matches!(files.liveness(), Ok(Liveness::Held)));
    }
    Ok(alive)
}

/// Watches the runs of these events: claimed ones, and those that other processes are starting.
pub(super) fn watch_news(state: &Arc<DaemonState>, events: &[Event]) -> Result<()> {
    let tells =
        |event: &&Event| matches!(event.kind, EventKind::Dispatched | EventKind::RunStarting);
    let ids: Vec<RunId> = events
        .iter()
        .filter(tells)
        .filter_map(|event| RunId::parse(event.run.as_deref()?).ok())
        .collect();
    if ids.is_empty() {
        return Ok(());
    }
    let runs = state.town.read(|reader| {
        let mut runs = Vec::with_capacity(ids.len());
        for id in &ids {
            runs.extend(reader.run(id)?);
        }
        Ok(runs)
    })?;
    let ours = |run: &&Run| run.state.is_live() && run.is_on(state.processes.host());
    runs.iter().filter(ours).for_each(|run| watch(state, run));
    Ok(())
}

fn watch(state: &Arc<DaemonState>, run: &Run) {
    match run.executor {
        ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh => {}
        ExecutorKind::Pull | ExecutorKind::None => return,
    }
    match run.state {
        RunState::Starting if is_of_this_process(&run.starter) => {}
        RunState::Starting => {
            let (directory, name) = (state.town.starters_directory(), run.starter.clone());
            let key = format!("starter {name}");
            wait_aside(state, &key, FreedLock::Starter, move || {
                let _ = wait_for_end_of_starter(&directory, &name);
            });
        }
        RunState::Running | RunState::Blocked => {
            let files: RunFiles = state.processes.files_of(run);
            // If waiting for the lock fails, the run is checked as if the lock were free.
            wait_aside(state, &run.id.to_string(), FreedLock::Run(run.id.clone()), move || {
                let _ = files.wait_until_free();
            });
        }
        RunState::Done | RunState::Failed | RunState::Lost | RunState::Cancelled => {}
    }
}

/// Starts a thread that waits, unless one waits for the same already, and then wakes the event loop.
fn wait_aside(
    state: &Arc<DaemonState>,
    key: &str,
    ended: FreedLock,
    wait: impl FnOnce() + Send + 'static,
) {
    let watched = || state.watched.lock().unwrap_or_else(PoisonError::into_inner);
    if watched().len() >= WATCHED_MAX || !watched().insert(key.to_owned()) {
        return;
    }
    let (theirs, name) = (Arc::clone(state), key.to_owned());
    let started = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        wait();
        theirs.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        theirs.ended.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
        theirs.wake_event_loop();
    });
    if started.is_err() {
        // Then a scan finds its end.
        watched().remove(key);
    }
}

/// The runs and starters that have ended since the last call.
pub(super) fn take_ended(state: &DaemonState) -> Vec<FreedLock> {
    std::mem::take(&mut state.ended.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Those whose end the store does not have yet: most often their supervisor has recorded it.
pub(super) fn unexpected(state: &DaemonState, ended: Vec<FreedLock>) -> Result<Vec<FreedLock>> {
    state.town.read(|reader| {
        let mut unexpected = Vec::new();
        for one in ended {
            let is_unexpected = match &one {
                FreedLock::Starter => true,
                FreedLock::Run(id) => reader.run(id)?.is_some_and(|run| run.state.is_live()),
            };
            if is_unexpected {
                unexpected.push(one);
            }
        }
        Ok(unexpected)
    })
}
