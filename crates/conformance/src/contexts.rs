//! Contexts: scheduling, the reasons to wait, and lists.

use std::time::Duration;

use gt_core::decide::WaitClass;
use gt_core::schedule::{
    CloseReason, Context, ContextOrigin, Merge, SlingParameters, WorkerPlace, labels,
};
use gt_core::{BeadChangeKind, DependencyType, EventKind, Outcome, RigState, Status, Timestamp};

use super::EngineUnderTest;
use super::kit::{CheckedStore, at, bead, closed, id, kind, priority, rig, slug, texts};
use gt_store::{BeadFilter, BeadOrder, Between, CountGroup, Lane, NewContext, Pause, StatusFilter};

/// A plain context of a bead.
pub(super) fn new(text: &str) -> NewContext {
    NewContext::plain(id(text), slug("gear"), priority(2), ContextOrigin::Sling)
}

pub(super) fn schedule(town: &CheckedStore, new: NewContext) -> Context {
    let mut made = town.write(|writer| writer.insert_contexts(vec![new]));
    made.pop().expect("a context was made")
}

fn context_of(town: &CheckedStore, text: &str) -> Context {
    town.read(|reader| reader.latest_context(&id(text))).expect("it has a context")
}

/// How many wait, and how many of them stand in line, in a town with one rig.
#[track_caller]
fn assert_waiting(town: &CheckedStore, expected: Option<(u64, u64)>) {
    let (queued, lanes) = town.read(|reader| Ok((reader.count_queued()?, reader.count_lanes()?)));
    let in_line: u64 = lanes.iter().map(|(_, count)| count).sum();
    let counts: Vec<(u64, u64)> = queued.iter().map(|(_, queued)| (*queued, in_line)).collect();
    assert_eq!(counts, expected.into_iter().collect::<Vec<_>>());
    let found = town.read(|reader| reader.lanes());
    assert_eq!(found, lanes.into_iter().map(|(lane, _)| lane).collect::<Vec<_>>());
    town.check();
}

pub(super) fn a_context_reads_back_exactly_as_it_was_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let full = NewContext {
        place: Some(WorkerPlace::polecat(&slug("gear"), "toast").expect("a valid name")),
        account: Some("work".to_owned()),
        gated: true,
        forced: true,
        origin: ContextOrigin::Queue,
        parameters: SlingParameters {
            formula: Some("mol-review".to_owned()),
            vars: vec![("größe".to_owned(), "1=2\n3".to_owned())],
            merge: Some(Merge::Mr),
            convoy: Some(id("hq-cv-a")),
            ralph: true,
            retries: 2,
            host: Some("builder/0a1b".to_owned()),
            ..SlingParameters::default()
        },
        enqueued_at: Some(at(5)),
        enqueued_by: Some("gear/refinery".to_owned()),
        next_attempt_at: Some(at(99_999)),
        failures: 2,
        attempts: 1,
        ..new("gt-a")
    };

    let made = schedule(&town, full);

    assert_eq!((made.id.as_str(), made.enqueued_by.as_str()), ("hq-ctx-00001", "gear/refinery"));
    assert_eq!(town.read(|reader| reader.context("hq-ctx-00001")), Some(made.clone()));
    assert_eq!(town.read(|reader| reader.context_by_number(1)), Some(made.clone()));
    assert_eq!(town.read(|reader| reader.open_context(&id("gt-a"))), Some(made.clone()));
    let named = [id("hq-ctx-00001"), id("hq-ctx-00002"), id("gt-a")];
    assert_eq!(town.read(|reader| reader.contexts_named(&named)), [made]);
    let parts = |text: &str| town.read(|reader| reader.context_ids_containing(text));
    assert_eq!(parts("ctx-0"), [id("hq-ctx-00001")]);
    assert_eq!(parts("%"), []);
}

pub(super) fn a_bead_has_one_open_context(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    schedule(&town, new("gt-a"));

    town.refuse(|writer| writer.insert_contexts(vec![new("gt-a")]));
    town.refuse(|writer| writer.insert_contexts(vec![new("gt-absent")]));

    let first = context_of(&town, "gt-a");
    town.write(|writer| writer.close_context(&first, CloseReason::Cleared, ""));
    town.refuse(|writer| writer.close_context(&first, CloseReason::Cleared, ""));
    let second = schedule(&town, new("gt-a"));
    assert_eq!((first.number, second.number), (1, 2));
    assert_eq!(context_of(&town, "gt-a"), second);
    let all = town.read(|reader| reader.contexts_of(&id("gt-a")));
    let numbers: Vec<u64> = all.iter().map(|context| context.number).collect();
    assert_eq!(numbers, [1, 2]);
}

pub(super) fn open_contexts_and_convoys_of_many_beads_are_found_at_once(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    let names: Vec<String> = (0..300).map(|number| format!("gt-{number}")).collect();
    let ids: Vec<gt_core::BeadId> = names.iter().map(|name| id(name)).collect();
    town.write(|writer| {
        for name in &names {
            writer.insert_bead(&bead(name), EventKind::Created)?;
        }
        Ok(())
    });
    for (convoy, type_name) in
        [("hq-cv-b", "convoy"), ("hq-cv-a", "convoy"), ("hq-cv-0", "convoy"), ("hq-x", "task")]
    {
        town.add(gt_core::Bead { issue_type: kind(type_name), ..bead(convoy) });
    }
    town.write(|writer| {
        writer.track(&id("hq-cv-b"), &ids[1..])?;
        writer.track(&id("hq-cv-a"), &ids[299..])?;
        writer.track(&id("hq-cv-0"), &ids)?;
        writer.track(&id("hq-x"), &ids[..1])
    });
    town.close("hq-cv-0");
    town.write(|writer| writer.insert_contexts(names.iter().map(|name| new(name)).collect()));
    let first = context_of(&town, "gt-0");
    town.write(|writer| writer.close_context(&first, CloseReason::Cleared, ""));

    let open = town.read(|reader| reader.open_contexts_of(&ids));
    let convoys = town.read(|reader| reader.open_convoys_of(&ids));

    assert_eq!(open.len(), 299);
    assert_eq!(open.get(&ids[299]), Some(&context_of(&town, "gt-299")));
    assert_eq!(convoys.len(), 299);
    assert_eq!(convoys.get(&ids[0]), None, "one is over, and the other is no convoy");
    assert_eq!(convoys.get(&ids[1]), Some(&id("hq-cv-b")));
    assert_eq!(convoys.get(&ids[299]), Some(&id("hq-cv-a")), "the first by its id");
    let edges = town.read(|reader| reader.edges_from(&id("hq-cv-a")));
    let kinds: Vec<_> = edges.iter().map(|edge| (&edge.target, &edge.kind)).collect();
    assert_eq!(kinds, [(&ids[299], &DependencyType::Tracks)]);
    assert_waiting(&town, Some((299, 299)));
}

pub(super) fn numbers_are_given_in_line_and_never_again(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    // A name that came with an import stays with the bead that has it.
    town.add_open(&["gt-a", "gt-b", "gt-c", "hq-ctx-00002"]);
    let made = town.write(|writer| writer.insert_contexts(vec![new("gt-a"), new("gt-b")]));
    let numbers: Vec<u64> = made.iter().map(|context| context.number).collect();
    assert_eq!(numbers, [1, 3]);
    town.delete("gt-b");
    assert_eq!(schedule(&town, new("gt-c")).number, 4);
    let open = town.read(|reader| reader.open_contexts());
    let beads: Vec<&str> = open.iter().map(|context| context.bead.as_str()).collect();
    assert_eq!(beads, ["gt-a", "gt-c"]);
}

pub(super) fn changes_of_a_context_are_events_of_its_bead(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let story = town.story_of(|town| {
        for reason in CloseReason::ALL {
            let context = schedule(town, new("gt-a"));
            town.write(|writer| writer.close_context(&context, *reason, "because"));
        }
    });
    let ends = [
        None,
        Some("unscheduled"),
        Some("circuit_broken"),
        Some("quarantined"),
        Some("unscheduled"),
        Some("quarantined"),
    ];
    let expected: Vec<String> = ends
        .into_iter()
        .flat_map(|end| [Some("scheduled"), end])
        .flatten()
        .map(|kind| format!("{kind} gt-a"))
        .collect();
    assert_eq!(story, expected);
    let last = context_of(&town, "gt-a");
    assert_eq!(last.last_failure, "because");
    assert_eq!(last.closed.map(|closed| closed.reason), Some(CloseReason::Quarantined));
}

pub(super) fn lanes_follow_every_reason_that_holds_a_bead(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-p"]);
    schedule(&town, new("gt-a"));
    assert_waiting(&town, Some((1, 1)));
    // By another bead,
    town.link("gt-a", DependencyType::Blocks, "gt-b");
    assert_waiting(&town, Some((1, 0)));
    town.close("gt-b");
    assert_waiting(&town, Some((1, 1)));
    // by its assignee,
    town.change("gt-a", BeadChangeKind::Updated, |bead| "ann".clone_into(&mut bead.assignee));
    assert_waiting(&town, Some((1, 0)));
    town.change("gt-a", BeadChangeKind::Updated, |bead| bead.assignee = String::new());
    // by its status,
    for status in [Status::Pinned, Status::Blocked, Status::InProgress, Status::Deferred] {
        town.set_status("gt-a", status);
        assert_waiting(&town, Some((1, 0)));
        town.set_status("gt-a", Status::Open);
        assert_waiting(&town, Some((1, 1)));
    }
    town.close("gt-a");
    assert_waiting(&town, Some((1, 0)));
    assert_eq!(town.read(|reader| reader.stale_contexts(10)).len(), 1);
    town.reopen("gt-a");
    // by its type, once its rig is there to say which it takes,
    town.write(|writer| writer.insert_rig(&rig("gear", "gr")));
    town.change("gt-a", BeadChangeKind::Updated, |bead| bead.issue_type = kind("epic"));
    assert_waiting(&town, Some((1, 0)));
    town.change("gt-a", BeadChangeKind::Updated, |bead| bead.issue_type = kind("task"));
    // by a date of its own or of its parent.
    town.change("gt-a", BeadChangeKind::Updated, |bead| bead.defer_until = Some(at(99_999)));
    assert_waiting(&town, Some((1, 0)));
    town.change("gt-a", BeadChangeKind::Updated, |bead| bead.defer_until = None);
    town.change("gt-p", BeadChangeKind::Updated, |bead| bead.defer_until = Some(at(99_999)));
    town.link("gt-a", DependencyType::ParentChild, "gt-p");
    assert_waiting(&town, Some((1, 0)));
    town.change("gt-p", BeadChangeKind::Updated, |bead| bead.defer_until = None);
    assert_waiting(&town, Some((1, 1)));
    // A context that is started does not wait any more, nor one that is gone.
    let context = context_of(&town, "gt-a");
    town.write(|writer| writer.set_starting(&context, true));
    assert_waiting(&town, None);
    town.write(|writer| writer.set_starting(&context, false));
    assert_waiting(&town, Some((1, 1)));
    town.delete("gt-a");
    assert_waiting(&town, None);
    assert_eq!(town.read(|reader| reader.context("hq-ctx-00001")), None);
}

pub(super) fn the_types_that_a_rig_takes_depend_on_its_executor(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add(gt_core::Bead { issue_type: kind("story"), ..bead("gt-a") });
    let builds = rig("gear", "gr");
    town.write(|writer| writer.insert_rig(&builds));
    schedule(&town, new("gt-a"));
    assert_waiting(&town, Some((1, 0)));
    town.write(|writer| writer.delete_rig(&builds));
    // A cycle finds it, to give it up.
    assert_waiting(&town, Some((1, 1)));
    let pulls = gt_core::Rig { executor: gt_core::ExecutorKind::Pull, ..rig("gear", "gr") };
    town.write(|writer| writer.insert_rig(&pulls));
    assert_waiting(&town, Some((1, 1)));
    let retired = gt_core::Rig { executor: gt_core::ExecutorKind::Process, ..pulls.clone() };
    town.write(|writer| writer.change_rig(&pulls, &retired));
    assert_waiting(&town, Some((1, 0)));
}

/// Does something, and returns the stored wait of the context of `gt-a`, in line with the evaluator.
#[track_caller]
fn assert_waits(town: &CheckedStore, operation: &str, expected: (WaitClass, Option<Timestamp>)) {
    town.check();
    let stored = town.read(|reader| reader.stored_wait(&id("gt-a"))).expect("it is scheduled");
    assert_eq!((stored.class, stored.due_at), expected, "after {operation}");
}

/// An operation, by its name, and the wait of the context of `gt-a` after it.
type Operation<'a> = (&'a str, &'a dyn Fn(&CheckedStore), WaitClass, Option<Timestamp>);

pub(super) fn every_operation_that_changes_a_fact_evaluates_the_contexts_it_concerns(
    subject: &dyn EngineUnderTest,
) {
    use WaitClass::{Assignee, Blockers, Closed, Convoy, Nothing, Status as OfStatus, Type};
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-p"]);
    for name in ["hq-cv-1", "hq-cv-2"] {
        town.add(gt_core::Bead { issue_type: kind("convoy"), ..bead(name) });
    }
    let gear = rig("gear", "gr");
    let pulls = gt_core::Rig { executor: gt_core::ExecutorKind::Pull, ..gear.clone() };
    town.write(|writer| writer.insert_rig(&gear));
    schedule(&town, new("gt-a"));
    let later = at(90_000);
    let change = |town: &CheckedStore, text: &str, edit: &dyn Fn(&mut gt_core::Bead)| {
        town.change(text, BeadChangeKind::Updated, edit);
    };
    let limit = |town: &CheckedStore, convoy: &str, cap: u32, paused: bool| {
        let convoy = town.get(convoy);
        let pause = paused.then(|| Pause { by: "ann".to_owned(), at: at(7) });
        town.write(|writer| writer.limit_convoy(&convoy, cap, pause.as_ref()));
    };
    let start = |town: &CheckedStore, starting: bool| {
        let context = context_of(town, "gt-a");
        town.write(|writer| writer.set_starting(&context, starting));
    };
    let operations: [Operation<'_>; 49] = [
        (
            "an edge that blocks",
            &|t| t.link("gt-a", DependencyType::Blocks, "gt-b"),
            Blockers,
            None,
        ),
        ("the edge is removed", &|t| t.unlink("gt-a", "gt-b"), Nothing, None),
        (
            "a wait for a family",
            &|t| t.link("gt-a", DependencyType::WaitsFor, "gt-b"),
            Blockers,
            None,
        ),
        ("the blocker is closed", &|t| t.close("gt-b"), Nothing, None),
        ("the blocker is opened again", &|t| t.reopen("gt-b"), Blockers, None),
        ("the blocker fails", &|t| t.close_as("gt-b", Some(Outcome::Failed)), Blockers, None),
        (
            "the edge is waived",
            &|t| t.link("gt-a", DependencyType::trusted("related"), "gt-b"),
            Nothing,
            None,
        ),
        (
            "it is assigned",
            &|t| change(t, "gt-a", &|bead| "ann".clone_into(&mut bead.assignee)),
            Assignee,
            None,
        ),
        ("it is released", &|t| change(t, "gt-a", &|bead| bead.assignee.clear()), Nothing, None),
        ("it is taken by hand", &|t| t.set_status("gt-a", Status::InProgress), OfStatus, None),
        ("it is open again", &|t| t.set_status("gt-a", Status::Open), Nothing, None),
        (
            "it is put off without a date",
            &|t| t.set_status("gt-a", Status::Deferred),
            OfStatus,
            None,
        ),
        (
            "it gets a date",
            &|t| change(t, "gt-a", &|bead| bead.defer_until = Some(later)),
            Nothing,
            Some(later),
        ),
        ("it is put off no more", &|t| t.set_status("gt-a", Status::Open), Nothing, Some(later)),
        ("its date goes", &|t| change(t, "gt-a", &|bead| bead.defer_until = None), Nothing, None),
        (
            "it becomes a reference",
            &|t| change(t, "gt-a", &|bead| bead.pinned = true),
            OfStatus,
            None,
        ),
        ("it is none any more", &|t| change(t, "gt-a", &|bead| bead.pinned = false), Nothing, None),
        (
            "it becomes machinery",
            &|t| change(t, "gt-a", &|bead| bead.ephemeral = true),
            OfStatus,
            None,
        ),
        (
            "it is none any more",
            &|t| change(t, "gt-a", &|bead| bead.ephemeral = false),
            Nothing,
            None,
        ),
        (
            "it becomes an epic",
            &|t| change(t, "gt-a", &|bead| bead.issue_type = kind("epic")),
            Type,
            None,
        ),
        (
            "it becomes a story",
            &|t| change(t, "gt-a", &|bead| bead.issue_type = kind("story")),
            Type,
            None,
        ),
        (
            "agents ask its rig for work",
            &|t| t.write(|w| w.change_rig(&gear, &pulls)),
            Nothing,
            None,
        ),
        ("its rig starts workers again", &|t| t.write(|w| w.change_rig(&pulls, &gear)), Type, None),
        ("its rig is removed", &|t| t.write(|w| w.delete_rig(&gear)), Nothing, None),
        ("its rig is added", &|t| t.write(|w| w.insert_rig(&gear)), Type, None),
        (
            "it becomes a task",
            &|t| change(t, "gt-a", &|bead| bead.issue_type = kind("task")),
            Nothing,
            None,
        ),
        (
            "its rig is parked",
            &|t| t.write(|w| w.set_rig_state(&gear, RigState::Parked)),
            Nothing,
            None,
        ),
        (
            "its rig is active",
            &|t| t.write(|w| w.set_rig_state(&gear, RigState::Active)),
            Nothing,
            None,
        ),
        (
            "its parent is put off",
            &|t| change(t, "gt-p", &|bead| bead.defer_until = Some(later)),
            Nothing,
            None,
        ),
        (
            "it becomes a part",
            &|t| t.link("gt-a", DependencyType::ParentChild, "gt-p"),
            Nothing,
            Some(later),
        ),
        (
            "its parent is not put off",
            &|t| change(t, "gt-p", &|bead| bead.defer_until = None),
            Nothing,
            None,
        ),
        (
            "its parent is again",
            &|t| change(t, "gt-p", &|bead| bead.defer_until = Some(later)),
            Nothing,
            Some(later),
        ),
        ("its parent is deleted", &|t| t.delete("gt-p"), Nothing, None),
        ("a paused convoy", &|t| limit(t, "hq-cv-1", 0, true), Nothing, None),
        ("tracks it", &|t| t.write(|w| w.track(&id("hq-cv-1"), &[id("gt-a")])), Convoy, None),
        ("is resumed", &|t| limit(t, "hq-cv-1", 0, false), Nothing, None),
        ("is paused again", &|t| limit(t, "hq-cv-1", 3, true), Convoy, None),
        ("is closed", &|t| t.close("hq-cv-1"), Nothing, None),
        ("a capped convoy", &|t| limit(t, "hq-cv-2", 2, false), Nothing, None),
        (
            "tracks it as well",
            &|t| t.link("hq-cv-2", DependencyType::Tracks, "gt-a"),
            Nothing,
            None,
        ),
        ("is deleted", &|t| t.delete("hq-cv-2"), Nothing, None),
        ("its start begins", &|t| start(t, true), Nothing, None),
        ("its status follows", &|t| t.set_status("gt-a", Status::Hooked), Nothing, None),
        ("its start is given up", &|t| start(t, false), OfStatus, None),
        ("its bead is back", &|t| t.set_status("gt-a", Status::Open), Nothing, None),
        (
            "it is put off for a backoff",
            &|t| {
                let context = context_of(t, "gt-a");
                t.write(|w| w.postpone_context(&context, 1, "no room", Some(later)));
            },
            Nothing,
            Some(later),
        ),
        (
            "a person ends the backoff",
            &|t| {
                let context = context_of(t, "gt-a");
                t.write(|w| w.end_context_wait(&context));
            },
            Nothing,
            None,
        ),
        ("its bead is closed", &|t| t.close("gt-a"), Closed, None),
        ("its bead is opened again", &|t| t.reopen("gt-a"), Nothing, None),
    ];
    for (name, operation, class, due_at) in operations {
        operation(&town);
        assert_waits(&town, name, (class, due_at));
    }
    change(&town, "gt-a", &|bead| bead.priority = priority(0));
    town.check();
    assert_eq!(context_of(&town, "gt-a").priority, priority(0));
}

pub(super) fn the_line_read_within_a_transaction_sees_its_changes(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    schedule(&town, new("gt-a"));
    let (before, blocked) = town.write(|writer| {
        let before = writer.lanes()?.len();
        writer.put_dependency(&super::kit::edge("gt-a", DependencyType::Blocks, "gt-b"), true)?;
        Ok((before, writer.lanes()?.len()))
    });
    assert_eq!((before, blocked), (1, 0));
}

pub(super) fn lanes_are_told_apart_by_what_admission_looks_at(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c", "gt-d", "gt-e", "gt-f"]);
    let place = WorkerPlace::polecat(&slug("gear"), "toast").ok();
    town.write(|writer| {
        writer.insert_contexts(vec![
            new("gt-a"),
            new("gt-b"),
            NewContext { rig: slug("attic"), ..new("gt-c") },
            NewContext { place: place.clone(), ..new("gt-d") },
            NewContext { account: Some("work".to_owned()), ..new("gt-e") },
            NewContext { gated: true, ..new("gt-f") },
        ])
    });
    let (lanes, counts): (Vec<Lane>, Vec<u64>) =
        town.read(|reader| reader.count_lanes()).into_iter().unzip();
    assert_eq!(counts, [1, 2, 1, 1, 1]);
    assert_eq!(town.read(|reader| reader.lanes()), lanes);
    let queued = town.read(|reader| reader.count_queued());
    assert_eq!(queued, [(slug("attic"), 1), (slug("gear"), 5)]);
    assert_eq!(town.read(|reader| reader.count_queued_on("work")), 1);
    let plain: &Lane = &lanes[1];
    let next = |number: u64| {
        let line = town.read(|reader| reader.lane_after(plain, number, 10));
        line.into_iter().map(|context| context.bead.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(next(0), ["gt-a", "gt-b"]);
    assert_eq!(next(1), ["gt-b"]);
    // A change of priority changes the lane.
    town.change("gt-a", BeadChangeKind::Updated, |bead| bead.priority = priority(0));
    let lanes = town.read(|reader| reader.lanes());
    assert_eq!(lanes.len(), 6);
}

pub(super) fn a_start_that_failed_is_put_off_until_its_date(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let context = schedule(&town, new("gt-a"));
    town.write(|writer| writer.set_starting(&context, true));
    town.write(|writer| writer.postpone_context(&context, 1, "no room", Some(at(20_000))));
    assert_waiting(&town, Some((1, 0)));
    let later = at(20_000);
    let far = later.plus(Duration::from_hours(1));
    let due = |now| town.read(|reader| reader.contexts_due(now, far)).len();
    assert_eq!((due(at(19_999)), due(later)), (0, 1));
    let next = |now| town.read(|reader| reader.next_context_due(now));
    assert_eq!((next(at(1)), next(later)), (Some(later), None));
    // A date that is too far off to be true is looked at as well.
    assert_eq!(town.read(|reader| reader.contexts_due(at(1), at(2))).len(), 1);
    town.write(|writer| writer.wake_contexts(at(19_999)));
    assert_waiting(&town, Some((1, 0)));
    town.write(|writer| writer.wake_contexts(later));
    assert_waiting(&town, Some((1, 1)));
    let context = context_of(&town, "gt-a");
    assert_eq!((context.failures, context.last_failure.as_str()), (1, "no room"));
}

pub(super) fn labels_follow_the_last_context(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let a = town.add(bead("gt-a"));
    town.label("gt-a", "red");
    let with = |label: &str| BeadFilter { labels: texts([label]), ..BeadFilter::default() };
    let check = |town: &CheckedStore| {
        let latest = town.read(|reader| reader.latest_context(&a.id));
        let derived = labels::of_bead(latest.as_ref());
        let mut expected = texts(["red"]);
        expected.extend(derived.iter().map(ToString::to_string));
        expected.sort();
        assert_eq!(town.read(|reader| reader.labels(&a)), expected);
        assert_eq!(town.read(|reader| reader.labels_in_order(&a)), texts(["red"]));
        for label in labels::DERIVED {
            let found: &[&str] = if derived.contains(&label) { &["gt-a"] } else { &[] };
            town.finds(with(label), found);
        }
    };
    check(&town);
    for reason in CloseReason::ALL {
        let context = schedule(&town, new("gt-a"));
        check(&town);
        town.write(|writer| writer.close_context(&context, *reason, ""));
        check(&town);
    }
}

pub(super) fn a_label_that_was_also_given_is_there_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let a = town.add(bead("gt-a"));
    town.label("gt-a", "gt:queued");
    schedule(&town, new("gt-a"));

    let expected = [("gt:queued", 1), ("queued", 1)].map(|(l, n)| (l.to_owned(), n));
    assert_eq!(town.read(|reader| reader.labels(&a)), texts(["gt:queued", "queued"]));
    let plain = BeadFilter::default();
    assert_eq!(town.read(|reader| reader.count_by(&plain, CountGroup::Label)), expected);
    let rows = town.read(|reader| reader.bead_rows(&[id("gt-a")]));
    assert_eq!(rows[0].labels, texts(["gt:queued", "queued"]));
    let all = town.read(|reader| reader.all_labels());
    assert_eq!(all[..1], expected[..1]);
    let none = BeadFilter { no_labels: true, ..BeadFilter::default() };
    town.finds(none, &[]);
}

pub(super) fn contexts_are_listed_as_beads_on_request(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    town.add(closed("gt-c", None));
    for text in ["gt-a", "gt-b", "gt-c"] {
        schedule(&town, NewContext { enqueued_at: Some(at(7)), ..new(text) });
    }
    let second = context_of(&town, "gt-b");
    town.write(|writer| writer.close_context(&second, CloseReason::Cleared, ""));
    let (first, second, third) = ("hq-ctx-00001", "hq-ctx-00002", "hq-ctx-00003");
    let all = BeadFilter {
        include_contexts: true,
        types: vec![kind("sling-context")],
        status: StatusFilter::All,
        ..BeadFilter::default()
    };
    let with = |change: fn(&mut BeadFilter)| {
        let mut filter = all.clone();
        change(&mut filter);
        filter
    };

    town.finds(all.clone(), &[first, second, third]);
    town.finds(with(|f| f.status = StatusFilter::Current), &[first, third]);
    town.finds(with(|f| f.status = StatusFilter::OneOf(vec![Status::Closed])), &[second]);
    town.finds(with(|f| f.labels = texts(["gt:sling-context"])), &[first, second, third]);
    town.finds(with(|f| f.labels = texts(["gt:queued"])), &[]);
    town.finds(with(|f| f.ids = vec![id("hq-ctx-00003")]), &[third]);
    town.finds(with(|f| f.title_contains = Some("for GT-B".to_owned())), &[second]);
    town.finds(with(|f| f.description_contains = Some("\"gt-a\"".to_owned())), &[first]);
    town.finds(with(|f| f.assignee = Some("ann".to_owned())), &[]);
    let before = Between { before: Some(at(8)), after: None };
    let after = Between { after: Some(at(8)), before: None };
    town.finds(BeadFilter { created: before, ..all.clone() }, &[first, second, third]);
    town.finds(BeadFilter { created: after, ..all.clone() }, &[]);
    town.finds(BeadFilter { closed: after, ..all.clone() }, &[second]);
    let newest = BeadFilter { order: BeadOrder::Updated, limit: Some(1), ..all.clone() };
    assert_eq!(town.find(&newest), [second]);
    let by_status = town.read(|reader| reader.count_by(&all, CountGroup::Status));
    assert_eq!(by_status, [("closed".to_owned(), 1), ("open".to_owned(), 2)]);
    // Beside beads, without those that are hidden for other reasons.
    town.add(gt_core::Bead { ephemeral: true, ..bead("gt-e") });
    let both = BeadFilter { include_contexts: true, ..BeadFilter::default() };
    town.finds(both.clone(), &["gt-a", "gt-b", first, third]);
    let ephemeral = BeadFilter { include_ephemeral: true, ..both.clone() };
    town.finds(ephemeral, &["gt-a", "gt-b", "gt-e", first, third]);
    town.finds(BeadFilter { ephemeral: Some(false), ..both.clone() }, &["gt-a", "gt-b"]);
    // No other filter finds them.
    let everything = BeadFilter {
        include_contexts: false,
        include_hidden: true,
        include_ephemeral: true,
        types: Vec::new(),
        ..all.clone()
    };
    town.finds(everything, &["gt-a", "gt-b", "gt-c", "gt-e"]);
    let ready = Some(gt_store::Readiness { now: at(9), include_deferred: false });
    town.finds(BeadFilter { ready, types: all.types.clone(), ..both.clone() }, &[]);
    town.finds(BeadFilter { blocked: true, ..both }, &[]);
    assert_eq!(town.read(|reader| reader.statistics()).total(), 3);
}

pub(super) fn a_bead_with_the_name_of_a_context_is_the_only_one_shown(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    schedule(&town, new("gt-a"));
    town.add(gt_core::Bead { issue_type: kind("sling-context"), ..bead("hq-ctx-00001") });

    let filter = BeadFilter {
        include_contexts: true,
        types: vec![kind("sling-context")],
        ..BeadFilter::default()
    };
    town.finds(filter, &["hq-ctx-00001"]);
    assert_eq!(town.read(|reader| reader.labels(&bead("hq-ctx-00001"))), texts([]));
}

pub(super) fn traces_of_older_queues_are_found(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    let description = "Mine.\n---gt:queue:v1---\ntarget_rig: web".to_owned();
    town.add(gt_core::Bead { description, ..bead("gt-d") });
    for (text, label) in [("gt-a", "gt:queued"), ("gt-b", "red"), ("gt-c", "gt:dispatch-failed")] {
        town.label(text, label);
    }
    for (text, over) in [("gt-x", false), ("gt-y", true)] {
        let context = if over { closed(text, None) } else { bead(text) };
        town.add(gt_core::Bead { ephemeral: true, ..context });
        town.label(text, "gt:sling-context");
    }
    schedule(&town, new("gt-b"));

    let marked = town.read(|reader| reader.marked_by_old_queues());
    assert_eq!(marked, ["gt-a", "gt-c", "gt-d"].map(id));
    assert_eq!(town.read(|reader| reader.contexts_of_old_queues()), [id("gt-x")]);
}
