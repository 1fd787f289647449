//! Which beads lack what their type should have.

use gt_core::decide::{Section, missing_sections};
use gt_core::{BeadId, IssueType, Title};
use gt_store::BeadFilter;

use super::list::for_each_page;
use crate::{OperationError, Result, Town};

/// A bead that lacks something.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Which.
    pub id: BeadId,
    /// Its title.
    pub title: Title,
    /// Its type.
    pub issue_type: IssueType,
    /// What it lacks.
    pub missing: Vec<Section>,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Lint {
    /// How many beads were looked at.
    pub examined: u64,
    /// Those that lack something, in the filter's order.
    pub findings: Vec<Finding>,
}

impl Lint {
    /// How many things are missing altogether.
    pub fn missing(&self) -> usize {
        self.findings.iter().map(|finding| finding.missing.len()).sum()
    }
}

/// Looks at the beads that `filter` admits.
pub fn lint(town: &Town, filter: &BeadFilter) -> Result<Lint> {
    let mut found = Lint::default();
    for_each_page(town, filter, |rows| {
        for row in rows {
            found.examined += 1;
            let missing = missing_sections(&row.bead);
            if !missing.is_empty() {
                let bead = row.bead;
                let (id, title, issue_type) = (bead.id, bead.title, bead.issue_type);
                found.findings.push(Finding { id, title, issue_type, missing });
            }
        }
        Ok::<_, OperationError>(())
    })?;
    Ok(found)
}
