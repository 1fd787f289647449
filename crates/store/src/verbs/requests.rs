//! Requests that may be repeated.

use gt_core::BeadId;
use gt_core::bead::RequestKey;

use super::beads::id_from;
use super::statements;
use crate::{Reader, StoreError, Writer};

statements! {
    FIND = "SELECT bead FROM requests WHERE key = ?1";
    FIND_FINGERPRINT = "SELECT bead, fingerprint FROM requests WHERE key = ?1";
    REMEMBER = "INSERT INTO requests (key, bead, at, fingerprint) VALUES (?1, ?2, ?3, ?4)";
    FORGET = "DELETE FROM requests WHERE bead = ?1";
}

impl Reader<'_> {
    /// The bead that the request of this name made, if it was made before.
    pub fn bead_of_request(&self, key: &RequestKey) -> Result<Option<BeadId>, StoreError> {
        self.first(FIND, &[key.as_str().into()], |row| id_from(row, 0))
    }

    /// The same, with the fingerprint of the request; empty if it has none.
    pub fn request_made(&self, key: &RequestKey) -> Result<Option<(BeadId, String)>, StoreError> {
        self.first(FIND_FINGERPRINT, &[key.as_str().into()], |row| {
            Ok((id_from(row, 0)?, row.text(1)?.to_owned()))
        })
    }
}

impl Writer<'_> {
    /// Remembers that the request of this name, which is new, made this bead. It is not
    /// news, so there is no event.
    pub fn remember_request(&mut self, key: &RequestKey, bead: &BeadId) -> Result<(), StoreError> {
        self.remember_request_for(key, bead, "")
    }

    /// The same, with the fingerprint of the request.
    pub fn remember_request_for(
        &mut self,
        key: &RequestKey,
        bead: &BeadId,
        fingerprint: &str,
    ) -> Result<(), StoreError> {
        let params = [key.as_str().into(), bead.into(), self.now().into(), fingerprint.into()];
        self.apply(REMEMBER, &params)
    }

    /// Forgets the requests that made this bead, which is being deleted.
    pub(super) fn forget_requests(&mut self, bead: &BeadId) -> Result<(), StoreError> {
        self.apply(FORGET, &[bead.into()])
    }
}
