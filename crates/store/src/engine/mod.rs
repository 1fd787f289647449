//! The seam between the verbs and a database.

mod notice;
mod pool;
pub mod postgres;
pub(crate) mod schema;
pub mod sqlite;
mod upkeep;

use std::fmt;
use std::ops::ControlFlow;

pub use notice::LongWaitCallback;
pub(crate) use notice::WAIT_NOTICE_AFTER;
pub(crate) use pool::Pool;
pub(crate) use schema::{LEVEL, Migration};
pub use upkeep::EngineFacts;
pub(crate) use upkeep::{ForeignKey, Upkeep};

use crate::StoreError;

/// A value bound to `?1`, `?2`, … of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param<'a> {
    /// NULL.
    Null,
    /// A number, flag or instant.
    Int(i64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

impl From<i64> for Param<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Param<'_> {
    fn from(flag: bool) -> Self {
        Self::Int(i64::from(flag))
    }
}

impl From<gt_core::Timestamp> for Param<'_> {
    fn from(instant: gt_core::Timestamp) -> Self {
        Self::Int(instant.as_nanos())
    }
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a gt_core::BeadId> for Param<'a> {
    fn from(id: &'a gt_core::BeadId) -> Self {
        Self::Text(id.as_str())
    }
}

impl<T: Into<Self>> From<Option<T>> for Param<'_> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// One row of an answer, read by column number.
pub trait Row {
    /// A number, or nothing for NULL.
    fn int_or_null(&self, column: usize) -> Result<Option<i64>, StoreError>;
    /// Text, or nothing for NULL.
    fn text_or_null(&self, column: usize) -> Result<Option<&str>, StoreError>;
    /// Bytes, or nothing for NULL.
    fn blob_or_null(&self, column: usize) -> Result<Option<&[u8]>, StoreError>;

    /// Bytes.
    fn blob(&self, column: usize) -> Result<&[u8], StoreError> {
        self.blob_or_null(column)?
            .ok_or_else(|| StoreError::Corrupt(format!("column {column} is empty")))
    }

    /// A number.
    fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.int_or_null(column)?
            .ok_or_else(|| StoreError::Corrupt(format!("column {column} is empty")))
    }

    /// Text.
    fn text(&self, column: usize) -> Result<&str, StoreError> {
        self.text_or_null(column)?
            .ok_or_else(|| StoreError::Corrupt(format!("column {column} is empty")))
    }

    /// A flag.
    fn flag(&self, column: usize) -> Result<bool, StoreError> {
        Ok(self.int(column)? != 0)
    }
}

/// The answer to a query that a caller wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryTable {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, with a value for each column.
    pub rows: Vec<Vec<QueryValue>>,
}

/// A value in the answer to a query that a caller wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryValue {
    /// NULL.
    Null,
    /// A number as JSON writes it.
    Number(String),
    /// Text.
    Text(String),
}

/// The places where the SQL of the engines differs.
#[derive(Debug, Clone, Copy)]
pub struct SqlDialect<'a> {
    /// The schema of our tables.
    pub schema: &'a str,
    /// The expression for the instant in a column as date and time in UTC.
    pub date_time: fn(column: &str) -> String,
}

/// The function that gets a statement's rows; it may stop early.
pub type EachRow<'f> = &'f mut dyn FnMut(&dyn Row) -> Result<ControlFlow<()>, StoreError>;

/// A connection in the middle of a transaction.
pub trait SqlSession {
    /// Runs a query whose answer fits in memory. `each` may run others while it is being handed rows.
    fn query(&self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError>;
    /// Like [`SqlSession::query`], for answers that may be as large as the store: rows come as they are
    /// asked for.
    fn stream(&self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError>;
    /// Runs a statement and says how many rows it changed.
    fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError>;
    /// Runs a statement whose answer is not needed. It may be sent later, together with the next one;
    /// if it fails, the next statement does.
    fn apply(&self, sql: &str, params: &[Param<'_>]) -> Result<(), StoreError>;
    /// Runs one query that a caller wrote, in a transaction that only reads.
    fn answer(&self, sql: &str) -> Result<QueryTable, StoreError>;
    /// The places where the SQL of this engine differs.
    fn dialect(&self) -> SqlDialect<'_>;
    /// Only prepares a statement, to see whether the engine understands it.
    fn prepare(&self, sql: &str) -> Result<(), StoreError>;
    /// When this transaction began by the clock of the database, if leases are counted by that.
    fn clock(&self) -> Option<gt_core::Timestamp> {
        None
    }
    /// Looks again at how the rows are distributed, after very many came.
    fn refresh_statistics(&self) -> Result<(), StoreError>;
}

/// A connection that can carry a transaction.
pub(crate) trait TransactionConnection: SqlSession + fmt::Debug + Send {
    /// Begins a transaction that sees one state of the store and changes nothing.
    fn begin_reading(&self) -> Result<(), StoreError>;
    /// Begins the one transaction that may write now; waits for its turn.
    fn begin_writing(&self) -> Result<(), StoreError>;
    /// Makes everything durable. `news` is the number of the last event, if there is a new one.
    fn commit(&self, news: Option<i64>) -> Result<(), StoreError>;
    /// Gives everything up.
    fn roll_back(&self) -> Result<(), StoreError>;
    /// Marks where [`TransactionConnection::undo_to_savepoint`] goes back to.
    fn set_savepoint(&self) -> Result<(), StoreError>;
    /// Rolls back to the savepoint, and releases it.
    fn undo_to_savepoint(&self) -> Result<(), StoreError>;
    /// Forgets the savepoint.
    fn release_savepoint(&self) -> Result<(), StoreError>;
    /// Whether a transaction is under way that can still be committed. Databases end one by
    /// themselves when they cannot write.
    fn in_transaction(&self) -> bool;
    /// Makes the database refuse all later writes to these tables for `reason`, also those of processes that have it
    /// open already and of older programs.
    fn raise_fence(&self, tables: &[&str], reason: &str) -> Result<(), StoreError>;
    /// Lets writes in again. Without a fence, nothing happens.
    fn lower_fence(&self, tables: &[&str]) -> Result<(), StoreError>;
}
