//! Beads whose work is done and waits to be merged.

use gt_core::decide::is_merging;
use gt_core::schedule::Run;
use gt_core::{Bead, Status};
use gt_store::Reader;

use crate::Result;
use crate::beads::BeadFacts;

/// The run whose work waits to be merged, if that is why a bead without a live run is in progress.
pub(crate) fn merging_in(reader: &Reader<'_>, bead: &Bead) -> Result<Option<Run>> {
    if bead.status != Status::InProgress {
        return Ok(None);
    }
    let Some(last_run) = reader.runs_of(&bead.id)?.into_iter().next() else { return Ok(None) };
    let latest = reader.latest_context(&bead.id)?;
    let facts = BeadFacts::of_bead(reader, bead)?;
    let facts = facts.scheduling(bead, None);
    Ok(Some(last_run).filter(|run| is_merging(&facts, latest.as_ref(), run)))
}
