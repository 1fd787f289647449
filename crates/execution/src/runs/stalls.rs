//! Workers that say nothing.

use gt_core::ExecutorKind;
use gt_core::decide::{SilenceChange, WorkerActivity, silence_change};
use gt_core::schedule::{Run, RunId, RunState};

use gt_scheduling::processes::ProcessProbe;
use gt_town::settings::{file_layers, layers_over};
use gt_town::{Result, Town};

/// The findings of a look at all workers of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StallReport {
    /// Those that have been silent so long that people are told now.
    pub silent: Vec<RunId>,
    /// Those that were reported as silent and print again.
    pub going_on: Vec<RunId>,
}

/// Tells people of workers of this machine that have said nothing for `worker.stall_after`, once each time, and when
/// they go on. Nothing else is done: only a person can tell whether a worker thinks or hangs.
///
/// Costs one read, and one look at a file for each live run; a write only if something changed.
pub fn find_stalls(town: &Town, processes: &dyn ProcessProbe) -> Result<StallReport> {
    let files = file_layers(town)?;
    let (runs, limit) = town.read(|reader| {
        let limit = layers_over(&files, reader)?.worker_stall_after()?;
        Ok((reader.live_runs()?, limit))
    })?;
    let runs: Vec<Run> = runs.into_iter().filter(|run| is_at_work_here(run, processes)).collect();
    if runs.is_empty() {
        return Ok(StallReport::default());
    }
    let now = town.now();
    let awake_since = processes.awake_since(now);
    let changes: Vec<(Run, SilenceChange)> = runs
        .into_iter()
        .filter_map(|run| {
            let last = processes.last_output_of(&run).max(run.running_at)?.floor_to_second();
            let heard = WorkerActivity { last, awake_since, told: run.silence() };
            silence_change(heard, limit, now).map(|change| (run, change))
        })
        .collect();
    if changes.is_empty() {
        return Ok(StallReport::default());
    }
    town.write(|writer| {
        let mut stalls = StallReport::default();
        for (run, change) in &changes {
            // Another process may have recorded the change.
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

/// Whether the output of a worker reaches a file of this machine.
fn is_at_work_here(run: &Run, processes: &dyn ProcessProbe) -> bool {
    let is_heard = match run.executor {
        ExecutorKind::Tmux | ExecutorKind::Process => true,
        ExecutorKind::Ssh | ExecutorKind::Pull | ExecutorKind::None => false,
    };
    run.state == RunState::Running && run.is_on(processes.host()) && is_heard
}
