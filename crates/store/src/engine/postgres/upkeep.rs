//! Looking after the tables on a server, which looks after its files itself.

use std::ops::ControlFlow;
use std::path::Path;

use gt_core::Timestamp;

use super::connection::PostgresConnection;
use crate::StoreError;
use crate::copy::{NOT_COPIED, OnCopyProgress, TABLES, copy_rows};
use crate::engine::schema::{POSTGRES, SQLITE, missing};
use crate::engine::sqlite::{Access, migrate, open_connection};
use crate::engine::upkeep::{EngineFacts, ForeignKey, Upkeep, number_of, text_of, texts_of};
use crate::engine::{LEVEL, SqlSession, TransactionConnection};
use crate::transaction::Reader;

const OBJECTS: &str = "SELECT c.relname FROM pg_class c \
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?1";
const INVALID_INDEXES: &str = "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
    JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = ?1 AND NOT (i.indisvalid AND i.indisready) ORDER BY c.relname";
const UNCHECKED_CONSTRAINTS: &str = "SELECT k.conname FROM pg_constraint k \
    JOIN pg_namespace n ON n.oid = k.connamespace \
    WHERE n.nspname = ?1 AND NOT k.convalidated ORDER BY k.conname";
const REFERENCES: &str = "SELECT child.relname, ca.attname, parent.relname, pa.attname \
    FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace \
    JOIN pg_class child ON child.oid = k.conrelid JOIN pg_class parent ON parent.oid = k.confrelid \
    JOIN pg_attribute ca ON ca.attrelid = k.conrelid AND ca.attnum = k.conkey[1] \
    JOIN pg_attribute pa ON pa.attrelid = k.confrelid AND pa.attnum = k.confkey[1] \
    WHERE k.contype = 'f' AND n.nspname = ?1 ORDER BY 1, 2";
const TABLE_BYTES: &str = "SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c \
    JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = ?1 AND c.relkind = 'r' ORDER BY c.relname";
const OTHERS: &str = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = ?1 \
    AND NOT pg_has_role(tableowner, 'USAGE')";
const DATABASE_BYTES: &str = "SELECT pg_database_size(current_database())";

/// Standbys that are connected now, or for which the server keeps its log. Backups and logical subscribers cannot take over.
const STANDBYS: &str = "SELECT GREATEST( \
    (SELECT COUNT(*) FROM pg_stat_replication r WHERE r.state IS DISTINCT FROM 'backup' AND NOT EXISTS \
        (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')), \
    (SELECT COUNT(*) FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT temporary))";

/// The settings that must be on for a commit to survive a power cut.
const DURABILITY: [&str; 2] = ["fsync", "full_page_writes"];
const SETTINGS: [&str; 8] = [
    "server_encoding",
    "synchronous_commit",
    "synchronous_standby_names",
    "fsync",
    "full_page_writes",
    "data_checksums",
    "max_connections",
    "autovacuum",
];

impl PostgresConnection {
    fn setting(&self, name: &str) -> Result<String, StoreError> {
        text_of(self, &format!("SELECT current_setting('{name}')"))
    }

    /// Gives the room of rows that are gone to new ones, and counts how the others are distributed.
    pub(crate) fn vacuum(&self) -> Result<(), StoreError> {
        self.refuse_tables_of_others()?;
        let schema = self.schema();
        let names = TABLES.iter().map(|table| table.name).chain(NOT_COPIED);
        let tables: Vec<String> = names.map(|name| format!("{schema}.{name}")).collect();
        let sql = format!("VACUUM (ANALYZE) {}", tables.join(", "));
        self.run_alone(&sql, "tidy up its tables")
    }

    /// PostgreSQL only warns a user who may not vacuum a table, and does nothing.
    fn refuse_tables_of_others(&self) -> Result<(), StoreError> {
        self.begin_reading()?;
        let others = number_of(self, OTHERS, &[self.schema().into()]);
        self.roll_back()?;
        if others? == 0 {
            return Ok(());
        }
        let why = "only the owner of its tables may tidy them up";
        Err(StoreError::NotPermitted { server: self.shown().to_owned(), source: why.into() })
    }

    /// Why a failover could lose commits.
    fn failover_warning(&self) -> Result<Option<String>, StoreError> {
        let waits_for = self.setting("synchronous_commit")?;
        if self.setting("synchronous_standby_names")?.is_empty() {
            let has_standby = self.names_several_hosts() || number_of(self, STANDBYS, &[])? > 0;
            return Ok(has_standby.then(|| {
                "the server has a standby, but none that is synchronous: a failover may lose what was \
                 committed; set synchronous_standby_names"
                    .to_owned()
            }));
        }
        // Off is turned on in each write transaction.
        Ok(matches!(waits_for.as_str(), "local" | "remote_write").then(|| {
            format!(
                "the server runs with synchronous_commit = {waits_for}: it does not wait until a standby \
                 has written a commit to disk, so a failover may lose it; set it to on"
            )
        }))
    }

    fn table_bytes(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let mut tables = Vec::new();
        self.query(TABLE_BYTES, &[self.schema().into()], &mut |row| {
            tables.push((row.text(0)?.to_owned(), u64::try_from(row.int(1)?).unwrap_or(0)));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(tables)
    }
}

impl Upkeep for PostgresConnection {
    fn damage(&self) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        let schema = [self.schema().into()];
        for index in texts_of(self, INVALID_INDEXES, &schema)? {
            found.push(format!("index {index} is not valid; REINDEX INDEX {index}"));
        }
        for constraint in texts_of(self, UNCHECKED_CONSTRAINTS, &schema)? {
            found.push(format!("constraint {constraint} was never checked; VALIDATE CONSTRAINT"));
        }
        let encoding = self.setting("server_encoding")?;
        if encoding != "UTF8" {
            found.push(format!("the database is encoded as {encoding}, not UTF8"));
        }
        Ok(found)
    }

    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        for name in DURABILITY {
            if self.setting(name)? == "off" {
                found.push(format!(
                    "the server runs with {name} = off: a power cut may lose or damage what was committed"
                ));
            }
        }
        found.extend(self.failover_warning()?);
        Ok(found)
    }

    fn missing(&self) -> Result<Vec<&'static str>, StoreError> {
        Ok(missing(POSTGRES, &texts_of(self, OBJECTS, &[self.schema().into()])?))
    }

    fn references(&self) -> Result<Vec<ForeignKey>, StoreError> {
        let mut found = Vec::new();
        self.query(REFERENCES, &[self.schema().into()], &mut |row| {
            let text = |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
            found.push(ForeignKey {
                table: text(0)?,
                column: text(1)?,
                parent: text(2)?,
                parent_column: text(3)?,
            });
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    fn facts(&self) -> Result<EngineFacts, StoreError> {
        let settings = SETTINGS.into_iter().map(|name| Ok((name, self.setting(name)?)));
        let table_bytes = self.table_bytes()?;
        Ok(EngineFacts {
            engine: "PostgreSQL",
            version: self.setting("server_version")?,
            bytes: table_bytes.iter().map(|(_, bytes)| bytes).sum(),
            parts: vec![("database", number_of(self, DATABASE_BYTES, &[])?)],
            table_bytes,
            settings: settings.collect::<Result<_, StoreError>>()?,
        })
    }

    /// Makes a store in a file, with the same rows. On its way it needs no journal: if it fails, the
    /// whole file goes.
    fn copy_into(
        &self,
        to: &Path,
        now: Timestamp,
        progress: OnCopyProgress<'_>,
    ) -> Result<(), StoreError> {
        let (found, needed) = Reader::new(self).level()?;
        if found > LEVEL {
            // It still serves us, but holds data that we do not know and would lose.
            let (place, needed) = (self.shown().to_owned(), needed.max(found));
            return Err(StoreError::TooNew { place, found, needed, known: LEVEL });
        }
        let doing = "write a copy of the store";
        let file = open_connection(to, Access::Create)?;
        file.batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;", doing)?;
        migrate(&file, to, SQLITE, now)?;
        file.begin_writing()?;
        copy_rows(self, &file, progress)?;
        file.commit(None)?;
        file.batch("PRAGMA journal_mode = WAL;", doing)
    }
}
