//! Which beads lack what their type should have.

use gt_core::decide::{BeadSection, missing_sections};
use gt_store::{BeadFilter, BeadRow};

use super::list::for_each_page;
use gt_town::{OperationError, Result, Town};

/// A bead that lacks something, and what.
pub type LintFinding = (BeadRow, Vec<BeadSection>);

/// The findings, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LintSummary {
    /// How many beads were looked at.
    pub examined: u64,
    /// How many lack something.
    pub lacking: u64,
    /// How many things are missing altogether.
    pub missing: u64,
}

/// Looks at the beads that `filter` admits and hands those that lack something to `each`, in the filter's
/// order, a page at a time.
pub fn lint<E: From<OperationError>>(
    town: &Town,
    filter: &BeadFilter,
    mut each: impl FnMut(Vec<LintFinding>) -> Result<(), E>,
) -> Result<LintSummary, E> {
    let mut summary = LintSummary::default();
    for_each_page(town, filter, |rows| {
        summary.examined += rows.len() as u64;
        let mut findings = Vec::new();
        for row in rows {
            let missing = missing_sections(&row.bead);
            if !missing.is_empty() {
                summary.lacking += 1;
                summary.missing += missing.len() as u64;
                findings.push((row, missing));
            }
        }
        if findings.is_empty() { Ok(()) } else { each(findings) }
    })?;
    Ok(summary)
}
