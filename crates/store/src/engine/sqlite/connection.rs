//! A connection to an SQLite file.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, ToSql};

use super::file::APPLICATION_ID;
use crate::StoreError;
use crate::engine::{EachRow, Param, Row, Session};

/// What a connection may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only read; the file is not changed, not even by tidying up at the end.
    Read,
    /// Read and write.
    Write,
    /// Read and write, and make the file if it is not there.
    Create,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    inner: rusqlite::Connection,
    path: PathBuf,
}

/// Every statement of the verbs stays prepared.
const STATEMENTS_CACHED: usize = 256;
/// Only a program that is not ours makes us wait here; ours queue at the turnstile.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens the file at `path`.
pub(crate) fn open_connection(path: &Path, access: Access) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | match access {
            Access::Create => {
                OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_CREATE)
            }
            Access::Read | Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
    let inner = rusqlite::Connection::open_with_flags(path, flags)
        .map_err(|error| explain(path, "open the store", error))?;
    let connection = Connection {
        inner,
        path: path.to_owned(),
    };
    connection
        .configure(access)
        .map_err(|error| explain(path, "set up the store", error))?;
    Ok(connection)
}

/// Opens a store that lives as long as its connection.
pub(crate) fn memory_connection() -> Result<Connection, StoreError> {
    let path = PathBuf::from(":memory:");
    let inner = rusqlite::Connection::open_in_memory()
        .map_err(|error| explain(&path, "open the store", error))?;
    let connection = Connection { inner, path };
    connection
        .configure(Access::Create)
        .map_err(|error| explain(&connection.path, "set up the store", error))?;
    Ok(connection)
}

impl Connection {
    fn configure(&self, access: Access) -> rusqlite::Result<()> {
        let inner = &self.inner;
        inner.busy_timeout(BUSY_TIMEOUT)?;
        inner.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        // A command that ends must not pay for (or, when it only read, cause) a checkpoint.
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        if access == Access::Create {
            inner.pragma_update(None, "application_id", APPLICATION_ID)?;
            inner.pragma_update(None, "journal_mode", "wal")?;
        }
        inner.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;")?;
        if cfg!(target_os = "macos") {
            inner.execute_batch("PRAGMA fullfsync = ON;")?;
        }
        if access == Access::Read {
            inner.execute_batch("PRAGMA query_only = ON;")?;
        }
        Ok(())
    }

    /// Runs statements that take no parameters and give no rows.
    pub(crate) fn batch(&self, sql: &str, doing: &str) -> Result<(), StoreError> {
        self.inner
            .execute_batch(sql)
            .map_err(|error| self.explain(doing, error))
    }

    /// Copies the whole store, consistently, to a new file.
    pub(crate) fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let doing = "back up the store";
        let mut target =
            rusqlite::Connection::open(to).map_err(|error| explain(to, doing, error))?;
        let backup = rusqlite::backup::Backup::new(&self.inner, &mut target)
            .map_err(|error| explain(to, doing, error))?;
        backup
            .run_to_completion(1_000, Duration::ZERO, None)
            .map_err(|error| explain(to, doing, error))
    }

    fn explain(&self, doing: &str, error: rusqlite::Error) -> StoreError {
        explain(&self.path, doing, error)
    }
}

impl Session for Connection {
    fn query(&self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError> {
        let explain = |error| self.explain(&format!("run: {sql}"), error);
        let mut statement = self.inner.prepare_cached(sql).map_err(explain)?;
        let mut rows = statement
            .query(rusqlite::params_from_iter(params.iter()))
            .map_err(explain)?;
        while let Some(row) = rows.next().map_err(explain)? {
            if each(&SqliteRow(row))? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        let explain = |error| self.explain(&format!("run: {sql}"), error);
        let mut statement = self.inner.prepare_cached(sql).map_err(explain)?;
        let changed = statement
            .execute(rusqlite::params_from_iter(params.iter()))
            .map_err(explain)?;
        Ok(changed as u64)
    }

    fn prepare(&self, sql: &str) -> Result<(), StoreError> {
        self.inner
            .prepare(sql)
            .map(drop)
            .map_err(|error| self.explain(&format!("prepare: {sql}"), error))
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

struct SqliteRow<'r>(&'r rusqlite::Row<'r>);

impl SqliteRow<'_> {
    fn value(&self, column: usize) -> Result<ValueRef<'_>, StoreError> {
        self.0
            .get_ref(column)
            .map_err(|error| StoreError::Corrupt(format!("column {column}: {error}")))
    }
}

impl Row for SqliteRow<'_> {
    fn int_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => Ok(Some(number)),
            other => Err(unexpected(column, "a number", other)),
        }
    }

    fn text_or_null(&self, column: usize) -> Result<Option<&str>, StoreError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes)
                .map(Some)
                .map_err(|_| StoreError::Corrupt(format!("column {column} is not UTF-8"))),
            other => Err(unexpected(column, "text", other)),
        }
    }

    fn blob(&self, column: usize) -> Result<&[u8], StoreError> {
        match self.value(column)? {
            ValueRef::Blob(bytes) => Ok(bytes),
            other => Err(unexpected(column, "bytes", other)),
        }
    }
}

fn unexpected(column: usize, wanted: &str, found: ValueRef<'_>) -> StoreError {
    StoreError::Corrupt(format!(
        "column {column} should hold {wanted}, not {}",
        found.data_type()
    ))
}

/// Turns SQLite's error into one that says what a person can do.
fn explain(path: &Path, doing: &str, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked,
        Some(ErrorCode::DiskFull) => StoreError::Full,
        // A file that may not grow any further reports an I/O error when it is written.
        Some(ErrorCode::SystemIoFailure) if is_write_error(&error) => StoreError::Full,
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::ReadOnly(path.to_owned())
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged(path.to_owned())
        }
        _ => StoreError::Engine {
            doing: doing.to_owned(),
            source: Box::new(error),
        },
    }
}

fn is_write_error(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|inner| inner.extended_code);
    code == Some(rusqlite::ffi::SQLITE_IOERR_WRITE)
        || code == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
        || code == Some(rusqlite::ffi::SQLITE_IOERR_FSYNC)
        || code == Some(rusqlite::ffi::SQLITE_IOERR_TRUNCATE)
}
