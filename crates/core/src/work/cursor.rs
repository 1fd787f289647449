//! Where a list of work items goes on.

use std::fmt;

use super::filter::{WorkFilter, WorkOrder};
use super::item::WorkItem;
use crate::hexadecimal::{bytes_of, digits_of};
use crate::{BeadId, Invalid, Priority, Timestamp};

/// The place of an item in a list; the next page begins after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// How urgent it is; says nothing where the list is sorted by age.
    pub priority: Priority,
    /// When it was created.
    pub created_at: Timestamp,
    /// The bead.
    pub bead: BeadId,
}

impl Position {
    /// The place of this item.
    pub fn of(item: &WorkItem) -> Self {
        Self {
            priority: item.priority.of_bead(),
            created_at: item.created_at,
            bead: item.bead.clone(),
        }
    }
}

/// A place in the list that a filter makes. Clients pass it back as they got it; in any other list it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    fingerprint: u32,
    order: WorkOrder,
    position: Position,
}

/// The version of the text.
const VERSION: &str = "1";

impl Cursor {
    /// The place after `item` in the list of `filter`.
    pub fn after(filter: &WorkFilter, item: &WorkItem) -> Self {
        let (fingerprint, order) = (filter.fingerprint(), filter.order());
        Self { fingerprint, order, position: Position::of(item) }
    }

    /// Reads the text of [`Cursor`]'s `Display`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let wrong = || {
            let shown: String = text.chars().take(60).collect();
            let shown = shown.escape_debug();
            Invalid(format!("\"{shown}\" is not a cursor; take it from the Link of the last page"))
        };
        Self::decode(text).ok_or_else(wrong)
    }

    fn decode(text: &str) -> Option<Self> {
        let plain = String::from_utf8(bytes_of(text)?).ok()?;
        let mut parts = plain.splitn(6, ' ');
        let mut part = || parts.next();
        let version = part()?;
        let fingerprint = part()?.parse().ok()?;
        let order = match part()? {
            "u" => WorkOrder::Urgency,
            "a" => WorkOrder::Age,
            _ => return None,
        };
        let priority = Priority::new(part()?.parse().ok()?).ok()?;
        let created_at = Timestamp::from_nanos(part()?.parse().ok()?);
        let bead = BeadId::parse(part()?).ok()?;
        let cursor = Self { fingerprint, order, position: Position { priority, created_at, bead } };
        // One spelling for each.
        (version == VERSION && cursor.to_string() == text).then_some(cursor)
    }

    /// The place, if it is one in the list of `filter`.
    pub fn position_in(&self, filter: &WorkFilter) -> Result<&Position, Invalid> {
        if (self.fingerprint, self.order) == (filter.fingerprint(), filter.order()) {
            return Ok(&self.position);
        }
        Err(Invalid::new(
            "the cursor belongs to a list with other filters; begin without one, or keep the filters",
        ))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fingerprint, order, position } = self;
        let order = match order {
            WorkOrder::Urgency => "u",
            WorkOrder::Age => "a",
        };
        let Position { priority, created_at, bead } = position;
        let plain = format!(
            "{VERSION} {fingerprint} {order} {} {} {bead}",
            priority.number(),
            created_at.as_nanos()
        );
        f.write_str(&digits_of(plain.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::work::WorkStatus;

    fn cursor(filter: &WorkFilter) -> Cursor {
        let position = Position {
            priority: Priority::default(),
            created_at: Timestamp::from_nanos(-7),
            bead: BeadId::parse("wq-abc").unwrap(),
        };
        Cursor { fingerprint: filter.fingerprint(), order: filter.order(), position }
    }

    #[test]
    fn a_cursor_reads_back_and_fits_only_its_own_list() {
        let filter = WorkFilter { statuses: vec![WorkStatus::Queued], ..WorkFilter::default() };
        let cursor = cursor(&filter);
        let read = Cursor::parse(&cursor.to_string()).unwrap();
        assert_eq!(read, cursor);
        assert_eq!(read.position_in(&filter).unwrap().bead.as_str(), "wq-abc");
        assert!(read.position_in(&WorkFilter::default()).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9a-fA-F]{0,80}|.{0,40}") {
            if let Ok(cursor) = Cursor::parse(&text) {
                prop_assert_eq!(cursor.to_string(), text);
            }
        }
    }
}
