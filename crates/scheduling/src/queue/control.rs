//! Pausing, resuming, draining and clearing.

use gt_core::BeadId;
use gt_core::schedule::{CloseReason, Context};
use gt_store::{Pause, Writer};

use gt_beads::convoys::end_bookkeeping;
use gt_beads::lookup::resolve_in;
use gt_beads::transition_check::refuse_if_over;
use gt_town::{OperationError, Result, Town};

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

/// Lets work start again; returns the pause that was in force, if there was one.
pub fn resume(town: &Town) -> Result<Option<Pause>> {
    town.write(|writer| {
        let paused = writer.scheduler_state()?.paused;
        if paused.is_some() {
            writer.set_paused(None)?;
        }
        Ok(paused)
    })
}

/// The result of clearing.
#[derive(Debug, Clone, Default)]
pub struct ClearResult {
    /// The beads that are not scheduled any more.
    pub cleared: Vec<BeadId>,
    /// The beads whose worker is just being started, which is too late.
    pub starting: Vec<BeadId>,
}

/// Takes beads out of the queue: these, or everything.
pub fn clear(town: &Town, inputs: &[String]) -> Result<ClearResult> {
    town.write(|writer| {
        let mut cleared = ClearResult::default();
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

fn clear_in(writer: &mut Writer<'_>, context: &Context, cleared: &mut ClearResult) -> Result<()> {
    if context.starting {
        cleared.starting.push(context.bead.clone());
        return Ok(());
    }
    writer.close_context(context, CloseReason::Cleared, "")?;
    end_bookkeeping(writer, &context.bead, "was taken out of the queue")?;
    cleared.cleared.push(context.bead.clone());
    Ok(())
}
