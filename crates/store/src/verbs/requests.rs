//! Requests that may be repeated.

use gt_core::BeadId;
use gt_core::bead::RequestKey;

use super::beads::id_from;
use super::statements;
use crate::{Reader, StoreError, Writer};

statements! {
    FIND = "SELECT bead FROM requests WHERE key = ?1";
    REMEMBER = "INSERT INTO requests (key, bead, at) VALUES (?1, ?2, ?3)";
    FORGET = "DELETE FROM requests WHERE bead = ?1";
}

impl Reader<'_> {
    /// The bead that the request of this name made, if it was made before.
    pub fn bead_of_request(&self, key: &RequestKey) -> Result<Option<BeadId>, StoreError> {
        self.first(FIND, &[key.as_str().into()], |row| id_from(row, 0))
    }
}

impl Writer<'_> {
    /// Remembers that the request of this name, which is new, made this bead. Nobody needs to hear
    /// of it, so there is no event.
    pub fn remember_request(&mut self, key: &RequestKey, bead: &BeadId) -> Result<(), StoreError> {
        self.apply(REMEMBER, &[key.as_str().into(), bead.into(), self.now().into()])
    }

    /// Forgets whatever made this bead, which is going away.
    pub(super) fn forget_requests(&mut self, bead: &BeadId) -> Result<(), StoreError> {
        self.apply(FORGET, &[bead.into()])
    }
}
