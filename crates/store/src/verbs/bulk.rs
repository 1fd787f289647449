//! Many new beads at once: the writing half of an import.

use std::collections::{BTreeSet, HashMap, HashSet};

use gt_core::decide::{ChildrenFacts, TargetFacts, edge_blocks};
use gt_core::{Bead, BeadId, Comment, Dependency, DependencyType, EventKind};

use super::statements;
use crate::{DependencyChange, StoreError, Writer};

statements! {
    ANY_EDGE = "SELECT 1 FROM dependencies LIMIT 1";
}

/// After so many new rows the database needs new statistics of its tables.
pub(super) const ANALYZE_AFTER_ROWS: usize = 1_000;

/// Adds beads whose standing is known beforehand.
///
/// Because `expected` says how every bead will stand in the end, a bead is written once with all its
/// edges, before the beads it depends on are there. A bead that turns out differently, and facts that cannot be
/// known from one bead alone, are computed again in [`Bulk::finish`].
pub struct Bulk<'w, 's> {
    writer: &'w mut Writer<'s>,
    expected: &'w HashMap<BeadId, TargetFacts>,
    /// The new beads that an edge pointed to before they came.
    awaited: HashSet<BeadId>,
    inserted: usize,
    prefixes: HashMap<String, i64>,
    /// Sorted, so that the events of unblocked beads have the same order every time.
    doubtful: BTreeSet<BeadId>,
    doubtful_parents: BTreeSet<BeadId>,
    /// The beads that track others.
    tracking: BTreeSet<BeadId>,
}

impl<'s> Writer<'s> {
    /// Begins to add many beads; `expected` says how they (and those that are only updated meanwhile)
    /// will stand in the end.
    pub fn bulk<'w>(
        &'w mut self,
        expected: &'w HashMap<BeadId, TargetFacts>,
    ) -> Result<Bulk<'w, 's>, StoreError> {
        let edges_before = self.any(ANY_EDGE, &[])?;
        let awaited = if edges_before { self.awaited(expected.keys())? } else { HashSet::new() };
        Ok(Bulk {
            writer: self,
            expected,
            awaited,
            inserted: 0,
            prefixes: HashMap::new(),
            doubtful: BTreeSet::new(),
            doubtful_parents: BTreeSet::new(),
            tracking: BTreeSet::new(),
        })
    }
}

impl<'s> Bulk<'_, 's> {
    /// Everything else that is to be done meanwhile.
    pub fn writer(&mut self) -> &mut Writer<'s> {
        self.writer
    }

    /// Adds a bead that is not there yet, with all that belongs to it.
    pub fn insert(
        &mut self,
        bead: &Bead,
        labels: &[String],
        comments: &[Comment],
        edges: &[Dependency],
    ) -> Result<(), StoreError> {
        let blocks = edges.iter().map(|edge| self.expect(edge)).collect::<Result<Vec<_>, _>>()?;
        let blockers = blocks.iter().filter(|blocks| **blocks).count();
        self.writer.insert_row(bead, blockers)?;
        self.inserted += 1;
        if self.expected.get(&bead.id).is_none_or(|facts| !facts.describe(bead)) {
            self.doubtful.insert(bead.id.clone());
        }
        if let Some(space) = bead.id_space() {
            match self.prefixes.get_mut(space) {
                Some(count) => *count += 1,
                None => drop(self.prefixes.insert(space.to_owned(), 1)),
            }
        }
        for (label, position) in labels.iter().zip(1_i64..) {
            self.writer.insert_label(&bead.id, label, position)?;
        }
        for (place, comment) in comments.iter().enumerate() {
            // The bead is new, so only this record itself can hold a comment twice.
            if !comments[..place].iter().any(|earlier| earlier.is_same_as(comment)) {
                self.writer.insert_comment(&bead.id, comment)?;
            }
        }
        for (edge, blocks) in edges.iter().zip(blocks) {
            self.writer.insert_edge(edge, blocks)?;
            if edge.kind == DependencyType::ParentChild {
                self.doubtful_parents.insert(edge.target.clone());
            }
            if edge.kind == DependencyType::Tracks {
                self.tracking.insert(edge.issue.clone());
            }
        }
        self.writer.record_new(bead, edges, EventKind::Imported);
        self.writer.write_many_events()?;
        if self.awaited.contains(&bead.id) {
            if bead.defer_until.is_some() {
                self.writer.mark_parts_of(&bead.id)?;
            }
            self.writer.refresh_edges_to(&bead.id)?;
            self.writer.recount_around(&bead.id)?;
        }
        Ok(())
    }

    /// Adds or changes an edge of a bead that is there; its target may still come.
    pub fn put_dependency(
        &mut self,
        edge: &Dependency,
        announce: bool,
    ) -> Result<DependencyChange, StoreError> {
        if edge.kind.can_block() && !self.writer.bead_exists(&edge.target)? {
            self.doubtful.insert(edge.target.clone());
        }
        self.writer.put_dependency(edge, announce)
    }

    /// Whether this edge will block, as far as can be told now.
    fn expect(&mut self, edge: &Dependency) -> Result<bool, StoreError> {
        if !edge.kind.can_block() {
            return Ok(false);
        }
        if edge.kind == DependencyType::WaitsFor {
            self.doubtful.insert(edge.target.clone());
        }
        let blocks = |facts: Option<&TargetFacts>| {
            edge_blocks(&edge.kind, edge.gate(), facts, ChildrenFacts::default)
        };
        Ok(match self.expected.get(&edge.target) {
            Some(facts) => blocks(Some(facts)),
            None => blocks(self.writer.facts_of(&edge.target)?.as_ref()),
        })
    }

    /// Brings everything up to date that depends on how the beads stand together.
    pub fn finish(mut self) -> Result<(), StoreError> {
        for (space, count) in std::mem::take(&mut self.prefixes) {
            self.writer.count_ids(&space, count)?;
        }
        if self.inserted != self.expected.len() {
            for (id, facts) in self.expected {
                if self.writer.facts_of(id)?.as_ref() != Some(facts) {
                    self.doubtful.insert(id.clone());
                }
            }
        }
        for id in &self.doubtful {
            self.writer.refresh_edges_to(id)?;
        }
        for id in &self.doubtful_parents {
            self.writer.refresh_waits_for(id)?;
            self.writer.recount(id)?;
        }
        for convoy in &self.tracking {
            self.writer.recount(convoy)?;
        }
        if self.inserted >= ANALYZE_AFTER_ROWS { self.writer.refresh_statistics() } else { Ok(()) }
    }
}
