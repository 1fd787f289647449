//! The file of a store: its schema, its versions, and its permissions.

use std::fs;
use std::path::Path;

use gt_core::IssueType;
use gt_store::{BeadFilter, Options, SCHEMA_LEVEL, SettingScope, Store, StoreError};

use crate::subjects::{NOW, author, place, store_at};

const MIGRATION: &str = include_str!("../../../migrations/sqlite/0001_foundation.sql");

fn put(store: &Store, key: &str) -> Result<bool, StoreError> {
    store.write(&author(), |writer| writer.put_setting(SettingScope::Beads, key, Some("value")))
}

fn keys(store: &Store) -> Result<Vec<String>, StoreError> {
    let settings = store.read(|reader| reader.settings(SettingScope::Beads))?;
    Ok(settings.into_iter().map(|(key, _)| key).collect())
}

fn raw(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).expect("the file can be opened");
    connection.execute_batch(sql).expect("the file can be changed");
}

#[test]
fn the_types_that_are_not_work_are_the_same_in_schema_and_core() {
    let (_, rest) = MIGRATION.split_once("issue_type NOT IN (").expect("the schema has a list");
    let (list, _) = rest.split_once(')').expect("the list ends");
    let in_schema: Vec<&str> = list.split(',').map(|name| name.trim().trim_matches('\'')).collect();
    assert_eq!(in_schema, IssueType::NOT_WORK);
}

#[test]
fn a_store_is_still_there_when_opened_again() {
    let (_directory, path) = place();
    let store = store_at(&path);
    assert_eq!(store.path(), Some(path.as_path()));
    put(&store, "key").expect("the write succeeds");
    drop(store);

    let again =
        Store::open(&path.as_path().into(), NOW, Options::default()).expect("the store opens");

    assert_eq!(keys(&again).expect("the read succeeds"), ["key"]);
    assert_eq!(Store::in_memory().expect("a store in memory").path(), None);
}

#[test]
fn a_commit_of_another_process_changes_the_mark_and_a_read_does_not() {
    let (_directory, path) = place();
    let (ours, other) = (store_at(&path), store_at(&path));
    let before = ours.change_mark();
    assert!(before.is_some());
    keys(&other).expect("the read succeeds");
    assert_eq!(ours.change_mark(), before);

    put(&other, "key").expect("the write succeeds");

    assert_ne!(ours.change_mark(), before);
    assert_eq!(Store::in_memory().expect("a store in memory").change_mark(), None);
}

#[test]
fn neither_reading_nor_closing_changes_a_byte_of_the_file() {
    // Given a store with something in its log that is not yet in its file,
    let (_directory, path) = place();
    let writing = store_at(&path);
    put(&writing, "key").expect("the write succeeds");
    let bytes = || fs::read(&path).expect("the file can be read");
    let before = bytes();

    // when others read, and all of them go away, the writer too,
    for _ in 0..3 {
        let store =
            Store::open(&path.as_path().into(), NOW, Options::default()).expect("the store opens");
        assert_eq!(keys(&store).expect("the read succeeds"), ["key"]);
        let found = store.read(|reader| reader.find(&BeadFilter::default()));
        assert_eq!(found.expect("the read succeeds"), []);
    }
    drop(writing);
    let last =
        Store::open(&path.as_path().into(), NOW, Options::default()).expect("the store opens");
    assert_eq!(keys(&last).expect("the read succeeds"), ["key"]);
    drop(last);

    // then the file is as it was.
    assert_eq!(bytes(), before);
}

#[test]
fn a_long_log_is_folded_into_the_file_unless_a_process_reads_it() {
    let (directory, path) = place();
    let (writing, reading) = (store_at(&path), store_at(&path));
    let log_bytes = || {
        let log = directory.path().join("gt.db-wal");
        fs::metadata(log).map_or(0, |about| about.len())
    };
    let write_much = |key: &str| {
        writing
            .write(&author(), |writer| {
                writer.put_setting(SettingScope::Beads, key, Some(&"x".repeat(3_000_000)))
            })
            .expect("the write succeeds");
    };

    // Given a reader in the middle of it, a write neither fails nor disturbs it,
    let seen: Result<_, StoreError> = reading.read(|reader| {
        let before = reader.settings(SettingScope::Beads)?;
        write_much("one");
        Ok((before, reader.settings(SettingScope::Beads)?))
    });
    assert_eq!(seen.expect("the read succeeds"), (vec![], vec![]));
    assert!(log_bytes() > 3_000_000);

    // and the next write does the rest.
    write_much("two");
    assert_eq!(log_bytes(), 0);
    assert_eq!(keys(&reading).expect("the read succeeds"), ["one", "two"]);
}

#[test]
fn a_store_that_is_only_read_needs_no_lock_files() {
    let (directory, path) = place();
    drop(store_at(&path));
    for name in ["next.lock", "write.lock"] {
        fs::remove_file(directory.path().join(name)).expect("the lock file is there");
    }

    let store =
        Store::open(&path.as_path().into(), NOW, Options::default()).expect("the store opens");
    keys(&store).expect("the read succeeds");

    for name in ["next.lock", "write.lock"] {
        assert!(!directory.path().join(name).exists(), "{name}");
    }
}

#[test]
fn a_store_of_a_newer_program_is_refused_unless_it_still_serves_us() {
    let (_directory, path) = place();
    put(&store_at(&path), "key").expect("the write succeeds");
    let newer = SCHEMA_LEVEL + 5;

    raw(&path, &format!("INSERT INTO migrations VALUES ({newer}, {SCHEMA_LEVEL}, 0)"));
    let served =
        Store::open(&path.as_path().into(), NOW, Options::default()).expect("an additive change");
    assert_eq!(keys(&served).expect("the read succeeds"), ["key"]);
    drop(served);

    raw(&path, &format!("UPDATE migrations SET serves = {newer}"));
    let before = fs::read(&path).expect("the file can be read");
    for opened in [
        Store::open(&path.as_path().into(), NOW, Options::default()),
        Store::create(&path.as_path().into(), NOW, Options::default()),
    ] {
        assert!(
            matches!(
                opened,
                Err(StoreError::TooNew { found, needed, known, .. })
                    if (found, needed, known) == (newer, newer, SCHEMA_LEVEL)
            ),
            "{opened:?}"
        );
    }
    assert_eq!(fs::read(&path).expect("the file can be read"), before);
}

#[test]
fn a_damaged_store_is_an_error_and_not_a_panic() {
    let (directory, path) = place();
    let store = store_at(&path);
    for number in 0..200 {
        put(&store, &format!("key {number}")).expect("the write succeeds");
    }
    assert_eq!(store.check_file().expect("the check runs"), [""; 0]);
    drop(store);
    raw(&path, "PRAGMA wal_checkpoint(TRUNCATE)");
    let whole = fs::read(&path).expect("the file can be read");

    // Cut off, overwritten behind the header, and overwritten in the middle.
    let cut = whole[..whole.len() / 3].to_vec();
    let mut beaten = whole.clone();
    beaten[100..4096].fill(0x5a);
    let mut holed = whole.clone();
    holed[whole.len() / 2..].fill(0x5a);
    for (name, bytes) in [("cut", cut), ("beaten", beaten), ("holed", holed)] {
        let path = directory.path().join(format!("{name}.db"));
        fs::write(&path, bytes).expect("the file can be written");
        let opened = Store::open(&path.as_path().into(), NOW, Options::default());
        let answer = opened.and_then(|store| {
            keys(&store)?;
            store.read(|reader| reader.differences())
        });
        assert!(matches!(answer, Err(StoreError::Damaged(_))), "{name}: {answer:?}");
    }
}
