//! PostgreSQL is sent several statements at once: one whose answer is not awaited may be refused only when
//! its job is over. A write that depended on it must not be acknowledged.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use gt_core::{Bead, BeadId, EventKind, Uid};
use gt_store::dump;
use gt_store::{Store, StoreError, Ticket, Writer};
use gt_testkit::Cluster;

use crate::history::plain_bead;
use crate::subjects::{NOW, author, fresh_url, store_on};

/// When the server refuses.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    /// As soon as it sees the statement.
    AtOnce,
    /// Not before everything is to be committed.
    AtCommit,
}

/// A store whose server refuses the label `refused`, in a way that no verb can foresee.
fn store_that_refuses(when: Refusal) -> Store {
    let url = fresh_url();
    let (_, database) = url.rsplit_once('/').expect("a URL names its database");
    let trigger = match when {
        Refusal::AtOnce => "CREATE TRIGGER",
        Refusal::AtCommit => "CREATE CONSTRAINT TRIGGER",
    };
    let moment = match when {
        Refusal::AtOnce => "",
        Refusal::AtCommit => "DEFERRABLE INITIALLY DEFERRED",
    };
    let sql = format!(
        "SET search_path = gt; \
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql \
         AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$; \
         {trigger} refuse AFTER INSERT ON labels {moment} \
         FOR EACH ROW WHEN (NEW.label = 'refused') EXECUTE FUNCTION refuse()"
    );
    Cluster::shared().sql(database, &sql);
    let store = store_on(&url);
    add(&store, "gt-before");
    store
}

fn bead(text: &str) -> Bead {
    let id = BeadId::trusted(text.to_owned());
    Bead { uid: Uid::of_bead(&id, NOW), id, ..plain_bead(0) }
}

fn insert(writer: &mut Writer<'_>, text: &str) -> Result<(), StoreError> {
    writer.insert_bead(&bead(text), EventKind::Created)
}

/// Adds a bead with the label that will be refused. The label is the last that is sent, and the writer
/// does not wait for its answer, so that this says that all is well.
fn insert_refused(writer: &mut Writer<'_>, text: &str) -> Result<(), StoreError> {
    insert(writer, text)?;
    let added = writer.add_label(&bead(text), "refused", true)?;
    assert!(added, "the server has not been heard yet");
    Ok(())
}

fn add(store: &Store, text: &str) {
    store.write(&author(), |writer| insert(writer, text)).expect("the write succeeds");
}

fn everything(store: &Store) -> Vec<String> {
    store.read(dump).expect("the read succeeds")
}

/// Runs `work`, which must leave the store as it was, able to go on and without a gap.
fn changes_nothing(store: &Store, work: impl FnOnce()) {
    let before = everything(store);
    work();
    assert_eq!(everything(store), before);
    add(store, "gt-after");
    let differences = store.read(|reader| reader.differences()).expect("the read succeeds");
    assert_eq!(differences, Vec::<String>::new());
    let last = store.read(|reader| reader.last_event_number()).expect("the read succeeds");
    assert_eq!(last, 2);
}

type Job = Box<dyn FnOnce(&mut Writer<'_>) -> Result<(), StoreError> + Send>;

fn job(work: impl FnOnce(&mut Writer<'_>) -> Result<(), StoreError> + Send + 'static) -> Job {
    Box::new(work)
}

/// Submits these while the writer is busy, so that they become one group; their answers.
fn as_one_group(store: &Store, jobs: Vec<Job>) -> Vec<Result<(), StoreError>> {
    let (release, released) = mpsc::channel::<()>();
    let (started, running) = mpsc::channel();
    let held = store.submit(author(), move |_| {
        started.send(()).expect("the test waits");
        // Ends when the test lets go of the other end.
        let _ = released.recv();
        Ok::<_, StoreError>(())
    });
    running.recv().expect("the job runs");
    let tickets: Vec<Ticket<(), StoreError>> =
        jobs.into_iter().map(|work| store.submit(author(), work)).collect();
    drop(release);
    held.wait().expect("the held job does nothing");
    tickets.into_iter().map(Ticket::wait).collect()
}

fn all_refused(answers: &[Result<(), StoreError>]) {
    assert!(answers.iter().all(Result::is_err), "a write was acknowledged: {answers:?}");
}

#[test]
fn a_write_whose_last_statement_is_refused_is_refused() {
    for when in [Refusal::AtOnce, Refusal::AtCommit] {
        let store = store_that_refuses(when);
        changes_nothing(&store, || {
            let written = store.write(&author(), |writer| insert_refused(writer, "gt-a"));
            assert!(matches!(written, Err(StoreError::Engine { .. })), "{when:?}: {written:?}");
            let submitted = store.submit(author(), |writer| insert_refused(writer, "gt-a")).wait();
            assert!(submitted.is_err(), "{when:?}");
        });
    }
}

#[test]
fn a_late_refusal_fails_its_whole_group() {
    for when in [Refusal::AtOnce, Refusal::AtCommit] {
        let store = store_that_refuses(when);
        changes_nothing(&store, || {
            // Given a job that believes it has succeeded before the next one begins,
            let believed = Arc::new(AtomicBool::new(false));
            let belief = Arc::clone(&believed);
            let answers = as_one_group(
                &store,
                vec![
                    job(|writer| insert(writer, "gt-a")),
                    job(move |writer| {
                        insert_refused(writer, "gt-b")?;
                        belief.store(true, Ordering::SeqCst);
                        Ok(())
                    }),
                    // when the next one is the first to hear of it,
                    job(|writer| insert(writer, "gt-c")),
                    job(|writer| insert(writer, "gt-d")),
                ],
            );
            // then no write is acknowledged.
            assert!(believed.load(Ordering::SeqCst));
            all_refused(&answers);
        });
    }
}

#[test]
fn it_makes_no_difference_how_the_next_job_ends() {
    let next: [fn() -> Job; 5] = [
        || job(|_| Ok(())),
        || job(|_| Err(StoreError::NotCommitted("changed my mind".to_owned()))),
        || job(|_| resume_unwind(Box::new("in the middle of it"))),
        // One that ignores the answer.
        || {
            job(|writer| {
                let _ = insert(writer, "gt-b");
                let _ = insert(writer, "gt-c");
                Ok(())
            })
        },
        || {
            job(|writer| {
                let _ = writer.last_event_number();
                resume_unwind(Box::new("in the middle of it"))
            })
        },
    ];
    for next in next {
        let store = store_that_refuses(Refusal::AtOnce);
        changes_nothing(&store, || {
            let first = job(|writer| insert_refused(writer, "gt-a"));
            let last = job(|writer| insert(writer, "gt-z"));
            all_refused(&as_one_group(&store, vec![first, next(), last]));
        });
    }
}

#[test]
fn of_several_items_none_is_acknowledged_when_one_was_refused_too_late() {
    for when in [Refusal::AtOnce, Refusal::AtCommit] {
        for items in [vec!["a", "refused"], vec!["refused", "a", "b"], vec!["refused", "fails"]] {
            let store = store_that_refuses(when);
            changes_nothing(&store, || {
                let written = store.write_each(&author(), &items, |writer, item| match *item {
                    "refused" => insert_refused(writer, "gt-refused"),
                    "fails" => Err(StoreError::NotCommitted("changed my mind".to_owned())),
                    name => insert(writer, &format!("gt-{name}")),
                });
                assert!(written.is_err(), "{when:?} {items:?}: {written:?}");
            });
        }
    }
}

#[test]
fn an_early_refusal_fails_its_job_alone() {
    // Given a group in which one job hears of the refusal itself, because it asks something after it,
    let store = store_that_refuses(Refusal::AtOnce);
    let answers = as_one_group(
        &store,
        vec![
            job(|writer| insert(writer, "gt-a")),
            job(|writer| {
                insert_refused(writer, "gt-b")?;
                writer.last_event_number().map(drop)
            }),
            job(|writer| insert(writer, "gt-c")),
        ],
    );

    // then only that job is refused, and its number is given to the next.
    assert!(matches!(answers[..], [Ok(()), Err(StoreError::Engine { .. }), Ok(())]), "{answers:?}");
    let there = |text: &str| {
        let id = BeadId::trusted(text.to_owned());
        store.read(|reader| reader.bead_exists(&id)).expect("the read succeeds")
    };
    assert_eq!(["gt-a", "gt-b", "gt-c"].map(there), [true, false, true]);
    let last = store.read(|reader| reader.last_event_number()).expect("the read succeeds");
    assert_eq!(last, 3);
    let differences = store.read(|reader| reader.differences()).expect("the read succeeds");
    assert_eq!(differences, Vec::<String>::new());
}

#[test]
fn a_refusal_is_undone_after_any_number_of_statements() {
    // Statements are prepared when they are seen again; in a transaction that the server has given
    // up, it prepares nothing but the way out.
    for before in 0..4 {
        for between in 0..3 {
            let store = store_that_refuses(Refusal::AtOnce);
            let mut items: Vec<String> = (0..before).map(|number| format!("a{number}")).collect();
            items.push("refused".to_owned());
            items.extend((0..between).map(|number| format!("b{number}")));
            items.extend(["refused".to_owned(), "z".to_owned()]);
            let results = store.write_each(&author(), &items, |writer, item| {
                if item == "refused" {
                    insert_refused(writer, "gt-refused")?;
                    writer.last_event_number().map(drop)
                } else {
                    insert(writer, &format!("gt-{item}"))
                }
            });

            let results = results.expect("the others are written");
            for (item, result) in items.iter().zip(&results) {
                assert_eq!(result.is_ok(), item != "refused", "{before} {between}: {results:?}");
            }
            let last = store.read(|reader| reader.last_event_number()).expect("the read succeeds");
            assert_eq!(last, 2 + before + between);
        }
    }
}
