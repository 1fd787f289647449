//! A connection to an SQLite file.

use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_core::Timestamp;
use gt_core::hexadecimal::digits_of;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, ToSql};

use super::file::APPLICATION_ID;
use super::foreign_writer::foreign_writer;
use crate::copy::OnCopyProgress;
use crate::engine::{
    EachRow, LongWaitCallback, Param, QueryTable, QueryValue, Row, SqlDialect, SqlSession,
    TransactionConnection, WAIT_NOTICE_AFTER,
};
use crate::{LeaseClock, StoreError};

/// The rights of a connection.
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
pub(crate) struct SqliteConnection {
    inner: rusqlite::Connection,
    path: PathBuf,
    may_write: bool,
    clock: LeaseClock,
}

/// Every statement of the verbs stays prepared.
const STATEMENTS_CACHED: usize = 256;
/// Only a program that is not ours makes us wait here; ours wait in turn for the write lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest wait that SQLite can be told, or nearly.
const BUSY_TIMEOUT_MAX: Duration = Duration::from_hours(500);

/// The beginning of what a fence says.
const FENCED: &str = "gt fence: ";

/// How much of a backup is copied between two reports.
const PAGES_PER_STEP: i32 = 1_000;
const BACKUP_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Opens the file at `path`.
pub(crate) fn open_connection(path: &Path, access: Access) -> Result<SqliteConnection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | match access {
            Access::Create => {
                OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_CREATE)
            }
            Access::Read | Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
    if access == Access::Create {
        // SQLite would let others read it; it gives its own files the permissions of this one. If it cannot be made, SQLite
        // says why.
        let mut options = std::fs::File::options();
        let _ = options.write(true).create(true).truncate(false).mode(0o600).open(path);
    }
    let inner = rusqlite::Connection::open_with_flags(path, flags)
        .map_err(|error| explain(path, "open the store", error))?;
    let connection = SqliteConnection {
        inner,
        path: path.to_owned(),
        may_write: access != Access::Read,
        clock: LeaseClock::Store,
    };
    connection.configure(access).map_err(|error| explain(path, "set up the store", error))?;
    Ok(connection)
}

/// Opens a store that lives as long as its connection.
pub(crate) fn memory_connection(clock: LeaseClock) -> Result<SqliteConnection, StoreError> {
    let path = PathBuf::from(":memory:");
    let inner = rusqlite::Connection::open_in_memory()
        .map_err(|error| explain(&path, "open the store", error))?;
    let connection = SqliteConnection { inner, path, may_write: true, clock };
    connection
        .configure(Access::Create)
        .map_err(|error| explain(&connection.path, "set up the store", error))?;
    Ok(connection)
}

impl SqliteConnection {
    fn configure(&self, access: Access) -> rusqlite::Result<()> {
        let inner = &self.inner;
        inner.busy_timeout(BUSY_TIMEOUT)?;
        inner.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        // A command that ends must not pay for (or, when it only read, cause) a checkpoint.
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Otherwise every new value may mean a new plan where an index is partial, and prepared statements are
        // prepared again and again.
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        if access == Access::Create {
            inner.pragma_update(None, "application_id", APPLICATION_ID)?;
            inner.pragma_update(None, "journal_mode", "wal")?;
        }
        inner.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;")?;
        match access {
            Access::Read => inner.execute_batch("PRAGMA query_only = ON;"),
            Access::Write | Access::Create => self.allow_writing(),
        }
    }

    fn allow_writing(&self) -> rusqlite::Result<()> {
        self.inner.execute_batch(
            // The store decides when the log is folded into the file; see `shorten_log`. A large
            // import touches every page of every index again and again. Each job of a group can be
            // undone, and its journal is faster in memory than in a file.
            "PRAGMA query_only = OFF; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -32000; \
             PRAGMA temp_store = MEMORY;",
        )
    }

    /// Turns a connection for reading into one for writing, which is cheaper than to open another.
    pub(crate) fn into_writer(mut self) -> Result<Self, StoreError> {
        if !self.may_write {
            self.allow_writing().map_err(|error| self.explain("set up the store", error))?;
            self.may_write = true;
        }
        Ok(self)
    }

    /// Runs statements that take no parameters and give no rows.
    pub(crate) fn batch(&self, sql: &str, doing: &str) -> Result<(), StoreError> {
        self.inner.execute_batch(sql).map_err(|error| self.explain(doing, error))
    }

    /// Folds the log into the file if it is longer than `bytes_max` and no process reads it right now.
    ///
    /// The first process that opens the store reads the whole log, so short commands want it short,
    /// while a busy writer wants to fold rarely. A commit is durable either way.
    pub(crate) fn shorten_log(&self, bytes_max: u64) {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let bytes = std::fs::metadata(log).map_or(0, |about| about.len());
        if bytes > bytes_max {
            let fold = |_: &rusqlite::Row<'_>| Ok(());
            // Waiting for a reader to end would make this write pay for it; the next one tries again.
            let _ = self.inner.busy_timeout(Duration::ZERO);
            let _ = self.inner.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], fold);
            let _ = self.inner.busy_timeout(BUSY_TIMEOUT);
        }
    }

    /// Begins a transaction that writes. Another program may hold the store: if that takes long, `notice` is called once, and
    /// `limit` says for how long to wait altogether; nothing is without limit.
    pub(crate) fn begin_writing_within(
        &self,
        notice: Option<&LongWaitCallback>,
        limit: &dyn Fn() -> Option<Duration>,
    ) -> Result<(), StoreError> {
        let wait_for = |time: Duration| {
            let set = self.inner.busy_timeout(time.min(BUSY_TIMEOUT_MAX));
            set.map_err(|error| self.explain("wait for the store", error))
        };
        wait_for(WAIT_NOTICE_AFTER)?;
        let begun = match self.begin_writing() {
            Err(StoreError::Locked(holder)) => {
                if let Some(notice) = notice {
                    notice(holder.as_deref());
                }
                wait_for(
                    limit()
                        .map_or(BUSY_TIMEOUT_MAX, |limit| limit.saturating_sub(WAIT_NOTICE_AFTER)),
                )?;
                self.begin_writing()
            }
            begun => begun,
        };
        wait_for(BUSY_TIMEOUT)?;
        begun
    }

    /// Copies the whole store to the empty file `to`, page by page. Inside a transaction it copies the
    /// state that this sees, even if others write meanwhile; outside of one it begins again when
    /// another process writes.
    pub(crate) fn backup(&self, to: &Path, progress: OnCopyProgress<'_>) -> Result<(), StoreError> {
        let doing = "back up the store";
        let mut target =
            rusqlite::Connection::open(to).map_err(|error| explain(to, doing, error))?;
        // The caller makes the copy durable when it is whole, or deletes it.
        target
            .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
            .map_err(|error| explain(to, doing, error))?;
        let backup =
            Backup::new(&self.inner, &mut target).map_err(|error| explain(to, doing, error))?;
        loop {
            let step = backup.step(PAGES_PER_STEP).map_err(|error| explain(to, doing, error))?;
            let pages = backup.progress();
            let pages_done = pages.pagecount - pages.remaining;
            let count = |pages: i32| u64::try_from(pages).unwrap_or(0);
            progress(count(pages_done), count(pages.pagecount));
            match step {
                StepResult::Done => return Ok(()),
                StepResult::More => {}
                // Another program; it gets some time.
                _ => std::thread::sleep(BACKUP_RETRY_INTERVAL),
            }
        }
    }

    /// Writes the whole file anew, without the free pages.
    pub(crate) fn vacuum(&self) -> Result<(), StoreError> {
        // The new file is made aside first, and may not fit in memory.
        let done = self.batch("PRAGMA temp_store = FILE; VACUUM;", "rewrite the store");
        self.allow_writing().map_err(|error| self.explain("set up the store", error))?;
        done
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn explain(&self, doing: &str, error: rusqlite::Error) -> StoreError {
        explain(&self.path, doing, error)
    }

    /// Why a query that a caller wrote has no answer.
    fn query_failure(&self, error: rusqlite::Error) -> StoreError {
        let said = match &error {
            rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
            other => other.to_string(),
        };
        match self.explain("run the query", error) {
            StoreError::Engine { .. } => StoreError::Query(said),
            other => other,
        }
    }
}

impl SqlSession for SqliteConnection {
    fn query(&self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError> {
        let explain = |error| self.explain(&format!("run: {sql}"), error);
        let mut statement = self.inner.prepare_cached(sql).map_err(explain)?;
        let mut rows =
            statement.query(rusqlite::params_from_iter(params.iter())).map_err(explain)?;
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
        let changed =
            statement.execute(rusqlite::params_from_iter(params.iter())).map_err(explain)?;
        Ok(changed as u64)
    }

    fn stream(&self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError> {
        self.query(sql, params, each)
    }

    fn apply(&self, sql: &str, params: &[Param<'_>]) -> Result<(), StoreError> {
        self.execute(sql, params).map(drop)
    }

    fn answer(&self, sql: &str) -> Result<QueryTable, StoreError> {
        let mut statement = self.inner.prepare(sql).map_err(|error| self.query_failure(error))?;
        if !statement.readonly() {
            return Err(StoreError::Query("it changes the store".to_owned()));
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut found = QueryTable { columns, rows: Vec::new() };
        let mut rows = statement.query([]).map_err(|error| self.query_failure(error))?;
        while let Some(row) = rows.next().map_err(|error| self.query_failure(error))? {
            let value = |column| SqliteRow(row).value(column).map(answered);
            let values: Result<Vec<_>, _> = (0..found.columns.len()).map(value).collect();
            found.rows.push(values?);
        }
        Ok(found)
    }

    fn dialect(&self) -> SqlDialect<'_> {
        let date_time = |column: &str| format!("datetime({column} / 1000000000, 'unixepoch')");
        SqlDialect { schema: "main", date_time }
    }

    fn prepare(&self, sql: &str) -> Result<(), StoreError> {
        self.inner
            .prepare_cached(sql)
            .map(drop)
            .map_err(|error| self.explain(&format!("prepare: {sql}"), error))
    }

    fn clock(&self) -> Option<Timestamp> {
        match &self.clock {
            LeaseClock::Caller | LeaseClock::Store => None,
            LeaseClock::Simulated(clock) => Some(clock()),
        }
    }

    fn refresh_statistics(&self) -> Result<(), StoreError> {
        // The indexes are chosen so that SQLite needs no statistics.
        Ok(())
    }
}

impl TransactionConnection for SqliteConnection {
    fn begin_reading(&self) -> Result<(), StoreError> {
        self.apply("BEGIN", &[])
    }

    fn begin_writing(&self) -> Result<(), StoreError> {
        self.apply("BEGIN IMMEDIATE", &[])
    }

    fn commit(&self, _news: Option<i64>) -> Result<(), StoreError> {
        self.apply("COMMIT", &[])
    }

    fn roll_back(&self) -> Result<(), StoreError> {
        self.apply("ROLLBACK", &[])
    }

    fn set_savepoint(&self) -> Result<(), StoreError> {
        self.apply("SAVEPOINT job", &[])
    }

    fn undo_to_savepoint(&self) -> Result<(), StoreError> {
        self.apply("ROLLBACK TO job", &[])?;
        self.release_savepoint()
    }

    fn release_savepoint(&self) -> Result<(), StoreError> {
        self.apply("RELEASE job", &[])
    }

    fn in_transaction(&self) -> bool {
        !self.inner.is_autocommit()
    }

    fn raise_fence(&self, tables: &[&str], reason: &str) -> Result<(), StoreError> {
        let reason = format!("{FENCED}{reason}").replace('\'', "''");
        for (table, deed) in fenced(tables) {
            let sql = format!(
                "CREATE TRIGGER fence_{table}_{deed} BEFORE {deed} ON {table} \
                 BEGIN SELECT RAISE(ABORT, '{reason}'); END"
            );
            self.batch(&sql, "close the store to writers")?;
        }
        Ok(())
    }

    fn lower_fence(&self, tables: &[&str]) -> Result<(), StoreError> {
        for (table, deed) in fenced(tables) {
            let sql = format!("DROP TRIGGER IF EXISTS fence_{table}_{deed}");
            self.batch(&sql, "open the store to writers")?;
        }
        Ok(())
    }
}

/// Each deed on each table; a trigger of SQLite is for one of both.
fn fenced<'t>(tables: &'t [&'t str]) -> impl Iterator<Item = (&'t str, &'static str)> {
    let deeds = ["INSERT", "UPDATE", "DELETE"];
    tables.iter().flat_map(move |table| deeds.map(|deed| (*table, deed)))
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

    fn blob_or_null(&self, column: usize) -> Result<Option<&[u8]>, StoreError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(bytes) => Ok(Some(bytes)),
            other => Err(unexpected(column, "bytes", other)),
        }
    }
}

/// A value as a caller reads it: bytes in hexadecimal digits.
fn answered(value: ValueRef<'_>) -> QueryValue {
    match value {
        ValueRef::Null => QueryValue::Null,
        ValueRef::Integer(number) => QueryValue::Number(number.to_string()),
        ValueRef::Real(number) if number.is_finite() => QueryValue::Number(number.to_string()),
        ValueRef::Real(number) => QueryValue::Text(number.to_string()),
        ValueRef::Text(bytes) => QueryValue::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => QueryValue::Text(digits_of(bytes)),
    }
}

fn unexpected(column: usize, wanted: &str, found: ValueRef<'_>) -> StoreError {
    StoreError::Corrupt(format!("column {column} should hold {wanted}, not {}", found.data_type()))
}

/// Turns SQLite's error into one that tells a person how to proceed.
fn explain(path: &Path, doing: &str, error: rusqlite::Error) -> StoreError {
    if let rusqlite::Error::SqliteFailure(_, Some(said)) = &error
        && let Some(reason) = said.strip_prefix(FENCED)
    {
        return StoreError::Fenced(reason.to_owned());
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Locked(foreign_writer(path))
        }
        Some(ErrorCode::DiskFull) => StoreError::Full,
        // A file that may not grow any further reports an I/O error when it is written.
        Some(ErrorCode::SystemIoFailure) if is_write_error(&error) => StoreError::Full,
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::ReadOnly(path.to_owned())
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged(path.to_owned())
        }
        _ => StoreError::Engine { doing: doing.to_owned(), source: Box::new(error) },
    }
}

fn is_write_error(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|inner| inner.extended_code);
    code == Some(rusqlite::ffi::SQLITE_IOERR_WRITE)
        || code == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
        || code == Some(rusqlite::ffi::SQLITE_IOERR_FSYNC)
        || code == Some(rusqlite::ffi::SQLITE_IOERR_TRUNCATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_in(connection: &SqliteConnection) -> i64 {
        let mut count = 0;
        connection
            .query("SELECT COUNT(*) FROM things", &[], &mut |row| {
                count = row.int(0)?;
                Ok(ControlFlow::Break(()))
            })
            .unwrap();
        count
    }

    #[test]
    fn a_connection_for_reading_cannot_write() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gt.db");
        let writing = open_connection(&path, Access::Create).unwrap();
        writing.batch("CREATE TABLE things (n INTEGER)", "test").unwrap();
        let before = std::fs::read(&path).unwrap();

        let reading = open_connection(&path, Access::Read).unwrap();
        for sql in [
            "INSERT INTO things VALUES (1)",
            "DELETE FROM things",
            "CREATE TABLE more (n INTEGER)",
            "PRAGMA user_version = 7",
        ] {
            let refused = reading.batch(sql, "test");
            assert!(matches!(refused, Err(StoreError::ReadOnly(_))), "{sql}: {refused:?}");
        }

        assert_eq!(rows_in(&reading), 0);
        drop(reading);
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_connection_never_makes_a_file_unless_told_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gt.db");
        for access in [Access::Read, Access::Write] {
            assert!(open_connection(&path, access).is_err());
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_commit_is_on_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gt.db");
        drop(open_connection(&path, Access::Create).unwrap());
        for access in [Access::Read, Access::Write] {
            let connection = open_connection(&path, access).unwrap();
            for (pragma, expected) in
                [("synchronous", "2"), ("journal_mode", "wal"), ("foreign_keys", "1")]
            {
                let sql = format!("SELECT CAST({pragma} AS TEXT) FROM pragma_{pragma}");
                let mut value = String::new();
                connection
                    .query(&sql, &[], &mut |row| {
                        value.push_str(row.text(0)?);
                        Ok(ControlFlow::Break(()))
                    })
                    .unwrap();
                assert_eq!(value, expected, "{pragma} {access:?}");
            }
        }
    }
}
