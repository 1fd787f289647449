//! The end of a town, without faults: everything that can be done is done, with the help of a
//! person where one is asked for.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use gt_testkit::wait_until;

use crate::faults::look_after;
use crate::processes::ProcessTable;
use crate::town::{ChaosTown, RIGS};

/// The pause between two rounds of the person.
const PERSON_INTERVAL: Duration = Duration::from_secs(1);

/// A town in which nothing has changed for so long is stalled. A start that failed is tried again after five minutes at
/// the latest, but never waits that long in a town whose beads were just retried.
const STALLED_AFTER: Duration = Duration::from_mins(2);

/// A town that goes on for so long without becoming done repeats itself.
const QUIET_PHASE_MAX: Duration = Duration::from_mins(15);

/// The actions that a person had to take.
#[derive(Debug, Default)]
pub(crate) struct Help {
    /// How many beads were given new attempts.
    pub(crate) retried: usize,
    /// How many locks of killed processes were removed from origins.
    pub(crate) unlocked: usize,
}

/// A lock of git that is older than this belongs to a process that was killed: no push of a town takes this long.
const LOCK_AGE_MAX: Duration = Duration::from_secs(10);

/// Removes the locks that a killed push has left on the branches of the origins. A person has to do
/// that, because the lock does not name its process; `gt why` repeats git's message about it.
fn remove_stale_locks(town: &ChaosTown) -> usize {
    let is_stale = |path: &Path| {
        let age = path.metadata().and_then(|file| file.modified()).map(|at| at.elapsed());
        path.extension().is_some_and(|end| end == "lock")
            && age.is_ok_and(|age| age.is_ok_and(|age| age > LOCK_AGE_MAX))
    };
    let branches = RIGS.map(|(rig, ..)| town.origin(rig).join("refs/heads"));
    let entries = branches.iter().filter_map(|branches| fs::read_dir(branches).ok()).flatten();
    let locks = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_stale(path));
    locks.filter(|lock| fs::remove_file(lock).is_ok()).count()
}

/// Lets a town come to its end; returns the faults that prevent it.
pub(crate) fn run_to_completion(town: &ChaosTown) -> Result<Help, Vec<String>> {
    let mut help = Help::default();
    let explanations = unexplained(town);
    if !explanations.is_empty() {
        return Err(explanations);
    }
    town.gt(&["up"]).ok();
    let began = Instant::now();
    let (mut last, mut changed) = (None, began);
    loop {
        let closed = town.closed().unwrap_or_default();
        let is_done = closed.len() == town.beads.len();
        // Closed may also mean failed.
        let retried = town.ask(&["scheduler", "retry", "--all"]);
        let retried = retried.map_or(0, |all| all["retried"].as_array().map_or(0, Vec::len));
        help.retried += retried;
        if is_done && retried == 0 {
            break;
        }
        // A cancelled bead is left to its canceller; the others have a place in line, and keep it.
        // Some may be closed by now, which is refused.
        let open = town.beads.keys().filter(|bead| !closed.contains(bead));
        town.sling(&open.collect::<Vec<_>>());
        look_after(town);
        help.unlocked += remove_stale_locks(town);
        let now = Some((closed.len(), last_event(town)));
        if now != last {
            (last, changed) = (now, Instant::now());
        }
        if changed.elapsed() > STALLED_AFTER || began.elapsed() > QUIET_PHASE_MAX {
            let open = town.beads.keys().filter(|bead| !closed.contains(bead));
            let why = open.map(|bead| format!("{bead} is not done: {}", why(town, bead)));
            return Err(why.collect());
        }
        thread::sleep(PERSON_INTERVAL);
    }
    Ok(help)
}

/// Ends the daemon, and waits until no process of the town is left; returns those that are left
/// nevertheless.
pub(crate) fn go_down(town: &ChaosTown) -> Vec<String> {
    town.gt(&["down"]).ok();
    let mut table = ProcessTable::of(town.sandbox.root());
    let gone = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wait_until("every process is gone", || table.look().is_empty());
    }));
    if gone.is_ok() {
        return Vec::new();
    }
    let mut table = ProcessTable::of(town.sandbox.root());
    table.look().iter().map(|process| format!("{process} is left")).collect()
}

/// The number of the last thing that happened in the town.
fn last_event(town: &ChaosTown) -> Option<u64> {
    town.ask_bd(&["activity", "--limit", "1"]).ok()?[0]["number"].as_u64()
}

/// Why a bead is not done, as the town says it.
fn why(town: &ChaosTown, bead: &str) -> String {
    town.ask(&["why", bead]).map_or_else(|error| error, |answer| answer.to_string())
}

/// Every bead that is neither done nor at work, and for which no reason is given.
fn unexplained(town: &ChaosTown) -> Vec<String> {
    let closed = town.closed().unwrap_or_default();
    let open = town.beads.keys().filter(|bead| !closed.contains(bead));
    let mut violations = Vec::new();
    for bead in open {
        match town.ask(&["why", bead]) {
            Err(error) => violations.push(format!("gt why {bead} does not answer: {error}")),
            Ok(answer) => {
                let has_reason = answer["reasons"].as_array().is_some_and(|all| !all.is_empty());
                let state = answer["state"].as_str().unwrap_or_default();
                if !has_reason && state == "idle" {
                    violations.push(format!("{bead} is not explained: {answer}"));
                }
            }
        }
    }
    violations
}
