//! Waiting for the end of runs and starters whose end nobody may tell us of.
//!
//! Whoever is killed tells nobody. But the kernel gives back its lock at that moment, and a thread that waits for the lock
//! knows it: no process number that comes back, no list of processes that must be complete.

use std::sync::{Arc, PoisonError};

use gt_core::schedule::{Run, RunId, RunState};
use gt_core::{Event, EventKind, ExecutorKind};
use gt_executors::runs::{Liveness, RunFiles, is_of_this_process, wait_for_end_of_starter};

use super::office::Office;
use crate::Result;
use crate::runs::World as _;

/// Something whose lock is free now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// Every process of this run is gone.
    Run(RunId),
    /// Whoever was about to start runs is gone.
    Starter,
}

/// How many are watched at once. Whoever has more than this hears of the others at the door, and by looking.
const WATCHED_MAX: usize = 2_000;
/// What a thread needs that only waits.
const STACK_BYTES: usize = 64 * 1024;

/// Watches every live run of this machine. Says how many of them are alive.
pub(super) fn watch_all(office: &Arc<Office>) -> Result<u64> {
    let runs = office.town.read(|reader| Ok(reader.live_runs()?))?;
    let mut alive = 0;
    for run in runs.iter().filter(|run| run.is_on(office.world.host())) {
        watch(office, run);
        let files = office.world.files_of(run);
        alive += u64::from(matches!(files.liveness(), Ok(Liveness::Held)));
    }
    Ok(alive)
}

/// Watches what these events tell of: runs that were taken, and those that are being started by others.
pub(super) fn watch_news(office: &Arc<Office>, events: &[Event]) -> Result<()> {
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
    let runs = office.town.read(|reader| {
        let mut runs = Vec::with_capacity(ids.len());
        for id in &ids {
            runs.extend(reader.run(id)?);
        }
        Ok(runs)
    })?;
    let ours = |run: &&Run| run.state.is_live() && run.is_on(office.world.host());
    runs.iter().filter(ours).for_each(|run| watch(office, run));
    Ok(())
}

fn watch(office: &Arc<Office>, run: &Run) {
    match run.executor {
        ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh => {}
        ExecutorKind::Pull | ExecutorKind::None => return,
    }
    match run.state {
        RunState::Starting if is_of_this_process(&run.starter) => {}
        RunState::Starting => {
            let (directory, name) = (office.town.starters_directory(), run.starter.clone());
            let key = format!("starter {name}");
            wait_aside(office, &key, Ended::Starter, move || {
                let _ = wait_for_end_of_starter(&directory, &name);
            });
        }
        RunState::Running | RunState::Blocked => {
            let files: RunFiles = office.world.files_of(run);
            // A lock that cannot be waited for is looked at, like one that is free.
            wait_aside(office, &run.id.to_string(), Ended::Run(run.id.clone()), move || {
                let _ = files.wait_until_free();
            });
        }
        RunState::Done | RunState::Failed | RunState::Lost | RunState::Cancelled => {}
    }
}

/// Has a thread wait, unless one does for the same already, and tells the heart when it is over.
fn wait_aside(office: &Arc<Office>, key: &str, ended: Ended, wait: impl FnOnce() + Send + 'static) {
    let watched = || office.watched.lock().unwrap_or_else(PoisonError::into_inner);
    if watched().len() >= WATCHED_MAX || !watched().insert(key.to_owned()) {
        return;
    }
    let (theirs, name) = (Arc::clone(office), key.to_owned());
    let started = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        wait();
        theirs.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        theirs.ended.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
        theirs.nudge_heart();
    });
    if started.is_err() {
        // It is seen by looking, then.
        watched().remove(key);
    }
}

/// What has ended since the last time.
pub(super) fn take_ended(office: &Office) -> Vec<Ended> {
    std::mem::take(&mut office.ended.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Those that nobody has written down: most often a supervisor has, before it went.
pub(super) fn unexpected(office: &Office, ended: Vec<Ended>) -> Result<Vec<Ended>> {
    office.town.read(|reader| {
        let mut unexpected = Vec::new();
        for one in ended {
            let is_unexpected = match &one {
                Ended::Starter => true,
                Ended::Run(id) => reader.run(id)?.is_some_and(|run| run.state.is_live()),
            };
            if is_unexpected {
                unexpected.push(one);
            }
        }
        Ok(unexpected)
    })
}
