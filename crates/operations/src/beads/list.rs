//! Many beads.

use gt_core::BeadId;
use gt_core::limits::PAGE_BEADS;
use gt_store::{BeadFilter, BeadRow, CountGroup, Statistics};

use crate::{Result, Town};

/// Hands the beads that `filter` admits to `each`, in order, a page at a time, all from one state of
/// the town. Returns how many there would be without the filter's limit, if that cut any off.
pub fn for_each_page<E: From<crate::OperationError>>(
    town: &Town,
    filter: &BeadFilter,
    mut each: impl FnMut(Vec<BeadRow>) -> Result<(), E>,
) -> Result<Option<u64>, E> {
    let mut outcome = Ok(());
    let total = town.read(|reader| {
        let ids = reader.find(filter)?;
        for page in ids.chunks(PAGE_BEADS) {
            outcome = each(reader.bead_rows(page)?);
            if outcome.is_err() {
                return Ok(None);
            }
        }
        if filter.limit == Some(ids.len()) {
            let total = reader.count(filter)?;
            return Ok((total > ids.len() as u64).then_some(total));
        }
        Ok(None)
    })?;
    outcome.map(|()| total)
}

/// How many beads `filter` admits.
pub fn count(town: &Town, filter: &BeadFilter) -> Result<u64> {
    town.read(|reader| Ok(reader.count(filter)?))
}

/// How many beads `filter` admits for each value.
pub fn count_by(town: &Town, filter: &BeadFilter, group: CountGroup) -> Result<Vec<(String, i64)>> {
    town.read(|reader| Ok(reader.count_by(filter, group)?))
}

/// How many beads have each label.
pub fn label_counts(town: &Town) -> Result<Vec<(String, i64)>> {
    town.read(|reader| Ok(reader.all_labels()?))
}

/// Numbers about the whole town.
pub fn statistics(town: &Town) -> Result<Statistics> {
    town.read(|reader| Ok(reader.statistics()?))
}

/// How many beads there are.
pub fn total(town: &Town) -> Result<i64> {
    Ok(statistics(town)?.total())
}

/// Hands every bead that something blocks to `each`, with what blocks it.
pub fn blocked<E: From<crate::OperationError>>(
    town: &Town,
    filter: &BeadFilter,
    mut each: impl FnMut(&BeadRow, &[BeadId]) -> Result<(), E>,
) -> Result<(), E> {
    let mut outcome = Ok(());
    town.read(|reader| {
        for page in reader.find(filter)?.chunks(PAGE_BEADS) {
            for row in reader.bead_rows(page)? {
                let blockers = reader.blockers(&row.bead.id)?;
                outcome = each(&row, &[blockers.open, blockers.failed].concat());
                if outcome.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    })?;
    outcome
}
