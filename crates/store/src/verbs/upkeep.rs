//! How much there is, and how fast it grows.

use gt_core::Timestamp;

use super::statements;
use crate::engine::{ForeignKey, Row};
use crate::{CopiedTable, Reader, StoreError};

statements! {
    TOTALS = "SELECT (SELECT COUNT(*) FROM beads), (SELECT COUNT(*) FROM events)";
    LEVEL = "SELECT COALESCE(MAX(version), 0), COALESCE(MAX(serves), 0) FROM migrations";
    NUMBERS = "SELECT COALESCE(MIN(number), 0), COALESCE(MAX(number), 0) FROM events";
    EVENTS = "SELECT MIN(at), MAX(at), COUNT(CASE WHEN at >= ?1 THEN 1 END), \
        COUNT(CASE WHEN at >= ?2 THEN 1 END) FROM events";
    BEADS = "SELECT MIN(created_at), MAX(created_at), COUNT(CASE WHEN created_at >= ?1 THEN 1 END), \
        COUNT(CASE WHEN created_at >= ?2 THEN 1 END) FROM beads";
}

/// How many beads and events there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Beads.
    pub beads: u64,
    /// Events.
    pub events: u64,
}

/// How fast something grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Growth {
    /// When the first came.
    pub oldest: Option<Timestamp>,
    /// When the last came.
    pub newest: Option<Timestamp>,
    /// How many came in the last seven days.
    pub week: u64,
    /// How many came in the last thirty days.
    pub month: u64,
}

const DAY_NANOS: i64 = 86_400_000_000_000;

impl Reader<'_> {
    /// Counts beads and events.
    pub(crate) fn totals(&self) -> Result<Totals, StoreError> {
        let totals = self.first(TOTALS, &[], |row| {
            Ok(Totals { beads: count(row, 0)?, events: count(row, 1)? })
        })?;
        Ok(totals.unwrap_or(Totals { beads: 0, events: 0 }))
    }

    /// The schema of the store, and the least a program must know to use it.
    pub(crate) fn level(&self) -> Result<(i64, i64), StoreError> {
        Ok(self.first(LEVEL, &[], |row| Ok((row.int(0)?, row.int(1)?)))?.unwrap_or((0, 0)))
    }

    /// The numbers of the first and the last event; zeros if there are none.
    pub(crate) fn event_numbers(&self) -> Result<(u64, u64), StoreError> {
        Ok(self.first(NUMBERS, &[], |row| Ok((count(row, 0)?, count(row, 1)?)))?.unwrap_or((0, 0)))
    }

    /// How many rows a table has.
    pub(crate) fn count_rows(&self, table: &CopiedTable) -> Result<u64, StoreError> {
        let count = self.number(&table.count(), &[])?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Reports the references whose target is gone, if there are any.
    pub(crate) fn orphans(&self, reference: &ForeignKey) -> Result<Option<String>, StoreError> {
        let ForeignKey { table, column, parent, parent_column } = reference;
        let sql = format!(
            "SELECT COUNT(*), CAST(MIN(c.{column}) AS TEXT) FROM {table} c WHERE c.{column} IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.{parent_column} = c.{column})"
        );
        let found = self.first(&sql, &[], |row| {
            Ok((count(row, 0)?, row.text_or_null(1)?.map(str::to_owned)))
        })?;
        Ok(found.and_then(|(orphans, example)| {
            let example = example?;
            Some(format!(
                "{table}: {orphans} rows belong to {parent} that are not there, for example {example}"
            ))
        }))
    }

    /// How fast the log grows.
    pub(crate) fn growth_of_events(&self, now: Timestamp) -> Result<Growth, StoreError> {
        self.growth(EVENTS, now)
    }

    /// How fast beads come, by when they say that they were made.
    pub(crate) fn growth_of_beads(&self, now: Timestamp) -> Result<Growth, StoreError> {
        self.growth(BEADS, now)
    }

    fn growth(&self, sql: &str, now: Timestamp) -> Result<Growth, StoreError> {
        let since = |days: i64| now.as_nanos().saturating_sub(days * DAY_NANOS);
        let growth = self.first(sql, &[since(7).into(), since(30).into()], |row| {
            let instant = |column| -> Result<Option<Timestamp>, StoreError> {
                Ok(row.int_or_null(column)?.map(Timestamp::from_nanos))
            };
            let (oldest, newest) = (instant(0)?, instant(1)?);
            Ok(Growth { oldest, newest, week: count(row, 2)?, month: count(row, 3)? })
        })?;
        Ok(growth.unwrap_or_default())
    }
}

fn count(row: &dyn Row, column: usize) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.int(column)?).unwrap_or(0))
}
