//! Migration of a database schema to the level of this program.

use std::ops::ControlFlow;
use std::sync::Arc;

use gt_core::Timestamp;

use super::address::PostgresAddress;
use super::connection::PostgresConnection;
use crate::StoreError;
use crate::engine::schema::POSTGRES;
use crate::engine::{LEVEL, SqlSession, TransactionConnection};

const LEDGER: &str = "CREATE TABLE migrations (
    version BIGINT PRIMARY KEY NOT NULL, serves BIGINT NOT NULL, applied_at BIGINT NOT NULL
)";

/// The contents of the schema.
#[derive(Debug, PartialEq, Eq)]
enum SchemaContent {
    Nothing,
    Ours,
    Foreign,
}

/// Applies the missing migrations. Everything happens in one transaction that holds the town's lock, so of
/// several processes at once one does it and the others find it done.
pub(crate) fn create(
    connection: &PostgresConnection,
    server: &Arc<PostgresAddress>,
    now: Timestamp,
) -> Result<(), StoreError> {
    connection.begin_writing()?;
    let made = bring_up_to_date(connection, server, now);
    match made {
        Ok(()) => connection.commit(None),
        Err(error) => {
            connection.roll_back()?;
            Err(error)
        }
    }
}

fn bring_up_to_date(
    connection: &PostgresConnection,
    server: &Arc<PostgresAddress>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let doing = "set up the store";
    let found = match content(connection, server)? {
        SchemaContent::Ours => read_level(connection, server)?,
        SchemaContent::Foreign => return Err(foreign(server)),
        SchemaContent::Nothing => {
            // Asked first, because a user who may not make a schema may still use one that is there.
            let there = "SELECT 1 FROM pg_namespace WHERE nspname = ?1";
            if !exists(connection, there, &server.schema)? {
                connection.batch(&format!("CREATE SCHEMA {}", server.schema), doing)?;
            }
            connection.batch(LEDGER, doing)?;
            (0, 0)
        }
    };
    refuse_newer(server, found)?;
    for step in POSTGRES.iter().filter(|step| step.version > found.0) {
        connection.batch(step.sql, &format!("bring the store to schema {}", step.version))?;
        connection.apply(
            "INSERT INTO migrations (version, serves, applied_at) VALUES (?1, ?2, ?3)",
            &[step.version.into(), step.serves.into(), now.into()],
        )?;
    }
    Ok(())
}

/// The schema of the store; nothing if there is none.
pub(crate) fn level(
    connection: &PostgresConnection,
    server: &Arc<PostgresAddress>,
) -> Result<Option<i64>, StoreError> {
    connection.begin_reading()?;
    let found = (|| match content(connection, server)? {
        SchemaContent::Nothing => Ok(None),
        SchemaContent::Foreign => Err(foreign(server)),
        SchemaContent::Ours => {
            let found = read_level(connection, server)?;
            refuse_newer(server, found)?;
            Ok(Some(found.0))
        }
    })();
    connection.roll_back()?;
    found
}

fn content(
    connection: &PostgresConnection,
    server: &PostgresAddress,
) -> Result<SchemaContent, StoreError> {
    let ledger = "SELECT 1 FROM pg_tables WHERE schemaname = ?1 AND tablename = 'migrations' \
        AND EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = ?1 AND tablename = 'beads')";
    if exists(connection, ledger, &server.schema)? {
        return Ok(SchemaContent::Ours);
    }
    let any = "SELECT 1 FROM pg_tables WHERE schemaname = ?1 LIMIT 1";
    let any = exists(connection, any, &server.schema)?;
    Ok(if any { SchemaContent::Foreign } else { SchemaContent::Nothing })
}

fn exists(connection: &PostgresConnection, sql: &str, schema: &str) -> Result<bool, StoreError> {
    let mut found = false;
    connection.query(sql, &[schema.into()], &mut |_| {
        found = true;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

fn read_level(
    connection: &PostgresConnection,
    server: &PostgresAddress,
) -> Result<(i64, i64), StoreError> {
    let mut level = (0, 0);
    // Named in full: a schema that one may not use is passed over when a table is looked for.
    let sql = format!(
        "SELECT COALESCE(MAX(version), 0), COALESCE(MAX(serves), 0) FROM {}.migrations",
        server.schema
    );
    connection.query(&sql, &[], &mut |row| {
        level = (row.int(0)?, row.int(1)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(level)
}

fn refuse_newer(server: &PostgresAddress, (found, needed): (i64, i64)) -> Result<(), StoreError> {
    if needed > LEVEL {
        let place = server.shown().to_owned();
        return Err(StoreError::TooNew { place, found, needed, known: LEVEL });
    }
    Ok(())
}

fn foreign(server: &PostgresAddress) -> StoreError {
    StoreError::NotOurs {
        place: server.shown().to_owned(),
        why: "the schema holds tables of another program; name another with ?schema=",
    }
}
