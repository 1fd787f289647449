//! What is left of runs that are over: processes and sessions in the way of those that come after.

use std::time::Duration;

use gt_core::schedule::RunId;
use gt_executors::runs::{Liveness, RunFiles};
use gt_executors::tmux::{Tmux, TmuxError};

use super::supervise::end_if_over;
use super::world::World;
use crate::{Result, Town};

/// How long a run may take to leave after its end was written down.
const LEAVING: Duration = Duration::from_secs(10);

/// Ends what is left of the last run of every polecat of this machine, if that run is over: whoever wrote that down may
/// have died before they could end its processes.
pub(super) fn end_left_over(town: &Town, world: &dyn World, grace: Duration) -> Result<()> {
    let now = town.now();
    let over: Vec<RunId> = town.read(|reader| {
        let mut over = Vec::new();
        for polecat in reader.polecats()? {
            let is_here = polecat.host == world.host();
            let Some(last) = polecat.last_run.filter(|_| is_here) else { continue };
            let files = RunFiles::of(&town.runs_directory(), &last.to_string());
            if !matches!(files.liveness(), Ok(Liveness::Held)) {
                continue;
            }
            let run = reader.run(&last)?.filter(|run| !run.state.is_live());
            let ended = run.and_then(|run| run.ended_at);
            if ended.is_some_and(|at| now.since(at) > LEAVING) {
                over.push(last);
            }
        }
        Ok(over)
    })?;
    over.iter().try_for_each(|run| end_if_over(town, run, grace))
}

/// What only the session of a run was started with.
const OF_A_RUN: &str = "--voice";
/// How many sessions of one name may have been left behind.
const LEFT_MAX: u32 = 100;

/// Gives a session another name that its run has left and somebody else has not: a person who looked at it opened a window
/// in it. `false` if something of a run is in it.
pub(super) fn put_aside(tmux: &Tmux, name: &str) -> std::result::Result<bool, TmuxError> {
    match tmux.started_with(name) {
        Ok(panes) if panes.iter().any(|pane| pane.contains(OF_A_RUN)) => return Ok(false),
        Ok(_) => {}
        // It has ended just now.
        Err(TmuxError::NoSession { .. }) => return Ok(true),
        Err(error) => return Err(error),
    }
    for number in 1..=LEFT_MAX {
        match tmux.rename(name, &format!("{name}-left-{number}")) {
            Ok(_) => return Ok(true),
            Err(TmuxError::Exists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
