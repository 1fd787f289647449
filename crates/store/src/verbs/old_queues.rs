//! The traces of older queues: labels, blocks in descriptions, and contexts that were beads.

use gt_core::BeadId;

use super::beads::id_from;
use super::statements;
use crate::{Reader, StoreError};

statements! {
    // A superset: the parser of descriptions decides whether there is a block.
    MARKED = "SELECT id FROM beads WHERE description LIKE '%---gt:queue:v1---%' \
        UNION SELECT bead FROM labels WHERE label IN ('gt:queued', 'queued', 'gt:queue-dispatched', \
        'gt:dispatch-failed') ORDER BY id";
    CONTEXTS = "SELECT b.id FROM beads b WHERE b.status <> 'closed' \
        AND (b.issue_type = 'sling-context' OR b.ephemeral = 1) AND EXISTS (SELECT 1 FROM labels l \
        WHERE l.bead = b.id AND l.label = 'gt:sling-context') ORDER BY b.id";
}

impl Reader<'_> {
    /// Beads that may carry the state of an older queue, by their labels or their description.
    pub fn marked_by_old_queues(&self) -> Result<Vec<BeadId>, StoreError> {
        self.rows(MARKED, &[], |row| id_from(row, 0))
    }

    /// Beads that were contexts elsewhere and are not closed.
    pub fn contexts_of_old_queues(&self) -> Result<Vec<BeadId>, StoreError> {
        self.rows(CONTEXTS, &[], |row| id_from(row, 0))
    }
}
