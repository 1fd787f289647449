//! Files that are not ours are refused and left exactly as they were.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gt_store::{Options, Store, StoreError};

use crate::subjects::{NOW, place, store_at};

/// The names of everything in a directory, with the bytes of its files.
fn listing(directory: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let entries = fs::read_dir(directory).expect("the directory can be listed");
    entries
        .map(|entry| {
            let entry = entry.expect("the entry can be read");
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).ok())
        })
        .collect()
}

/// Every entry point refuses the file at `path`, and nothing around it changes.
fn is_refused(path: &Path) {
    let directory = path.parent().expect("the path has a directory");
    let before = listing(directory);
    let answers = [
        Store::open(&path.into(), NOW, Options::default()).map(drop),
        Store::create(&path.into(), NOW, Options::default()).map(drop),
    ];
    for answer in answers {
        assert!(matches!(answer, Err(StoreError::NotOurs { .. })), "{answer:?}");
    }
    assert_eq!(listing(directory), before);
}

#[test]
fn a_file_that_is_not_sqlite_is_refused_untouched() {
    for bytes in [&b"Dear diary,\n"[..], b"SQLite format 2\0and then some", b"\0", &[0xff; 8192]] {
        let (_directory, path) = place();
        fs::write(&path, bytes).expect("the file can be written");
        is_refused(&path);
    }
}

#[test]
fn the_mere_beginning_of_a_database_is_refused_untouched() {
    let (_directory, path) = place();
    fs::write(&path, b"SQLite format 3\0").expect("the file can be written");
    is_refused(&path);
}

#[test]
fn a_database_of_another_program_is_refused_untouched() {
    for journal_mode in ["delete", "wal"] {
        let (_directory, path) = place();
        let other = rusqlite::Connection::open(&path).expect("the file can be made");
        other.pragma_update(None, "journal_mode", journal_mode).expect("the mode can be set");
        other
            .execute_batch("CREATE TABLE beads (id TEXT); INSERT INTO beads VALUES ('gt-a');")
            .expect("the table can be made");
        drop(other);
        is_refused(&path);
    }
}

#[test]
fn a_directory_is_refused_untouched() {
    let (_directory, path) = place();
    fs::create_dir(&path).expect("the directory can be made");
    fs::write(path.join("inside"), b"something").expect("the file can be written");
    is_refused(&path);
    assert_eq!(listing(&path).len(), 1);
}

#[test]
fn a_socket_is_refused_untouched() {
    let (_directory, path) = place();
    let _listener = std::os::unix::net::UnixListener::bind(&path).expect("the socket can be made");
    is_refused(&path);
}

#[test]
fn where_there_is_nothing_opening_makes_nothing() {
    let (directory, path) = place();
    for empty in [false, true] {
        if empty {
            fs::write(&path, b"").expect("the file can be written");
        }
        let before = listing(directory.path());
        let answer = Store::open(&path.as_path().into(), NOW, Options::default()).map(drop);
        assert!(matches!(&answer, Err(StoreError::Missing(at)) if *at == path), "{answer:?}");
        assert_eq!(listing(directory.path()), before);
    }
    // An empty file is as good as none.
    store_at(&path);
    assert!(Store::open(&path.as_path().into(), NOW, Options::default()).is_ok());
}

#[test]
fn a_store_cannot_be_made_in_a_directory_that_is_not_there() {
    let (directory, _) = place();
    let path = directory.path().join("nowhere").join("gt.db");
    let answer = Store::create(&path.as_path().into(), NOW, Options::default());
    assert!(matches!(answer, Err(StoreError::Io { .. })), "{answer:?}");
    assert!(listing(directory.path()).is_empty());
}
