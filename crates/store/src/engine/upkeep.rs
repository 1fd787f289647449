//! The maintenance operations of a database.

use std::path::Path;

use gt_core::Timestamp;

use super::TransactionConnection;
use crate::StoreError;
use crate::copy::OnCopyProgress;

/// The facts that a database reports about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFacts {
    /// Its name.
    pub engine: &'static str,
    /// Its version.
    pub version: String,
    /// How many bytes everything of the store takes.
    pub bytes: u64,
    /// How many bytes its parts take, by name.
    pub parts: Vec<(&'static str, u64)>,
    /// How many bytes each table takes with its indexes, where the database keeps count of that.
    pub table_bytes: Vec<(String, u64)>,
    /// The settings of the database that decide about durability.
    pub settings: Vec<(&'static str, String)>,
}

/// A column whose values must be among those of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    pub(crate) table: String,
    pub(crate) column: String,
    pub(crate) parent: String,
    pub(crate) parent_column: String,
}

/// A connection whose database can be looked after. Everything here happens in a transaction that
/// reads.
pub(crate) trait Upkeep: TransactionConnection {
    /// The damage to the files and the indexes, in words.
    fn damage(&self) -> Result<Vec<String>, StoreError>;
    /// Settings that work but put data at risk, in words.
    fn warnings(&self) -> Result<Vec<String>, StoreError>;
    /// The names of the tables, views and indexes that are missing.
    fn missing(&self) -> Result<Vec<&'static str>, StoreError>;
    /// Which columns refer to which.
    fn references(&self) -> Result<Vec<ForeignKey>, StoreError>;
    /// The facts that the database reports about itself.
    fn facts(&self) -> Result<EngineFacts, StoreError>;
    /// Writes the state that the transaction sees to a store in the empty file `to`.
    fn copy_into(
        &self,
        to: &Path,
        now: Timestamp,
        progress: OnCopyProgress<'_>,
    ) -> Result<(), StoreError>;
}

/// One text of the first row of an answer.
pub(crate) fn text_of(link: &impl TransactionConnection, sql: &str) -> Result<String, StoreError> {
    Ok(texts_of(link, sql, &[])?.into_iter().next().unwrap_or_default())
}

/// The text in the first column of every row.
pub(crate) fn texts_of(
    link: &impl TransactionConnection,
    sql: &str,
    params: &[super::Param<'_>],
) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    link.query(sql, params, &mut |row| {
        found.push(row.text(0)?.to_owned());
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// One number of the first row of an answer.
pub(crate) fn number_of(
    link: &impl TransactionConnection,
    sql: &str,
    params: &[super::Param<'_>],
) -> Result<u64, StoreError> {
    let mut found = 0;
    link.query(sql, params, &mut |row| {
        found = u64::try_from(row.int(0)?).unwrap_or(0);
        Ok(std::ops::ControlFlow::Break(()))
    })?;
    Ok(found)
}
