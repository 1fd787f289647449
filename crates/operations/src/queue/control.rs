//! Pausing, resuming, draining and clearing.

use std::time::Duration;

use gt_core::BeadId;
use gt_core::schedule::{CloseReason, Context, Run, RunId};
use gt_store::{Pause, Writer};

use crate::beads::{refuse_if_over, resolve_in};
use crate::convoys::end_bookkeeping;
use crate::runs::{World, recover};
use crate::{OperationError, Result, Town};

/// Stops all starts. Gives who stopped them and when, and whether that was just now.
pub fn pause(town: &Town) -> Result<(Pause, bool)> {
    town.write(|writer| {
        if let Some(pause) = writer.scheduler_state()?.paused {
            return Ok((pause, false));
        }
        let pause = Pause { by: writer.actor().to_owned(), at: writer.now() };
        writer.set_paused(Some(&pause))?;
        Ok((pause, true))
    })
}

/// Lets work start again; says who had stopped it, if anybody had.
pub fn resume(town: &Town) -> Result<Option<Pause>> {
    town.write(|writer| {
        let paused = writer.scheduler_state()?.paused;
        if paused.is_some() {
            writer.set_paused(None)?;
        }
        Ok(paused)
    })
}

/// What came of draining.
#[derive(Debug, Clone)]
pub struct Drained {
    /// Who stopped all starts, and when.
    pub pause: Pause,
    /// The runs that had not ended in time; none means that it is drained.
    pub running: Vec<Run>,
}

/// How often one looks whether the runs have ended.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Stops all starts and waits until no run is live, at most this long. `each` is told which runs are left
/// whenever that has changed, and which of them something is wrong with that could not be put right. A run that died without a word is found out, and not waited for.
pub fn drain(
    town: &Town,
    world: &dyn World,
    timeout: Option<Duration>,
    mut each: impl FnMut(&[Run], &[(RunId, String)]),
) -> Result<Drained> {
    let (pause, _) = pause(town)?;
    let began = town.now();
    let mut before = (usize::MAX, 0);
    loop {
        let errors = recover(town, world)?.errors;
        let mut running = town.read(|reader| Ok(reader.live_runs()?))?;
        // Who works by hand says so when they are done, which may be never.
        running.retain(|run| Run::takes_slot(run.executor));
        if (running.len(), errors.len()) != before {
            before = (running.len(), errors.len());
            each(&running, &errors);
        }
        let over = timeout.is_some_and(|timeout| town.now().since(began) >= timeout);
        if running.is_empty() || over {
            return Ok(Drained { pause, running });
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What clearing did.
#[derive(Debug, Clone, Default)]
pub struct Cleared {
    /// The beads that are not scheduled any more.
    pub cleared: Vec<BeadId>,
    /// Those whose worker is just being started, which is too late.
    pub starting: Vec<BeadId>,
}

/// Takes beads out of the queue: these, or everything.
pub fn clear(town: &Town, inputs: &[String]) -> Result<Cleared> {
    town.write(|writer| {
        let mut cleared = Cleared::default();
        if inputs.is_empty() {
            for context in writer.open_contexts()? {
                clear_in(writer, &context, &mut cleared)?;
            }
            return Ok(cleared);
        }
        for input in inputs {
            let id = resolve_in(town, writer, input)?;
            refuse_if_over(town, writer, &id, "clear")?;
            let Some(context) = writer.open_context(&id)? else {
                return Err(OperationError::rejected(format!(
                    "{id} is not scheduled; gt why {id} says how it stands"
                )));
            };
            clear_in(writer, &context, &mut cleared)?;
        }
        Ok(cleared)
    })
}

fn clear_in(writer: &mut Writer<'_>, context: &Context, cleared: &mut Cleared) -> Result<()> {
    if context.starting {
        cleared.starting.push(context.bead.clone());
        return Ok(());
    }
    writer.close_context(context, CloseReason::Cleared, "")?;
    end_bookkeeping(writer, &context.bead, "was taken out of the queue")?;
    cleared.cleared.push(context.bead.clone());
    Ok(())
}
