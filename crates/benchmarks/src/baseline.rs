//! The cost of the same rows with SQLite alone.

use std::path::Path;
use std::time::Instant;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params, params_from_iter};

use crate::BenchmarkResult;

/// The tables and indexes of the product itself.
const SCHEMA: &str = include_str!("../../store/migrations/sqlite/0001_foundation.sql");
/// The step that gave beads more indexes.
const MORE_INDEXES: &str = include_str!("../../store/migrations/sqlite/0006_work.sql");

/// Adds a bead with every column the product fills in.
pub(crate) const INSERT_BEAD: &str = "INSERT INTO beads (id, uid, rig, status, outcome, priority, issue_type, \
    assignee, created_at, updated_at, started_at, closed_at, due_at, defer_until, ephemeral, \
    no_history, pinned, is_template, estimated_minutes, title, owner, created_by, close_reason, \
    external_ref, metadata, description, design, acceptance_criteria, notes, carried, \
    open_blockers) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
    ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, 0)";
/// Adds the event of it.
pub(crate) const INSERT_EVENT: &str = "INSERT INTO events (number, at, type, bead, rig, run, actor, payload) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
/// Counts a bead of a prefix.
pub(crate) const COUNT_PREFIX: &str = "INSERT INTO prefixes (prefix, beads) VALUES (?1, 1) \
    ON CONFLICT (prefix) DO UPDATE SET beads = prefixes.beads + 1";
/// Remembers the last event.
pub(crate) const COUNT_EVENTS: &str = "UPDATE counters SET value = ?1 WHERE name = 'event'";

/// The title of every created bead.
pub(crate) const TITLE: &str = "Retry the landing queue when the remote is slow";
/// The creator, as in the configuration of the lab.
pub(crate) const CREATOR: &str = "Bench Mark";
/// The e-mail address of the creator.
pub(crate) const OWNER: &str = "bench@example.com";
/// The payload of the event of a creation.
pub(crate) const PAYLOAD: &str = r#"{"title":"Retry the landing queue when the remote is slow","issue_type":"task","status":"open","priority":2}"#;

/// A new database with the product's tables.
pub(crate) fn create(path: &Path) -> BenchmarkResult<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    set_product_pragmas(&connection)?;
    connection.execute_batch(SCHEMA)?;
    let plain: Vec<&str> = MORE_INDEXES.lines().filter(|line| !line.starts_with("--")).collect();
    for statement in plain.join("\n").split_inclusive(';') {
        if ["TABLE beads", "ON beads"].iter().any(|part| statement.contains(part)) {
            connection.execute_batch(statement)?;
        }
    }
    Ok(connection)
}

/// The settings of the product's connections that write. It folds the log into the file when a writer
/// that stays has piled up 32 MiB of it.
pub(crate) fn set_product_pragmas(connection: &Connection) -> BenchmarkResult<()> {
    connection.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA cache_size = -32000; \
         PRAGMA wal_autocheckpoint = 8192;",
    )?;
    Ok(())
}

/// Adds one bead to an open transaction.
pub(crate) fn insert_bead(transaction: &Transaction<'_>, id: &str, at: i64) -> BenchmarkResult<()> {
    let mut uid = [0_u8; 16];
    for (byte, letter) in uid.iter_mut().rev().zip(id.bytes()) {
        *byte = letter;
    }
    let none = None::<&str>;
    transaction.prepare_cached(INSERT_BEAD)?.execute(params![
        id, uid, none, "open", none, 2, "task", "", at, at, none, none, none, none, 0, 0, 0, 0,
        none, TITLE, OWNER, CREATOR, "", none, none, "", "", "", "", none,
    ])?;
    Ok(())
}

/// The whole of `gt-benchmarks baseline-commit`: opens the database, adds one bead, and closes it.
pub(crate) fn commit_one(database: &Path, id: &str) -> BenchmarkResult<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(database, flags)?;
    set_product_pragmas(&connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    insert_bead(&transaction, id, 1_790_000_000_123_456_789)?;
    transaction.commit()?;
    Ok(())
}

/// A table read into memory, and how to write it again.
struct BaselineTable {
    insert: String,
    rows: Vec<Vec<Value>>,
}

impl BaselineTable {
    /// Reads all rows; columns that derive from others are left out.
    fn read(connection: &Connection, name: &str, order: &str) -> BenchmarkResult<Self> {
        let columns = connection
            .prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0")?
            .query_map([name], |row| row.get::<_, String>(0))?
            .collect::<rusqlite::Result<Vec<String>>>()?
            .join(", ");
        let mut statement =
            connection.prepare(&format!("SELECT {columns} FROM {name} ORDER BY {order}"))?;
        let width = statement.column_count();
        let rows = statement
            .query_map([], |row| (0..width).map(|column| row.get(column)).collect())?
            .collect::<rusqlite::Result<_>>()?;
        let marks = vec!["?"; width].join(", ");
        let insert = format!("INSERT INTO {name} ({columns}) VALUES ({marks})");
        Ok(Self { insert, rows })
    }

    fn write(&self, transaction: &Transaction<'_>) -> BenchmarkResult<()> {
        let mut statement = transaction.prepare(&self.insert)?;
        for row in &self.rows {
            statement.execute(params_from_iter(row))?;
        }
        Ok(())
    }
}

/// The whole of `gt-benchmarks baseline-copy`: the rows of one database, in the order in which they
/// were made, are read into memory and then written to a new one in one transaction. Prints how many
/// nanoseconds the writing took.
pub(crate) fn copy_all(from: &Path, to: &Path) -> BenchmarkResult<()> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // Beads have row numbers in the order of their creation; events as well.
    let made = |column: &str| format!("(SELECT rowid FROM beads WHERE id = {column})");
    let tables = [
        BaselineTable::read(&source, "beads", "rowid")?,
        BaselineTable::read(&source, "labels", &format!("{}, position", made("bead")))?,
        BaselineTable::read(&source, "comments", &made("bead"))?,
        BaselineTable::read(&source, "dependencies", &made("issue_id"))?,
        BaselineTable::read(&source, "prefixes", "prefix")?,
        BaselineTable::read(&source, "events", "number")?,
    ];
    drop(source);
    let mut target = create(to)?;
    let start = Instant::now();
    let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for table in &tables {
        table.write(&transaction)?;
    }
    transaction.execute(COUNT_EVENTS, [i64::try_from(tables[5].rows.len())?])?;
    transaction.commit()?;
    drop(target);
    println!("{}", start.elapsed().as_nanos());
    Ok(())
}
