//! Ending a run before its time.

use std::time::Duration;

use gt_core::ExecutorKind;
use gt_core::schedule::{CloseReason, Run, RunEnd, RunId, RunState};
use gt_executors::runs::{Asked, Liveness, RunDirectory, ask_to_cancel, end_orphan};
use gt_store::Writer;

use super::finish::finish_in;
use super::release::release_in;
use super::show::resolve;
use super::world::{RealWorld, World};
use crate::{OperationError, Result, Town};

/// What came of a wish to cancel a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    /// Which run.
    pub run: RunId,
    /// What it ended as; it may have ended by itself meanwhile.
    pub state: RunState,
    /// Whether it had ended before anybody asked.
    pub already: bool,
}

/// How long its processes get to be gone, beyond the time they get to end by themselves.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often one looks whether they are.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ends a run: its whole process group is asked to end, and after the grace is killed. The bead is open again
/// when nothing of it is left, not before.
pub fn cancel(town: &Town, input: &str) -> Result<Cancelled> {
    cancel_in_world(town, &RealWorld::of(town), input)
}

/// Like [`cancel`], in a world that is passed in.
pub fn cancel_in_world(town: &Town, world: &dyn World, input: &str) -> Result<Cancelled> {
    let settings = town.scheduler_settings()?;
    let run = resolve(town, input)?;
    let id = run.id.clone();
    if !run.state.is_live() {
        return Ok(Cancelled { run: id, state: run.state, already: true });
    }
    if !needs_no_process(&run) && run.host != world.host() {
        return Err(OperationError::rejected(format!(
            "{id} runs on {}; cancel it there",
            run.host
        )));
    }
    // Who wanted it is written down first: the supervisor writes the end, and cannot know.
    let (run, already) = town.write(|writer| {
        let run = require(writer, &id)?;
        // It may have ended since it was looked at.
        let already = !run.state.is_live();
        if already {
            return Ok((run, already));
        }
        if needs_no_process(&run) {
            cancel_in(writer, &run)?;
        } else {
            let by = writer.actor().to_owned();
            writer.intend_to_cancel(&run, &by)?;
        }
        Ok((require(writer, &id)?, already))
    })?;
    if run.state.is_live() {
        world.end_worker(&run, settings.kill_grace)?;
        let end = RunEnd::without_status(RunState::Cancelled, "it was cancelled");
        let by = town.actor().name.clone();
        // A supervisor that was there has written the end already; then this changes nothing.
        town.write(|writer| finish_in(writer, &settings, &run, &end, &by))?;
    }
    let run =
        town.read(|reader| reader.run(&id)?.ok_or_else(|| OperationError::NoBead(id.to_string())))?;
    Ok(Cancelled { run: id, state: run.state, already })
}

fn require(writer: &Writer<'_>, id: &RunId) -> Result<Run> {
    writer.run(id)?.ok_or_else(|| OperationError::NoBead(id.to_string()))
}

/// Whether a run can be ended in the store alone: its worker has not taken it, or is none of ours.
fn needs_no_process(run: &Run) -> bool {
    run.state == RunState::Starting || !Run::takes_slot(run.executor)
}

/// Ends a run in the store: the bead is open, and whatever comes of the run later is refused.
pub(crate) fn cancel_in(writer: &mut Writer<'_>, run: &Run) -> Result<()> {
    let end = RunEnd::without_status(RunState::Cancelled, "it was cancelled");
    let by = writer.actor().to_owned();
    if !writer.end_run(run, &end, &by)? {
        return Ok(());
    }
    release_in(writer, &run.id.bead)?;
    if let Some(context) = writer.context_by_number(run.context)?.filter(|c| c.closed.is_none()) {
        writer.close_context(&context, CloseReason::Dispatched, "")?;
    }
    Ok(())
}

/// How long somebody who has cancelled a run in the store looks for whoever could end it.
const LOOKED_FOR: Duration = Duration::from_secs(1);

/// Ends what is left in the world of runs that were cancelled in the store, and does not wait for it: the next
/// run of a bead does not start before the one before it is gone.
pub(crate) fn end_in_world<'a>(town: &Town, runs: impl IntoIterator<Item = &'a Run>) {
    for run in runs {
        if run.executor != ExecutorKind::Process {
            continue;
        }
        let directory = RunDirectory::of(&town.runs_directory(), &run.id.to_string());
        let mut waited = Duration::ZERO;
        // A supervisor that has only just taken the run does not listen yet.
        while ask_to_cancel(&directory).is_ok_and(|asked| asked == Asked::NobodyListens)
            && directory.liveness().is_ok_and(|liveness| liveness == Liveness::Held)
        {
            if waited >= LOOKED_FOR {
                // It is dead, and its agent is not. What cannot be ended shows as a run that is over
                // and has processes.
                let _ = end_orphan(&directory, Duration::ZERO);
                break;
            }
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
    }
}

/// Ends every process of the run with this directory and waits until none is left.
pub(super) fn end_processes(directory: &RunDirectory, run: &Run, grace: Duration) -> Result<()> {
    let failed = |source| OperationError::File {
        action: "end the processes of the run in",
        path: directory.path().to_owned(),
        source,
    };
    let mut waited = Duration::ZERO;
    let limit = grace.saturating_mul(2).saturating_add(PATIENCE);
    let mut told = false;
    while directory.liveness().map_err(failed)? == Liveness::Held {
        if !told {
            told = ask_to_cancel(directory).map_err(failed)? == Asked::Told;
        }
        if !told {
            // Either it is about to listen, or it is dead and its agent is not.
            end_orphan(directory, grace).map_err(failed)?;
        }
        if waited > limit {
            return Err(OperationError::rejected(format!(
                "something of {} does not end; it holds {}",
                run.id,
                directory.lock_path().display()
            )));
        }
        std::thread::sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
    }
    Ok(())
}
