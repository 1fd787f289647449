//! Submitted writes, which share commits.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use gt_core::EventKind;

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, by, id};
use gt_store::{BeadFilter, Store, StoreError, Ticket, Writer};

fn add(writer: &mut Writer<'_>, text: &str) -> Result<(), StoreError> {
    writer.insert_bead(&bead(text), EventKind::Created)
}

fn submit(store: &Store, text: &str) -> Ticket<(), StoreError> {
    let text = text.to_owned();
    store.submit(by(1), move |writer| add(writer, &text))
}

fn panicking(store: &Store, text: &str) -> Ticket<(), StoreError> {
    let text = text.to_owned();
    store.submit(by(1), move |writer| {
        add(writer, &text)?;
        // Unlike `panic!`, this prints nothing.
        resume_unwind(Box::new("in the middle of it"))
    })
}

/// A job that keeps the writer until told to go on.
struct HeldJob {
    ticket: Ticket<(), StoreError>,
    release: Sender<()>,
    running: Receiver<()>,
}

impl HeldJob {
    fn submit(store: &Store) -> Self {
        let (release, released) = mpsc::channel();
        let (started, running) = mpsc::channel();
        let ticket = store.submit(by(1), move |_| {
            // Both ends are dropped only when the case has failed already.
            let _ = started.send(());
            let _ = released.recv();
            Ok(())
        });
        Self { ticket, release, running }
    }

    fn wait_until_running(&self) {
        self.running.recv().expect("the job is run");
    }

    fn finish(self) -> Result<(), StoreError> {
        self.release.send(()).expect("the job waits");
        self.ticket.wait()
    }
}

/// Submits while the writer is busy, so that everything waits together and becomes one group.
fn together(store: &Store, jobs: impl FnOnce()) {
    let held = HeldJob::submit(store);
    held.wait_until_running();
    jobs();
    held.finish().expect("the held job does nothing");
}

pub(super) fn a_ticket_is_answered_when_the_write_is_there_for_all(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let other = subject.another(&town.store);

    let answer = town
        .store
        .submit(by(1), |writer| {
            add(writer, "gt-a")?;
            writer.last_event_number()
        })
        .wait();

    assert_eq!(answer.expect("the write succeeds"), 0);
    let seen = other.read(|reader| reader.bead_exists(&id("gt-a")));
    assert!(seen.expect("the read succeeds"));
    assert_eq!(town.last_event(), 1);
}

pub(super) fn in_a_group_each_job_stands_or_falls_alone(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let mut tickets = Vec::new();
    together(&town.store, || {
        tickets.push(submit(&town.store, "gt-a"));
        tickets.push(submit(&town.store, "gt-a"));
        tickets.push(panicking(&town.store, "gt-lost"));
        tickets.push(submit(&town.store, "gt-b"));
        tickets.push(panicking(&town.store, "gt-b"));
        tickets.push(submit(&town.store, "gt-c"));
    });

    let answers: Vec<Result<(), StoreError>> = tickets.into_iter().map(Ticket::wait).collect();

    assert!(matches!(
        answers[..],
        [
            Ok(()),
            Err(StoreError::AlreadyExists(_)),
            Err(StoreError::NotCommitted(_)),
            Ok(()),
            Err(_),
            Ok(()),
        ]
    ));
    town.finds(BeadFilter::default(), &["gt-a", "gt-b", "gt-c"]);
    assert_eq!(town.last_event(), 3, "what failed leaves no gap");
    town.check();
}

pub(super) fn the_first_job_of_a_store_may_panic(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let lost = panicking(&town.store, "gt-lost").wait();
    assert!(matches!(lost, Err(StoreError::NotCommitted(_))));

    submit(&town.store, "gt-a").wait().expect("the writer goes on");

    town.finds(BeadFilter::default(), &["gt-a"]);
    assert_eq!(town.last_event(), 1);
}

pub(super) fn no_answer_comes_before_the_commit(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let answered = Arc::new(AtomicBool::new(false));
    let mut group = None;
    together(&town.store, || {
        group = Some((submit(&town.store, "gt-a"), HeldJob::submit(&town.store)));
    });
    let (ticket, held) = group.expect("both were submitted");
    let waiting = thread::spawn({
        let answered = Arc::clone(&answered);
        move || {
            let answer = ticket.wait();
            answered.store(true, Ordering::SeqCst);
            answer
        }
    });

    // The job is done, its group is not: another one of it is still at work.
    held.wait_until_running();
    assert!(!answered.load(Ordering::SeqCst));
    if subject.reads_beside_writes() {
        let other = subject.another(&town.store);
        let seen = other.read(|reader| reader.bead_exists(&id("gt-a")));
        assert!(!seen.expect("the read succeeds"));
    }

    held.finish().expect("the held job does nothing");
    let answer = waiting.join().expect("the waiting thread ends");
    answer.expect("the write succeeds");
    town.finds(BeadFilter::default(), &["gt-a"]);
}

pub(super) fn jobs_of_one_submitter_are_written_in_order(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    // More than one group, and more than may wait at a time.
    let tickets: Vec<_> =
        (0..1500).map(|number| submit(&town.store, &format!("gt-{number:04}"))).collect();
    for ticket in tickets {
        ticket.wait().expect("the write succeeds");
    }

    let events = town.events_since(0);
    assert_eq!(events.len(), 1500);
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event.number, number as u64 + 1);
        assert_eq!(event.bead, Some(id(&format!("gt-{number:04}"))));
    }
    town.check();
}

pub(super) fn many_submitters_lose_nothing(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    thread::scope(|scope| {
        for thread in 0..8 {
            let store = town.store.clone();
            scope.spawn(move || {
                for number in 0..25 {
                    let ticket = submit(&store, &format!("gt-{thread}-{number}"));
                    ticket.wait().expect("the write succeeds");
                }
            });
        }
    });

    let counted = town.read(|reader| reader.count(&BeadFilter::default()));
    assert_eq!((counted, town.last_event()), (200, 200));
    town.check();
}

pub(super) fn submitted_and_plain_writes_get_along(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let other = subject.another(&town.store);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..40 {
                let ticket = submit(&town.store, &format!("gt-s{number}"));
                ticket.wait().expect("the write succeeds");
            }
        });
        for (store, name) in [(&town.store, "w"), (&other, "o")] {
            scope.spawn(move || {
                for number in 0..40 {
                    let text = format!("gt-{name}{number}");
                    store.write(&by(1), |writer| add(writer, &text)).expect("the write succeeds");
                }
            });
        }
    });

    assert_eq!(town.last_event(), 120);
    town.check();
}

pub(super) fn a_write_whose_ticket_is_dropped_is_written_all_the_same(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    drop(submit(&town.store, "gt-a"));
    submit(&town.store, "gt-b").wait().expect("the write succeeds");
    town.finds(BeadFilter::default(), &["gt-a", "gt-b"]);
}

pub(super) fn failed_jobs_leave_no_gap_across_groups(subject: &dyn EngineUnderTest) {
    const JOBS: usize = 300;
    let town = CheckedStore::new(subject);
    let mut tickets = Vec::new();
    together(&town.store, || {
        for number in 0..JOBS {
            let text = format!("gt-{number:03}");
            tickets.push(match number % 10 {
                3 => submit(&town.store, "gt-000"),
                7 => panicking(&town.store, &text),
                _ => submit(&town.store, &text),
            });
        }
    });

    let answers: Vec<Result<(), StoreError>> = tickets.into_iter().map(Ticket::wait).collect();

    for (number, answer) in answers.iter().enumerate() {
        let as_expected = match number % 10 {
            3 => matches!(answer, Err(StoreError::AlreadyExists(_))),
            7 => matches!(answer, Err(StoreError::NotCommitted(_))),
            _ => answer.is_ok(),
        };
        assert!(as_expected, "job {number}: {answer:?}");
    }
    let made = (0..JOBS).filter(|number| ![3, 7].contains(&(number % 10)));
    let expected: Vec<_> = made.map(|number| Some(id(&format!("gt-{number:03}")))).collect();
    let events = town.events_since(0);
    assert_eq!(events.iter().map(|event| event.bead.clone()).collect::<Vec<_>>(), expected);
    assert!(events.iter().zip(1..).all(|(event, number)| event.number == number));
    town.check();
}

pub(super) fn a_job_sees_what_the_jobs_before_it_did_and_nothing_of_those_that_failed(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    let look = || {
        town.store.submit(by(1), |writer| {
            let there = ["gt-a", "gt-lost", "gt-b"].map(|text| writer.bead_exists(&id(text)));
            Ok::<_, StoreError>(there.map(|there| there.expect("the read succeeds")))
        })
    };
    let mut seen = Vec::new();
    let mut tickets = Vec::new();
    together(&town.store, || {
        seen.push(look());
        tickets.push(submit(&town.store, "gt-a"));
        seen.push(look());
        drop(panicking(&town.store, "gt-lost"));
        seen.push(look());
        tickets.push(submit(&town.store, "gt-b"));
        seen.push(look());
    });

    let seen: Vec<[bool; 3]> =
        seen.into_iter().map(|ticket| ticket.wait().expect("the look succeeds")).collect();

    assert!(tickets.into_iter().all(|ticket| ticket.wait().is_ok()));
    let a_only = [true, false, false];
    assert_eq!(seen, [[false; 3], a_only, a_only, [true, false, true]]);
}
