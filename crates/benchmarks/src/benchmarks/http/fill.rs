//! Many items at once, as the product would have written them, by SQL that both engines understand but for how they count.

use std::path::Path;

use gt_core::Uid;
use rusqlite::{Connection, OpenFlags};

use crate::BenchmarkResult;
use crate::baseline;

/// How many items each agent of a filled store has.
pub(super) const OF_AGENT: u32 = 20;

/// The agent that the item with this number is for.
pub(super) fn agent_of(number: u32) -> String {
    format!("agent-{:07}", number / OF_AGENT)
}

/// Adds items; `$counted` makes the rows with `n`, the others say how the engines write what differs.
fn insert(counted: &str, uid: &str, padded: &str, agent: &str, at: i64) -> String {
    format!(
        "INSERT INTO beads (id, uid, rig, status, priority, issue_type, assignee, created_at, updated_at, ephemeral, \
         no_history, pinned, is_template, open_blockers, title, owner, created_by, close_reason, metadata, description, \
         design, acceptance_criteria, notes) {counted} SELECT 'wq-' || {padded}, {uid}, 'inbox', 'open', n % 5, 'deploy', \
         {agent}, {at} + n, {at} + n, 0, 0, 0, 0, 0, 'Retry the landing queue when the remote is slow', '', 'Bench Mark', \
         '', '{{\"branch\":\"main\",\"attempt\":1}}', '', '', '', '' FROM numbers"
    )
}

/// When they were made.
const AT: i64 = 1_790_000_000_000_000_000;

/// Fills a file. Every agent has so many of them, in all priorities.
pub(super) fn fill_file(database: &Path, items: u32) -> BenchmarkResult<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    baseline::set_product_pragmas(&connection)?;
    let counted = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})",
        items - 1
    );
    let agent = format!("printf('agent-%07d', n / {OF_AGENT})");
    // The same 16 bytes as `uid_of`.
    let uid = "CAST(printf('%016d', n) AS BLOB)";
    connection.execute_batch(&insert(&counted, uid, "printf('%09d', n)", &agent, AT))?;
    connection.execute_batch(&format!(
        "INSERT INTO prefixes (prefix, beads) VALUES ('wq', {items}) \
         ON CONFLICT (prefix) DO UPDATE SET beads = prefixes.beads + {items}; \
         PRAGMA wal_checkpoint(TRUNCATE); ANALYZE;"
    ))?;
    Ok(())
}

/// The alias of the item with this number in a filled file.
pub(super) fn uid_of(number: u32) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&format!("{number:016}").as_bytes()[..16]);
    Uid::from_bytes(bytes).to_string()
}

/// The statements that fill a database of a server with items that any agent may claim. Only filled
/// tables are analysed, as the product and the server itself would: a table that the statistics
/// call empty is read as a whole until the next analysis.
pub(super) fn fill_database(items: u32) -> String {
    let counted = format!(
        "WITH numbers AS (SELECT n::bigint AS n FROM generate_series(0, {}) AS n)",
        items - 1
    );
    let uid = "decode(lpad(to_hex(n), 32, '0'), 'hex')";
    let insert = insert(&counted, uid, "lpad(n::text, 9, '0')", "''", AT);
    format!(
        "SET search_path = gt; {insert}; INSERT INTO prefixes (prefix, beads) VALUES ('wq', {items}) \
         ON CONFLICT (prefix) DO UPDATE SET beads = prefixes.beads + {items}; ANALYZE beads"
    )
}
