use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};

use gt_core::message::{MessageBody, MessageKind, NewMessage};
use gt_core::{Clock, MessageAddress, Prefix, Rig, RigSlug, Sender};
use tempfile::TempDir;

use super::*;
use gt_scheduling::Consequences;
use gt_town::{Actor, Environment, StoreOptions, install, settings};

const DAY: Duration = Duration::from_hours(24);

/// A clock that a test moves.
#[derive(Debug)]
struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// A town with the rig `web`, which has trees.
struct Stage {
    town: Town,
    clock: Arc<Hands>,
    _directory: TempDir,
}

impl Stage {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(Hands(AtomicI64::new(1_790_000_000_000_000_000)));
        let actor = Actor { name: "tester".to_owned(), owner: String::new() };
        let environment = Environment::default();
        let root = install(directory.path(), &environment, &actor, &*clock).unwrap().root;
        let shared: Arc<dyn Clock> = Arc::<Hands>::clone(&clock);
        let options = StoreOptions::default();
        let town =
            Town::open(&root, &root, &environment, actor, shared, options, Arc::new(Consequences))
                .unwrap();
        let slug = RigSlug::parse("web").unwrap();
        let prefix = Prefix::parse("we").unwrap();
        let rig =
            Rig { repo: "/nowhere".to_owned(), ..Rig::new(slug, "web", prefix, "web", town.now()) };
        town.write(|writer| Ok(writer.insert_rig(&rig)?)).unwrap();
        settings::set(&town, "notify.command", "true", gt_scheduling::runtimes::check_name)
            .unwrap();
        Self { town, clock, _directory: directory }
    }

    fn pass(&self, days: u32) {
        let nanos = i64::try_from((DAY * days).as_nanos()).unwrap();
        self.clock.0.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Puts a tree into the trash that may be deleted after this many days.
    fn trash(&self, name: &str, days: u32) {
        let path = format!("web/.trash/{name}");
        fs::create_dir_all(self.town.root().join(&path).join("tree")).unwrap();
        let host = LocalProcesses::of(&self.town).unwrap().host().to_owned();
        let now = self.town.now();
        let trashed = Trashed {
            number: 0,
            rig: RigSlug::parse("web").unwrap(),
            name: name.to_owned(),
            host,
            path,
            branch: String::new(),
            run: None,
            reason: "nuked".to_owned(),
            state: TrashState::Kept,
            moved_at: now,
            moved_by: "tester".to_owned(),
            purge_at: now.plus(DAY * days),
        };
        self.town.write(|writer| Ok(writer.insert_trash(&trashed)?)).unwrap();
    }

    fn message(&self, text: &str, seen: bool) {
        let new = NewMessage {
            kind: MessageKind::Mail,
            from: Sender::stored("ann"),
            to: MessageAddress::stored("mayor"),
            subject: None,
            body: MessageBody::parse(text).unwrap(),
            bead: None,
            topic: None,
            reply_to: None,
        };
        let sent = |writer: &mut Writer<'_>| {
            let message = writer.send_message(new)?;
            if seen {
                writer.message_seen(&message)?;
            }
            Ok(())
        };
        self.town.write(sent).unwrap();
    }

    /// The result of a pass now: announced, purged, messages.
    fn keep(&self) -> (Vec<String>, Vec<String>, u64) {
        let names = |those: Vec<Trashed>| those.into_iter().map(|one| one.name).collect();
        let kept = apply_retention(&self.town).unwrap();
        (names(kept.announced), names(kept.purged), kept.messages)
    }

    fn is_there(&self, name: &str) -> bool {
        self.town.root().join("web/.trash").join(name).exists()
    }

    fn notices(&self) -> usize {
        gt_beads::outbox::list(&self.town, 9).unwrap().len()
    }
}

fn names(these: &[&str]) -> Vec<String> {
    these.iter().map(ToString::to_string).collect()
}

#[test]
fn a_tree_is_announced_three_days_before_it_goes_and_then_it_goes() {
    let stage = Stage::new();
    stage.trash("nux", 30);
    assert_eq!(stage.keep(), Default::default(), "nothing is old");

    stage.pass(27);
    assert_eq!(stage.keep(), (names(&["nux"]), vec![], 0));
    assert_eq!(stage.notices(), 1);
    assert_eq!(stage.keep(), Default::default(), "once a day, and once for a tree");
    stage.pass(2);
    assert_eq!(stage.keep(), Default::default(), "its time has not come");

    stage.pass(1);
    assert_eq!(stage.keep(), (vec![], names(&["nux"]), 0));

    assert!(!stage.is_there("nux"));
    assert_eq!(stage.town.read(|reader| Ok(reader.trash()?)).unwrap(), []);
    stage.pass(1);
    assert_eq!((stage.keep(), stage.notices()), (Default::default(), 1));
}

#[test]
fn a_tree_is_not_deleted_before_it_was_announced() {
    let stage = Stage::new();
    stage.trash("nux", 30);
    // Retention did not run for a year.
    stage.pass(365);

    assert_eq!(stage.keep(), (names(&["nux"]), vec![], 0));
    for _ in 0..2 {
        stage.pass(1);
        assert_eq!(stage.keep(), Default::default());
    }
    assert!(stage.is_there("nux"));
    stage.pass(1);
    assert_eq!(stage.keep(), (vec![], names(&["nux"]), 0));
}

#[test]
fn a_tree_restored_in_time_is_kept() {
    let stage = Stage::new();
    stage.trash("nux", 0);
    stage.keep();
    let back = |writer: &mut Writer<'_>| {
        let trashed = writer.trash()?.remove(0);
        Ok(writer.set_trash_state(&trashed, TrashState::Restored)?)
    };
    stage.town.write(back).unwrap();
    stage.pass(10);
    assert_eq!(stage.keep(), Default::default());
    assert!(stage.is_there("nux"));
}

#[test]
fn messages_that_were_read_go_with_the_events_of_their_time() {
    let stage = Stage::new();
    stage.message("read", true);
    stage.message("unread", false);
    stage.pass(89);
    stage.message("young", true);
    assert_eq!(stage.keep(), Default::default());

    stage.pass(2);
    assert_eq!(stage.keep(), (vec![], vec![], 1));

    let left =
        stage.town.read(|reader| Ok(reader.messages_to(&MessageAddress::stored("mayor"), 9)?));
    let left: Vec<String> = left.unwrap().into_iter().map(|message| message.body).collect();
    assert_eq!(left, ["young", "unread"]);
}

#[test]
fn a_clock_that_jumps_back_stops_nothing_for_long() {
    let stage = Stage::new();
    stage.pass(365);
    stage.trash("nux", 0);
    stage.keep();
    stage.clock.0.store(1_790_000_000_000_000_000, Ordering::Relaxed);
    stage.trash("slit", 0);
    assert_eq!(stage.keep().0, ["slit"]);
}

#[test]
fn events_are_kept_for_their_time_and_only_the_oldest_go() {
    let stage = Stage::new();
    stage.message("old", false);
    let old = stage.town.read(|reader| Ok(reader.last_event_number()?)).unwrap();
    stage.pass(60);
    stage.message("young", false);
    let all = stage.town.read(|reader| Ok(reader.last_event_number()?)).unwrap();
    let kept = || {
        let read = |reader: &Reader<'_>| {
            Ok(reader.events_after(0, &gt_store::EventFilter::default(), 100)?)
        };
        let (events, _) = stage.town.read(read).unwrap();
        events.into_iter().map(|event| event.number).collect::<Vec<_>>()
    };
    stage.keep();
    assert_eq!(kept(), (1..=all).collect::<Vec<_>>());

    stage.pass(31);
    assert_eq!(apply_retention(&stage.town).unwrap().events, old);

    // That they are gone is the last thing that happened.
    assert_eq!(kept(), (old + 1..=all + 1).collect::<Vec<_>>());
    stage.pass(365);
    forget_events(&stage.town).unwrap();
    assert_eq!(kept(), [all + 1, all + 2], "the last one stays");
}

#[test]
fn files_of_runs_that_are_over_go_and_others_stay() {
    let stage = Stage::new();
    let runs = stage.town.runs_directory();
    fs::create_dir_all(&runs).unwrap();
    let make = |run: &str, days_ago: u32| {
        let files = RunFiles::of(&runs, run);
        drop(files.try_lock().unwrap());
        let at = std::time::UNIX_EPOCH
            + Duration::from_nanos(stage.town.now().as_nanos().unsigned_abs())
            - DAY * days_ago;
        for path in [files.lock_path(), files.output_path()] {
            let file = fs::File::options().create(true).append(true).open(path).unwrap();
            file.set_modified(at).unwrap();
        }
    };
    let has = |run: &str| RunFiles::of(&runs, run).output_path().exists();
    // The store does not know these any more.
    make("we-old#1", 91);
    make("we-new#1", 89);
    make("we-held#1", 91);
    let held = RunFiles::of(&runs, "we-held#1");
    let lock = held.try_lock().unwrap();

    assert_eq!(forget_run_files(&stage.town).unwrap(), 1);
    assert_eq!((has("we-old#1"), has("we-new#1"), has("we-held#1")), (false, true, true));
    drop(lock);
    assert_eq!(forget_run_files(&stage.town).unwrap(), 1);
    assert_eq!(forget_run_files(&stage.town).unwrap(), 0);
}

#[test]
fn outputs_of_checks_go_with_the_events_of_their_time() {
    let stage = Stage::new();
    let directory = stage.town.root().join(".gt/checks/web");
    fs::create_dir_all(&directory).unwrap();
    let now = Duration::from_nanos(stage.town.now().as_nanos().unsigned_abs());
    for (name, days_ago) in [("old.log", 91), ("new.log", 89)] {
        let file = fs::File::create(directory.join(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + now - DAY * days_ago).unwrap();
    }
    let before = stage.town.now().minus(DAY * 90);
    assert_eq!(forget_check_logs(&stage.town, before).unwrap(), 1);
    assert!(directory.join("new.log").exists() && !directory.join("old.log").exists());
    assert_eq!(forget_check_logs(&stage.town, before).unwrap(), 0);
}
