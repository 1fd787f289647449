//! The rows of an SQLite store, copied into an empty one on a server.

use std::fmt::Write as _;
use std::path::Path;
use std::pin::pin;

use futures_util::SinkExt;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use tokio_postgres::NoTls;

use crate::BenchmarkResult;

/// The tables that an import fills, those that others refer to first.
const TABLES: [&str; 6] = ["prefixes", "beads", "labels", "dependencies", "comments", "events"];
/// Rows are sent when they have become so many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Copies everything; as after an import, the server knows how the rows are distributed.
pub(crate) fn copy_to_server(from: &Path, url: &str) -> BenchmarkResult<()> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute("SET search_path = gt; SET session_replication_role = replica").await?;
        for table in TABLES {
            copy_table(&source, &client, table).await?;
        }
        client
            .batch_execute(
                "UPDATE counters SET value = (SELECT MAX(number) FROM events) WHERE name = 'event'; \
                 ANALYZE",
            )
            .await?;
        Ok(())
    })
}

async fn copy_table(
    source: &Connection,
    client: &tokio_postgres::Client,
    table: &str,
) -> BenchmarkResult<()> {
    let columns = source
        .prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0")?
        .query_map([table], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?
        .join(", ");
    let sink = client.copy_in(&format!("COPY {table} ({columns}) FROM STDIN")).await?;
    let mut sink = pin!(sink);
    let mut statement = source.prepare(&format!("SELECT {columns} FROM {table}"))?;
    let width = statement.column_count();
    let mut rows = statement.query([])?;
    let mut piece = String::new();
    while let Some(row) = rows.next()? {
        for column in 0..width {
            if column > 0 {
                piece.push('\t');
            }
            push_value(&mut piece, row.get_ref(column)?)?;
        }
        piece.push('\n');
        if piece.len() >= PIECE_BYTES {
            sink.send(bytes::Bytes::from(std::mem::take(&mut piece))).await?;
        }
    }
    sink.send(bytes::Bytes::from(piece)).await?;
    sink.close().await?;
    Ok(())
}

/// A value as `COPY` reads it.
fn push_value(out: &mut String, value: ValueRef<'_>) -> BenchmarkResult<()> {
    match value {
        ValueRef::Null => out.push_str("\\N"),
        ValueRef::Integer(number) => out.push_str(&number.to_string()),
        ValueRef::Real(_) => return Err("no column holds fractions".into()),
        ValueRef::Text(text) => {
            for c in std::str::from_utf8(text)?.chars() {
                match c {
                    '\\' => out.push_str("\\\\"),
                    '\t' => out.push_str("\\t"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    other => out.push(other),
                }
            }
        }
        ValueRef::Blob(bytes) => {
            out.push_str("\\\\x");
            for byte in bytes {
                write!(out, "{byte:02x}")?;
            }
        }
    }
    Ok(())
}
