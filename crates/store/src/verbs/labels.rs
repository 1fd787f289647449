//! Labels.

use gt_core::event::LabelChanged;
use gt_core::{Bead, BeadId, EventPayload};

use super::beads::bead_event;
use super::statements;
use crate::{Reader, StoreError, Writer};

statements! {
    OF = "SELECT label FROM bead_labels WHERE bead = ?1 ORDER BY label";
    IN_ORDER = "SELECT label FROM labels WHERE bead = ?1 ORDER BY position, label";
    LAST = "SELECT COALESCE(MAX(position), 0), COALESCE(MAX(CASE WHEN label = ?2 THEN 1 END), 0) \
        FROM labels WHERE bead = ?1";
    ADD = "INSERT INTO labels (bead, label, position) VALUES (?1, ?2, ?3)";
    REMOVE = "DELETE FROM labels WHERE bead = ?1 AND label = ?2";
    ALL = "SELECT label, COUNT(*) FROM bead_labels GROUP BY label ORDER BY label";
}

impl Reader<'_> {
    /// The labels of a bead, sorted.
    pub fn labels(&self, bead: &Bead) -> Result<Vec<String>, StoreError> {
        self.rows(OF, &[(&bead.id).into()], |row| Ok(row.text(0)?.to_owned()))
    }

    /// The stored labels of a bead in the order they were added, as a record carries them.
    pub fn labels_in_order(&self, bead: &Bead) -> Result<Vec<String>, StoreError> {
        self.rows(IN_ORDER, &[(&bead.id).into()], |row| Ok(row.text(0)?.to_owned()))
    }

    /// Every label there is, with how many beads have it.
    pub fn all_labels(&self) -> Result<Vec<(String, i64)>, StoreError> {
        self.rows(ALL, &[], |row| Ok((row.text(0)?.to_owned(), row.int(1)?)))
    }
}

impl Writer<'_> {
    /// Adds a label; says whether it was new.
    pub fn add_label(
        &mut self,
        bead: &Bead,
        label: &str,
        announce: bool,
    ) -> Result<bool, StoreError> {
        let last = self.first(LAST, &[(&bead.id).into(), label.into()], |row| {
            Ok((row.int(0)?, row.flag(1)?))
        })?;
        let (position, is_there) = last.unwrap_or((0, false));
        if is_there {
            return Ok(false);
        }
        self.insert_label(&bead.id, label, position + 1)?;
        if announce {
            self.record_label(bead, label, EventPayload::LabelAdded);
        }
        Ok(true)
    }

    /// Writes the row of a label that the bead does not have yet.
    pub(super) fn insert_label(
        &self,
        bead: &BeadId,
        label: &str,
        position: i64,
    ) -> Result<(), StoreError> {
        self.apply(ADD, &[bead.into(), label.into(), position.into()])
    }

    /// Removes a label; says whether it was there.
    pub fn remove_label(
        &mut self,
        bead: &Bead,
        label: &str,
        announce: bool,
    ) -> Result<bool, StoreError> {
        let removed = self.execute(REMOVE, &[(&bead.id).into(), label.into()])? > 0;
        if removed && announce {
            self.record_label(bead, label, EventPayload::LabelRemoved);
        }
        Ok(removed)
    }

    fn record_label(&mut self, bead: &Bead, label: &str, kind: fn(LabelChanged) -> EventPayload) {
        let (title, label) = (bead.title.to_string(), label.to_owned());
        self.record(bead_event(bead, kind(LabelChanged { title, label })));
    }
}
