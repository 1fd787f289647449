//! Readers of the log beside writers, each with a store handle of its own.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gt_core::{Bead, BeadChangeKind, BeadId, DependencyType, Event, EventKind, Status};

use super::EngineUnderTest;
use super::kit::{CheckedStore, at, bead, edge, id};
use gt_store::{
    Authorship, BeadFilter, BeadOrder, EventFilter, Reader, StatusFilter, Store, StoreError, Writer,
};

const WRITERS: usize = 4;
const FOLLOWERS: usize = 3;
/// Jobs of a submitter that wait for the same commit.
const JOBS_PER_COMMIT: usize = 6;

/// The number of jobs of each writer.
fn jobs_each(subject: &dyn EngineUnderTest) -> usize {
    if subject.reads_beside_writes() { 60 } else { 20 }
}

/// One of many things that a writer does.
#[derive(Debug, Clone, Copy)]
struct WriterJob {
    writer: usize,
    number: usize,
}

impl WriterJob {
    fn by(self) -> Authorship {
        Authorship { actor: format!("writer-{}", self.writer), at: at(1), worker: None }
    }

    fn bead(self) -> BeadId {
        id(&format!("gt-w{}n{}", self.writer, self.number))
    }

    /// Adds a labelled bead that waits for the one before it, or finishes the one before it, or
    /// changes its mind after it has done so.
    fn perform(self, writer: &mut Writer<'_>) -> Result<(), StoreError> {
        let new = bead(self.bead().as_str());
        writer.insert_bead(&new, EventKind::Created)?;
        writer.add_label(&new, "red", true)?;
        let before = Self { number: self.number.saturating_sub(1), ..self };
        if let Some(old) = writer.bead(&before.bead())?
            && before.number != self.number
        {
            let waits = edge(new.id.as_str(), DependencyType::Blocks, old.id.as_str());
            writer.put_dependency(&waits, true)?;
            if self.number.is_multiple_of(3) {
                let over =
                    Bead { status: Status::Closed, closed_at: Some(writer.now()), ..old.clone() };
                writer.save_bead(&old, &over, BeadChangeKind::Closed)?;
            }
        }
        if self.fails() {
            return Err(StoreError::NotCommitted("changed my mind".to_owned()));
        }
        Ok(())
    }

    fn fails(self) -> bool {
        self.number % 5 == 4
    }

    fn panics(self) -> bool {
        self.number % 7 == 5
    }

    fn stands(self, result: &Result<(), StoreError>, may_panic: bool) {
        let expected = !(self.fails() || (may_panic && self.panics()));
        assert_eq!(result.is_ok(), expected, "{self:?}: {result:?}");
    }
}

/// Does everything that one writer has to do; half of them write alone, the others submit.
fn write_all(store: &Store, writer: usize, jobs: usize, acknowledged: impl Fn(WriterJob)) {
    let jobs: Vec<WriterJob> = (0..jobs).map(|number| WriterJob { writer, number }).collect();
    if writer.is_multiple_of(2) {
        for job in jobs {
            let written = store.write(&job.by(), |writer| job.perform(writer));
            job.stands(&written, false);
            acknowledged(job);
        }
        return;
    }
    for group in jobs.chunks(JOBS_PER_COMMIT) {
        let submit = |job: &WriterJob| {
            let job = *job;
            let ticket = store.submit(job.by(), move |writer| {
                job.perform(writer)?;
                if job.panics() {
                    // Unlike `panic!`, this prints nothing.
                    resume_unwind(Box::new("in the middle of it"));
                }
                Ok(())
            });
            (job, ticket)
        };
        let tickets: Vec<_> = group.iter().map(submit).collect();
        for (job, ticket) in tickets {
            job.stands(&ticket.wait(), true);
            acknowledged(job);
        }
    }
}

/// Sets the flag when its holder is done, or has failed.
struct Finish<'f>(&'f AtomicBool);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Lets all writers write while followers `look`, again and again, and once more when nothing more
/// will come. Returns the final state of each follower.
fn follow<F: Send>(
    subject: &dyn EngineUnderTest,
    town: &CheckedStore,
    begin: impl Fn(usize) -> F + Sync,
    look: impl Fn(&Store, &mut F) + Sync,
) -> Vec<F> {
    let doors: Vec<Store> =
        (0..WRITERS + FOLLOWERS).map(|_| subject.another(&town.store)).collect();
    let over = AtomicBool::new(false);
    let (writers, followers) = doors.split_at(WRITERS);
    let seen = thread::scope(|scope| {
        let following: Vec<_> = followers
            .iter()
            .enumerate()
            .map(|(number, door)| {
                let (over, begin, look) = (&over, &begin, &look);
                scope.spawn(move || {
                    let mut follower = begin(number);
                    loop {
                        let last_time = over.load(Ordering::SeqCst);
                        look(door, &mut follower);
                        if last_time {
                            return follower;
                        }
                    }
                })
            })
            .collect();
        let finish = Finish(&over);
        thread::scope(|scope| {
            for (number, door) in writers.iter().enumerate() {
                scope.spawn(move || write_all(door, number, jobs_each(subject), |_| {}));
            }
        });
        drop(finish);
        following.into_iter().map(|thread| thread.join().expect("a follower ends")).collect()
    });
    town.check();
    seen
}

pub(super) fn a_follower_misses_no_event_and_sees_none_twice(subject: &dyn EngineUnderTest) {
    // Pages of these sizes: one at a time, a few, and more than an engine fetches at once.
    const PAGES: [usize; FOLLOWERS] = [1, 7, 100];
    let town = CheckedStore::new(subject);

    let followers = follow(
        subject,
        &town,
        |number| (PAGES[number], Vec::<Event>::new()),
        |store, (page, seen)| {
            let last = seen.last().map_or(0, |event| event.number);
            let (events, reached) = store
                .read(|reader| reader.events_after(last, &EventFilter::default(), *page))
                .expect("the read succeeds");
            for (event, number) in events.iter().zip(last + 1..) {
                assert_eq!(event.number, number, "nothing is left out and nothing comes later");
            }
            assert_eq!(reached, last + events.len() as u64);
            seen.extend(events);
        },
    );

    let log = town.events_since(0);
    assert!(log.len() > 2 * jobs_each(subject));
    for (page, mut seen) in followers {
        // A follower that reads small pages may not have come to the end.
        let rest = town.events_since(seen.last().map_or(0, |event| event.number));
        assert!(page < 100 || rest.is_empty() || rest.len() + seen.len() == log.len());
        seen.extend(rest);
        assert!(seen == log, "an event that was read has changed since");
    }
    let of_writer = |writer: usize| {
        let actor = format!("writer-{writer}");
        let own = log.iter().filter(move |event| event.actor == actor);
        own.filter(|event| event.kind == EventKind::Created).filter_map(|event| event.bead.clone())
    };
    for writer in 0..WRITERS {
        let made: Vec<BeadId> = of_writer(writer).collect();
        let jobs = (0..jobs_each(subject)).map(|number| WriterJob { writer, number });
        let lasting = jobs.filter(|job| !job.fails() && (writer % 2 == 0 || !job.panics()));
        assert_eq!(
            made,
            lasting.map(WriterJob::bead).collect::<Vec<_>>(),
            "in the order of its writes"
        );
    }
}

/// The beads by the log alone: how many labels each has, and whether it is closed.
type BeadsByLog = BTreeMap<BeadId, (usize, bool)>;

fn retell(told: &mut BeadsByLog, events: &[Event]) {
    for event in events {
        let Some(id) = event.bead.clone() else { continue };
        let about = told.entry(id).or_default();
        match event.kind {
            EventKind::LabelAdded => about.0 += 1,
            EventKind::Closed => about.1 = true,
            _ => {}
        }
    }
}

/// The same, from the beads themselves.
fn as_they_are(reader: &Reader<'_>) -> Result<BeadsByLog, StoreError> {
    let all =
        BeadFilter { status: StatusFilter::All, order: BeadOrder::Oldest, ..BeadFilter::default() };
    let rows = reader.bead_rows(&reader.find(&all)?)?;
    let about = |row: gt_store::BeadRow| (row.labels.len(), row.bead.status == Status::Closed);
    Ok(rows.into_iter().map(|row| (row.bead.id.clone(), about(row))).collect())
}

pub(super) fn no_reader_sees_a_change_without_its_event_or_an_event_without_its_change(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);

    let followers = follow(
        subject,
        &town,
        |_| (0_u64, BeadsByLog::new()),
        |store, (last, told)| {
            let (events, reached, counted, beads) = store
                .read(|reader| {
                    // The beads before the log in one follower, after it in the next.
                    let first = as_they_are(reader)?;
                    let (events, reached) =
                        reader.events_after(*last, &EventFilter::default(), usize::MAX)?;
                    let second = as_they_are(reader)?;
                    assert_eq!(first, second, "a read is one state");
                    Ok::<_, StoreError>((events, reached, reader.last_event_number()?, second))
                })
                .expect("the read succeeds");
            assert_eq!(reached, counted, "the counter and the log go together");
            retell(told, &events);
            assert_eq!(*told, beads, "the log tells of everything that is, and of nothing else");
            *last = reached;
        },
    );

    let end = town.last_event();
    assert!(followers.iter().all(|(last, _)| *last == end), "every follower came to the end");
}

pub(super) fn an_acknowledged_write_is_seen_by_every_handle(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let doors: Vec<(Store, Store)> = (0..WRITERS)
        .map(|_| (subject.another(&town.store), subject.another(&town.store)))
        .collect();

    thread::scope(|scope| {
        for (writer, (door, other)) in doors.iter().enumerate() {
            scope.spawn(move || {
                write_all(door, writer, jobs_each(subject) / 2, |job| {
                    let submitted = writer % 2 == 1;
                    let expected = !(job.fails() || (submitted && job.panics()));
                    let there = other.read(|reader| reader.bead_exists(&job.bead()));
                    assert_eq!(there.expect("the read succeeds"), expected, "{job:?}");
                });
            });
        }
    });

    town.check();
}
