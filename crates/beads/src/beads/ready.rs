//! The beads that can be worked on, and why the rest cannot.

use std::collections::HashSet;

use gt_core::decide::{WaitReason, wait_reasons};
use gt_core::limits::PAGE_BEADS;
use gt_core::{Bead, BeadChangeKind, BeadId, Timestamp};
use gt_store::{BeadFilter, BeadRow, Reader, StatusFilter};

use super::list::find_some;
use super::status::claim_in;
use crate::bead_facts::BeadFacts;
use crate::dependencies::BlockingGraph;
use gt_town::{Result, Town};

/// The beads that can be worked on, in the filter's order, and whether its limit cut any off. `below`
/// narrows to the parts of a bead, at any depth.
pub fn ready(
    town: &Town,
    filter: &BeadFilter,
    below: Option<&str>,
) -> Result<(Vec<BeadRow>, bool)> {
    town.read(|reader| {
        let descendants = descendants(town, reader, below)?;
        ready_rows(reader, filter, descendants.as_ref())
    })
}

/// Claims the first ready bead without an assignee, in one step with finding it.
pub fn claim_first(
    town: &Town,
    filter: &BeadFilter,
    below: Option<&str>,
) -> Result<Option<BeadRow>> {
    town.write(|writer| {
        let descendants = descendants(town, writer, below)?;
        let first = BeadFilter { unassigned: true, limit: Some(1), ..filter.clone() };
        let (rows, _) = ready_rows(writer, &first, descendants.as_ref())?;
        let Some(row) = rows.into_iter().next() else {
            return Ok(None);
        };
        let claimed = claim_in(writer, &row.bead, town.acting_run())?;
        writer.save_bead(&row.bead, &claimed, BeadChangeKind::Claimed)?;
        Ok(Some(BeadRow { bead: claimed, ..row }))
    })
}

/// Every part of the bead that `below` means, at any depth.
fn descendants(
    town: &Town,
    reader: &Reader<'_>,
    below: Option<&str>,
) -> Result<Option<HashSet<BeadId>>> {
    let top = below.map(|input| crate::lookup::resolve_in(town, reader, input)).transpose()?;
    Ok(top.map(|top| reader.children_below(&top)).transpose()?)
}

/// The store proposes by index; the evaluator decides.
pub(super) fn ready_rows(
    reader: &Reader<'_>,
    filter: &BeadFilter,
    descendants: Option<&HashSet<BeadId>>,
) -> Result<(Vec<BeadRow>, bool)> {
    let Some(readiness) = filter.ready else {
        return Ok((Vec::new(), false));
    };
    let (ids, more) = find_some(reader, filter, descendants)?;
    let rows = reader.bead_rows(&ids)?;
    let mut ready = Vec::with_capacity(rows.len());
    for row in rows {
        let reasons = reasons(reader, &row, readiness.now)?;
        let overruled = |reason: &WaitReason| match reason {
            WaitReason::Ephemeral => filter.include_ephemeral,
            WaitReason::NotWork(_) => !filter.types.is_empty() || filter.include_hidden,
            WaitReason::Deferred
            | WaitReason::DeferredUntil(_)
            | WaitReason::ParentDeferred(..) => readiness.include_deferred,
            _ => false,
        };
        if reasons.iter().all(overruled) {
            ready.push(row);
        }
    }
    Ok((ready, more))
}

/// Every reason why a bead is not ready.
fn reasons(reader: &Reader<'_>, row: &BeadRow, now: Timestamp) -> Result<Vec<WaitReason>> {
    let facts = BeadFacts::of_row(reader, row)?;
    Ok(wait_reasons(&facts.readiness(&row.bead), now))
}

/// One bead and why it is, or is not, ready.
#[derive(Debug, Clone)]
pub enum ReadyExplanation {
    /// It can be worked on; these blockers are out of the way.
    Ready(BeadRow, Vec<BeadId>),
    /// It waits for these reasons; these beads are in the way.
    Waiting(BeadRow, Vec<WaitReason>, Vec<Bead>),
}

/// How many beads an explanation was about.
#[derive(Debug, Clone, Default)]
pub struct ExplanationSummary {
    /// Those that can be worked on.
    pub ready: u64,
    /// Those that wait.
    pub waiting: u64,
    /// Circles of blocking dependencies.
    pub cycles: Vec<Vec<BeadId>>,
}

/// Explains every bead that the filter admits, first those that are ready, then those that wait; at
/// most the filter's limit of each.
pub fn explain<E: From<gt_town::OperationError>>(
    town: &Town,
    filter: &BeadFilter,
    below: Option<&str>,
    mut each: impl FnMut(ReadyExplanation) -> Result<(), E>,
) -> Result<ExplanationSummary, E> {
    let now = filter.ready.map_or_else(|| town.now(), |ready| ready.now);
    let mut outcome = Ok(());
    let summary = town.read(|reader| {
        let mut summary = ExplanationSummary::default();
        let descendants = descendants(town, reader, below)?;
        let limit = filter.limit.map_or(u64::MAX, |limit| limit as u64);
        let all = BeadFilter {
            ready: None,
            limit: None,
            status: StatusFilter::Current,
            exclude_types: [filter.exclude_types.clone(), not_work()].concat(),
            ..filter.clone()
        };
        let (ids, _) = find_some(reader, &all, descendants.as_ref())?;
        for wanted in [true, false] {
            for page in ids.chunks(PAGE_BEADS) {
                for row in reader.bead_rows(page)? {
                    let reasons = reasons(reader, &row, now)?;
                    let count = if wanted { &mut summary.ready } else { &mut summary.waiting };
                    if reasons.is_empty() != wanted {
                        continue;
                    }
                    *count += 1;
                    if *count > limit {
                        continue;
                    }
                    outcome = each(if wanted {
                        let resolved = resolved_blockers(&row);
                        ReadyExplanation::Ready(row, resolved)
                    } else {
                        let in_the_way = beads_in_the_way(reader, &row.bead)?;
                        ReadyExplanation::Waiting(row, reasons, in_the_way)
                    });
                    if outcome.is_err() {
                        return Ok(summary);
                    }
                }
            }
        }
        summary.cycles = BlockingGraph::read_with_parts(reader)?.circles();
        Ok(summary)
    })?;
    outcome.map(|()| summary)
}

fn beads_in_the_way(reader: &Reader<'_>, bead: &Bead) -> Result<Vec<Bead>> {
    let blockers = reader.blockers(&bead.id)?;
    let mut found = Vec::new();
    for id in blockers.open.iter().chain(&blockers.failed) {
        found.extend(reader.bead(id)?);
    }
    Ok(found)
}

fn not_work() -> Vec<gt_core::IssueType> {
    let types = gt_core::IssueType::NOT_WORK.iter().chain(&["convoy"]);
    types.map(|name| gt_core::IssueType::trusted((*name).to_owned())).collect()
}

fn resolved_blockers(row: &BeadRow) -> Vec<BeadId> {
    let blocking = row.dependencies.iter().filter(|edge| edge.kind.can_block());
    blocking.map(|edge| edge.target.clone()).collect()
}

/// How many beads can be worked on.
pub fn ready_count(town: &Town) -> Result<u64> {
    let ready = Some(gt_store::Readiness { now: town.now(), include_deferred: false });
    let filter = BeadFilter { ready, include_templates: true, ..BeadFilter::default() };
    town.read(|reader| Ok(reader.count(&filter)?))
}
