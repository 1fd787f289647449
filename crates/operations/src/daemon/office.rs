//! What the threads of the daemon share.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gt_core::{Json, Timestamp};

use super::duties::Duty;
use super::journal::{Journal, Level};
use super::report::DutyReport;
use super::spawning::Permits;
use super::wake::{Turn, Wake};
use super::watch::Ended;
use crate::Town;
use crate::runs::{RealWorld, RunSpawner, SessionsAhead};

/// How it fares with one duty.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) report: DutyReport,
    /// How often it has failed since it went well.
    pub(super) failed_in_a_row: u32,
    /// How much was found that nobody had told of.
    pub(super) findings: u64,
    /// Since when each of its threads has been at it.
    pub(super) busy_since: Vec<Option<Instant>>,
}

/// What the threads of the daemon share.
pub(super) struct Office {
    pub(super) town: Town,
    pub(super) world: RealWorld,
    pub(super) program: PathBuf,
    pub(super) spawner: RunSpawner,
    pub(super) permits: Permits,
    /// Who decides what starts.
    pub(super) turn: Turn,
    pub(super) journal: Journal,
    wakes: [Wake; Duty::ALL.len()],
    tallies: [Mutex<Tally>; Duty::ALL.len()],
    pub(super) watched: Mutex<HashSet<String>>,
    pub(super) ended: Mutex<Vec<Ended>>,
    /// The sessions that wait for runs.
    sessions: Mutex<SessionsAhead>,
    /// The last event before somebody looked after convoys.
    pub(super) convoys_seen: AtomicU64,
    /// The server has told of news.
    rung: AtomicBool,
    heart: Nudge,
}

/// Wakes the thread that hears everything.
pub(super) struct Nudge {
    tell: UnixStream,
    hear: UnixStream,
}

impl Nudge {
    fn new() -> std::io::Result<Self> {
        let (tell, hear) = UnixStream::pair()?;
        tell.set_nonblocking(true)?;
        hear.set_nonblocking(true)?;
        Ok(Self { tell, hear })
    }

    fn give(&self) {
        // If there is no room for another, one is there.
        let _ = (&self.tell).write(&[1]);
    }

    /// Whether there was one since the last time.
    pub(super) fn take(&self) -> bool {
        let mut any = false;
        while (&self.hear).read(&mut [0; 256]).is_ok_and(|count| count > 0) {
            any = true;
        }
        any
    }
}

impl AsFd for Nudge {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hear.as_fd()
    }
}

impl Office {
    pub(super) fn new(
        town: Town,
        world: RealWorld,
        program: PathBuf,
        journal: Journal,
    ) -> std::io::Result<Self> {
        // Ends are heard at the door, and deaths are seen by whoever watches the lock.
        let spawner = RunSpawner::new(&town, program.clone(), None);
        Ok(Self {
            town,
            world,
            program,
            spawner,
            permits: Permits::default(),
            turn: Turn::default(),
            journal,
            wakes: Default::default(),
            tallies: Default::default(),
            watched: Mutex::default(),
            ended: Mutex::default(),
            sessions: Mutex::default(),
            convoys_seen: AtomicU64::new(u64::MAX),
            rung: AtomicBool::new(false),
            heart: Nudge::new()?,
        })
    }

    /// The sessions that wait for runs.
    pub(super) fn sessions(&self) -> MutexGuard<'_, SessionsAhead> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.town.now()
    }

    pub(super) fn wake(&self, duty: Duty) -> &Wake {
        &self.wakes[duty as usize]
    }

    pub(super) fn tally(&self, duty: Duty) -> MutexGuard<'_, Tally> {
        self.tallies[duty as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes somebody at a time of the clock that everybody reads.
    pub(super) fn wake_at(&self, duty: Duty, at: Timestamp) {
        let left = at.since(self.now()).max(SOONEST).min(LATEST);
        self.wake(duty).wake_at(Instant::now() + left);
    }

    /// The thread that hears everything.
    pub(super) fn heart(&self) -> &Nudge {
        &self.heart
    }

    pub(super) fn nudge_heart(&self) {
        self.heart.give();
    }

    /// The server has told of news.
    pub(super) fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        self.nudge_heart();
    }

    /// Whether the server has told of news since the last time.
    pub(super) fn was_rung(&self) -> bool {
        self.rung.swap(false, Ordering::SeqCst)
    }

    pub(super) fn tell(&self, level: Level, event: &str, more: &[(&str, Json)]) {
        self.journal.tell(self.now(), level, event, more);
    }

    /// The longest that anybody has been at something of these duties.
    pub(super) fn longest_at(&self, duties: &[Duty]) -> Duration {
        let longest = |duty: &Duty| {
            let tally = self.tally(*duty);
            tally.busy_since.iter().flatten().map(Instant::elapsed).max()
        };
        duties.iter().filter_map(longest).max().unwrap_or_default()
    }

    /// Whether nobody is at anything.
    pub(super) fn is_quiet(&self) -> bool {
        Duty::ALL.iter().all(|duty| self.tally(*duty).busy_since.iter().all(Option::is_none))
    }
}

/// Nobody is woken again sooner than this by a time that has passed.
const SOONEST: Duration = Duration::from_millis(10);
/// A time that is further away is looked at again before.
const LATEST: Duration = Duration::from_hours(1);
