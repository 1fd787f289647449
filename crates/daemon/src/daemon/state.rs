//! The state that the threads of the daemon share.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gt_core::{Json, Timestamp};

use super::journal::{Journal, Level};
use super::reconciler_kind::ReconcilerKind;
use super::report::ReconcilerReport;
use super::spawning::Permits;
use super::wake::{TurnLock, Wake};
use super::watch::FreedLock;
use gt_scheduling::processes::LocalProcesses;
use gt_town::Town;

/// The counts of one reconciler.
#[derive(Debug, Default)]
pub(super) struct ReconcilerTally {
    pub(super) report: ReconcilerReport,
    /// How many rounds have failed since the last success.
    pub(super) failed_in_a_row: u32,
    /// How many findings no event had announced.
    pub(super) findings: u64,
    /// When the current round of each thread began.
    pub(super) busy_since: Vec<Option<Instant>>,
}

/// The state that the threads of the daemon share.
pub(super) struct DaemonState {
    pub(super) town: Town,
    pub(super) processes: LocalProcesses,
    pub(super) program: PathBuf,
    pub(super) permits: Permits,
    /// The turn of the thread that decides which work starts.
    pub(super) turn: TurnLock,
    pub(super) journal: Journal,
    wakes: [Wake; ReconcilerKind::ALL.len()],
    tallies: [Mutex<ReconcilerTally>; ReconcilerKind::ALL.len()],
    pub(super) watched: Mutex<HashSet<String>>,
    pub(super) ended: Mutex<Vec<FreedLock>>,
    /// The last event before the last round of the convoys reconciler.
    pub(super) convoys_seen: AtomicU64,
    /// The number of the last event that the event loop has read.
    pub(super) events_read: AtomicU64,
    /// Changes when the settings of the store may have changed.
    pub(super) settings_state: Arc<AtomicU64>,
    /// The server has announced new events.
    rung: AtomicBool,
    event_loop: LoopWaker,
}

/// Wakes the event loop.
pub(super) struct LoopWaker {
    tell: UnixStream,
    hear: UnixStream,
}

impl LoopWaker {
    fn new() -> std::io::Result<Self> {
        let (tell, hear) = UnixStream::pair()?;
        tell.set_nonblocking(true)?;
        hear.set_nonblocking(true)?;
        Ok(Self { tell, hear })
    }

    fn give(&self) {
        // If the pipe is full, the event loop wakes anyway.
        let _ = (&self.tell).write(&[1]);
    }

    /// Whether it was woken since the last call.
    pub(super) fn take(&self) -> bool {
        let mut any = false;
        while (&self.hear).read(&mut [0; 256]).is_ok_and(|count| count > 0) {
            any = true;
        }
        any
    }
}

impl AsFd for LoopWaker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hear.as_fd()
    }
}

impl DaemonState {
    pub(super) fn new(
        town: Town,
        processes: LocalProcesses,
        program: PathBuf,
        journal: Journal,
    ) -> std::io::Result<Self> {
        Ok(Self {
            town,
            processes,
            program,
            permits: Permits::default(),
            turn: TurnLock::default(),
            journal,
            wakes: Default::default(),
            tallies: Default::default(),
            watched: Mutex::default(),
            ended: Mutex::default(),
            convoys_seen: AtomicU64::new(u64::MAX),
            events_read: AtomicU64::new(0),
            settings_state: Arc::default(),
            rung: AtomicBool::new(false),
            event_loop: LoopWaker::new()?,
        })
    }

    pub(super) fn now(&self) -> Timestamp {
        self.town.now()
    }

    pub(super) fn wake(&self, kind: ReconcilerKind) -> &Wake {
        &self.wakes[kind as usize]
    }

    pub(super) fn tally(&self, kind: ReconcilerKind) -> MutexGuard<'_, ReconcilerTally> {
        self.tallies[kind as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a reconciler at a time of the wall clock.
    pub(super) fn wake_at(&self, kind: ReconcilerKind, at: Timestamp) {
        let left = at.since(self.now()).max(WAKE_DELAY_MIN).min(WAKE_DELAY_MAX);
        self.wake(kind).wake_at(Instant::now() + left);
    }

    /// The waker of the event loop.
    pub(super) fn event_loop(&self) -> &LoopWaker {
        &self.event_loop
    }

    pub(super) fn wake_event_loop(&self) {
        self.event_loop.give();
    }

    /// Records that the server has announced new events.
    pub(super) fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        self.wake_event_loop();
    }

    /// Whether the server has announced new events since the last call.
    pub(super) fn was_rung(&self) -> bool {
        self.rung.swap(false, Ordering::SeqCst)
    }

    pub(super) fn tell(&self, level: Level, event: &str, more: &[(&str, Json)]) {
        self.journal.tell(self.now(), level, event, more);
    }

    /// The longest time that a current round of these reconcilers has taken so far.
    pub(super) fn longest_at(&self, duties: &[ReconcilerKind]) -> Duration {
        let longest = |kind: &ReconcilerKind| {
            let tally = self.tally(*kind);
            tally.busy_since.iter().flatten().map(Instant::elapsed).max()
        };
        duties.iter().filter_map(longest).max().unwrap_or_default()
    }

    /// Whether no reconciler is busy.
    pub(super) fn is_quiet(&self) -> bool {
        ReconcilerKind::ALL
            .iter()
            .all(|kind| self.tally(*kind).busy_since.iter().all(Option::is_none))
    }
}

/// The shortest delay before a time that has passed wakes a reconciler again.
const WAKE_DELAY_MIN: Duration = Duration::from_millis(10);
/// A time further away is checked again after this.
const WAKE_DELAY_MAX: Duration = Duration::from_hours(1);
