//! An agent gives its work back.

use gt_core::ExecutorKind;
use gt_core::work::{ItemRef, RunRef, WorkItem};

use super::error::{Conflict, WorkResult};
use super::heartbeat::{held_in, holder_text};
use super::{refuse_other, require_item};
use gt_beads::run_records::cancel_in;
use gt_town::Town;

/// Gives an item back that an agent has in this run: the run is cancelled, and the item queued again for any agent. It
/// counts neither as a failure nor as an attempt.
pub fn release(town: &Town, reference: &ItemRef, run: RunRef) -> WorkResult<WorkItem> {
    let reference = reference.clone();
    town.submit(move |town, writer| {
        let item = require_item(writer, &reference)?;
        let run = held_in(writer, &item, &run)?;
        refuse_other(town, &run.agent, || holder_text(&run))?;
        if run.executor != ExecutorKind::Pull {
            return Err(Conflict::NotInProgress { bead: item.bead, run: run.id }.into());
        }
        cancel_in(writer, &run)?;
        require_item(writer, &item.bead.into())
    })
}
