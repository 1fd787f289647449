//! The end of a run that its supervisor did not record, settled by another process.

use gt_core::Rig;
use gt_core::decide::loss_of;
use gt_core::schedule::{Context, Run, RunEnd, RunState};
use gt_executors::runs::{AgentEnd, RunFiles};

use super::conclude::{EndFacts, EndRecorded, conclude_in_tree, taken_by};
use super::kept_output::keep_output;
use super::worker_calls::void_token;
use crate::trees::{NotPrepared, occupy};
use gt_beads::steps::progress_in;
use gt_scheduling::processes::{Alive, ProcessProbe};
use gt_scheduling::run_transitions::{FinishEffect, finish};
use gt_scheduling::runtimes;
use gt_town::{Result, Town};

/// The outcome for a run whose processes are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeadRunOutcome {
    /// It was ended here, like this.
    Over(RunState),
    /// Another process had recorded its end meanwhile; nothing was changed.
    Already,
    /// It is as it was, for this reason: another process works on it.
    Busy(String),
}

/// Ends a run of which no process is left, as its supervisor would have: by the same code, and with the tree locked.
pub(super) fn end_dead_run(
    town: &Town,
    processes: &dyn ProcessProbe,
    run: &Run,
) -> Result<DeadRunOutcome> {
    let outcome = record_end(town, processes, run)?;
    if matches!(outcome, DeadRunOutcome::Over(_)) {
        keep_output(town, run);
    }
    Ok(outcome)
}

fn record_end(town: &Town, processes: &dyn ProcessProbe, run: &Run) -> Result<DeadRunOutcome> {
    let Some((rig, context)) = look_up(town, run)? else { return Ok(DeadRunOutcome::Already) };
    match rig.filter(|rig| rig.has_trees() && !run.workplace.tree.is_empty()) {
        Some(rig) => {
            let _lock = match occupy(town, &rig, run) {
                Ok(lock) => lock,
                Err(NotPrepared::Busy(why) | NotPrepared::Away(why)) => {
                    return Ok(DeadRunOutcome::Busy(why));
                }
                // If the tree cannot be locked, nothing in it is touched, and it is kept.
                Err(NotPrepared::Failed(_)) => return end_untouched(town, processes, run),
            };
            // The last holder of the tree may have begun something.
            if processes.worker_of(run) == Alive::Yes {
                return Ok(DeadRunOutcome::Busy(format!("something of {} is alive", run.id)));
            }
            let runtime = runtimes::named(town, &run.runtime).ok();
            let ending = EndFacts {
                rig: &rig,
                context: context.as_ref(),
                runtime: runtime.as_ref(),
                end: last_end(town, processes, run, context.as_ref())?,
                loss: loss_of(processes.traces_of(run)),
            };
            match conclude_in_tree(town, run, &ending)? {
                EndRecorded::Already => Ok(DeadRunOutcome::Already),
                EndRecorded::Here => how_it_stands(town, run),
            }
        }
        None => end_untouched(town, processes, run),
    }
}

/// The rig of a run and how it was scheduled; nothing if it is over.
fn look_up(town: &Town, run: &Run) -> Result<Option<(Option<Rig>, Option<Context>)>> {
    town.read(|reader| {
        if reader.run(&run.id)?.is_none_or(|run| !run.state.is_live()) {
            return Ok(None);
        }
        Ok(Some((reader.rig(run.rig.as_str())?, reader.context_by_number(run.context)?)))
    })
}

/// How the last agent of a run ended, if a supervisor saw it. An agent that did one step of several may have had a
/// successor: then the end of the run is unknown.
fn last_end(
    town: &Town,
    processes: &dyn ProcessProbe,
    run: &Run,
    context: Option<&Context>,
) -> Result<Option<AgentEnd>> {
    let end = processes.agent_end_of(run);
    let step_by_step = context.is_some_and(|context| context.parameters.ralph);
    if end != Some(AgentEnd::Exited(0)) || !step_by_step {
        return Ok(end);
    }
    let progress = town.read(|reader| progress_in(reader, run))?;
    Ok(end.filter(|_| progress.is_none_or(|progress| progress.done >= progress.total)))
}

/// Ends a run in the store alone: as its worker ended, if it has no tree that says more and a supervisor saw the end.
fn end_untouched(town: &Town, processes: &dyn ProcessProbe, run: &Run) -> Result<DeadRunOutcome> {
    void_token(&RunFiles::of(&town.runs_directory(), &run.id.to_string()));
    let loss = loss_of(processes.traces_of(run));
    let seen = processes.end_of(run).filter(|_| run.workplace.tree.is_empty());
    let end = seen.unwrap_or_else(|| {
        if run.ended_by.is_empty() {
            RunEnd::without_status(RunState::Lost, taken_by(loss))
        } else {
            // The process that cancelled it died before its end.
            RunEnd::without_status(RunState::Cancelled, "it was cancelled")
        }
    });
    // A machine that goes down ends its processes first, and a supervisor may have had time to record that.
    match finish(town, &run.id, &RunEnd { loss, ..end })? {
        FinishEffect::Already => Ok(DeadRunOutcome::Already),
        FinishEffect::Closed(_)
        | FinishEffect::Rescheduled
        | FinishEffect::Escalated
        | FinishEffect::Reopened => how_it_stands(town, run),
    }
}

fn how_it_stands(town: &Town, run: &Run) -> Result<DeadRunOutcome> {
    let run = town.read(|reader| Ok(reader.run(&run.id)?))?;
    Ok(DeadRunOutcome::Over(run.map_or(RunState::Lost, |run| run.state)))
}
