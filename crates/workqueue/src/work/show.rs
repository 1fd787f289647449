//! One item: all of it, and why it is where it is.

use gt_core::work::{DispatchLogEntry, ItemRef};

use super::error::WorkResult;
use super::requests::{ItemDetails, ItemReason, ItemWhy};
use super::require_item;
use gt_scheduling::queue;
use gt_town::Town;

/// One item with its dispatch log.
pub fn item(town: &Town, reference: &ItemRef) -> WorkResult<ItemDetails> {
    town.read_for(|reader| {
        let item = require_item(reader, reference)?;
        let mut runs = reader.runs_of(&item.bead)?;
        runs.reverse();
        let dispatch_log =
            runs.into_iter().map(|run| DispatchLogEntry::of(run, item.uid)).collect();
        let mut depends_on = Vec::new();
        for edge in reader.edges_from(&item.bead)? {
            if edge.kind.can_block()
                && let Some(target) = reader.bead(&edge.target)?
            {
                depends_on.push(target.uid);
            }
        }
        Ok(ItemDetails { item, dispatch_log, depends_on })
    })
}

/// Why an item is where it is; the same reasons as `gt why` gives.
pub fn why(town: &Town, reference: &ItemRef) -> WorkResult<ItemWhy> {
    let item = town.read_for(|reader| require_item(reader, reference))?;
    let why = queue::why(town, item.bead.as_str())?;
    let reasons = why.reasons.iter().zip(&why.remedies).map(|(reason, remedy)| ItemReason {
        code: reason.code(),
        reason: reason.to_string(),
        remedy: remedy.clone(),
        until: reason.until(),
    });
    Ok(ItemWhy { item, reasons: reasons.collect() })
}
