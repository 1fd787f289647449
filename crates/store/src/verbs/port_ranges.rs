//! The ranges of ports of trees.

use gt_core::RigSlug;

use super::statements;
use crate::engine::Row;
use crate::{Reader, StoreError, Writer};

statements! {
    ONE = "SELECT number FROM port_ranges WHERE rig = ?1 AND place = ?2";
    // The smallest number that is free.
    TAKE = "INSERT INTO port_ranges (number, rig, place) \
        SELECT CASE WHEN EXISTS (SELECT 1 FROM port_ranges WHERE number = 0) \
            THEN (SELECT MIN(one.number) + 1 FROM port_ranges one \
                WHERE NOT EXISTS (SELECT 1 FROM port_ranges next WHERE next.number = one.number + 1)) \
            ELSE 0 END, ?1, ?2 \
        WHERE NOT EXISTS (SELECT 1 FROM port_ranges WHERE rig = ?1 AND place = ?2)";
    FREE = "DELETE FROM port_ranges WHERE rig = ?1 AND place = ?2";
}

impl Reader<'_> {
    /// The number of the range of ports of a tree; nothing if it has none yet.
    pub fn port_range(&self, rig: &RigSlug, place: &str) -> Result<Option<u32>, StoreError> {
        self.first(ONE, &[rig.as_str().into(), place.into()], number_from)
    }
}

impl Writer<'_> {
    /// Gives a tree a range of ports that no other tree has, unless it has one.
    pub fn take_port_range(&mut self, rig: &RigSlug, place: &str) -> Result<(), StoreError> {
        self.apply(TAKE, &[rig.as_str().into(), place.into()])
    }

    /// Takes the range of ports of a tree back.
    pub(super) fn free_port_range(&mut self, rig: &RigSlug, place: &str) -> Result<(), StoreError> {
        self.apply(FREE, &[rig.as_str().into(), place.into()])
    }
}

fn number_from(row: &dyn Row) -> Result<u32, StoreError> {
    // Smallest numbers are taken first, and there are fewer trees.
    Ok(u32::try_from(row.int(0)?).unwrap_or(u32::MAX))
}
