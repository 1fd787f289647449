//! Durable creates from many threads of one process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use gt_core::decide::IdSeed;
use gt_core::limits::WRITE_GROUP_MAX;
use gt_core::{Bead, BeadId, Clock, EventKind, Prefix, Timestamp, Title};
use gt_store::{Authorship, Options, Store, StoreError, Writer};
use gt_town::SystemClock;
use rusqlite::{Connection, TransactionBehavior, params};

use crate::BenchmarkResult;
use crate::baseline::{self, COUNT_EVENTS, COUNT_PREFIX, CREATOR, INSERT_EVENT, OWNER, PAYLOAD};
use crate::lab::Lab;
use crate::measure::{Arm, alternate, median};
use crate::report::ReportRow;
use crate::sample::SampleRandom;

pub(super) const THREADS: u32 = 64;
/// As many jobs as may wait in the store's own queue.
pub(super) const WAITING_MAX: usize = 1024;

/// Creates through [`Store::submit`], against a loop that only inserts what arrived and commits.
pub(crate) fn run(lab: &Lab) -> BenchmarkResult<Vec<ReportRow>> {
    let each = lab.scale.creates_per_thread;
    let ours: Arm<'_> = Box::new(|| in_directory(lab, |directory| through_store(directory, each)));
    let bare: Arm<'_> = Box::new(|| in_directory(lab, |directory| through_loop(directory, each)));
    let times = alternate(lab.scale.long_rounds * 2, [ours, bare])?;
    let name = format!("grouped: durable creates from {THREADS} threads, against a bare loop");
    Ok(vec![ReportRow::speeds(
        name,
        THREADS * each,
        median(&times[0]),
        median(&times[1]),
        Some(0.5),
    )])
}

fn in_directory(
    lab: &Lab,
    work: impl Fn(&Path) -> BenchmarkResult<Duration>,
) -> BenchmarkResult<Duration> {
    let directory: PathBuf = lab.path().join("grouped");
    fs::create_dir(&directory)?;
    let took = work(&directory);
    fs::remove_dir_all(&directory)?;
    took
}

fn through_store(directory: &Path, each: u32) -> BenchmarkResult<Duration> {
    let store = Store::create(
        &directory.join("gt.db").as_path().into(),
        SystemClock.now(),
        Options::default(),
    )?;
    create_from_threads(&store, each)
}

/// So many creates from each thread; how long until the last is durable.
pub(super) fn create_from_threads(store: &Store, each: u32) -> BenchmarkResult<Duration> {
    let start = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    (0..each).try_for_each(|number| create(store, thread * each + number))
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(died())))
    })?;
    Ok(start.elapsed())
}

/// Makes one bead as `bd create` does and waits until it is durable.
pub(crate) fn create(store: &Store, number: u32) -> std::result::Result<(), StoreError> {
    let at = SystemClock.now();
    let actor = CREATOR.to_owned();
    store
        .submit(Authorship { actor, at, worker: None }, move |writer| write_bead(writer, number))
        .wait()
}

fn write_bead(writer: &mut Writer<'_>, number: u32) -> std::result::Result<(), StoreError> {
    let now = writer.now();
    // As long as the title that the baseline writes.
    let title = format!("Retry the landing queue when the {number:011} lags");
    let seed = IdSeed { title: &title, description: "", creator: CREATOR, at: now };
    let id = writer.free_id(&Prefix::town(), &seed)?;
    let bead = bead(id, Title::parse(&title)?, now);
    writer.insert_bead(&bead, EventKind::Created)
}

fn bead(id: BeadId, title: Title, now: Timestamp) -> Bead {
    Bead { owner: OWNER.to_owned(), created_by: CREATOR.to_owned(), ..Bead::new(id, title, now) }
}

/// One bead, and the thread that waits for it.
pub(super) struct CreateJob {
    pub(super) id: String,
    pub(super) at: i64,
    pub(super) done: SyncSender<()>,
}

fn through_loop(directory: &Path, each: u32) -> BenchmarkResult<Duration> {
    let connection = baseline::create(&directory.join("bare.db"))?;
    ask_from_threads(each, move |jobs| insert_groups(connection, &jobs))
}

/// Lets as many threads ask for beads; `insert` makes them, in one thread.
pub(super) fn ask_from_threads(
    each: u32,
    insert: impl FnOnce(Receiver<CreateJob>) -> BenchmarkResult<()> + Send,
) -> BenchmarkResult<Duration> {
    let (sender, jobs) = mpsc::sync_channel::<CreateJob>(WAITING_MAX);
    let start = Instant::now();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let sender = sender.clone();
            scope.spawn(move || ask(&sender, thread, each));
        }
        drop(sender);
        scope
            .spawn(move || insert(jobs).map_err(|error| error.to_string()))
            .join()
            .unwrap_or_else(|_| Err(died().to_string()))
    })?;
    Ok(start.elapsed())
}

/// Sends beads and waits for each.
fn ask(sender: &SyncSender<CreateJob>, thread: u32, each: u32) {
    let mut random = SampleRandom::new(thread.into());
    let (done, answer) = mpsc::sync_channel(1);
    for _ in 0..each {
        let job =
            CreateJob { id: random.id(7), at: SystemClock.now().as_nanos(), done: done.clone() };
        // The channel is closed after an error, which the other end reports.
        if sender.send(job).is_err() || answer.recv().is_err() {
            return;
        }
    }
}

fn insert_groups(mut connection: Connection, jobs: &Receiver<CreateJob>) -> BenchmarkResult<()> {
    let mut event = 0_i64;
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(WRITE_GROUP_MAX - 1));
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for CreateJob { id, at, .. } in &group {
            event += 1;
            baseline::insert_bead(&transaction, id, *at)?;
            transaction.prepare_cached(COUNT_PREFIX)?.execute(["hq"])?;
            let none = None::<&str>;
            transaction
                .prepare_cached(INSERT_EVENT)?
                .execute(params![event, at, "created", id, none, none, CREATOR, PAYLOAD])?;
        }
        transaction.prepare_cached(COUNT_EVENTS)?.execute([event])?;
        transaction.commit()?;
        for job in group {
            // The thread waits for exactly this.
            let _ = job.done.send(());
        }
    }
    Ok(())
}

fn died() -> StoreError {
    StoreError::NotCommitted("a thread of the benchmark died".to_owned())
}
