//! Reading and writing: all or nothing, one state at a time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use gt_core::{Bead, BeadChangeKind, EventKind, Status};

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, by, id};
use gt_store::{BeadFilter, Reader, Store, StoreError, Writer};

/// An error of a caller, which the store hands back untouched.
#[derive(Debug)]
enum CallerError {
    Store(StoreError),
    Refused(&'static str),
}

impl From<StoreError> for CallerError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn count(store: &Store) -> u64 {
    store.read(|reader| reader.count(&BeadFilter::default())).expect("the read succeeds")
}

fn add(writer: &mut Writer<'_>, text: &str) -> Result<(), StoreError> {
    writer.insert_bead(&bead(text), EventKind::Created)
}

pub(super) fn a_writer_sees_what_it_has_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| {
        add(writer, "gt-a")?;
        assert!(writer.bead_exists(&id("gt-a"))?);
        assert_eq!(writer.count(&BeadFilter::default())?, 1);
        let old = writer.bead(&id("gt-a"))?.expect("the bead is there");
        let hooked = Bead { status: Status::Hooked, ..old.clone() };
        writer.save_bead(&old, &hooked, BeadChangeKind::StatusChanged)?;
        assert_eq!(writer.bead(&id("gt-a"))?, Some(hooked));
        Ok(())
    });
}

pub(super) fn a_write_is_seen_by_every_handle(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let (clone, other) = (town.store.clone(), subject.another(&town.store));

    town.add_open(&["gt-a"]);
    assert_eq!((count(&clone), count(&other)), (1, 1));

    other
        .write(&by(1), |writer| {
            assert!(writer.bead_exists(&id("gt-a"))?);
            add(writer, "gt-b")
        })
        .expect("the write succeeds");
    assert_eq!((count(&town.store), count(&clone)), (2, 2));
    assert_eq!(town.last_event(), 2);
}

pub(super) fn the_error_of_the_caller_comes_back(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);

    let refused = town.store.write(&by(1), |writer| {
        add(writer, "gt-a")?;
        Err::<(), _>(CallerError::Refused("not today"))
    });
    assert!(matches!(refused, Err(CallerError::Refused("not today"))));
    let failed: Result<(), CallerError> = town.store.write(&by(1), |writer| {
        add(writer, "gt-a")?;
        Ok(add(writer, "gt-a")?)
    });
    assert!(matches!(failed, Err(CallerError::Store(StoreError::AlreadyExists(_)))));
    let unread: Result<(), CallerError> = town.store.read(|_| Err(CallerError::Refused("not now")));
    assert!(matches!(unread, Err(CallerError::Refused("not now"))));

    assert_eq!(count(&town.store), 0);
    town.add_open(&["gt-a"]);
}

pub(super) fn a_panic_undoes_the_write_and_the_store_goes_on(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        town.store.write(&by(1), |writer| {
            add(writer, "gt-a")?;
            // Unlike `panic!`, this prints nothing.
            resume_unwind(Box::new("in the middle of it"));
            #[expect(unreachable_code, reason = "the type of the closure needs a value")]
            Ok::<(), StoreError>(())
        })
    }));
    assert!(panicked.is_err());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let read: Result<(), StoreError> =
            town.store.read(|_| resume_unwind(Box::new("while reading")));
        read
    }));
    assert!(panicked.is_err());

    assert_eq!(count(&town.store), 0);
    town.add_open(&["gt-a"]);
    assert_eq!(town.last_event(), 1);
}

pub(super) fn of_several_items_each_stands_or_falls_alone(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-taken"]);
    let items = ["gt-a", "gt-taken", "gt-b", "gt-half", "gt-c"];

    let results = town
        .store
        .write_each(&by(1), items, |writer, text| {
            add(writer, text)?;
            if text == "gt-half" {
                return Err(CallerError::Refused("half way through"));
            }
            Ok(writer.count(&BeadFilter::default())?)
        })
        .expect("the group is written");

    let shown: Vec<String> = results.iter().map(|result| format!("{result:?}")).collect();
    assert_eq!(shown[0], "Ok(2)");
    assert!(shown[1].contains("AlreadyExists"), "{}", shown[1]);
    assert_eq!(shown[2], "Ok(3)");
    assert!(shown[3].contains("half way through"), "{}", shown[3]);
    assert_eq!(shown[4], "Ok(4)", "what failed is not seen by the next");
    town.finds(BeadFilter::default(), &["gt-a", "gt-b", "gt-c", "gt-taken"]);
    assert_eq!(town.last_event(), 4);
    town.check();
}

pub(super) fn several_items_that_all_fail_change_nothing(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);

    let results =
        town.store.write_each(&by(1), ["gt-a", "gt-a"], add).expect("the group is written");
    assert!(results.iter().all(Result::is_err));
    let none =
        town.store.write_each(&by(1), std::iter::empty::<&str>(), add).expect("nothing is written");
    assert!(none.is_empty());

    assert_eq!(town.last_event(), 1);
    town.check();
}

pub(super) fn a_read_sees_one_state_while_another_writes(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let other = subject.another(&town.store);
    let write = || {
        other.write(&by(1), |writer| add(writer, "gt-b")).expect("the write succeeds");
    };

    thread::scope(|scope| {
        let seen: Result<_, StoreError> = town.store.read(|reader| {
            let look = |reader: &Reader<'_>| {
                Ok::<_, StoreError>((
                    reader.count(&BeadFilter::default())?,
                    reader.bead_exists(&id("gt-b"))?,
                    reader.last_event_number()?,
                ))
            };
            let before = look(reader)?;
            let writing = scope.spawn(write);
            if subject.reads_beside_writes() {
                writing.join().expect("the writer does not wait for us");
            }
            Ok((before, look(reader)?))
        });
        let (before, after) = seen.expect("the read succeeds");
        assert_eq!(before, (1, false, 1));
        assert_eq!(after, before, "a read is one consistent state");
    });

    assert_eq!(count(&town.store), 2, "the next read sees the write");
}

pub(super) fn nothing_is_wrong_with_the_file_of_a_healthy_store(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let wrong = town.store.check_file().expect("the check runs");
    assert!(wrong.is_empty(), "{wrong:?}");
}
