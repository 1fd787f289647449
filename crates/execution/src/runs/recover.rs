//! Recovery of starts and runs whose processes died.

use std::cell::LazyCell;
use std::collections::HashMap;

use gt_core::schedule::{Run, RunId, RunState};
use gt_core::{ExecutorKind, Timestamp};

use super::end_dead_run::{DeadRunOutcome, end_dead_run};
use super::run_cleanup::end_leftover_processes;
use super::usage::record_left_usage;
use gt_core::jitter;
use gt_scheduling::dispatch::{StartFailureCost, close_stale, start_failed_in};
use gt_scheduling::processes::{Alive, ProcessProbe, strays_are_left};
use gt_town::scheduler_settings::SchedulerSettings;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town};

/// The result of a recovery pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Starts that were taken back and scheduled again.
    pub restarted: Vec<RunId>,
    /// Runs that were lost.
    pub lost: Vec<RunId>,
    /// Runs whose worker had ended, and whose supervisor could not record it.
    pub finished: Vec<RunId>,
    /// Runs whose worker has been silent for long; people are told now.
    pub silent: Vec<RunId>,
    /// Runs that were declared lost while this host was gone, and that it has ended and saved now.
    pub cleared: Vec<RunId>,
    /// Runs with a fault that could not be fixed, and why.
    pub errors: Vec<(RunId, String)>,
    /// How many contexts were closed because their bead is.
    pub stale: usize,
    /// When the next start in progress will have taken too long.
    pub due: Option<Timestamp>,
}

impl Recovered {
    /// The result of two passes of recovery. A problem of the first one is solved by now, or the later one names it too.
    #[must_use]
    pub fn followed_by(self, later: Self) -> Self {
        Self {
            restarted: [self.restarted, later.restarted].concat(),
            lost: [self.lost, later.lost].concat(),
            finished: [self.finished, later.finished].concat(),
            cleared: [self.cleared, later.cleared].concat(),
            errors: later.errors,
            silent: later.silent,
            stale: self.stale + later.stale,
            due: later.due,
        }
    }
}

/// How many stale contexts one pass closes.
const STALE_MAX: usize = 1000;

/// The action on a live run.
enum RecoveryAction {
    None,
    Restarted,
    Lost,
    Finished,
}

/// A fault of a live run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunFault {
    StarterDied,
    TooLong,
    Gone,
}

/// One pass over all live runs: takes back starts whose starter died or that take too long, gives up runs of which no
/// process is left, and closes contexts whose bead is closed. Safe at any time, beside any number of others: each
/// step checks the processes first and then compares and swaps. A run that cannot be fixed does not stop the others.
pub fn recover(town: &Town, processes: &dyn ProcessProbe) -> Result<Recovered> {
    let files = file_layers(town)?;
    // Everything is read at once: each read of its own costs as much as the rest of a pass that finds nothing.
    let (runs, pending, mut polecats, is_stale, settings) = town.read(|reader| {
        let settings = SchedulerSettings::of(&layers_over(&files, reader)?)?;
        let is_stale = !reader.stale_contexts(1)?.is_empty();
        let pending = reader.runs_with_pending_usage()?;
        Ok((reader.live_runs()?, pending, reader.polecats()?, is_stale, settings))
    })?;
    polecats.retain(|polecat| !runs.iter().any(|run| polecat.last_run.as_ref() == Some(&run.id)));
    let now = town.now();
    // Since when a start has been under way, without the time in which this machine slept.
    let awake_since = LazyCell::new(|| processes.awake_since(now));
    let began = |run: &Run| awake_since.map_or(run.created_at, |awake| awake.max(run.created_at));
    let mut recovered = Recovered::default();
    let mut wrong: Vec<(Run, RunFault)> = Vec::new();
    for run in runs {
        match diagnose(processes, &run, &settings, &began, now) {
            Some(found) => wrong.push((run, found)),
            None if run.state == RunState::Starting && run.is_on(processes.host()) => {
                let late = began(&run).plus(settings.start_timeout);
                recovered.due = Some(recovered.due.map_or(late, |due| due.min(late)));
            }
            None => {}
        }
    }
    // A run that was cut off may have processes that only a look at all processes finds: one look for all runs.
    let gone: Vec<&Run> =
        wrong.iter().filter(|(_, wrong)| *wrong == RunFault::Gone).map(|(run, _)| run).collect();
    let left: HashMap<RunId, Vec<i32>> =
        gone.iter().map(|run| run.id.clone()).zip(processes.clear(&gone)).collect();
    for (run, wrong) in wrong {
        if let Some(left) = left.get(&run.id).filter(|left| !left.is_empty()) {
            recovered.errors.push((run.id.clone(), strays_are_left(&run.id, left)));
            continue;
        }
        match repair(town, processes, &run, wrong) {
            Ok(RecoveryAction::None) => {}
            Ok(RecoveryAction::Restarted) => recovered.restarted.push(run.id),
            Ok(RecoveryAction::Lost) => recovered.lost.push(run.id),
            Ok(RecoveryAction::Finished) => recovered.finished.push(run.id),
            // A store that is away is away for all of them.
            Err(error) if error.may_pass() => return Err(error),
            Err(error) => recovered.errors.push((run.id, error.to_string())),
        }
    }
    for run in pending {
        if processes.worker_of(&run) == Alive::No
            && let Err(error) = record_left_usage(town, &run)
        {
            recovered.errors.push((run.id, error.to_string()));
        }
    }
    if town.has_directory() {
        end_leftover_processes(town, processes, polecats, settings.kill_grace)?;
    }
    if is_stale {
        recovered.stale = close_stale(town, STALE_MAX)?.len();
    }
    Ok(recovered)
}

fn repair(
    town: &Town,
    processes: &dyn ProcessProbe,
    run: &Run,
    wrong: RunFault,
) -> Result<RecoveryAction> {
    let taken_back = match wrong {
        RunFault::StarterDied => {
            take_back(town, run, "the process that started it died", &StartFailureCost::Nothing)?
        }
        RunFault::TooLong => {
            take_back(town, run, "its worker did not take it in time", &StartFailureCost::Counted)?
        }
        RunFault::Gone => return give_up(town, processes, run),
    };
    Ok(if taken_back { RecoveryAction::Restarted } else { RecoveryAction::None })
}

/// Ends a run of which no process is left.
fn give_up(town: &Town, processes: &dyn ProcessProbe, run: &Run) -> Result<RecoveryAction> {
    Ok(match end_dead_run(town, processes, run)? {
        DeadRunOutcome::Already | DeadRunOutcome::Busy(_) => RecoveryAction::None,
        DeadRunOutcome::Over(RunState::Done | RunState::Failed) => RecoveryAction::Finished,
        DeadRunOutcome::Over(_) => RecoveryAction::Lost,
    })
}

fn take_back(town: &Town, run: &Run, why: &str, cost: &StartFailureCost) -> Result<bool> {
    town.write(|writer| start_failed_in(writer, run, why, cost, jitter(&run.id.to_string())))
}

/// The fault of a live run, as far as this machine can say.
fn diagnose(
    processes: &dyn ProcessProbe,
    run: &Run,
    settings: &SchedulerSettings,
    began: &dyn Fn(&Run) -> Timestamp,
    now: Timestamp,
) -> Option<RunFault> {
    match run.executor {
        ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh => {}
        // Only the agents themselves can say that they are gone.
        ExecutorKind::Pull | ExecutorKind::None => return None,
    }
    match run.state {
        RunState::Starting => match processes.starter_of(run) {
            Alive::No => Some(RunFault::StarterDied),
            Alive::Yes | Alive::Unknown => {
                let too_long = now.since(began(run)) > settings.start_timeout;
                (run.is_on(processes.host()) && too_long).then_some(RunFault::TooLong)
            }
        },
        RunState::Running | RunState::Blocked => {
            (processes.worker_of(run) == Alive::No).then_some(RunFault::Gone)
        }
        RunState::Done | RunState::Failed | RunState::Lost | RunState::Cancelled => None,
    }
}
