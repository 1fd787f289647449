//! Many writers on one file, each with a connection and lock files of its own, as processes have.

use std::collections::{HashSet, VecDeque};
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use gt_core::decide::IdSeed;
use gt_core::{Bead, BeadId, EventKind, Prefix};
use gt_store::{BeadFilter, EventFilter, Options, SettingScope, Store, StoreError, Ticket, Writer};

use crate::history::plain_bead;
use crate::subjects::{NOW, author, place, store_at};

const WRITERS: usize = 16;
const WRITES_EACH: usize = 6;
/// How many jobs the busy writer always has waiting.
const WAITING_JOBS: usize = 96;

/// Makes a bead as a command does: the id is chosen in the transaction.
fn create(writer: &mut Writer<'_>, title: &str) -> Result<BeadId, StoreError> {
    let prefix = Prefix::trusted("gt".to_owned());
    let seed = IdSeed { title, description: "", creator: "tester", at: NOW };
    let id = writer.free_id(&prefix, &seed)?;
    let bead = Bead { uid: gt_core::Uid::of_bead(&id, NOW), id: id.clone(), ..plain_bead(0) };
    writer.insert_bead(&bead, EventKind::Created)?;
    Ok(id)
}

/// Keeps the writer of `store` busy until told to stop; gives the ids it made.
fn saturate(store: &Store, stop: &AtomicBool, busy: &Barrier) -> Vec<BeadId> {
    let mut waiting: VecDeque<Ticket<BeadId, StoreError>> = VecDeque::new();
    let mut made = Vec::new();
    let mut number = 0;
    while !stop.load(Ordering::SeqCst) {
        while waiting.len() < WAITING_JOBS {
            let title = format!("Busy {number}");
            number += 1;
            waiting.push_back(store.submit(author(), move |writer| create(writer, &title)));
        }
        if let Some(ticket) = waiting.pop_front() {
            made.push(ticket.wait().expect("the busy writer succeeds"));
        }
        if made.len() == 1 {
            busy.wait();
        }
    }
    for ticket in waiting {
        made.push(ticket.wait().expect("the busy writer succeeds"));
    }
    made
}

fn create_some(path: &Path, name: usize) -> Vec<BeadId> {
    let store = store_at(path);
    let one = |number| {
        let title = format!("Command {name} {number}");
        store
            .write(&author(), |writer| create(writer, &title))
            .expect("a command never fails because of another")
    };
    (0..WRITES_EACH).map(one).collect()
}

#[test]
fn sixteen_commands_beside_a_busy_writer_lose_nothing() {
    let (_directory, path) = place();
    let busy_store = store_at(&path);
    let (stop, busy) = (AtomicBool::new(false), Barrier::new(WRITERS + 1));

    // Given a writer that always has more to write, when commands come one after the other,
    let made: Vec<BeadId> = thread::scope(|scope| {
        let saturating = scope.spawn(|| saturate(&busy_store, &stop, &busy));
        let commands: Vec<_> = (0..WRITERS)
            .map(|name| {
                let (path, busy) = (&path, &busy);
                scope.spawn(move || {
                    busy.wait();
                    create_some(path, name)
                })
            })
            .collect();
        let mut made: Vec<BeadId> = Vec::new();
        for command in commands {
            made.extend(command.join().expect("a command finishes"));
        }
        stop.store(true, Ordering::SeqCst);
        made.extend(saturating.join().expect("the busy writer finishes"));
        made
    });

    // then everything that was acknowledged is there, once, and in the log without a gap.
    let distinct: HashSet<&BeadId> = made.iter().collect();
    assert_eq!(distinct.len(), made.len());
    let store = store_at(&path);
    let (there, events, differences) = store
        .read(|reader| {
            let there = reader.find(&BeadFilter::default())?;
            let (events, _) = reader.events_after(0, &EventFilter::default(), usize::MAX)?;
            Ok::<_, StoreError>((there, events, reader.differences()?))
        })
        .expect("the read succeeds");
    assert_eq!(there.iter().collect::<HashSet<_>>(), distinct);
    assert_eq!(differences, Vec::<String>::new());
    let numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=made.len() as u64).collect::<Vec<_>>());
}

#[test]
fn many_may_make_the_same_store_at_once() {
    for _ in 0..4 {
        let (_directory, path) = place();
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for name in 0..8 {
                let (path, start) = (&path, &start);
                scope.spawn(move || {
                    start.wait();
                    create_some(path, name);
                });
            }
        });
        let store = store_at(&path);
        let count = store.read(|reader| reader.count(&BeadFilter::default()));
        assert_eq!(count.expect("the read succeeds"), 8 * WRITES_EACH as u64);
    }
}

#[test]
fn readers_see_only_whole_transactions_while_others_write() {
    let (_directory, path) = place();
    let writer_store = store_at(&path);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..40 {
                writer_store
                    .write(&author(), |writer| {
                        create(writer, &format!("One {number}"))?;
                        create(writer, &format!("Two {number}"))
                    })
                    .expect("the write succeeds");
            }
            stop.store(true, Ordering::SeqCst);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let store = store_at(&path);
                while !stop.load(Ordering::SeqCst) {
                    let (count, last) = store
                        .read(|reader| {
                            let count = reader.count(&BeadFilter::default())?;
                            Ok::<_, StoreError>((count, reader.last_event_number()?))
                        })
                        .expect("a reader never fails because of a writer");
                    assert_eq!(count % 2, 0);
                    assert_eq!(count, last);
                }
            });
        }
    });
}

#[test]
fn a_long_wait_is_noticed_and_ends_when_the_other_is_done() {
    // Given a writer that does not stop,
    let (directory, path) = place();
    drop(store_at(&path));
    let other = OpenOptions::new()
        .write(true)
        .open(directory.path().join("write.lock"))
        .expect("the lock file is there");
    other.lock().expect("the lock is free");

    // when a command wants to write,
    let (notice, noticed) = mpsc::channel();
    let options = Options {
        on_wait: Some(Arc::new(move |_| {
            // Told once; the receiver is gone if the test has failed.
            let _ = notice.send(());
        })),
        ..Options::default()
    };
    let store = Store::open(&path.as_path().into(), NOW, options).expect("the store opens");
    let writing = thread::spawn(move || store.write(&author(), |writer| create(writer, "Late")));

    // then it says that it waits, and writes as soon as it may.
    noticed.recv().expect("the wait is noticed");
    other.unlock().expect("the lock is ours");
    let written = writing.join().expect("the writer finishes");
    assert!(written.is_ok(), "{written:?}");
}

#[test]
fn a_writer_that_keeps_the_lock_is_named_to_waiting_writers() {
    // Given a store that another program holds, and a limit,
    let (directory, path) = place();
    let store = store_at(&path);
    let set = |value: &str| {
        let value = value.to_owned();
        let put = move |writer: &mut Writer<'_>| {
            writer.put_setting(SettingScope::Town, "store.lock_timeout", Some(&value))
        };
        store.write(&author(), put).expect("the setting is written");
    };
    set("1s");
    for (lock, holder) in [("write.lock", "bd import"), ("next.lock", "bd create")] {
        let path = directory.path().join(lock);
        let other = OpenOptions::new().write(true).open(&path).expect("the lock file is there");
        other.lock().expect("the lock is free");
        std::fs::write(&path, format!("{} {holder}\n", std::process::id())).expect("it is written");

        // when a command wants to write,
        let refused = store.write(&author(), |writer| create(writer, "Late"));

        // then it fails and names the holder, and reading goes on.
        let Err(refused @ StoreError::Locked(_)) = refused else { panic!("{refused:?}") };
        let named = format!("{holder} (process {}, since 20", std::process::id());
        assert!(refused.to_string().contains(&named), "{refused}");
        store.read(|reader| reader.last_event_number()).expect("the read succeeds");

        // After it is released, the waits that were given up hold nothing.
        drop(other);
        store.write(&author(), |writer| create(writer, "On time")).expect("the lock is free");
    }
    // A holder that has ended is not named.
    let write_lock = directory.path().join("write.lock");
    let other = OpenOptions::new().write(true).open(&write_lock).expect("the lock file is there");
    other.lock().expect("the lock is free");
    std::fs::write(&write_lock, "4194304 bd import\n").expect("it is written");
    let refused = store.write(&author(), |writer| create(writer, "Late"));
    assert!(matches!(refused, Err(StoreError::Locked(None))), "{refused:?}");
}

#[test]
fn another_program_in_a_transaction_is_waited_for_as_long_as_the_setting_says() {
    let (_directory, path) = place();
    let (noticed, notices) = mpsc::channel();
    let options = Options {
        on_wait: Some(Arc::new(move |_| noticed.send(()).expect("the test waits"))),
        ..Options::default()
    };
    let store = Store::create(&path.as_path().into(), NOW, options).expect("the store is made");
    let put = |writer: &mut Writer<'_>| {
        writer.put_setting(SettingScope::Town, "store.lock_timeout", Some("1s"))
    };
    store.write(&author(), put).expect("the setting is written");
    let other = rusqlite::Connection::open(&path).expect("the file can be opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("the store is free");

    let refused = store.write(&author(), |writer| create(writer, "Late"));

    assert!(matches!(refused, Err(StoreError::Locked(_))), "{refused:?}");
    assert_eq!(notices.try_iter().count(), 1);
    other.execute_batch("ROLLBACK").expect("the transaction ends");
    store.write(&author(), |writer| create(writer, "On time")).expect("the store is free");
}
