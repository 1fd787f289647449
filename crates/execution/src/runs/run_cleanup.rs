//! Removing the processes and sessions of ended runs that are in the way of later runs.

use std::time::Duration;

use gt_core::schedule::{Polecat, RunId};
use gt_executors::runs::{Liveness, RunFiles};
use gt_executors::tmux::{Tmux, TmuxError};

use super::supervise::end_if_over;
use gt_scheduling::processes::ProcessProbe;
use gt_town::{Result, Town};

/// How long the processes of a run may take to exit after its end was recorded.
const EXIT_GRACE: Duration = Duration::from_secs(10);

/// Ends the processes of the last run of every polecat of this machine, if that run is over: the process that wrote its end
/// may have died before it could end them.
pub(super) fn end_leftover_processes(
    town: &Town,
    processes: &dyn ProcessProbe,
    polecats: Vec<Polecat>,
    grace: Duration,
) -> Result<()> {
    let is_held = |run: &RunId| {
        let files = RunFiles::of(&town.runs_directory(), &run.to_string());
        matches!(files.liveness(), Ok(Liveness::Held))
    };
    let here = polecats.into_iter().filter(|polecat| polecat.host == processes.host());
    let held: Vec<RunId> = here.filter_map(|polecat| polecat.last_run).filter(is_held).collect();
    for last in held {
        let is_due = match town.read(|reader| Ok(reader.run(&last)?))? {
            Some(run) if run.state.is_live() => false,
            Some(run) => run.ended_at.is_some_and(|at| town.now().since(at) > EXIT_GRACE),
            // Its bead was deleted.
            None => true,
        };
        if is_due {
            end_if_over(town, &last, grace)?;
        }
    }
    Ok(())
}

/// A flag that only the sessions of runs are started with.
pub(super) const RUN_SESSION_FLAG: &str = "--voice";
/// The command that holds open a session that was opened for a run later.
pub(super) const HOLD_COMMAND: [&str; 2] = ["worker", "hold"];
/// How many sessions of one name may have been left behind.
const LEFT_MAX: u32 = 100;

/// Renames a session that its run has left and a person has not: the person opened a window in it. `false` if a process of a
/// run is in it.
pub(super) fn put_aside(tmux: &Tmux, name: &str) -> std::result::Result<bool, TmuxError> {
    let holds = HOLD_COMMAND.join(" ");
    let is_ours =
        |pane: &String| [RUN_SESSION_FLAG, holds.as_str()].iter().any(|words| pane.contains(words));
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
