//! Convoys: beads that track others, so that these can be looked after together.

use std::collections::HashMap;

use gt_core::{BeadId, Dependency, DependencyType};

use super::beads::id_from;
use super::hydrate::{PAGE, placeholders};
use crate::{Reader, StoreError, Writer};

impl Reader<'_> {
    /// For each of these beads that a convoy tracks which is not over: that convoy, the first by its id.
    pub fn open_convoys_of(&self, beads: &[BeadId]) -> Result<HashMap<BeadId, BeadId>, StoreError> {
        let mut found = HashMap::new();
        for page in beads.chunks(PAGE) {
            let (list, params) = placeholders(page);
            let sql = format!(
                "SELECT d.depends_on_id, d.issue_id FROM dependencies d \
                 JOIN beads b ON b.id = d.issue_id \
                 WHERE d.depends_on_id IN ({list}) AND d.type = 'tracks' \
                 AND b.issue_type = 'convoy' AND b.status <> 'closed' ORDER BY d.issue_id"
            );
            let pairs = self.rows(&sql, &params, |row| Ok((id_from(row, 0)?, id_from(row, 1)?)))?;
            for (bead, convoy) in pairs {
                found.entry(bead).or_insert(convoy);
            }
        }
        Ok(found)
    }
}

impl Writer<'_> {
    /// Lets a convoy that has no edges yet track these beads, each named once. Such an edge never blocks, so
    /// nothing has to be asked; the convoy itself is what is told about.
    pub fn track(&mut self, convoy: &BeadId, beads: &[BeadId]) -> Result<(), StoreError> {
        for bead in beads {
            let edge = Dependency {
                issue: convoy.clone(),
                target: bead.clone(),
                kind: DependencyType::Tracks,
                created_at: self.now(),
                created_by: self.actor().to_owned(),
                metadata: String::new(),
                thread_id: String::new(),
                carried: Vec::new(),
            };
            self.insert_edge(&edge, false)?;
        }
        Ok(())
    }
}
