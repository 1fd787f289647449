//! The store's own facts: whose it is, and whether it is in use.

use super::settings::MARKS;
use super::statements;
use crate::{Reader, StoreError, StoreFence};

statements! {
    RIG = "SELECT 1 FROM rigs LIMIT 1";
}

/// The mark with the id of the town whose store this is.
pub(crate) const TOWN_KEY: &str = "town";
/// The mark of a store that takes no writes.
pub(crate) const FENCE_KEY: &str = "fence";

/// The store's own facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreMarks {
    /// The id of the town whose store this is. A store in a file has none unless it was moved there.
    pub town: Option<String>,
    /// Why it takes no writes; nothing if it does.
    pub fence: Option<StoreFence>,
}

impl Reader<'_> {
    /// Whose store this is, and whether it is in use.
    pub fn marks(&self) -> Result<StoreMarks, StoreError> {
        let read =
            |row: &dyn crate::engine::Row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()));
        let mut marks = StoreMarks::default();
        for (key, value) in self.rows(MARKS, &[], read)? {
            match key.as_str() {
                TOWN_KEY => marks.town = Some(value),
                _ => marks.fence = Some(StoreFence::parse(&value)),
            }
        }
        Ok(marks)
    }

    /// Whether there is any rig.
    pub(crate) fn has_rigs(&self) -> Result<bool, StoreError> {
        self.any(RIG, &[])
    }
}
