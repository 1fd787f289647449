//! What is left of starts and runs that died.

use gt_core::schedule::{Run, RunEnd, RunId, RunState};
use gt_core::{ExecutorKind, Timestamp};

use super::finish::{Finished, finish_in};
use super::world::{Alive, World};
use crate::dispatch::{Cost, SchedulerSettings, close_stale, jitter, start_failed_in};
use crate::{Result, Town};

/// What a pass of recovery did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Starts that were taken back, and put back in line.
    pub restarted: Vec<RunId>,
    /// Runs that were lost.
    pub lost: Vec<RunId>,
    /// How many contexts were closed because their bead is.
    pub stale: usize,
}

/// How many stale contexts one pass closes.
const STALE_MAX: usize = 1000;

/// What is wrong with a live run.
enum Wrong {
    StarterDied,
    TooLong,
    Gone,
}

/// One pass over everything live: takes back starts whose starter died or that take too long, gives up runs
/// of which no process is left, and closes contexts whose bead is over. Safe at any time, beside any number
/// of others: each step asks the world first and then compares and swaps.
pub fn recover(town: &Town, world: &dyn World) -> Result<Recovered> {
    let (runs, settings) =
        (town.read(|reader| Ok(reader.live_runs()?))?, town.scheduler_settings()?);
    let now = town.now();
    let mut recovered = Recovered::default();
    for run in runs {
        let Some(wrong) = diagnose(world, &run, &settings, now) else { continue };
        match wrong {
            Wrong::StarterDied => {
                let why = "whoever started it died";
                if take_back(town, &run, why, &Cost::Nothing)? {
                    recovered.restarted.push(run.id);
                }
            }
            Wrong::TooLong => {
                let why = "its worker did not take it in time";
                if take_back(town, &run, why, &Cost::Counted)? {
                    recovered.restarted.push(run.id);
                }
            }
            Wrong::Gone => {
                let by = run.ended_by.clone();
                let end = if by.is_empty() {
                    let why = "none of its processes is left, and none said how it ended";
                    RunEnd::without_status(RunState::Lost, why)
                } else {
                    // Whoever cancelled it did not live to see its end.
                    RunEnd::without_status(RunState::Cancelled, "it was cancelled")
                };
                let finished =
                    town.write(|writer| finish_in(writer, &settings, &run, &end, &by))?;
                if finished != Finished::Already {
                    recovered.lost.push(run.id);
                }
            }
        }
    }
    recovered.stale = close_stale(town, STALE_MAX)?.len();
    Ok(recovered)
}

fn take_back(town: &Town, run: &Run, why: &str, cost: &Cost) -> Result<bool> {
    town.write(|writer| start_failed_in(writer, run, why, cost, jitter(&run.id.to_string())))
}

/// What is wrong with a live run, as far as this machine can say.
fn diagnose(
    world: &dyn World,
    run: &Run,
    settings: &SchedulerSettings,
    now: Timestamp,
) -> Option<Wrong> {
    match run.executor {
        ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh => {}
        // Nobody but themselves can say that they are gone.
        ExecutorKind::Pull | ExecutorKind::None => return None,
    }
    match run.state {
        RunState::Starting => match world.starter_of(run) {
            Alive::No => Some(Wrong::StarterDied),
            Alive::Yes | Alive::Unknown => {
                let too_long = now.since(run.created_at) > settings.start_timeout;
                (run.host == world.host() && too_long).then_some(Wrong::TooLong)
            }
        },
        RunState::Running | RunState::Blocked => {
            (world.worker_of(run) == Alive::No).then_some(Wrong::Gone)
        }
        RunState::Done | RunState::Failed | RunState::Lost | RunState::Cancelled => None,
    }
}
