//! Giving a bead back.

use gt_core::{BeadId, EventKind, Status};
use gt_store::Writer;

use crate::Result;
use crate::beads::enter;

/// Opens the bead of a run that is over without having finished it: nobody has it any more.
pub(crate) fn release_in(writer: &mut Writer<'_>, id: &BeadId) -> Result<()> {
    release_as(writer, id, EventKind::StatusChanged)
}

/// The same, told as what it is.
pub(crate) fn release_as(writer: &mut Writer<'_>, id: &BeadId, kind: EventKind) -> Result<()> {
    let Some(old) = writer.bead(id)? else { return Ok(()) };
    if old.status == Status::Closed {
        return Ok(());
    }
    let mut new = old.clone();
    new.assignee = String::new();
    enter(&mut new, Status::Open, writer.now());
    new.updated_at = writer.now().max(old.updated_at);
    writer.save_bead(&old, &new, kind)?;
    Ok(())
}
