//! Queries that a person writes in SQL.

use gt_store::QueryTable;
use gt_town::{Result, Town};

use crate::acting::refuse_worker;

/// Answers a query that only reads. A worker is refused: it would see the records of all others.
pub fn select(town: &Town, sql: &str) -> Result<QueryTable> {
    refuse_worker(town, "bd sql")?;
    town.read(|reader| Ok(reader.select(sql)?))
}
