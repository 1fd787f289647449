//! Keeping `blocking` and `open_blockers` true.
//!
//! The edge remembers whether it blocks, so that a change of one bead touches only the edges whose
//! answer changed, however many others their beads have.

use std::ops::ControlFlow;

use gt_core::decide::{ChildrenFacts, TargetFacts, edge_blocks};
use gt_core::event::BeadNamed;
use gt_core::{BeadId, Dependency, DependencyType, EventPayload, NewEvent, RigSlug, Status};

use super::beads::{facts_from, id_from};
use super::dependencies::{dependency_from, edge_columns};
use super::statements;
use crate::{BlockerFacts, Reader, StoreError, Writer};

statements! {
    EDGES_TO = concat!("SELECT ", edge_columns!(), ", blocking FROM dependencies WHERE depends_on_id = ?1 AND type IN ('blocks', 'conditional-blocks', 'waits-for') ORDER BY issue_id");
    WAITS_FOR = concat!("SELECT ", edge_columns!(), ", blocking FROM dependencies WHERE depends_on_id = ?1 AND type = 'waits-for' ORDER BY issue_id");
    PARENTS = "SELECT depends_on_id FROM dependencies WHERE issue_id = ?1 AND type = 'parent-child' \
        ORDER BY depends_on_id";
    CHILDREN = "SELECT b.status, b.outcome FROM dependencies d JOIN beads b ON b.id = d.issue_id \
        WHERE d.depends_on_id = ?1 AND d.type = 'parent-child'";
    SET_BLOCKING = "UPDATE dependencies SET blocking = ?3 WHERE issue_id = ?1 AND depends_on_id = ?2";
    ADD_BLOCKERS = "UPDATE beads SET open_blockers = open_blockers + ?2 WHERE id = ?1";
    AFTER_CHANGE = "SELECT open_blockers, status, rig, title FROM beads WHERE id = ?1";
    BLOCKERS = "SELECT d.depends_on_id, b.status, b.outcome FROM dependencies d \
        JOIN beads b ON b.id = d.depends_on_id WHERE d.issue_id = ?1 AND d.blocking = 1 \
        ORDER BY d.depends_on_id";
    BLOCKED_BY = "SELECT d.issue_id FROM dependencies d JOIN beads b ON b.id = d.issue_id \
        WHERE d.depends_on_id = ?1 AND d.blocking = 1 AND b.status <> 'closed' ORDER BY d.issue_id LIMIT ?2";
    FAILED_BLOCKERS = "SELECT t.id FROM beads t WHERE t.outcome = 'failed' AND EXISTS (SELECT 1 FROM dependencies d \
        JOIN beads b ON b.id = d.issue_id WHERE d.depends_on_id = t.id AND d.blocking = 1 AND b.status <> 'closed') \
        ORDER BY t.id LIMIT ?1";
    // Agents that pull their work report failures to the program that submitted it.
    FAILED_RUNS = "SELECT t.id FROM beads t WHERE t.outcome = 'failed' AND EXISTS (SELECT 1 FROM runs r \
        WHERE r.bead = t.id AND r.executor <> 'pull') ORDER BY t.closed_at DESC, t.id LIMIT ?1";
    OPEN_CHILD = "SELECT 1 FROM dependencies d JOIN beads b ON b.id = d.issue_id \
        WHERE d.depends_on_id = ?1 AND d.type = 'parent-child' AND b.status <> 'closed' LIMIT 1";
}

/// Adds a blocker to its list: the open ones, or the failed ones.
pub(super) fn note_blocker(blockers: &mut BlockerFacts, id: BeadId, facts: &TargetFacts) {
    let failed = facts.status == Status::Closed && !facts.is_satisfied();
    if failed { &mut blockers.failed } else { &mut blockers.open }.push(id);
}

impl Reader<'_> {
    /// The present blockers of the bead.
    pub fn blockers(&self, id: &BeadId) -> Result<BlockerFacts, StoreError> {
        let found =
            self.rows(BLOCKERS, &[id.into()], |row| Ok((id_from(row, 0)?, facts_from(row, 1)?)))?;
        let mut blockers = BlockerFacts::default();
        for (id, facts) in found {
            note_blocker(&mut blockers, id, &facts);
        }
        blockers.sort();
        Ok(blockers)
    }

    /// The beads that are not closed and wait for this one.
    pub fn beads_blocked_by(&self, id: &BeadId, limit: usize) -> Result<Vec<BeadId>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.rows(BLOCKED_BY, &[id.into(), limit.into()], |row| id_from(row, 0))
    }

    /// The beads that failed and that others, which are not closed, wait for.
    pub fn failed_blockers(&self, limit: usize) -> Result<Vec<BeadId>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.rows(FAILED_BLOCKERS, &[limit.into()], |row| id_from(row, 0))
    }

    /// The beads that failed in runs of ours, the last ones first.
    pub fn failed_beads(&self, limit: usize) -> Result<Vec<BeadId>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.rows(FAILED_RUNS, &[limit.into()], |row| id_from(row, 0))
    }

    /// The beads this one is a part of.
    pub fn parents(&self, id: &BeadId) -> Result<Vec<BeadId>, StoreError> {
        self.rows(PARENTS, &[id.into()], |row| id_from(row, 0))
    }

    /// Whether a part of this bead is not closed.
    pub fn has_open_children(&self, id: &BeadId) -> Result<bool, StoreError> {
        self.any(OPEN_CHILD, &[id.into()])
    }

    /// Whether this edge blocks, given the facts about its target.
    pub(super) fn blocks_now(
        &self,
        edge: &Dependency,
        target: Option<&TargetFacts>,
    ) -> Result<bool, StoreError> {
        let mut asked = Ok(ChildrenFacts::default());
        let blocks = edge_blocks(&edge.kind, edge.gate(), target, || {
            asked = self.children_facts(&edge.target);
            asked.as_ref().map_or_else(|_| ChildrenFacts::default(), Clone::clone)
        });
        asked.map(|_| blocks)
    }

    fn children_facts(&self, parent: &BeadId) -> Result<ChildrenFacts, StoreError> {
        let mut facts = ChildrenFacts::default();
        self.scan(CHILDREN, &[parent.into()], |row| {
            facts = facts.with(&facts_from(row, 0)?);
            // Both kinds seen: no further child can change the answer.
            Ok(if facts.any_satisfied && facts.any_unsatisfied {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        Ok(facts)
    }
}

impl Writer<'_> {
    /// Brings every edge to `target` up to date.
    pub(super) fn refresh_edges_to(&mut self, target: &BeadId) -> Result<(), StoreError> {
        self.refresh(EDGES_TO, target)
    }

    /// Brings every edge that looks at the children of `parent` up to date.
    pub(super) fn refresh_waits_for(&mut self, parent: &BeadId) -> Result<(), StoreError> {
        self.refresh(WAITS_FOR, parent)
    }

    fn refresh(&mut self, edges: &str, target: &BeadId) -> Result<(), StoreError> {
        let edges =
            self.rows(edges, &[target.into()], |row| Ok((dependency_from(row)?, row.flag(8)?)))?;
        if edges.is_empty() {
            return Ok(());
        }
        let facts = self.facts_of(target)?;
        for (edge, blocked_before) in edges {
            let blocks = self.blocks_now(&edge, facts.as_ref())?;
            if blocks != blocked_before {
                let params = [(&edge.issue).into(), (&edge.target).into(), blocks.into()];
                self.apply(SET_BLOCKING, &params)?;
                self.add_blockers(&edge.issue, if blocks { 1 } else { -1 })?;
            }
        }
        Ok(())
    }

    /// Updates the dependents of a bead whose status or outcome changed: edges to it, and
    /// edges that wait for the children of its parents.
    pub(super) fn refresh_after_state_of(&mut self, id: &BeadId) -> Result<(), StoreError> {
        self.refresh_edges_to(id)?;
        for parent in self.parents(id)? {
            self.refresh_waits_for(&parent)?;
        }
        Ok(())
    }

    /// Changes how many edges block `id`, and says so when the last one is gone.
    pub(super) fn add_blockers(&mut self, id: &BeadId, difference: i64) -> Result<(), StoreError> {
        if difference == 0 {
            return Ok(());
        }
        self.mark(id);
        self.apply(ADD_BLOCKERS, &[id.into(), difference.into()])?;
        if difference > 0 {
            return Ok(());
        }
        let now = self.first(AFTER_CHANGE, &[id.into()], |row| {
            let rig = row.text_or_null(2)?.map(|slug| RigSlug::trusted(slug.to_owned()));
            Ok((row.int(0)?, row.text(1)? == "closed", rig, row.text(3)?.to_owned()))
        })?;
        if let Some((0, false, rig, title)) = now {
            let payload = EventPayload::Unblocked(BeadNamed { title });
            self.record(NewEvent { bead: Some(id.clone()), rig, run: None, payload });
        }
        Ok(())
    }

    /// Brings edges that look at the children of `parent` up to date, after it gained or lost one.
    pub(super) fn refresh_after_parting(
        &mut self,
        kind: &DependencyType,
        parent: &BeadId,
    ) -> Result<(), StoreError> {
        if *kind == DependencyType::ParentChild {
            self.refresh_waits_for(parent)?;
        }
        Ok(())
    }
}
