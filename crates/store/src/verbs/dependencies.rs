//! Edges between beads.

use std::collections::HashSet;
use std::ops::ControlFlow;

use gt_core::bead::Gate;
use gt_core::event::{EdgeChange, EdgeChanged};
use gt_core::{
    BeadChangeKind, BeadId, Dependency, DependencyType, EventPayload, NewEvent, RigSlug, Timestamp,
};

use super::beads::{carried_from, carried_text, id_from};
use super::convoys::membership;
use super::hydrate::{IDS_PER_STATEMENT, placeholders};
use super::statements;
use crate::engine::Row;
use crate::{Reader, StoreError, Writer};

/// The columns of an edge, in the order [`dependency_from`] reads them.
macro_rules! edge_columns {
    () => {
        "issue_id, depends_on_id, type, created_at, created_by, metadata, thread_id, carried"
    };
}
pub(super) use edge_columns;

/// Joins the bead at the lower end of the edge `c`, if a `waits-for` still has to wait for it.
macro_rules! unfinished {
    () => {
        " JOIN beads b ON b.id = c.issue_id AND b.status <> 'pinned' \
         AND (b.status <> 'closed' OR b.outcome = 'failed') "
    };
}

/// Every edge of some types from `?1` to its targets, and on from those. Each step looks up one edge by its key: from an edge to
/// the first one of its target, or to the next one of its issue. A join with the table would be simpler, but PostgreSQL may
/// read the whole table for each step of it.
macro_rules! edges_onward {
    ($types:literal) => {
        concat!(
            "WITH RECURSIVE found (issue, target) AS (\
             SELECT d.issue_id, MIN(d.depends_on_id) FROM dependencies d \
             WHERE d.issue_id = ?1 AND d.type ",
            $types,
            " GROUP BY d.issue_id UNION \
             SELECT CASE k.step WHEN 0 THEN f.target ELSE f.issue END, CASE k.step \
             WHEN 0 THEN (SELECT MIN(d.depends_on_id) FROM dependencies d \
             WHERE d.issue_id = f.target AND d.type ",
            $types,
            ") ELSE (SELECT MIN(d.depends_on_id) FROM dependencies d \
             WHERE d.issue_id = f.issue AND d.depends_on_id > f.target AND d.type ",
            $types,
            ") END FROM found f CROSS JOIN (SELECT 0 AS step UNION ALL SELECT 1) k \
             WHERE f.target IS NOT NULL) SELECT issue, target FROM found WHERE target IS NOT NULL"
        )
    };
}

statements! {
    EDGE = concat!("SELECT ", edge_columns!(), ", blocking FROM dependencies WHERE issue_id = ?1 AND depends_on_id = ?2");
    FROM = concat!("SELECT ", edge_columns!(), " FROM dependencies WHERE issue_id = ?1 ORDER BY depends_on_id");
    TO = concat!("SELECT ", edge_columns!(), " FROM dependencies WHERE depends_on_id = ?1 ORDER BY issue_id");
    INSERT = "INSERT INTO dependencies (issue_id, depends_on_id, type, created_at, created_by, \
        metadata, thread_id, carried, blocking) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    UPDATE = "UPDATE dependencies SET type = ?3, created_at = ?4, created_by = ?5, metadata = ?6, \
        thread_id = ?7, carried = ?8, blocking = ?9 WHERE issue_id = ?1 AND depends_on_id = ?2";
    DELETE = "DELETE FROM dependencies WHERE issue_id = ?1 AND depends_on_id = ?2";
    BLOCKING_TARGETS = "SELECT depends_on_id FROM dependencies WHERE issue_id = ?1 \
        AND type IN ('blocks', 'conditional-blocks', 'waits-for') ORDER BY depends_on_id";
    ALL_BLOCKING = "SELECT issue_id, depends_on_id FROM dependencies \
        WHERE type IN ('blocks', 'conditional-blocks', 'waits-for') ORDER BY issue_id, depends_on_id";
    UNFINISHED_CHILDREN = concat!("SELECT c.issue_id FROM dependencies c", unfinished!(),
        "WHERE c.depends_on_id = ?1 AND c.type = 'parent-child' ORDER BY c.issue_id");
    UNFINISHED_PARTS = concat!("SELECT c.issue_id FROM dependencies c", unfinished!(),
        "JOIN beads e ON e.id = c.depends_on_id AND e.issue_type = 'epic' AND e.status <> 'closed' \
        WHERE c.depends_on_id = ?1 AND c.type = 'parent-child' ORDER BY c.issue_id");
    AWAITED_CHILDREN = concat!("SELECT d.issue_id, c.issue_id, d.metadata FROM dependencies d \
        JOIN dependencies c ON c.depends_on_id = d.depends_on_id AND c.type = 'parent-child'", unfinished!(),
        "JOIN beads w ON w.id = d.issue_id AND w.status <> 'closed' \
        WHERE d.type = 'waits-for' ORDER BY d.issue_id, c.issue_id");
    PARTS_OF_AWAITED_EPICS = concat!("SELECT c.depends_on_id, c.issue_id FROM dependencies c", unfinished!(),
        "JOIN beads e ON e.id = c.depends_on_id AND e.issue_type = 'epic' AND e.status <> 'closed' \
        WHERE c.type = 'parent-child' \
        AND EXISTS (SELECT 1 FROM dependencies d WHERE d.depends_on_id = c.depends_on_id \
        AND d.type IN ('blocks', 'conditional-blocks', 'waits-for')) ORDER BY c.depends_on_id, c.issue_id");
    RIG_OF = "SELECT rig FROM beads WHERE id = ?1";
    CHILDREN = "SELECT issue_id FROM dependencies WHERE depends_on_id = ?1 \
        AND type = 'parent-child' ORDER BY issue_id";
    ANY_CHILD = "SELECT 1 FROM dependencies WHERE depends_on_id = ?1 AND type = 'parent-child' LIMIT 1";
    ANY_WAITING = "SELECT 1 FROM dependencies WHERE depends_on_id = ?1 \
        AND type IN ('blocks', 'conditional-blocks', 'waits-for') LIMIT 1";
    PARENTS_ABOVE = edges_onward!("= 'parent-child'");
    WAITED_FOR = edges_onward!("IN ('blocks', 'conditional-blocks', 'waits-for')");
}

/// The change of an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependencyChange {
    /// It is new.
    Added,
    /// It was there, but different.
    Changed,
    /// It was there, just like this.
    Same,
}

impl Reader<'_> {
    /// The edge between two beads, of any type.
    pub fn edge(&self, issue: &BeadId, target: &BeadId) -> Result<Option<Dependency>, StoreError> {
        self.first(EDGE, &[issue.into(), target.into()], dependency_from)
    }

    /// The edges from the bead, of every type, in natural order.
    pub fn edges_from(&self, id: &BeadId) -> Result<Vec<Dependency>, StoreError> {
        let mut edges = self.rows(FROM, &[id.into()], dependency_from)?;
        edges.sort_by(|a, b| a.target.natural_order(&b.target));
        Ok(edges)
    }

    /// The edges to the bead, of every type, in natural order.
    pub fn edges_to(&self, id: &BeadId) -> Result<Vec<Dependency>, StoreError> {
        let mut edges = self.rows(TO, &[id.into()], dependency_from)?;
        edges.sort_by(|a, b| a.issue.natural_order(&b.issue));
        Ok(edges)
    }

    /// The beads that the bead depends on with a type that can block.
    pub fn blocking_targets(&self, id: &BeadId) -> Result<Vec<BeadId>, StoreError> {
        self.rows(BLOCKING_TARGETS, &[id.into()], |row| id_from(row, 0))
    }

    /// Whether anything waits for the bead.
    pub fn is_waited_for(&self, id: &BeadId) -> Result<bool, StoreError> {
        self.any(ANY_WAITING, &[id.into()])
    }

    /// Whether the bead has parts.
    pub fn has_children(&self, id: &BeadId) -> Result<bool, StoreError> {
        self.any(ANY_CHILD, &[id.into()])
    }

    /// Every edge from a bead to its parents, and from those to theirs, at any height.
    pub fn parent_edges_above(&self, id: &BeadId) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        self.rows(PARENTS_ABOVE, &[id.into()], |row| Ok((id_from(row, 0)?, id_from(row, 1)?)))
    }

    /// Every part of the bead, at any depth: one question for each level, or each page of a wide one.
    pub fn children_below(&self, id: &BeadId) -> Result<HashSet<BeadId>, StoreError> {
        let mut found = HashSet::new();
        let mut level = vec![id.clone()];
        while !level.is_empty() {
            let mut next = Vec::new();
            for page in level.chunks(IDS_PER_STATEMENT) {
                let (list, params) = placeholders(page);
                let sql = format!(
                    "SELECT issue_id FROM dependencies WHERE depends_on_id IN ({list}) \
                     AND type = 'parent-child'"
                );
                next.extend(self.rows(&sql, &params, |row| id_from(row, 0))?);
            }
            next.retain(|child| found.insert(child.clone()));
            level = next;
        }
        Ok(found)
    }

    /// Every edge that can block, from the bead to the beads it waits for, and on from there.
    pub fn waited_for_edges(&self, id: &BeadId) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        self.rows(WAITED_FOR, &[id.into()], |row| Ok((id_from(row, 0)?, id_from(row, 1)?)))
    }

    /// Every edge of these beads that blocks now: the bead, and its blocker.
    pub fn edges_that_block(&self, ids: &[BeadId]) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        self.edges_where(ids, "blocking = 1")
    }

    /// Every edge of these beads that blocks, or did before its blocker was done: the bead, and its blocker.
    pub fn edges_that_can_block(
        &self,
        ids: &[BeadId],
    ) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        self.edges_where(ids, "type IN ('blocks', 'conditional-blocks', 'waits-for')")
    }

    fn edges_where(
        &self,
        ids: &[BeadId],
        condition: &str,
    ) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        let mut found = Vec::new();
        for page in ids.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let sql = format!(
                "SELECT issue_id, depends_on_id FROM dependencies WHERE issue_id IN ({list}) \
                 AND {condition} ORDER BY issue_id, depends_on_id"
            );
            found.extend(self.rows(&sql, &params, |row| Ok((id_from(row, 0)?, id_from(row, 1)?)))?);
        }
        Ok(found)
    }

    /// Hands every edge of a type that can block to `each`: the bead that depends, and on which.
    pub fn for_each_blocking_edge(
        &self,
        mut each: impl FnMut(BeadId, BeadId),
    ) -> Result<(), StoreError> {
        self.scan(ALL_BLOCKING, &[], |row| {
            each(id_from(row, 0)?, id_from(row, 1)?);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Whether one of these beads may wait for parts: it is an epic, or has an edge `waits-for`.
    pub fn any_waits_for_parts(&self, ids: &[BeadId]) -> Result<bool, StoreError> {
        for page in ids.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            for sql in [
                format!(
                    "SELECT id FROM beads WHERE id IN ({list}) AND issue_type = 'epic' LIMIT 1"
                ),
                format!(
                    "SELECT issue_id FROM dependencies WHERE issue_id IN ({list}) \
                     AND type = 'waits-for' LIMIT 1"
                ),
            ] {
                if !self.rows(&sql, &params, |row| id_from(row, 0))?.is_empty() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The parts of a bead that a `waits-for` on it still waits for.
    pub fn unfinished_children(&self, id: &BeadId) -> Result<Vec<BeadId>, StoreError> {
        self.rows(UNFINISHED_CHILDREN, &[id.into()], |row| id_from(row, 0))
    }

    /// The parts that an epic still waits for; a bead of any other type has none.
    pub fn unfinished_parts(&self, id: &BeadId) -> Result<Vec<BeadId>, StoreError> {
        self.rows(UNFINISHED_PARTS, &[id.into()], |row| id_from(row, 0))
    }

    /// Every unfinished part that one of these beads waits for through a `waits-for` on the part's parent: the bead, and
    /// the part.
    pub fn awaited_children(&self, ids: &[BeadId]) -> Result<Vec<(BeadId, BeadId)>, StoreError> {
        let mut found = Vec::new();
        for page in ids.chunks(IDS_PER_STATEMENT) {
            let (list, params) = placeholders(page);
            let sql = format!(
                concat!(
                    "SELECT d.issue_id, c.issue_id, d.metadata FROM dependencies d JOIN dependencies c \
                     ON c.depends_on_id = d.depends_on_id AND c.type = 'parent-child'",
                    unfinished!(),
                    "WHERE d.issue_id IN ({list}) AND d.type = 'waits-for' AND d.blocking = 1 \
                     ORDER BY d.issue_id, c.issue_id"
                ),
                list = list
            );
            let rows = self.rows(&sql, &params, |row| {
                let gate = Gate::of_metadata(row.text(2)?);
                Ok((id_from(row, 0)?, id_from(row, 1)?, gate))
            })?;
            let all = rows.into_iter().filter(|(.., gate)| *gate == Gate::AllChildren);
            found.extend(all.map(|(bead, part, _)| (bead, part)));
        }
        Ok(found)
    }

    /// Hands every bead that waits for a part of another to `each`, with that part: through a `waits-for` on the
    /// part's parent, or as an epic that another bead waits for.
    pub fn for_each_awaited_part(
        &self,
        mut each: impl FnMut(BeadId, BeadId),
    ) -> Result<(), StoreError> {
        self.scan(AWAITED_CHILDREN, &[], |row| {
            if Gate::of_metadata(row.text(2)?) == Gate::AllChildren {
                each(id_from(row, 0)?, id_from(row, 1)?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.scan(PARTS_OF_AWAITED_EPICS, &[], |row| {
            each(id_from(row, 0)?, id_from(row, 1)?);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The parts of a bead, in natural order.
    pub fn children(&self, id: &BeadId) -> Result<Vec<BeadId>, StoreError> {
        let mut children = self.rows(CHILDREN, &[id.into()], |row| id_from(row, 0))?;
        children.sort_by(BeadId::natural_order);
        Ok(children)
    }
}

impl Writer<'_> {
    /// Adds an edge, or changes the one that is there. `announce` writes an event for it; otherwise the event of the
    /// bead that comes with the edge lists it.
    pub fn put_dependency(
        &mut self,
        edge: &Dependency,
        announce: bool,
    ) -> Result<DependencyChange, StoreError> {
        let before = self.first(EDGE, &[(&edge.issue).into(), (&edge.target).into()], |row| {
            Ok((dependency_from(row)?, row.flag(8)?))
        })?;
        let (sql, change) = match &before {
            None => (INSERT, DependencyChange::Added),
            Some((old, _)) if old == edge => return Ok(DependencyChange::Same),
            Some(_) => (UPDATE, DependencyChange::Changed),
        };
        let (was_part, blocked_before) =
            before.as_ref().map_or((false, false), |(old, blocked)| {
                (old.kind == DependencyType::ParentChild, *blocked)
            });
        // An edge that was a part of its target counts as one until it is written; it is asked when
        // all edges to the target are.
        let blocks = !was_part && self.blocks_now(edge, self.facts_of(&edge.target)?.as_ref())?;
        self.touch_kin(&edge.issue)?;
        self.note_edge(&edge.issue, &edge.target);
        self.write_edge(sql, edge, blocks)?;
        let old = before.as_ref().map(|(old, _)| old.kind.clone());
        self.record_edge(&edge.issue, &edge.target, old, Some(edge.kind.clone()), announce)?;
        self.add_blockers(&edge.issue, i64::from(blocks) - i64::from(blocked_before))?;
        if was_part {
            self.refresh_edges_to(&edge.target)?;
        } else {
            self.refresh_after_parting(&edge.kind, &edge.target)?;
        }
        let member_before = before.as_ref().and_then(|(old, _)| membership(old));
        if member_before != membership(edge) {
            // A part follows the date of its parent, a member the limits of its convoy.
            for (_, member) in member_before.into_iter().chain(membership(edge)) {
                self.mark(member);
            }
            for (member, joins) in [(member_before, false), (membership(edge), true)] {
                if let Some(member) = member {
                    self.count_member(member, joins)?;
                }
            }
        }
        Ok(change)
    }

    /// Writes the row of an edge that is not there yet.
    pub(super) fn insert_edge(&self, edge: &Dependency, blocks: bool) -> Result<(), StoreError> {
        self.write_edge(INSERT, edge, blocks)
    }

    /// Removes an edge.
    pub fn remove_dependency(
        &mut self,
        edge: &Dependency,
        announce: bool,
    ) -> Result<(), StoreError> {
        self.take_away(edge, Some(announce))
    }

    /// Removes an edge whose end is told by the event of its target.
    pub(super) fn take_edge_away(&mut self, edge: &Dependency) -> Result<(), StoreError> {
        self.take_away(edge, None)
    }

    /// Takes the edge of a bead that is being deleted to its parent away. The bead itself is not unblocked by that.
    pub(super) fn leave_parent(&mut self, edge: &Dependency) -> Result<(), StoreError> {
        if let Some(member) = membership(edge).filter(|(_, member)| **member == edge.issue) {
            self.count_member(member, false)?;
        }
        self.apply(DELETE, &[(&edge.issue).into(), (&edge.target).into()])?;
        self.refresh_after_parting(&edge.kind, &edge.target)
    }

    fn take_away(&mut self, edge: &Dependency, announce: Option<bool>) -> Result<(), StoreError> {
        let ends = [(&edge.issue).into(), (&edge.target).into()];
        let before = self.first(EDGE, &ends, |row| Ok((dependency_from(row)?, row.flag(8)?)))?;
        let Some((edge, blocked)) = before else { return Ok(()) };
        self.touch_kin(&edge.issue)?;
        self.apply(DELETE, &ends)?;
        if let Some(announce) = announce {
            self.record_edge(&edge.issue, &edge.target, Some(edge.kind.clone()), None, announce)?;
        }
        self.add_blockers(&edge.issue, -i64::from(blocked))?;
        if let Some(member) = membership(&edge) {
            self.mark(member.1);
            self.count_member(member, false)?;
        }
        self.refresh_after_parting(&edge.kind, &edge.target)
    }

    /// Tells of an edge that had the type `old` and has the type `new`.
    fn record_edge(
        &mut self,
        issue: &BeadId,
        target: &BeadId,
        old: Option<DependencyType>,
        new: Option<DependencyType>,
        announce: bool,
    ) -> Result<(), StoreError> {
        if !announce {
            let change = EdgeChange { depends_on_id: target.clone(), old, new };
            return self.record_edges_with_bead(issue, vec![change], BeadChangeKind::Imported);
        }
        let Some(kind) = new.as_ref().or(old.as_ref()).cloned() else { return Ok(()) };
        let event = match (&old, &new) {
            (None, _) => EventPayload::DependencyAdded,
            (Some(_), None) => EventPayload::DependencyRemoved,
            (Some(_), Some(_)) => EventPayload::DependencyChanged,
        };
        let rig = self.first(RIG_OF, &[issue.into()], |row| {
            Ok(row.text_or_null(0)?.map(|slug| RigSlug::trusted(slug.to_owned())))
        })?;
        let depends_on_id = target.clone();
        let payload = event(EdgeChanged { depends_on_id, r#type: kind, old, new });
        let bead = Some(issue.clone());
        self.record(NewEvent { bead, rig: rig.flatten(), run: None, payload });
        Ok(())
    }

    fn write_edge(&self, sql: &str, edge: &Dependency, blocks: bool) -> Result<(), StoreError> {
        let carried = carried_text(&edge.carried);
        let params = [
            (&edge.issue).into(),
            (&edge.target).into(),
            edge.kind.as_str().into(),
            edge.created_at.into(),
            (&edge.created_by).into(),
            (&edge.metadata).into(),
            (&edge.thread_id).into(),
            carried.as_ref().into(),
            blocks.into(),
        ];
        self.apply(sql, &params)
    }
}

/// Reads an edge from a row of `edge_columns!` that begins at column `first`.
pub(super) fn dependency_from(row: &dyn Row) -> Result<Dependency, StoreError> {
    Ok(Dependency {
        issue: id_from(row, 0)?,
        target: id_from(row, 1)?,
        kind: DependencyType::trusted(row.text(2)?),
        created_at: Timestamp::from_nanos(row.int(3)?),
        created_by: row.text(4)?.to_owned(),
        metadata: row.text(5)?.to_owned(),
        thread_id: row.text(6)?.to_owned(),
        carried: carried_from(row.text_or_null(7)?),
    })
}
