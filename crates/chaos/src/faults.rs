//! The faults that are injected into a town while it works.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use gt_testkit::{Cluster, Random};
use rustix::process::Signal;

use crate::arguments::ChaosOptions;
use crate::check::text;
use crate::landing::LandingWatch;
use crate::processes::{ProcessKind, ProcessTable, TownProcess};
use crate::town::{ChaosTown, RIGS};

/// The longest that a process is stopped, in milliseconds.
const STOPPED_MS_MAX: u64 = 1500;

/// How often a person looks after the town.
const PERSON_INTERVAL: Duration = Duration::from_secs(2);

/// By how many seconds a clock may be wrong: a little, by more than any backoff, by more than a day, and not at all.
const CLOCK_OFFSETS_SECONDS: [i64; 9] = [3, -3, 400, -400, 7200, -7200, 100_000, -100_000, 0];

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Kill(ProcessKind),
    /// Stopped for a while.
    Stop(ProcessKind),
    /// Everything of the town is killed, as if the machine had gone down.
    KillAll,
    /// The database server crashes and is started again.
    CrashServer,
    /// A process of the database server is killed, after which the server recovers by itself.
    KillBackend,
    /// A connection to the database server is ended by it.
    EndConnection,
    /// The clock is set forward or back.
    SetClock,
    /// The directory of the town is copied, and a person waits in the copy: it must judge no run of the original.
    CopyTown,
    /// A person cancels a run.
    Cancel,
    /// A person has a run go on in a fresh session.
    HandOff,
    /// A worker changes the configuration that all workers of its rig share.
    HostileGit,
}

/// Settings that a worker writes into the shared configuration, and that must not reach a landing.
/// Each is a name and a value, in which `{origin}` is the address of the rig's origin and
/// `{elsewhere}` that of another repository.
const HOSTILE: [(&str, &str); 8] = [
    ("url.{elsewhere}.insteadOf", "{origin}"),
    ("url.{elsewhere}.pushInsteadOf", "{origin}"),
    ("remote.origin.url", "{elsewhere}"),
    ("core.fileMode", "false"),
    ("core.fsmonitor", "false"),
    ("core.sshCommand", "false"),
    ("credential.helper", "!false"),
    ("protocol.file.allow", "never"),
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(kind) => write!(f, "{kind} killed"),
            Self::Stop(kind) => write!(f, "{kind} stopped"),
            Self::KillAll => write!(f, "all killed"),
            Self::CrashServer => write!(f, "PostgreSQL crashed"),
            Self::KillBackend => write!(f, "PostgreSQL backend killed"),
            Self::EndConnection => write!(f, "PostgreSQL connection ended"),
            Self::SetClock => write!(f, "clock set"),
            Self::CopyTown => write!(f, "town copied"),
            Self::Cancel => write!(f, "run cancelled"),
            Self::HandOff => write!(f, "run handed over"),
            Self::HostileGit => write!(f, "shared git configuration changed"),
        }
    }
}

impl Fault {
    /// The next one. Agents and supervisors are many, so they are hit more often than those of whom there is one.
    fn choose(random: &mut Random, town: &ChaosTown) -> Self {
        let mut faults = Vec::new();
        for kind in ProcessKind::ALL {
            let weight =
                if matches!(kind, ProcessKind::Agent | ProcessKind::Supervisor) { 6 } else { 3 };
            faults.push((weight, Self::Kill(kind)));
            faults.push((weight / 2, Self::Stop(kind)));
        }
        faults.extend([(1, Self::KillAll), (2, Self::Cancel), (2, Self::HandOff)]);
        faults.push((2, Self::HostileGit));
        let has_server = u64::from(town.cluster.is_some());
        faults.push((has_server, Self::CrashServer));
        faults.push((has_server, Self::KillBackend));
        faults.push((2 * has_server, Self::EndConnection));
        // The copy of a file is another store, and nothing that happens there matters to the town.
        faults.push((2 * has_server, Self::CopyTown));
        faults.push((3 * u64::from(town.clock.is_some()), Self::SetClock));
        random.weighted(faults).unwrap_or(Self::Kill(ProcessKind::Agent))
    }
}

/// How often each fault happened.
pub(crate) type Happened = BTreeMap<Fault, u64>;

/// Injects faults until everything is done or the time is over. At the end no process is stopped
/// any more.
pub(crate) fn inject_faults(
    town: &ChaosTown,
    random: &mut Random,
    request: &ChaosOptions,
    watch: &mut LandingWatch,
) -> Happened {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // In another thread, because a stopped process may hold a lock that one of its commands
        // waits for.
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                look_after(town);
                // The store, or git, may have been killed meanwhile.
                let _ = watch.look(town);
                if town.closed().is_some_and(|closed| closed.len() == town.beads.len()) {
                    is_over.store(true, Ordering::Relaxed);
                }
                thread::sleep(PERSON_INTERVAL);
            }
        });
        let mut happened = Happened::new();
        let mut table = ProcessTable::of(town.sandbox.root());
        let mut starting: Option<ScopedJoinHandle<'_, ()>> = None;
        let end = Instant::now() + request.chaos;
        let pause_ms = u64::try_from(request.pause.as_millis()).unwrap_or(u64::MAX);
        while Instant::now() < end && !is_over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1 + random.below(pause_ms)));
            let fault = Fault::choose(random, town);
            let (chosen, starts_daemon) = (random.below(u64::MAX), random.one_in(2));
            let pause = Duration::from_millis(random.between(10, STOPPED_MS_MAX));
            let is_hit = match fault {
                Fault::Kill(kind) => hit(&mut table, kind, chosen, Signal::KILL).is_some(),
                Fault::Stop(kind) => {
                    let victim = hit(&mut table, kind, chosen, Signal::STOP);
                    let is_hit = victim.is_some();
                    if let Some(victim) = victim {
                        scope.spawn(move || {
                            thread::sleep(pause);
                            victim.signal(Signal::CONT);
                        });
                    }
                    is_hit
                }
                Fault::KillAll => {
                    table.look().iter().filter(|process| process.signal(Signal::KILL)).count() > 0
                }
                Fault::KillBackend => town.cluster.as_ref().is_some_and(Cluster::kill_backend),
                Fault::EndConnection => {
                    town.cluster.as_ref().is_some_and(Cluster::terminate_backend)
                }
                Fault::CrashServer => {
                    if let Some(cluster) = &town.cluster {
                        cluster.stop();
                        thread::sleep(pause);
                        cluster.start_server();
                    }
                    town.cluster.is_some()
                }
                Fault::Cancel | Fault::HandOff => {
                    let agent = pick(table.of_kind(ProcessKind::Agent), chosen);
                    let run = agent.and_then(|agent| agent.run);
                    let is_hit = run.is_some();
                    if let Some(run) = run {
                        let is_cancelled = fault == Fault::Cancel;
                        let words =
                            if is_cancelled { ["run", "cancel"] } else { ["handoff", "--run"] };
                        // It may have ended meanwhile.
                        scope.spawn(move || drop(town.gt(&[words[0], words[1], &run])));
                    }
                    is_hit
                }
                Fault::CopyTown => {
                    let name = format!("copy-{chosen:x}");
                    scope.spawn(move || wait_in_copy(town, &name));
                    true
                }
                Fault::HostileGit => change_configuration(town, chosen),
                Fault::SetClock => town.clock.as_ref().is_some_and(|clock| {
                    clock.set(wrong_by(chosen));
                    true
                }),
            };
            *happened.entry(fault).or_default() += u64::from(is_hit);
            let is_being_started = starting.as_ref().is_some_and(|thread| !thread.is_finished());
            if starts_daemon && !is_being_started && table.of_kind(ProcessKind::Daemon).is_empty() {
                // It may be killed before it says that it is there.
                starting = Some(scope.spawn(|| drop(town.gt(&["up"]))));
            }
        }
        is_over.store(true, Ordering::Relaxed);
        town.clock.iter().for_each(|clock| clock.set(0));
        happened
    })
}

/// Waits a moment in a copy of the town. `gt wait` also recovers runs that died, and starts nothing.
fn wait_in_copy(town: &ChaosTown, name: &str) {
    let copy = town.sandbox.root().join("copies").join(name);
    town.sandbox.make_dir(&copy);
    let original = town.sandbox.cwd().join(".gt");
    // Files that are removed meanwhile are not copied.
    drop(town.sandbox.command("cp").arg("-a").arg(original).arg(&copy).run());
    drop(town.gt(&["-C", &copy.to_string_lossy(), "wait", "--all", "--timeout", "2s"]));
    let _ = std::fs::remove_dir_all(&copy);
}

/// Sends a signal to one of a kind; to whom.
fn hit(
    table: &mut ProcessTable,
    kind: ProcessKind,
    chosen: u64,
    signal: Signal,
) -> Option<TownProcess> {
    pick(table.of_kind(kind), chosen).filter(|victim| victim.signal(signal))
}

/// The one that a number chooses.
fn pick(mut processes: Vec<TownProcess>, chosen: u64) -> Option<TownProcess> {
    let at = chosen.checked_rem(processes.len() as u64)?;
    Some(processes.swap_remove(usize::try_from(at).ok()?))
}

/// Changes a setting of the repository that the workers of a rig share, as one of them could. `false` if it is not there.
fn change_configuration(town: &ChaosTown, chosen: u64) -> bool {
    let [rig, setting] = [chosen % 2, chosen / 2 % HOSTILE.len() as u64]
        .map(|number| usize::try_from(number).unwrap_or(0));
    let (rig, (name, value)) = (RIGS[rig].0, HOSTILE[setting]);
    let shared = town.sandbox.cwd().join(rig).join(".repo.git");
    let elsewhere = town.sandbox.root().join("elsewhere.git");
    let filled = |text: &str| {
        let text = text.replace("{origin}", &town.origin(rig).to_string_lossy());
        text.replace("{elsewhere}", &elsewhere.to_string_lossy())
    };
    let git = town.sandbox.command("git").args(["config", &filled(name), &filled(value)]);
    shared.is_dir() && git.dir(&shared).run().code == 0
}

/// By how many seconds the clock is wrong next.
fn wrong_by(chosen: u64) -> i64 {
    CLOCK_OFFSETS_SECONDS[usize::try_from(chosen % CLOCK_OFFSETS_SECONDS.len() as u64).unwrap_or(0)]
}

/// The commands of a person who looks after a town: a cycle by hand, beside the daemon, `resume` for a runtime that was parked
/// because so many workers died, an approval of each review, and another try of each request that is held.
pub(crate) fn look_after(town: &ChaosTown) {
    let _ = town.gt(&["scheduler", "run"]);
    let _ = town.gt(&["deacon", "resume", "runtime", "scripted"]);
    let requests = town.ask(&["mq", "list"]).unwrap_or_default();
    for request in requests.as_array().into_iter().flatten() {
        let id = text(request, "id");
        // It may have changed meanwhile.
        let _ = match text(request, "state") {
            "review" => town.gt(&["review", "approve", id]),
            "held" => town.gt(&["mq", "retry", id]),
            _ => continue,
        };
    }
}
