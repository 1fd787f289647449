//! A backup is a store like any other, of one moment, even while others write.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gt_core::{Bead, EventKind, Uid};
use gt_store::{
    BeadFilter, EventFilter, IfFileExists, Options, SCHEMA_LEVEL, SettingScope, Store, StoreError,
    TABLES, Totals,
};
use rusqlite::types::Value;

use super::{Behind, Specimen, bead, furnished, id, specimens};
use crate::subjects::{NOW, author};

/// Every row of every table.
fn rows(path: &Path) -> Vec<Vec<Value>> {
    let raw = rusqlite::Connection::open(path).expect("the backup can be opened");
    let mut found = Vec::new();
    for table in TABLES {
        let sql = format!("SELECT * FROM {} ORDER BY 1, 2", table.name);
        let mut statement = raw.prepare(&sql).expect("the table is there");
        let columns = statement.column_count();
        let read = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect());
        found.extend(read.expect("the rows can be read").map(|row| row.expect("a row")));
    }
    found
}

fn open(path: &Path) -> Store {
    Store::open(&path.into(), NOW, Options::default()).expect("a backup is a store")
}

#[test]
fn both_engines_give_the_same_backup_to_the_last_row() {
    let [file, server] = furnished();
    let backups = [&file, &server].map(|specimen| {
        let backup = specimen.back_up("copy.db").expect("the backup succeeds");
        assert_eq!(backup.totals, Totals { beads: 5, events: 15 }, "{}", specimen.name);
        assert_eq!(backup.bytes, fs::metadata(&backup.path).expect("it is there").len());
        backup.path
    });
    let Behind::File(original) = &file.behind else { panic!("the first is on a file") };

    let expected = rows(original);

    // Rigs get a random alias, which the two stores share; everything else is derived.
    assert_eq!(rows(&backups[0]), expected);
    assert_eq!(rows(&backups[1]), expected);
    for backup in &backups {
        let store = open(backup);
        let differences = store.read(|reader| reader.differences()).expect("the read succeeds");
        assert_eq!(differences, Vec::<String>::new());
        let more = |writer: &mut gt_store::Writer<'_>| {
            writer.insert_bead(&bead("gr-new"), EventKind::Created)?;
            writer.next_child_id(&id("gr-a"))
        };
        let child = store.write(&author(), more).expect("a backup can be written");
        assert_eq!(child, id("gr-a.2"));
    }
}

#[test]
fn nothing_but_the_backup_is_left() {
    for specimen in furnished() {
        let directory = specimen.path("backups");
        fs::create_dir(&directory).expect("the directory can be made");
        specimen.back_up("backups/copy.db").expect("the backup succeeds");
        let names: Vec<_> = fs::read_dir(&directory)
            .expect("the directory can be listed")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["copy.db"], "{}", specimen.name);
    }
}

#[test]
fn a_backup_beside_a_busy_writer_is_of_one_moment() {
    for specimen in specimens() {
        // Given a store of some size whose writer never rests, and writes beads in pairs,
        for number in 0..4 {
            let large = "x".repeat(2_000_000);
            let key = format!("large{number}");
            let put = specimen.store.write(&author(), |writer| {
                writer.put_setting(SettingScope::Beads, &key, Some(&large))
            });
            put.expect("the write succeeds");
        }
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let busy = scope.spawn(|| {
                let mut tickets = std::collections::VecDeque::new();
                let mut number = 0;
                while !stop.load(Ordering::SeqCst) {
                    while tickets.len() < 48 {
                        number += 1;
                        tickets.push_back(specimen.store.submit(author(), move |writer| {
                            for half in ["one", "two"] {
                                let id = id(&format!("gt-{number}{half}"));
                                let bead = Bead { uid: Uid::of_bead(&id, NOW), id, ..bead("gt-x") };
                                writer.insert_bead(&bead, EventKind::Created)?;
                            }
                            Ok::<_, StoreError>(())
                        }));
                    }
                    let oldest = tickets.pop_front().expect("there are some");
                    oldest.wait().expect("a backup does not disturb writers");
                }
                for ticket in tickets {
                    ticket.wait().expect("nor later");
                }
            });

            // when it is backed up again and again,
            let mut last = 0;
            for round in 0..3 {
                let backup = specimen.back_up(&format!("{round}.db")).expect("it succeeds");
                // then each is whole, and later than the one before.
                let copy = open(&backup.path);
                let (beads, events, differences) = copy
                    .read(|reader| {
                        let beads = reader.count(&BeadFilter::default())?;
                        let (events, _) =
                            reader.events_after(0, &EventFilter::default(), usize::MAX)?;
                        Ok::<_, StoreError>((beads, events.len() as u64, reader.differences()?))
                    })
                    .expect("the read succeeds");
                assert_eq!(backup.totals, Totals { beads, events });
                assert_eq!((beads % 2, events), (0, beads + 4), "{}", specimen.name);
                assert_eq!(differences, Vec::<String>::new());
                assert!(events > last, "{}: {events} after {last}", specimen.name);
                last = events;
            }
            stop.store(true, Ordering::SeqCst);
            busy.join().expect("the busy writer finishes");
        });
    }
}

#[test]
fn progress_is_told_to_the_end() {
    for specimen in furnished() {
        let mut told = Vec::new();
        let path = specimen.path("copy.db");
        let backup = specimen
            .store
            .back_up(&path, IfFileExists::Keep, NOW, &mut |done, total| told.push((done, total)));
        backup.expect("the backup succeeds");
        let (done, total) = *told.last().expect("something was told");
        assert!(done == total && total > 0, "{}: {told:?}", specimen.name);
    }
}

#[test]
fn a_file_that_is_there_stays_unless_told_otherwise() {
    for specimen in furnished() {
        let path = specimen.path("copy.db");
        let replace = || specimen.store.back_up(&path, IfFileExists::Replace, NOW, &mut |_, _| {});
        let refused = |answer: Result<_, StoreError>| {
            assert!(matches!(answer, Err(StoreError::NotReplaced { .. })), "{answer:?}");
        };

        // An older backup,
        specimen.back_up("copy.db").expect("the backup succeeds");
        let before = fs::read(&path).expect("it can be read");
        refused(specimen.back_up("copy.db"));
        assert_eq!(fs::read(&path).expect("it can be read"), before);
        replace().expect("it is replaced when told so");

        // one that is in use,
        fs::write(specimen.path("copy.db-wal"), "").expect("the log can be written");
        refused(replace());
        fs::remove_file(specimen.path("copy.db-wal")).expect("it is there");

        // and a letter.
        fs::write(&path, "Dear diary").expect("the file can be written");
        refused(specimen.back_up("copy.db"));
        refused(replace());
        assert_eq!(fs::read(&path).expect("it can be read"), b"Dear diary");
    }
}

#[test]
fn a_store_is_no_backup_of_itself() {
    let specimen = Specimen::on_file();
    let Behind::File(path) = &specimen.behind else { panic!("it is on a file") };
    for existing in [IfFileExists::Keep, IfFileExists::Replace] {
        let answer = specimen.store.back_up(path, existing, NOW, &mut |_, _| {});
        assert!(matches!(answer, Err(StoreError::NotReplaced { .. })), "{answer:?}");
    }
    specimen.store.read(|reader| reader.differences()).expect("it is still there");
}

#[test]
fn a_backup_that_fails_leaves_nothing() {
    for specimen in furnished() {
        // Given a store in which something cannot be copied,
        match specimen.behind {
            Behind::File(_) => specimen.tamper("DROP TABLE requests; DROP TABLE events"),
            Behind::Database(_) => specimen.tamper("DROP TABLE requests"),
        }
        let answer = specimen.back_up("copy.db");
        assert!(answer.is_err(), "{answer:?}");
        let left = fs::read_dir(specimen.directory.path()).expect("the directory can be listed");
        let left = left.filter(|entry| {
            let name = entry.as_ref().expect("an entry").file_name();
            name.to_string_lossy().starts_with("copy")
        });
        assert_eq!(left.count(), 0, "{}", specimen.name);
        // A directory that is not there is named.
        let answer = specimen.back_up("nowhere/copy.db");
        assert!(matches!(answer, Err(StoreError::Io { .. })), "{answer:?}");
    }
}

#[test]
fn a_backup_of_a_newer_schema_is_refused() {
    let specimen = Specimen::on_server();
    let newer = SCHEMA_LEVEL + 1;
    specimen.tamper(&format!("INSERT INTO migrations VALUES ({newer}, 1, 0)"));
    let answer = specimen.back_up("copy.db");
    assert!(matches!(answer, Err(StoreError::TooNew { .. })), "{answer:?}");
}
