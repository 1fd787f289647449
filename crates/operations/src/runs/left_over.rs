//! What is left of runs that are over: processes and sessions in the way of those that come after.

use std::time::Duration;

use gt_core::schedule::{Polecat, RunId};
use gt_executors::runs::{Liveness, RunFiles};
use gt_executors::tmux::{Tmux, TmuxError};

use super::supervise::end_if_over;
use super::world::World;
use crate::{Result, Town};

/// How long a run may take to leave after its end was written down.
const LEAVING: Duration = Duration::from_secs(10);

/// Ends what is left of the last run of every polecat of this machine, if that run is over: whoever wrote that down may
/// have died before they could end its processes.
pub(super) fn end_left_over(
    town: &Town,
    world: &dyn World,
    polecats: Vec<Polecat>,
    grace: Duration,
) -> Result<()> {
    let is_held = |run: &RunId| {
        let files = RunFiles::of(&town.runs_directory(), &run.to_string());
        matches!(files.liveness(), Ok(Liveness::Held))
    };
    let here = polecats.into_iter().filter(|polecat| polecat.host == world.host());
    let held: Vec<RunId> = here.filter_map(|polecat| polecat.last_run).filter(is_held).collect();
    for last in held {
        let run = town.read(|reader| Ok(reader.run(&last)?))?;
        let ended = run.filter(|run| !run.state.is_live()).and_then(|run| run.ended_at);
        if ended.is_some_and(|at| town.now().since(at) > LEAVING) {
            end_if_over(town, &last, grace)?;
        }
    }
    Ok(())
}

/// What only the session of a run was started with.
pub(super) const OF_A_RUN: &str = "--voice";
/// What only the session of a supervisor was started with that waits for a run.
pub(super) const STANDS_BY: &str = "--stand-by";
/// The words with which a session is held open that was opened for a run later.
pub(super) const HOLDS: [&str; 2] = ["worker", "hold"];
/// How many sessions of one name may have been left behind.
const LEFT_MAX: u32 = 100;

/// Gives a session another name that its run has left and somebody else has not: a person who looked at it opened a window
/// in it. `false` if something of a run is in it.
pub(super) fn put_aside(tmux: &Tmux, name: &str) -> std::result::Result<bool, TmuxError> {
    let holds = HOLDS.join(" ");
    let is_ours = |pane: &String| {
        [OF_A_RUN, STANDS_BY, holds.as_str()].iter().any(|words| pane.contains(words))
    };
    match tmux.started_with(name) {
        Ok(panes) if panes.iter().any(is_ours) => return Ok(false),
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
