//! Labels.

use gt_core::{Bead, EventKind, Json};

use super::beads::bead_event;
use super::statements;
use crate::{Reader, StoreError, Writer};

statements! {
    OF = "SELECT label FROM bead_labels WHERE bead = ?1 ORDER BY label";
    IN_ORDER = "SELECT label FROM labels WHERE bead = ?1 ORDER BY position, label";
    HAS = "SELECT 1 FROM labels WHERE bead = ?1 AND label = ?2";
    ADD = "INSERT INTO labels (bead, label, position) VALUES (?1, ?2, \
        (SELECT COALESCE(MAX(position), 0) + 1 FROM labels WHERE bead = ?1))";
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
        if self.any(HAS, &[(&bead.id).into(), label.into()])? {
            return Ok(false);
        }
        self.execute(ADD, &[(&bead.id).into(), label.into()])?;
        if announce {
            self.record_label(bead, label, EventKind::LabelAdded);
        }
        Ok(true)
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
            self.record_label(bead, label, EventKind::LabelRemoved);
        }
        Ok(removed)
    }

    fn record_label(&mut self, bead: &Bead, label: &str, kind: EventKind) {
        let payload = Json::object(&[
            ("title".to_owned(), Json::string(bead.title.as_str())),
            ("label".to_owned(), Json::string(label)),
        ]);
        self.record(bead_event(bead, kind, payload));
    }
}
