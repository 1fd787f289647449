//! Ending a run before its time.

use std::time::{Duration, Instant};

use gt_core::ExecutorKind;
use gt_core::schedule::{CloseReason, Run, RunEnd, RunId, RunState};
use gt_executors::runs::{Asked, Liveness, RunFiles, ask_to_cancel, end_orphan, holders};
use gt_store::Writer;

use super::release::release_in;
use super::settle::{Settled, settle};
use super::show::resolve;
use super::world::{Alive, RealWorld, World};
use crate::beads::refuse_if_over;
use crate::convoys::end_bookkeeping;
use crate::worker::require_own_work;
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
    /// The machine on which processes of it may still be there, if it was cancelled in the store alone.
    pub left_on: Option<String>,
}

/// How long its processes get to be gone, beyond the time they get to end by themselves.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often one looks whether they are.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ends a run: its whole process group is asked to end, and after the grace is killed. The bead is open again
/// when nothing of it is left, not before.
pub fn cancel(town: &Town, input: &str) -> Result<Cancelled> {
    cancel_in_world(town, &RealWorld::of(town)?, input)
}

/// Like [`cancel`], in a world that is passed in.
pub fn cancel_in_world(town: &Town, world: &dyn World, input: &str) -> Result<Cancelled> {
    cancel_how(town, world, input, false)
}

/// Like [`cancel`]; if the processes of the run are out of reach or do not end, the run is cancelled in the
/// store alone. Whatever is left of it is fenced off: nothing that it says about the bead is heard.
pub fn cancel_by_force(town: &Town, input: &str) -> Result<Cancelled> {
    cancel_how(town, &RealWorld::of(town)?, input, true)
}

fn cancel_how(town: &Town, world: &dyn World, input: &str, force: bool) -> Result<Cancelled> {
    let settings = town.scheduler_settings()?;
    let run = resolve(town, input)?;
    let id = run.id.clone();
    if !run.state.is_live() {
        return Ok(Cancelled { run: id, state: run.state, already: true, left_on: None });
    }
    town.read(|reader| {
        refuse_if_over(town, reader, &id.bead, "cancel the run of")?;
        require_own_work(town, reader, &id.bead)
    })?;
    let out_of_reach = out_of_reach(town, world, &run);
    let in_store_alone = match out_of_reach {
        Some(why) if !force => return Err(OperationError::rejected(why)),
        why => why.is_some(),
    };
    // Who wanted it is written down first: the supervisor writes the end, and cannot know.
    let (run, already) = town.write(|writer| {
        let run = require(writer, &id)?;
        // It may have ended since it was looked at.
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
    // A worker that cancels its own run is not heard any more from here on.
    let town = &town.as_system();
    let mut is_left = in_store_alone && !already;
    if run.state.is_live() {
        match world.end_worker(&run, settings.kill_grace) {
            // A supervisor that was there has written the end already; then this changes nothing.
            Ok(()) => settle_in_turn(town, world, &run, force)?,
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
        town.write(|writer| end_bookkeeping(writer, &id.bead, "was cancelled"))?;
    }
    let left_on = is_left.then(|| run.host_name().to_owned());
    Ok(Cancelled { run: id, state: run.state, already, left_on })
}

/// Writes down the end of a run whose processes are gone. Somebody else may be just about to do the same.
fn settle_in_turn(town: &Town, world: &dyn World, run: &Run, force: bool) -> Result<()> {
    let began = Instant::now();
    loop {
        match settle(town, world, run)? {
            Settled::Over(_) | Settled::Already => return Ok(()),
            Settled::Waits | Settled::Busy(_) if began.elapsed() <= PATIENCE => {}
            Settled::Waits | Settled::Busy(_) if force => {
                return town.write(|writer| cancel_in(writer, run));
            }
            Settled::Waits => {
                return Err(OperationError::rejected(format!(
                    "nobody could say whether the work of {} has landed; try it again",
                    run.id
                )));
            }
            Settled::Busy(why) => {
                let id = &run.id;
                return Err(OperationError::rejected(format!(
                    "{id} cannot be ended now: {why}; try it again, or gt run cancel {id} --force"
                )));
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Why the processes of a run cannot be ended from here, if they cannot, and what to do.
fn out_of_reach(town: &Town, world: &dyn World, run: &Run) -> Option<String> {
    if needs_no_process(run) || world.worker_of(run) != Alive::Unknown {
        return None;
    }
    let (id, host) = (&run.id, run.host_name());
    if run.is_on(world.host()) && run.executor == ExecutorKind::Ssh {
        // Whoever stays with it knows, and keeps the wish until it can be passed on.
        return None;
    }
    if let Some(why) = crate::hosts::why_unknown(town, run) {
        return Some(format!("{id} cannot be reached: {why}"));
    }
    if !run.is_on(world.host()) {
        return Some(format!(
            "{id} runs on {host}, in another directory of this town; cancel it there or, if that is gone for \
             good, with gt run cancel {id} --force"
        ));
    }
    let files = RunFiles::of(&town.runs_directory(), &id.to_string());
    Some(unreadable(&files, id))
}

/// What to do about a run whose lock somebody has removed.
fn unreadable(files: &RunFiles, id: &RunId) -> String {
    format!(
        "nobody can say whether anything of {id} is alive: {} is missing or cannot be read; look for its \
         processes (their environment has GT_RUN={id}), end them, and then gt run cancel {id} --force",
        files.lock_path().display()
    )
}

fn cancelled() -> RunEnd {
    RunEnd::without_status(RunState::Cancelled, "it was cancelled")
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
    let by = writer.actor().to_owned();
    if !writer.end_run(run, &cancelled(), &by)? {
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
    let grace = town.scheduler_settings().map(|settings| settings.kill_grace).unwrap_or_default();
    for run in runs {
        match run.executor {
            // Whoever stays with one that is elsewhere passes it on.
            ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh => {}
            ExecutorKind::Pull | ExecutorKind::None => continue,
        }
        let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
        let mut waited = Duration::ZERO;
        // A supervisor that has only just taken the run does not listen yet.
        while ask_to_cancel(&files).is_ok_and(|asked| asked == Asked::NobodyListens)
            && files.liveness().is_ok_and(|liveness| liveness == Liveness::Held)
        {
            if waited >= LOOKED_FOR {
                // It is dead, and its agent is not. What cannot be ended shows as a run that is over
                // and has processes.
                let _ = end_orphan(&files, grace);
                break;
            }
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
    }
}

/// Ends every process of the run with these files and waits until none is left.
pub(super) fn end_processes(files: &RunFiles, run: &Run, grace: Duration) -> Result<()> {
    let failed = |source| OperationError::File {
        action: "end the processes of the run with the lock",
        path: files.lock_path(),
        source,
    };
    let began = Instant::now();
    let limit = grace.saturating_mul(2).saturating_add(PATIENCE);
    let mut told = false;
    loop {
        match files.liveness().map_err(failed)? {
            Liveness::Held => {}
            Liveness::Free => return Ok(()),
            Liveness::NeverTaken => {
                return Err(OperationError::rejected(unreadable(files, &run.id)));
            }
        }
        if !told {
            told = ask_to_cancel(files).map_err(failed)? == Asked::Told;
        }
        if !told {
            // Either it is about to listen, or it is dead and its agent is not.
            end_orphan(files, grace).map_err(failed)?;
        }
        if began.elapsed() > limit {
            return Err(OperationError::rejected(does_not_end(files, &run.id)));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn does_not_end(files: &RunFiles, id: &RunId) -> String {
    let holders: Vec<String> = holders(files).iter().map(ToString::to_string).collect();
    let who = match holders.as_slice() {
        [] => "a process that is not yours holds".to_owned(),
        [one] => format!("process {one} holds"),
        several => format!("the processes {} hold", several.join(", ")),
    };
    format!(
        "something of {id} does not end: {who} {}; end it by hand and cancel {id} again, or gt run cancel {id} \
         --force leaves it alone",
        files.lock_path().display()
    )
}
