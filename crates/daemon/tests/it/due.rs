//! When the daemon looks again because time has passed, and how far apart its starts are.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gt_beads::beads;
use gt_core::decide::{MachineDisk, MachineFacts, MachineMemory};
use gt_core::{Clock, ExecutorKind};
use gt_scheduling::dispatch::{CycleCaller, Dispatcher, MemorySpawner, next_due};
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_scheduling::schedule::{SlingOptions, SlingRequest, sling};
use gt_scheduling::{Consequences, queue};
use gt_town::{Actor, Machine, Town, rigs, settings};

use crate::scheduling::bead;
use crate::still_clock::StillClock;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

/// A town with the rig `web`, in deferred mode.
struct Stage {
    town: Town,
    clock: Arc<StillClock>,
    spawner: MemorySpawner,
}

impl Stage {
    fn new() -> Self {
        Self::with(&[("scheduler.max_polecats", "9")], MachineFacts::default())
    }

    fn with(wanted: &[(&str, &str)], machine: MachineFacts) -> Self {
        let clock = StillClock::at(1_790_000_000_000_000_000);
        let shared: Arc<dyn Clock> = Arc::<StillClock>::clone(&clock);
        let actor = Actor { name: "tester".to_owned(), owner: String::new() };
        let town = Town::in_memory(actor, shared, Arc::new(Consequences))
            .unwrap()
            .with_machine(Arc::new(machine));
        let (repository, branch, executor) = (None, None, ExecutorKind::Process);
        let name = "web";
        let rig = rigs::NewRig { name, repository, prefix: Some(name), branch, executor };
        rigs::add(&town, &rig).unwrap();
        settings::set(
            &town,
            "rig.web.command",
            "/bin/true {bead}",
            gt_scheduling::runtimes::check_name,
        )
        .unwrap();
        for (name, value) in wanted {
            settings::set(&town, name, value, gt_scheduling::runtimes::check_name).unwrap();
        }
        Self { town, clock, spawner: MemorySpawner::default() }
    }

    fn sling(&self, ids: &[&str]) {
        for id in ids {
            bead(&self.town, id);
            let flags = SlingOptions { no_convoy: true, ..SlingOptions::default() };
            let arguments = vec![(*id).to_owned()];
            sling(&self.town, &SlingRequest { arguments, flags, ..SlingRequest::default() })
                .unwrap();
        }
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// One cycle of a caller; what it started, and how long it waited in between.
    fn cycle(&self, caller: CycleCaller) -> (Vec<String>, Vec<Duration>) {
        let pauses = Mutex::new(Vec::new());
        let pause = |time| {
            pauses.lock().unwrap().push(time);
            self.pass(time);
        };
        let processes = LocalProcesses::of(&self.town).unwrap();
        let dispatcher = Dispatcher::new(&self.town, &self.spawner).with_caller(caller);
        let dispatcher = dispatcher.with_starter("", processes.host()).with_pause(pause);
        let done = dispatcher.dispatch().unwrap();
        let started = done.dispatched.iter().map(|started| started.bead.to_string()).collect();
        let pauses = std::mem::take(&mut *pauses.lock().unwrap());
        (started, pauses)
    }

    fn due_in(&self) -> Option<Duration> {
        next_due(&self.town).unwrap().map(|due| due.since(self.town.now()))
    }
}

#[test]
fn there_is_no_due_time_where_only_an_event_can_change_anything() {
    let stage = Stage::with(&[("scheduler.max_polecats", "1")], MachineFacts::default());
    assert_eq!(stage.due_in(), None, "nothing is there");
    stage.sling(&["web-1", "web-2"]);
    assert_eq!(stage.cycle(CycleCaller::Daemon).0, ["web-1"]);
    assert_eq!(stage.due_in(), None, "a slot is freed by an event");
}

#[test]
fn a_backoff_and_a_deferral_end_by_themselves() {
    let stage = Stage::new();
    stage.sling(&["web-1", "web-2"]);
    let until = stage.town.now().plus(HOUR);
    beads::defer(&stage.town, &["web-2".to_owned()], Some(until), None).unwrap();
    assert_eq!(stage.due_in(), Some(HOUR));

    stage.spawner.refuse("web-1", "no such program");
    assert!(stage.cycle(CycleCaller::Daemon).0.is_empty());

    let backoff = stage.due_in().unwrap();
    assert!(backoff >= SECOND * 4 && backoff <= SECOND * 6, "{backoff:?}");
    // Nothing starts while everything stands still.
    queue::pause(&stage.town).unwrap();
    assert_eq!(stage.due_in(), None);
}

#[test]
fn a_budget_has_something_left_again_an_hour_after_its_first_start() {
    let budget = [("scheduler.max_polecats", "9"), ("budget.runs_per_hour", "1")];
    let stage = Stage::with(&budget, MachineFacts::default());
    stage.sling(&["web-1", "web-2"]);
    assert_eq!(stage.cycle(CycleCaller::Daemon).0, ["web-1"]);
    stage.pass(HOUR / 2);

    let due = stage.due_in().unwrap();

    assert!(due <= HOUR / 2 && due + SECOND > HOUR / 2, "{due:?}");
    stage.pass(due);
    assert_eq!(stage.cycle(CycleCaller::Daemon).0, ["web-2"]);
}

#[test]
fn a_machine_without_room_is_looked_at_again_soon() {
    let memory = Some(MachineMemory { total_mb: 16_000, available_mb: 100 });
    let machine = MachineFacts { memory, ..MachineFacts::default() };
    let stage = Stage::with(&[("scheduler.max_polecats", "9")], machine);
    stage.sling(&["web-1", "web-2"]);
    assert_eq!(stage.cycle(CycleCaller::Daemon).0, ["web-1"], "it never holds up the only one");
    assert_eq!(stage.due_in(), Some(SECOND * 5));
}

/// A machine whose disk has so much room, of 10,000 MB.
#[derive(Debug)]
struct ChangingDisk(AtomicU64);

impl Machine for ChangingDisk {
    fn facts(&self) -> MachineFacts {
        let disk = MachineDisk { total_mb: 10_000, free_mb: self.0.load(Ordering::Relaxed) };
        MachineFacts { disk: Some(disk), ..MachineFacts::default() }
    }
}

#[test]
fn a_disk_that_was_short_lets_runs_start_when_there_is_clearly_more_room() {
    let disk = Arc::new(ChangingDisk(AtomicU64::new(1_000)));
    let wanted = [("scheduler.max_polecats", "9"), ("guard.disk_min_mb", "1000")];
    let Stage { town, clock, spawner } = Stage::with(&wanted, MachineFacts::default());
    let machine: Arc<dyn Machine> = Arc::<ChangingDisk>::clone(&disk);
    let stage = Stage { town: town.with_machine(machine), clock, spawner };
    let ids = ["web-1", "web-2", "web-3"];
    let started = |free_mb, id: &str| {
        disk.0.store(free_mb, Ordering::Relaxed);
        stage.sling(&[id]);
        stage.cycle(CycleCaller::Daemon).0
    };
    assert_eq!(started(1_000, ids[0]), [ids[0]], "it has just enough");
    assert_eq!(started(999, ids[1]), [""; 0]);
    assert_eq!(started(1_249, ids[2]), [""; 0], "it has shut, and remembers it");
    let starts = started(1_250, "web-4");
    assert_eq!(starts, ["web-2", "web-3", "web-4"]);
    assert_eq!(started(1_000, "web-5"), ["web-5"]);
}

#[test]
fn the_daemon_keeps_its_starts_apart_over_cycles_too() {
    let delay = [("scheduler.max_polecats", "9"), ("scheduler.spawn_delay", "10s")];
    let stage = Stage::with(&delay, MachineFacts::default());
    stage.sling(&["web-1", "web-2"]);
    let both = vec!["web-1".to_owned(), "web-2".to_owned()];
    assert_eq!(stage.cycle(CycleCaller::Daemon), (both, vec![SECOND * 10]));

    stage.pass(SECOND * 3);
    stage.sling(&["web-3"]);
    assert_eq!(stage.cycle(CycleCaller::Daemon), (vec!["web-3".to_owned()], vec![SECOND * 7]));

    // A person who asks for a start gets it,
    stage.sling(&["web-4"]);
    assert_eq!(stage.cycle(CycleCaller::Hand), (vec!["web-4".to_owned()], Vec::new()));
    // and a start that failed is none.
    stage.pass(SECOND * 20);
    stage.sling(&["web-5"]);
    stage.spawner.refuse("web-5", "no such program");
    assert_eq!(stage.cycle(CycleCaller::Daemon), (Vec::new(), Vec::new()));
    stage.sling(&["web-6"]);
    assert_eq!(stage.cycle(CycleCaller::Daemon), (vec!["web-6".to_owned()], Vec::new()));
}
