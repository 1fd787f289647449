//! Bringing a file to the schema this program knows.

use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use gt_core::Timestamp;

use super::connection::SqliteConnection;
use crate::StoreError;
use crate::backup::{IfFileExists, write_aside};
use crate::engine::{Migration, Param, SqlSession};

const LEDGER: &str = "CREATE TABLE IF NOT EXISTS migrations (
    version INTEGER PRIMARY KEY NOT NULL, serves INTEGER NOT NULL, applied_at INTEGER NOT NULL
) STRICT";

/// Applies the missing migrations of `steps`, after a backup if the store already held something. The
/// caller holds the write lock, so no other process migrates or writes meanwhile.
///
/// Returns the backup, if one was made.
pub(crate) fn migrate(
    connection: &SqliteConnection,
    path: &Path,
    steps: &[Migration],
    now: Timestamp,
) -> Result<Option<PathBuf>, StoreError> {
    let known = steps.last().map_or(0, |step| step.version);
    let (found, needed) = level(connection)?;
    if needed > known {
        return Err(StoreError::TooNew { place: path.display().to_string(), found, needed, known });
    }
    if found >= known {
        return Ok(None);
    }
    let backup = if found > 0 { Some(back_up(connection, path, found, now)?) } else { None };
    let doing = "migrate the store";
    connection.batch("BEGIN IMMEDIATE", doing)?;
    let applied = apply(connection, steps.iter().filter(|step| step.version > found), now);
    let finish = if applied.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let finished = connection.batch(finish, doing);
    applied.and(finished).map(|()| backup)
}

fn apply<'s>(
    connection: &SqliteConnection,
    steps: impl Iterator<Item = &'s Migration>,
    now: Timestamp,
) -> Result<(), StoreError> {
    connection.batch(LEDGER, "migrate the store")?;
    for step in steps {
        connection.batch(step.sql, &format!("migrate the store to schema {}", step.version))?;
        connection.execute(
            "INSERT INTO migrations (version, serves, applied_at) VALUES (?1, ?2, ?3)",
            &[step.version.into(), step.serves.into(), now.into()],
        )?;
    }
    Ok(())
}

/// The schema of the file and the least a program must know to use it; zeros for an empty file.
pub(crate) fn level(connection: &SqliteConnection) -> Result<(i64, i64), StoreError> {
    let mut exists = false;
    connection.query(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'",
        &[],
        &mut |_| {
            exists = true;
            Ok(ControlFlow::Break(()))
        },
    )?;
    let mut level = (0, 0);
    if exists {
        let sql = "SELECT COALESCE(MAX(version), 0), COALESCE(MAX(serves), 0) FROM migrations";
        connection.query(sql, &[] as &[Param<'_>], &mut |row| {
            level = (row.int(0)?, row.int(1)?);
            Ok(ControlFlow::Break(()))
        })?;
    }
    Ok(level)
}

/// The directory for the backups of the store at `path`, which is made if it is not there.
pub(crate) fn make_backup_directory(path: &Path) -> Result<PathBuf, StoreError> {
    let directory = path.parent().unwrap_or(Path::new(".")).join("backups");
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.map_err(|source| StoreError::Io { action: "create", path: directory.clone(), source })?;
    Ok(directory)
}

fn back_up(
    connection: &SqliteConnection,
    path: &Path,
    version: i64,
    now: Timestamp,
) -> Result<PathBuf, StoreError> {
    let directory = make_backup_directory(path)?;
    let name = format!("gt-schema{version}-{}.db", now.as_nanos());
    let target = directory.join(name);
    write_aside(&target, IfFileExists::Keep, |aside| connection.backup(aside, &mut |_, _| {}))?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sqlite::{Access, open_connection};

    const NOW: Timestamp = Timestamp::from_nanos(7);

    fn steps(count: i64, serves: i64) -> Vec<Migration> {
        let sql = [
            "CREATE TABLE one (n INTEGER)",
            "CREATE TABLE two (n INTEGER)",
            "CREATE TABLE three (n INTEGER); INSERT INTO one VALUES (3)",
        ];
        (1..=count)
            .map(|version| Migration {
                version,
                serves: serves.min(version),
                sql: sql[usize::try_from(version).unwrap() - 1],
            })
            .collect()
    }

    #[test]
    fn an_old_store_is_backed_up_and_brought_up_to_date() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gt.db");
        let connection = open_connection(&path, Access::Create).unwrap();
        assert_eq!(migrate(&connection, &path, &steps(1, 1), NOW).unwrap(), None);
        connection.batch("INSERT INTO one VALUES (1)", "test").unwrap();

        let backup = migrate(&connection, &path, &steps(3, 1), NOW).unwrap().unwrap();
        assert_eq!(level(&connection).unwrap(), (3, 1));

        let old = open_connection(&backup, Access::Read).unwrap();
        assert_eq!(level(&old).unwrap(), (1, 1));
    }

    #[test]
    fn a_step_that_fails_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gt.db");
        let connection = open_connection(&path, Access::Create).unwrap();
        migrate(&connection, &path, &steps(1, 1), NOW).unwrap();
        let mut broken = steps(3, 1);
        broken[2].sql = "CREATE TABLE one (n INTEGER)";
        assert!(migrate(&connection, &path, &broken, NOW).is_err());
        assert_eq!(level(&connection).unwrap(), (1, 1));
        assert!(connection.prepare("SELECT * FROM two").is_err());
    }

    #[test]
    fn an_older_program_works_with_an_additive_change_and_refuses_any_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gt.db");
        let connection = open_connection(&path, Access::Create).unwrap();
        migrate(&connection, &path, &steps(2, 1), NOW).unwrap();
        assert!(migrate(&connection, &path, &steps(1, 1), NOW).is_ok());
        migrate(&connection, &path, &steps(3, 3), NOW).unwrap();
        let refused = migrate(&connection, &path, &steps(1, 1), NOW);
        assert!(matches!(refused, Err(StoreError::TooNew { found: 3, needed: 3, known: 1, .. })));
    }
}
