//! Polecats, the trees that were moved away, rescues, and the landing of work.

use std::time::Duration;

use gt_core::decide::{HostMode, HostState, SilenceChange};
use gt_core::schedule::{
    DoneStatus, Landing, Polecat, Rescued, Reserve, RunEnd, RunId, RunLimit, RunState, Silence,
    TrashState, Trashed, TreeState, Workplace,
};

use gt_core::work::{RunToken, TokenHash};
use gt_core::{
    Bead, BeadChangeKind, BeadId, DependencyType, EventKind, EventPayload, Status, Title,
};

use super::EngineUnderTest;
use super::kit::{CheckedStore, at, bead, by, edge, id, rig, slug};
use super::runs::{begin, set_status};
use gt_store::{
    Authorship, EventFilter, HostDeclaration, HostRow, Proof, SettingScope, StoreError, Worker,
    Writer,
};

fn polecat(name: &str, second: i64) -> Polecat {
    Polecat {
        rig: slug("gear"),
        name: name.to_owned(),
        host: "here/1".to_owned(),
        tree: TreeState::Absent,
        branch: String::new(),
        last_run: None,
        created_at: at(1),
        updated_at: at(second),
    }
}

fn run_id(text: &str) -> RunId {
    RunId { bead: id(text), epoch: 1 }
}

pub(super) fn polecats_are_kept_by_name_and_the_rested_come_first(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&rig("gear", "ge")));
    let (nux, toast) = (polecat("nux", 9), polecat("toast", 3));
    for polecat in [&nux, &toast] {
        town.write(|writer| writer.put_polecat(polecat));
    }
    assert_eq!(town.read(|reader| reader.polecats()), [nux.clone(), toast.clone()]);
    assert_eq!(town.read(|reader| reader.polecats_of(&slug("gear"))), [toast.clone(), nux]);

    let used = Polecat {
        tree: TreeState::Ready,
        branch: "polecat/toast/x@1".to_owned(),
        last_run: Some(run_id("gt-a")),
        updated_at: at(20),
        ..toast
    };
    town.write(|writer| writer.put_polecat(&used));
    assert_eq!(town.read(|reader| reader.polecat(&slug("gear"), "toast")), Some(used));

    town.write(|writer| writer.delete_polecat(&slug("gear"), "toast"));
    assert_eq!(town.read(|reader| reader.polecat(&slug("gear"), "toast")), None);
}

pub(super) fn each_tree_has_a_range_of_ports_and_the_smallest_free_one_is_next(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&rig("gear", "ge")));
    let number = |place: &str| town.read(|reader| reader.port_range(&slug("gear"), place));
    assert_eq!(number("polecats/nux"), None);
    for name in ["nux", "toast", "nux"] {
        town.write(|writer| writer.put_polecat(&polecat(name, 1)));
    }
    town.write(|writer| writer.take_port_range(&slug("gear"), "here/checks/1"));
    assert_eq!(number("polecats/nux"), Some(0));
    assert_eq!(number("polecats/toast"), Some(1));
    assert_eq!(number("here/checks/1"), Some(2));

    for (gone, next, freed) in [("toast", "ace", 1), ("nux", "dag", 0)] {
        town.write(|writer| writer.delete_polecat(&slug("gear"), gone));
        assert_eq!(number(&format!("polecats/{gone}")), None);
        town.write(|writer| writer.put_polecat(&polecat(next, 1)));
        assert_eq!(number(&format!("polecats/{next}")), Some(freed));
    }
    town.write(|writer| writer.put_polecat(&polecat("late", 1)));
    assert_eq!(number("polecats/late"), Some(3));
}

pub(super) fn a_tree_is_moved_away_with_a_number_and_told_when_it_was(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    let trashed = |name: &str| Trashed {
        number: 0,
        rig: slug("gear"),
        name: name.to_owned(),
        host: "here/1".to_owned(),
        path: format!("gear/.trash/{name}"),
        branch: "polecat/nux/gt-a@1".to_owned(),
        run: Some(run_id("gt-a")),
        reason: "nuked".to_owned(),
        state: TrashState::Moving,
        moved_at: at(5),
        moved_by: "ann".to_owned(),
        purge_at: at(500),
    };
    let mut kept = Vec::new();
    let story = town.story_of(|town| {
        for name in ["nux", "toast"] {
            let moved = town.write(|writer| writer.insert_trash(&trashed(name)));
            town.write(|writer| writer.set_trash_state(&moved, TrashState::Kept));
            kept.push(Trashed { state: TrashState::Kept, ..moved });
        }
    });
    assert_eq!(story, ["tree_moved gt-a", "tree_moved gt-a"]);
    kept.reverse();
    assert_eq!(town.read(|reader| reader.trash()), kept);
    assert_eq!(kept.iter().map(|trashed| trashed.number).collect::<Vec<_>>(), [2, 1]);

    let told = |one: &Trashed| town.read(|reader| reader.purge_announced_at(one));
    assert_eq!(told(&kept[1]), None);
    let announced = town.story_of(|town| {
        town.write(|writer| writer.announce_purge(&kept[1], kept[1].purge_at));
    });
    assert_eq!((announced.len(), told(&kept[0])), (1, None));
    assert!(announced[0].starts_with("tree_due") && told(&kept[1]).is_some(), "{announced:?}");

    town.write(|writer| writer.set_trash_state(&kept[0], TrashState::Restored));
    town.write(|writer| writer.set_trash_state(&kept[1], TrashState::Purged));
    assert_eq!((town.read(|reader| reader.trash()), told(&kept[1])), (vec![], None));
}

pub(super) fn the_rescue_of_a_run_is_kept_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let rescued = Rescued {
        run: run_id("gt-a"),
        rig: slug("gear"),
        host: "here/1".to_owned(),
        reference: "refs/gt/rescue/gt-a/1".to_owned(),
        commit: "c0ffee".to_owned(),
        base: "ba5e".to_owned(),
        bytes: 77,
        left_out: vec!["a \"pipe\": not a file".to_owned()],
        created_at: at(9),
    };
    let again = Rescued { commit: "c0ffee2".to_owned(), left_out: Vec::new(), ..rescued.clone() };
    for rescued in [&rescued, &again] {
        town.write(|writer| writer.put_rescue(rescued));
        assert_eq!(town.read(|reader| reader.rescue_of(&rescued.run)).as_ref(), Some(rescued));
    }
    assert_eq!(town.read(|reader| reader.rescues()), [again]);
    assert_eq!(town.read(|reader| reader.rescue_of(&run_id("gt-b"))), None);
}

pub(super) fn the_silence_of_a_worker_is_written_down_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let run = begin(&town, "gt-a", |_| ());
    let silence = Silence { since: run.created_at.floor_to_second() };
    let change = |change| town.write(|writer| writer.change_silence(&run, change));
    let read = || town.read(|reader| reader.run(&run.id)).expect("the run is there");
    // The worker has not begun yet.
    assert!(!change(SilenceChange::Begins(silence)));
    assert!(town.write(|writer| {
        set_status(writer, "gt-a", Status::InProgress)?;
        writer.claim_run(&run, &Workplace::default())
    }));

    let story = town.story_of(|_| {
        assert!(!change(SilenceChange::Ends(silence)));
        assert!(change(SilenceChange::Begins(silence)));
        assert!(!change(SilenceChange::Begins(silence)));
        assert_eq!(read().silence(), Some(silence));
        assert!(change(SilenceChange::Ends(silence)));
        assert!(!change(SilenceChange::Ends(silence)));
        assert_eq!(read().silence(), None);
    });

    assert_eq!(story, ["run_silent gt-a", "run_goes_on gt-a"]);
}

pub(super) fn a_run_is_over_one_limit_and_keeps_its_reserve(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let reserved = Reserve { tokens: Some(70_000), cost: None };
    let run = begin(&town, "gt-a", |run| run.reserved = reserved);
    let read = || town.read(|reader| reader.run(&run.id)).expect("the run is there");
    assert_eq!((read().over_limit, read().reserved), (None, reserved));
    let mark = |limit| town.write(|writer| writer.mark_over_limit(&run, limit));
    assert!(mark(RunLimit::Cost));
    // The first limit counts.
    assert!(!mark(RunLimit::Time));
    assert_eq!(read().over_limit, Some(RunLimit::Cost));
    town.write(|writer| {
        let end = RunEnd::without_status(RunState::Lost, "it was over its limit");
        writer.end_run(&run, &end, "").map(drop)
    });
    assert_eq!((read().over_limit, read().reserved), (Some(RunLimit::Cost), reserved));
    assert!(!mark(RunLimit::Time));
}

pub(super) fn accepted_work_is_on_its_way_until_it_has_landed(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let run = begin(&town, "gt-a", |_| ());
    let place = Workplace {
        session: "ge-nux".to_owned(),
        tree: "gear/polecats/nux/rig".to_owned(),
        branch: "polecat/nux/gt-a@1".to_owned(),
        base: "main".to_owned(),
        base_commit: "ba5e".to_owned(),
    };
    assert!(town.write(|writer| {
        set_status(writer, "gt-a", Status::InProgress)?;
        writer.claim_run(&run, &place)
    }));
    let read = || town.read(|reader| reader.run(&run.id)).expect("the run is there");

    let story = town.story_of(|town| {
        assert!(town.write(|writer| writer.accept_work(&run, DoneStatus::Completed, "c0ffee")));
        assert_eq!((read().workplace, read().said), (place.clone(), Some(DoneStatus::Completed)));
        let accepted = Landing { accepted: "c0ffee".to_owned(), commit: String::new() };
        assert_eq!(read().landing, accepted);
        let accepted = read();
        town.write(|writer| writer.confirm_landing(&accepted, "main", "c0ffee3"));
    });

    assert_eq!(story, ["work_accepted gt-a", "landed gt-a"]);
    assert_eq!(read().landing.commit, "c0ffee3");
    // Nothing of a run that is over is accepted.
    let end = RunEnd::without_status(RunState::Cancelled, "it was cancelled");
    assert!(town.write(|writer| {
        set_status(writer, "gt-a", Status::Open)?;
        writer.end_run(&run, &end, "ann")
    }));
    assert!(!town.write(|writer| writer.accept_work(&run, DoneStatus::Completed, "c0ffee5")));
    assert_eq!(read().landing.accepted, "c0ffee");
}

pub(super) fn the_runs_of_a_host_that_is_gone_are_adopted(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let gone = begin(&town, "gt-a", |run| "here/0123".clone_into(&mut run.host));
    let other = begin(&town, "gt-b", |run| "here/9999".clone_into(&mut run.host));
    let host = HostRow {
        id: "0123".to_owned(),
        name: "here".to_owned(),
        machine: "m".to_owned(),
        path: "/town".to_owned(),
        incarnation: "1".to_owned(),
    };
    for incarnation in ["1", "2"] {
        let host = HostRow { incarnation: incarnation.to_owned(), ..host.clone() };
        town.write(|writer| writer.host_seen(&host));
        let seen = town.read(|reader| reader.hosts());
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].0, host);
        assert!((0..600).contains(&seen[0].1), "{seen:?}");
    }

    assert_eq!(town.write(|writer| writer.adopt_host("0123", "there/4567")), 1);

    let host_of = |id: &RunId| town.read(|reader| reader.run(id)).expect("it is there").host;
    assert_eq!(host_of(&gone.id), "there/4567");
    assert_eq!(host_of(&other.id), "here/9999");
    assert_eq!(town.read(|reader| reader.hosts()), []);
}

fn host_row(id: &str) -> HostRow {
    let text = str::to_owned;
    HostRow {
        id: text(id),
        name: text("builder"),
        machine: text("m"),
        path: text("/town"),
        incarnation: text("1"),
    }
}

pub(super) fn a_host_renews_its_lease_with_its_declarations(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let declared = HostDeclaration {
        address: "10.0.0.7".to_owned(),
        version: "1.2".to_owned(),
        labels: vec!["gpu".to_owned(), "linux".to_owned()],
        max_runs: 4,
        rigs: vec!["web".to_owned()],
        runtimes: vec!["claude".to_owned(), "codex".to_owned()],
        memory_mb: 64_000,
        memory_free_mb: 32_000,
        load_hundredths: 150,
        cores: 8,
        grace: Duration::from_mins(15),
    };
    let [one, two] = ["0123", "4567"].map(host_row);
    // An older program declares nothing, and is never gone.
    town.write(|writer| writer.host_seen(&two));
    town.write(|writer| writer.renew_host(&one, &declared, true));
    let fleet = town.read(|reader| reader.fleet());
    let [first, second] = fleet.as_slice() else { panic!("{fleet:?}") };
    assert_eq!((&first.host, &first.declared), (&one, &declared));
    assert_eq!((&second.host, &second.declared), (&two, &HostDeclaration::default()));
    assert_eq!((first.state(), second.state()), (HostState::Active, HostState::Active));
    assert!(first.has_daemon() && !second.has_daemon());
    assert_eq!((first.times().is_some(), second.times()), (true, None));
    let clock = town.read(|reader| reader.store_clock_s());
    assert!((0..600).contains(&(clock - first.seen_at_s)), "{clock} {first:?}");

    // A renewal by a command does not speak for the daemon.
    town.write(|writer| writer.host_daemon_left(&one.id));
    town.write(|writer| writer.renew_host(&one, &declared, false));
    assert!(!town.read(|reader| reader.fleet())[0].has_daemon());
}

pub(super) fn the_mode_of_a_host_outlives_its_renewals(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let host = host_row("0123");
    let state = || town.read(|reader| reader.fleet())[0].state();
    town.write(|writer| writer.host_seen(&host));
    assert!(town.write(|writer| writer.set_host_mode(&host, HostMode::Draining)));
    assert!(!town.write(|writer| writer.set_host_mode(&host, HostMode::Draining)));
    assert_eq!(state(), HostState::Draining);
    town.write(|writer| writer.host_seen(&host));
    assert_eq!(state(), HostState::Draining);
    assert!(town.write(|writer| writer.set_host_mode(&host, HostMode::Removed)));
    town.write(|writer| writer.host_seen(&host));
    assert_eq!(state(), HostState::Removed);
    assert!(town.write(|writer| writer.set_host_mode(&host, HostMode::Active)));
    assert_eq!(state(), HostState::Active);
    let last = town.read(|reader| reader.latest_events(&EventFilter::default(), 1));
    assert!(matches!(
        last[0].details(),
        EventPayload::HostChanged(change) if change.new == "active" && change.host == "0123"
    ));
}

pub(super) fn a_cancelled_run_is_left_to_a_host_with_a_lease(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let [leased, plain] = ["0123", "4567"].map(host_row);
    let declared = HostDeclaration { grace: Duration::from_mins(15), ..HostDeclaration::default() };
    town.write(|writer| writer.renew_host(&leased, &declared, true));
    town.write(|writer| writer.host_seen(&plain));
    let [on_leased, on_plain] = [("gt-a", "builder/0123"), ("gt-b", "builder/4567")]
        .map(|(bead, host)| begin(&town, bead, |run| host.clone_into(&mut run.host)));
    for run in [&on_leased, &on_plain] {
        town.write(|writer| writer.leave_run_to_its_host(run));
    }
    let left = || town.read(|reader| reader.beads_with_left_runs());
    assert_eq!(left(), [(on_leased.id.bead.clone(), "0123".to_owned())]);
    town.write(|writer| writer.forget_left_runs(&[on_leased.id, on_plain.id]));
    assert_eq!(left(), []);
}

pub(super) fn runs_of_a_gone_host_are_left_until_it_clears_them(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let host = host_row("0123");
    town.write(|writer| writer.host_seen(&host));
    let runs = ["gt-a", "gt-b"]
        .map(|bead| begin(&town, bead, |run| "builder/0123".clone_into(&mut run.host)));
    for run in &runs {
        // Twice: the process that declares it lost may have died before it could tell of it.
        town.write(|writer| writer.leave_run(run, "0123"));
        town.write(|writer| writer.leave_run(run, "0123"));
    }
    let left = |id: &str| town.read(|reader| reader.left_runs(id));
    let ids: Vec<RunId> = runs.iter().map(|run| run.id.clone()).collect();
    assert_eq!((left("0123"), left("other")), (ids.clone(), vec![]));
    assert!(town.write(|writer| writer.set_host_gone(&host)));
    assert!(!town.write(|writer| writer.set_host_gone(&host)));
    assert!(town.read(|reader| reader.fleet())[0].is_declared_gone);
    let change = || {
        let last = town.read(|reader| reader.latest_events(&EventFilter::default(), 1));
        match last[0].details() {
            EventPayload::HostChanged(change) => change,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        (change().new.as_str(), change().runs),
        ("gone", vec!["gt-a#1".into(), "gt-b#1".into()])
    );

    town.write(|writer| writer.host_seen(&host));
    assert!(!town.read(|reader| reader.fleet())[0].is_declared_gone);
    town.write(|writer| writer.clear_left_runs(&host, &ids, &ids[..1]));
    let back = change();
    assert_eq!(
        (back.new.as_str(), back.runs.len(), back.saved),
        ("back", 2, vec!["gt-a#1".into()])
    );
    // Clearing again tells of nothing.
    town.write(|writer| writer.clear_left_runs(&host, &ids, &ids));
    assert_eq!(left("0123"), []);
    assert_eq!(change().saved, ["gt-a#1"]);
}

fn retitle(writer: &mut Writer<'_>, bead: &str, title: &str) -> Result<bool, StoreError> {
    let old = writer.bead(&id(bead))?.expect("the bead is there");
    let new = Bead { title: Title::parse(title).expect("a title"), ..old.clone() };
    writer.save_bead(&old, &new, BeadChangeKind::Updated)
}

/// One write of a worker.
type WorkerWrite<'w> = &'w dyn Fn(&mut Writer<'_>) -> Result<(), StoreError>;

pub(super) fn writes_of_a_worker_are_checked_before_they_are_committed(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    town.link("gt-c", DependencyType::ParentChild, "gt-a");
    let run = begin(&town, "gt-a", |_| ());
    let token = RunToken::from_random([7; 32]);
    let own = Proof::Token(token.hash());
    // A run that no supervisor has claimed has no token.
    assert!(!town.write(|writer| writer.set_run_token(&run.id, &token.hash())));
    assert!(town.write(|writer| {
        set_status(writer, "gt-a", Status::InProgress)?;
        writer.claim_run(&run, &Workplace::default())?;
        writer.set_run_token(&run.id, &token.hash())
    }));
    assert_eq!(town.read(|reader| reader.run_of_token(&token.hash())), Some(run.id.clone()));
    let author = |proof: &Proof| Authorship {
        worker: Some(Worker { run: run.id.clone(), proof: proof.clone() }),
        ..by(5)
    };
    let heard = |proof: &Proof, work: WorkerWrite<'_>| {
        let before = town.last_event();
        match town.store.write(&author(proof), work) {
            Ok(()) => true,
            Err(StoreError::Worker(_)) => {
                assert_eq!(town.last_event(), before);
                false
            }
            Err(other) => panic!("{other}"),
        }
    };
    let found: BeadId = id("gt-d");

    // Its own bead, a part of it, and beads it creates.
    assert!(heard(&own, &|writer| retitle(writer, "gt-a", "mine").map(drop)));
    assert!(heard(&own, &|writer| retitle(writer, "gt-c", "a part").map(drop)));
    assert!(heard(&own, &|writer| writer.insert_bead(&bead("gt-d"), EventKind::Created)));
    assert!(heard(&own, &|writer| retitle(writer, found.as_str(), "found").map(drop)));
    // Another bead, with or without adopting it, and writes without an event.
    assert!(!heard(&own, &|writer| retitle(writer, "gt-b", "mine").map(drop)));
    assert!(!heard(&own, &|writer| {
        let edge = edge("gt-b", DependencyType::ParentChild, "gt-a");
        writer.put_dependency(&edge, false)?;
        retitle(writer, "gt-b", "mine").map(drop)
    }));
    assert!(!heard(&own, &|writer| writer
        .put_setting(SettingScope::Store, "x", Some("y"))
        .map(drop)));
    assert!(!heard(&own, &|writer| writer
        .put_setting(SettingScope::Town, "a", Some("b"))
        .map(drop)));
    // No token, and that of another.
    for proof in [Proof::Missing, Proof::Token(TokenHash::from_bytes([1; 32]))] {
        assert!(!heard(&proof, &|writer| retitle(writer, "gt-a", "again").map(drop)));
    }

    // The setting widens it.
    town.write(|writer| writer.put_setting(SettingScope::Town, "worker.rights", Some("beads")));
    assert!(heard(&own, &|writer| retitle(writer, "gt-b", "seen").map(drop)));
    assert!(!heard(&own, &|writer| writer
        .put_setting(SettingScope::Town, "a", Some("b"))
        .map(drop)));

    // Writes of a run that is being cancelled, or is over, are refused.
    town.write(|writer| writer.intend_to_cancel(&run, "ann"));
    assert!(!heard(&own, &|writer| retitle(writer, "gt-a", "late").map(drop)));
    let end = RunEnd::without_status(RunState::Cancelled, "it was cancelled");
    assert!(town.write(|writer| {
        set_status(writer, "gt-a", Status::Open)?;
        writer.end_run(&run, &end, "ann")
    }));
    assert!(!heard(&own, &|writer| retitle(writer, "gt-a", "late").map(drop)));
    assert!(!heard(&own, &|writer| writer.insert_bead(&bead("gt-e"), EventKind::Created)));
}
