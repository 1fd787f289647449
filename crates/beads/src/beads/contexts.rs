//! Contexts, shown as the beads that scripts look for.

use std::collections::HashMap;

use gt_core::BeadId;
use gt_core::schedule::{CloseReason, Context, ContextId, labels};
use gt_records::context_bead;
use gt_store::{BeadRow, Reader, Writer};

use super::close::ClosedBead;
use crate::lookup::{shown_id, tracking_edge};
use gt_town::{OperationError, Result};

/// A context as lists show it.
pub(super) fn context_row(context: &Context) -> BeadRow {
    BeadRow {
        bead: context_bead(context),
        labels: vec![labels::SLING_CONTEXT.to_owned()],
        dependencies: vec![tracking_edge(context)],
        dependents_blocked: 0,
        dependents: 0,
        comments: 0,
    }
}

/// The beads and contexts with these ids, in this order; absent ones are left out.
pub(super) fn rows(reader: &Reader<'_>, ids: &[BeadId]) -> Result<Vec<BeadRow>> {
    let found = reader.bead_rows(ids)?;
    let is_name = |id: &&BeadId| id.as_str().starts_with(ContextId::PREFIX);
    if found.len() == ids.len() || !ids.iter().any(|id| is_name(&id)) {
        return Ok(found);
    }
    let mut rows: HashMap<BeadId, BeadRow> =
        found.into_iter().map(|row| (row.bead.id.clone(), row)).collect();
    let others: Vec<BeadId> =
        ids.iter().filter(is_name).filter(|id| !rows.contains_key(*id)).cloned().collect();
    for context in reader.contexts_named(&others)? {
        rows.insert(shown_id(&context), context_row(&context));
    }
    Ok(ids.iter().filter_map(|id| rows.remove(id)).collect())
}

/// Takes a context out of the queue. One that is closed stays as it is.
pub(super) fn clear(writer: &mut Writer<'_>, context: &Context, why: &str) -> Result<ClosedBead> {
    if context.starting {
        let run = writer.live_run(&context.bead)?.map_or_else(
            || "its run".to_owned(),
            |run| format!("its run {} (gt run cancel {})", run.id, run.id),
        );
        return Err(OperationError::rejected(format!(
            "{} is being started and cannot be cleared any more; cancel {run} instead",
            context.id
        )));
    }
    if context.closed.is_none() {
        writer.close_context(context, CloseReason::Cleared, why)?;
    }
    let now = writer.context(context.id.as_str())?;
    let bead = context_bead(now.as_ref().unwrap_or(context));
    Ok(ClosedBead { bead, unblocked: Vec::new(), also_closed: Vec::new(), cancelled: None })
}
