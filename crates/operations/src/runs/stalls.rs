//! Workers that say nothing.

use gt_core::ExecutorKind;
use gt_core::decide::{Heard, SilenceChange, silence_change};
use gt_core::schedule::{Run, RunId, RunState};
use gt_core::time::parse_duration;

use super::world::{Alive, World};
use crate::settings::{file_layers, layers_over};
use crate::{Result, Town};

/// What a look at all workers of this machine found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Those that have been silent so long that people are told now.
    pub silent: Vec<RunId>,
    /// Those that people were told of and that go on.
    pub going_on: Vec<RunId>,
}

/// Tells people of workers of this machine that have said nothing for `worker.stall_after`, once each time, and when they
/// go on. Nothing else is done about them: whether a worker thinks or hangs nobody but a person can say.
///
/// Costs one read, and one look at a file for each live run; a write only if something changed.
pub fn look(town: &Town, world: &dyn World) -> Result<Stalls> {
    let files = file_layers(town)?;
    let (runs, limit) = town.read(|reader| {
        let limit = layers_over(&files, reader)?.get("worker.stall_after")?.value;
        Ok((reader.live_runs()?, parse_duration(&limit)?))
    })?;
    let runs: Vec<Run> = runs.into_iter().filter(|run| is_at_work_here(run, world)).collect();
    if runs.is_empty() {
        return Ok(Stalls::default());
    }
    let now = town.now();
    let awake_since = world.awake_since(now);
    let changes: Vec<(Run, SilenceChange)> = runs
        .into_iter()
        .filter_map(|run| {
            let last = world.last_output_of(&run).max(run.running_at)?.floor_to_second();
            let heard = Heard { last, awake_since, told: run.silence() };
            silence_change(heard, limit, now).map(|change| (run, change))
        })
        .collect();
    if changes.is_empty() {
        return Ok(Stalls::default());
    }
    town.write(|writer| {
        let mut stalls = Stalls::default();
        for (run, change) in &changes {
            // Somebody else may have looked as well.
            if writer.change_silence(run, *change)? {
                match change {
                    SilenceChange::Begins(_) => stalls.silent.push(run.id.clone()),
                    SilenceChange::Ends(_) => stalls.going_on.push(run.id.clone()),
                }
            }
        }
        Ok(stalls)
    })
}

/// Whether the worker of a run speaks into a file of this machine. Of one on another machine nobody can say anything while
/// that cannot be reached.
fn is_at_work_here(run: &Run, world: &dyn World) -> bool {
    let is_heard = match run.executor {
        ExecutorKind::Tmux | ExecutorKind::Process => true,
        ExecutorKind::Ssh => world.worker_of(run) == Alive::Yes,
        ExecutorKind::Pull | ExecutorKind::None => false,
    };
    run.state == RunState::Running
        && run.landing.state.is_none()
        && run.is_on(world.host())
        && is_heard
}
