//! Lists of beads by a filter, and counts over them.

use std::collections::{HashMap, HashSet};

use gt_core::bead::LabelPattern;
use gt_core::limits::PAGE_BEADS;
use gt_core::{BeadId, Status};
use gt_store::{BeadFilter, BeadRow, CountGroup, Reader, Readiness, Statistics, StatusFilter};

use super::contexts::rows;
use super::update::check_registered;

use gt_town::{Result, Town};

/// Hands the beads that `filter` admits to `each`, in order, a page at a time, all from one state of
/// the town. Says whether the filter's limit cut any off.
pub fn for_each_page<E: From<gt_town::OperationError>>(
    town: &Town,
    filter: &BeadFilter,
    mut each: impl FnMut(Vec<BeadRow>) -> Result<(), E>,
) -> Result<bool, E> {
    let mut outcome = Ok(());
    let more = town.read(|reader| {
        let (ids, more) = find_some(reader, filter, None)?;
        for page in ids.chunks(PAGE_BEADS) {
            outcome = each(rows(reader, page)?);
            if outcome.is_err() {
                break;
            }
        }
        Ok(more)
    })?;
    outcome.map(|()| more)
}

/// The ids that `filter` admits (of this `family`, if one is given), and whether its limit cut any off.
/// Counting all of them only to say how many there are would cost more than the list.
pub(super) fn find_some(
    reader: &Reader<'_>,
    filter: &BeadFilter,
    family: Option<&HashSet<BeadId>>,
) -> Result<(Vec<BeadId>, bool)> {
    let one_more = filter.limit.map(|limit| limit.saturating_add(1));
    // A family may be larger than a statement can name.
    let limit = if family.is_some() { None } else { one_more };
    let mut ids = reader.find(&BeadFilter { limit, ..filter.clone() })?;
    if let Some(family) = family {
        ids.retain(|id| family.contains(id));
    }
    let more = filter.limit.is_some_and(|limit| ids.len() > limit);
    ids.truncate(filter.limit.unwrap_or(usize::MAX));
    Ok((ids, more))
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

/// The labels in use that match one of these patterns.
pub fn labels_matching(town: &Town, patterns: &[LabelPattern]) -> Result<Vec<String>> {
    let labels = label_counts(town)?.into_iter().map(|(label, _)| label);
    Ok(labels.filter(|label| patterns.iter().any(|pattern| pattern.matches(label))).collect())
}

/// The labels of each of these beads.
pub fn labels_of(town: &Town, ids: &[BeadId]) -> Result<HashMap<BeadId, Vec<String>>> {
    let rows = town.read(|reader| Ok(reader.bead_rows(ids)?))?;
    Ok(rows.into_iter().map(|row| (row.bead.id, row.labels)).collect())
}

/// Numbers about the whole town.
pub fn statistics(town: &Town) -> Result<Statistics> {
    town.read(|reader| Ok(reader.statistics()?))
}

/// Numbers about the beads of the town's actor, and how many of them are ready. Their lead time is not counted.
pub fn own_statistics(town: &Town) -> Result<(Statistics, u64)> {
    let own = BeadFilter {
        status: StatusFilter::All,
        assignee: Some(town.actor().name.clone()),
        ..BeadFilter::default()
    };
    let current = BeadFilter { status: StatusFilter::Current, ..own.clone() };
    let ready = Some(Readiness { now: town.now(), include_deferred: false });
    town.read(|reader| {
        let blocked = reader.count(&BeadFilter { blocked: true, ..current.clone() })?;
        let statistics = Statistics {
            by_status: reader.count_by(&own, CountGroup::Status)?,
            blocked: i64::try_from(blocked).unwrap_or(i64::MAX),
            ..Statistics::default()
        };
        Ok((statistics, reader.count(&BeadFilter { ready, ..current })?))
    })
}

/// Hands every bead that something blocks to `each`, with what blocks it.
pub fn blocked<E: From<gt_town::OperationError>>(
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

/// Refuses a status that is neither known nor the status of any bead, which is most likely a slip.
pub fn check_status(town: &Town, status: &Status) -> Result<()> {
    town.read(|reader| {
        let one = vec![status.clone()];
        let has_it = BeadFilter {
            status: StatusFilter::OneOf(one),
            limit: Some(1),
            ..BeadFilter::everything()
        };
        if reader.find(&has_it)?.is_empty() { check_registered(reader, status) } else { Ok(()) }
    })
}
