//! Looking after a file.

use std::ops::ControlFlow;
use std::path::Path;

use gt_core::Timestamp;

use super::connection::{Access, SqliteConnection, open_connection};
use crate::StoreError;
use crate::backup::with_suffix;
use crate::copy::{OnCopyProgress, TABLES};
use crate::engine::schema::{SQLITE, missing};
use crate::engine::upkeep::{EngineFacts, ForeignKey, Upkeep, number_of, text_of, texts_of};
use crate::engine::{Param, SqlSession};

/// A quick check that returns the errors in a file.
pub(crate) const QUICK_CHECK: &str = "PRAGMA quick_check";

/// Refuses a file that is damaged.
pub(crate) fn check_quickly(path: &Path) -> Result<(), StoreError> {
    let connection = open_connection(path, Access::Read)?;
    match findings(&connection, QUICK_CHECK)?.as_slice() {
        [] => Ok(()),
        _ => Err(StoreError::Damaged(path.to_owned())),
    }
}

fn findings(connection: &SqliteConnection, check: &str) -> Result<Vec<String>, StoreError> {
    let lines = texts_of(connection, check, &[])?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

impl Upkeep for SqliteConnection {
    fn damage(&self) -> Result<Vec<String>, StoreError> {
        findings(self, "PRAGMA integrity_check")
    }

    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        let mode = text_of(self, "SELECT journal_mode FROM pragma_journal_mode")?;
        let expected = ["wal", "memory"].contains(&mode.as_str());
        Ok(if expected {
            Vec::new()
        } else {
            vec![format!(
                "journal_mode is {mode}, not wal: readers and writers wait for each other"
            )]
        })
    }

    fn missing(&self) -> Result<Vec<&'static str>, StoreError> {
        Ok(missing(SQLITE, &texts_of(self, "SELECT name FROM sqlite_master", &[])?))
    }

    fn references(&self) -> Result<Vec<ForeignKey>, StoreError> {
        let mut found = Vec::new();
        for table in TABLES {
            let sql =
                "SELECT \"from\", \"table\", \"to\" FROM pragma_foreign_key_list(?1) ORDER BY id";
            self.query(sql, &[table.name.into()], &mut |row| {
                let text =
                    |column| -> Result<String, StoreError> { Ok(row.text(column)?.to_owned()) };
                found.push(ForeignKey {
                    table: table.name.to_owned(),
                    column: text(0)?,
                    parent: text(1)?,
                    parent_column: text(2)?,
                });
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(found)
    }

    fn facts(&self) -> Result<EngineFacts, StoreError> {
        let number = |sql| number_of(self, sql, &[] as &[Param<'_>]);
        let page = number("SELECT page_size FROM pragma_page_size")?;
        let free = number("SELECT freelist_count FROM pragma_freelist_count")? * page;
        let in_memory = number("SELECT page_count FROM pragma_page_count")? * page;
        let file = std::fs::metadata(self.path()).map_or(in_memory, |about| about.len());
        let log = with_suffix(self.path(), "-wal");
        let log = std::fs::metadata(log).map_or(0, |about| about.len());
        let synchronous = match number("SELECT synchronous FROM pragma_synchronous")? {
            0 => "off",
            1 => "normal",
            2 => "full",
            _ => "extra",
        };
        let foreign_keys = number("SELECT foreign_keys FROM pragma_foreign_keys")? == 1;
        Ok(EngineFacts {
            engine: "SQLite",
            version: rusqlite::version().to_owned(),
            bytes: file + log,
            parts: vec![("file", file), ("log", log), ("free", free)],
            table_bytes: Vec::new(),
            settings: vec![
                ("journal_mode", text_of(self, "SELECT journal_mode FROM pragma_journal_mode")?),
                ("synchronous", synchronous.to_owned()),
                ("foreign_keys", if foreign_keys { "on" } else { "off" }.to_owned()),
                ("page_size", page.to_string()),
            ],
        })
    }

    fn copy_into(
        &self,
        to: &Path,
        _now: Timestamp,
        progress: OnCopyProgress<'_>,
    ) -> Result<(), StoreError> {
        self.backup(to, progress)
    }
}
