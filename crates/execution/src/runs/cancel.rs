//! Cancelling a run.

use std::time::{Duration, Instant};

use gt_core::ExecutorKind;
use gt_core::merging::MergeRequestId;
use gt_core::schedule::{Run, RunId, RunState};
use gt_executors::runs::RunFiles;
use gt_store::Writer;

use super::end_dead_run::{DeadRunOutcome, end_dead_run};
use super::worker_calls::void_token;
use crate::merge_queue::cancel_request;
use gt_beads::acting::require_own_work;
use gt_beads::convoys::end_bookkeeping;
use gt_beads::run_records::{cancel_in, resolve};
use gt_beads::transition_check::refuse_if_over;
use gt_scheduling::processes::unreadable;
use gt_scheduling::processes::{Alive, LocalProcesses, ProcessProbe};
use gt_town::{OperationError, Result, Town};

/// The outcome of cancelling a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelResult {
    /// The run.
    pub run: RunId,
    /// The state it ended in; it may have ended by itself meanwhile.
    pub state: RunState,
    /// Whether it had ended before the cancellation.
    pub already: bool,
    /// The machine on which processes of it may still be there, if it was cancelled in the store alone.
    pub left_on: Option<String>,
    /// The merge request of its work, if that was given up.
    pub request: Option<MergeRequestId>,
}

/// How long its processes may take to exit, beyond the grace period.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How often that is checked.
const END_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Ends a run: its whole process group is asked to end, and killed after the grace period. The bead opens again only
/// when no process of the run is left.
pub fn cancel(town: &Town, input: &str) -> Result<CancelResult> {
    cancel_with_processes(town, &LocalProcesses::of(town)?, input)
}

/// Like [`cancel`], with the given processes.
pub fn cancel_with_processes(
    town: &Town,
    processes: &dyn ProcessProbe,
    input: &str,
) -> Result<CancelResult> {
    cancel_how(town, processes, input, false)
}

/// Like [`cancel`]; if the processes of the run are out of reach or do not end, the run is cancelled in the store
/// alone. Processes that are left are fenced off: the store ignores what they say about the bead.
pub fn cancel_by_force(town: &Town, input: &str) -> Result<CancelResult> {
    cancel_how(town, &LocalProcesses::of(town)?, input, true)
}

fn cancel_how(
    town: &Town,
    processes: &dyn ProcessProbe,
    input: &str,
    force: bool,
) -> Result<CancelResult> {
    let settings = town.scheduler_settings()?;
    let run = resolve(town, input)?;
    let id = run.id.clone();
    if !run.state.is_live() {
        let request = give_up_request(town, &run)?;
        let already = request.is_none();
        return Ok(CancelResult { run: id, state: run.state, already, left_on: None, request });
    }
    town.read(|reader| {
        refuse_if_over(town, reader, &id.bead, "cancel the run of")?;
        require_own_work(town, reader, &id.bead)
    })?;
    let out_of_reach = out_of_reach(town, processes, &run);
    let in_store_alone = match out_of_reach {
        Some(why) if !force => return Err(OperationError::rejected(why)),
        why => why.is_some(),
    };
    // The user who cancels is recorded first: the supervisor writes the end, and cannot know the user.
    let (run, already) = town.write(|writer| {
        let run = require(writer, &id)?;
        // It may have ended since it was read.
        let already = !run.state.is_live();
        if already {
            return Ok((run, already));
        }
        if needs_no_process(&run) || in_store_alone {
            cancel_in(writer, &run)?;
        } else {
            let by = writer.actor().to_owned();
            writer.intend_to_cancel(&run, &by)?;
        }
        Ok((require(writer, &id)?, already))
    })?;
    // A worker that cancels its own run has no rights any more from here on.
    let town = &town.as_system();
    let mut is_left = in_store_alone && !already;
    if run.state.is_live() {
        match processes.end_worker(&run, settings.kill_grace) {
            // A supervisor that was there has written the end already; then this changes nothing.
            Ok(()) => end_dead_run_in_turn(town, processes, &run, force)?,
            Err(_) if force => {
                is_left = true;
                town.write(|writer| cancel_in(writer, &run))?;
            }
            Err(error) => return Err(error),
        }
    }
    let run =
        town.read(|reader| reader.run(&id)?.ok_or_else(|| OperationError::NoBead(id.to_string())))?;
    if run.state == RunState::Cancelled {
        void_token(&RunFiles::of(&town.runs_directory(), &id.to_string()));
        town.write(|writer| end_bookkeeping(writer, &id.bead, "was cancelled"))?;
    }
    let left_on = is_left.then(|| run.host_name().to_owned());
    // A repair that is cancelled gives up what it was to repair.
    let request =
        if run.state == RunState::Cancelled { give_up_request(town, &run)? } else { None };
    Ok(CancelResult { run: id, state: run.state, already, left_on, request })
}

/// Gives up the open merge request of the bead of a run, if this is its last run.
fn give_up_request(town: &Town, run: &Run) -> Result<Option<MergeRequestId>> {
    let bead = &run.id.bead;
    let (open, last) = town.read(|reader| {
        let last = reader.runs_of(bead)?.iter().map(|run| run.id.epoch).max();
        Ok((reader.open_merge_request(bead)?, last))
    })?;
    match open.filter(|_| last == Some(run.id.epoch)) {
        Some(request) => {
            town.read(|reader| require_own_work(town, reader, bead))?;
            Ok(Some(cancel_request(town, &request.id.to_string())?.id))
        }
        None => Ok(None),
    }
}

/// Records the end of a run whose processes are gone. Another process may be about to do the same.
fn end_dead_run_in_turn(
    town: &Town,
    processes: &dyn ProcessProbe,
    run: &Run,
    force: bool,
) -> Result<()> {
    let began = Instant::now();
    loop {
        match end_dead_run(town, processes, run)? {
            DeadRunOutcome::Over(_) | DeadRunOutcome::Already => return Ok(()),
            DeadRunOutcome::Busy(_) if began.elapsed() <= END_TIMEOUT => {}
            DeadRunOutcome::Busy(_) if force => {
                return town.write(|writer| cancel_in(writer, run));
            }
            DeadRunOutcome::Busy(why) => {
                let id = &run.id;
                return Err(OperationError::rejected(format!(
                    "{id} cannot be ended now: {why}; try it again, or gt run cancel {id} --force"
                )));
            }
        }
        std::thread::sleep(END_POLL_INTERVAL);
    }
}

/// Why the processes of a run cannot be ended from here, if they cannot, and what to do.
fn out_of_reach(town: &Town, processes: &dyn ProcessProbe, run: &Run) -> Option<String> {
    if needs_no_process(run) || processes.worker_of(run) != Alive::Unknown {
        return None;
    }
    let (id, host) = (&run.id, run.host_name());
    if run.executor == ExecutorKind::Ssh {
        return Some(format!(
            "{id} was started over ssh by an earlier gt, and no process here reaches its machine; end its processes there \
             (their environment has GT_RUN={id}), then gt run cancel {id} --force"
        ));
    }
    if let Some(why) = gt_town::hosts::why_unknown(town, run) {
        return Some(format!("{id} cannot be reached: {why}"));
    }
    if !run.is_on(processes.host()) {
        return Some(format!(
            "{id} runs on {host}, in another directory of this town; cancel it there or, if that is gone for \
             good, with gt run cancel {id} --force"
        ));
    }
    let files = RunFiles::of(&town.runs_directory(), &id.to_string());
    Some(unreadable(&files, id))
}

fn require(writer: &Writer<'_>, id: &RunId) -> Result<Run> {
    writer.run(id)?.ok_or_else(|| OperationError::NoBead(id.to_string()))
}

/// Whether a run can be ended in the store alone: its worker has not taken it, or is none of ours.
fn needs_no_process(run: &Run) -> bool {
    run.state == RunState::Starting || !run.executor.takes_slot()
}
