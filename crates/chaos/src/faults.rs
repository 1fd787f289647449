//! What is done to a town while it works.

use std::collections::BTreeMap;
use std::fmt;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gt_testkit::Random;
use rustix::process::Signal;

use crate::processes::{Kind, Table};
use crate::town::ChaosTown;

/// The longest pause between two faults, and the longest that somebody is stopped, in milliseconds.
const PAUSE_MS_MAX: u64 = 500;
const STOPPED_MS_MAX: u64 = 1500;

/// How often a person looks after the town.
const PERSON_EVERY: Duration = Duration::from_secs(2);

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Kill(Kind),
    /// Stopped for a while.
    Stop(Kind),
    /// The server of the records breaks down and is started again.
    RestartServer,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(kind) => write!(f, "{kind} killed"),
            Self::Stop(kind) => write!(f, "{kind} stopped"),
            Self::RestartServer => write!(f, "PostgreSQL restarted"),
        }
    }
}

impl Fault {
    /// The next one. Agents and supervisors are many, so they are hit more often than those of whom there is one.
    fn choose(random: &mut Random, has_server: bool) -> Self {
        let mut faults = Vec::new();
        for kind in Kind::ALL {
            let weight = if matches!(kind, Kind::Agent | Kind::Supervisor) { 6 } else { 3 };
            faults.push((weight, Self::Kill(kind)));
            faults.push((weight / 2, Self::Stop(kind)));
        }
        faults.push((u64::from(has_server), Self::RestartServer));
        random.weighted(faults).unwrap_or(Self::Kill(Kind::Agent))
    }
}

/// How often what happened to somebody.
pub(crate) type Happened = BTreeMap<Fault, u64>;

/// Lets things happen until everything is done or the time is over. At the end nobody is stopped any more.
pub(crate) fn happen(town: &ChaosTown, random: &mut Random, time: Duration) -> Happened {
    let mut happened = Happened::new();
    let mut table = Table::of(town.sandbox.root());
    let mut stopped: Vec<JoinHandle<()>> = Vec::new();
    let mut person = Instant::now();
    let mut starting: Option<JoinHandle<()>> = None;
    let end = Instant::now() + time;
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(random.between(10, PAUSE_MS_MAX)));
        let fault = Fault::choose(random, town.cluster.is_some());
        let chosen = random.next();
        let pause = Duration::from_millis(random.between(10, STOPPED_MS_MAX));
        let is_hit = match fault {
            Fault::Kill(kind) => hit(&mut table, kind, chosen, Signal::KILL).is_some(),
            Fault::Stop(kind) => {
                let hit = hit(&mut table, kind, chosen, Signal::STOP);
                // By somebody else: whoever is stopped may hold what a command of ours waits for.
                let goes_on = hit.map(|process| {
                    thread::spawn(move || {
                        thread::sleep(pause);
                        process.signal(Signal::CONT);
                    })
                });
                let is_hit = goes_on.is_some();
                stopped.extend(goes_on);
                is_hit
            }
            Fault::RestartServer => town.cluster.as_ref().is_some_and(|cluster| {
                cluster.stop();
                thread::sleep(pause);
                cluster.start_server();
                true
            }),
        };
        *happened.entry(fault).or_default() += u64::from(is_hit);
        if person.elapsed() > PERSON_EVERY {
            person = Instant::now();
            look_after(town);
            if town.closed().is_some_and(|closed| closed.len() == town.beads.len()) {
                break;
            }
        }
        let is_being_started = starting.as_ref().is_some_and(|thread| !thread.is_finished());
        if random.one_in(2) && !is_being_started && table.of_kind(Kind::Daemon).is_empty() {
            // By somebody else: it may be killed, too, before it says that it is there.
            let sandbox = town.sandbox.clone();
            starting = Some(thread::spawn(move || drop(sandbox.gt(["up"]))));
        }
    }
    for thread in stopped.into_iter().chain(starting) {
        thread.join().expect("nobody who helps fails");
    }
    happened
}

/// Sends a signal to one of a kind; to whom.
fn hit(
    table: &mut Table,
    kind: Kind,
    chosen: u64,
    signal: Signal,
) -> Option<crate::processes::Process> {
    let mut found = table.of_kind(kind);
    if found.is_empty() {
        return None;
    }
    let count = found.len() as u64;
    let victim = found.swap_remove(usize::try_from(chosen % count).unwrap_or(0));
    victim.signal(signal).then_some(victim)
}

/// What somebody does who looks after a town: a runtime that was parked because so many workers died goes on.
pub(crate) fn look_after(town: &ChaosTown) {
    let _ = town.sandbox.gt(["deacon", "resume", "runtime", "scripted"]);
}
