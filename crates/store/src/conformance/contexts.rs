//! Contexts: what is scheduled, what keeps it, and how it is shown.

use std::time::Duration;

use gt_core::schedule::{
    CloseReason, Context, Merge, Origin, SlingParameters, WorkerPlace, labels,
};
use gt_core::{DependencyType, EventKind, Status};

use super::Subject;
use super::kit::{Town, at, bead, closed, id, kind, priority, rig, slug, texts};
use crate::{BeadFilter, BeadOrder, Between, CountGroup, Lane, NewContext, StatusFilter};

/// A plain context of a bead.
pub(super) fn new(text: &str) -> NewContext {
    NewContext::plain(id(text), slug("gear"), priority(2), Origin::Sling)
}

pub(super) fn schedule(town: &Town, new: NewContext) -> Context {
    let mut made = town.write(|writer| writer.insert_contexts(vec![new]));
    made.pop().expect("a context was made")
}

fn context_of(town: &Town, text: &str) -> Context {
    town.read(|reader| reader.latest_context(&id(text))).expect("it has a context")
}

/// How many wait, and how many of them nothing keeps.
#[track_caller]
fn assert_waiting(town: &Town, expected: Option<(u64, u64)>) {
    let lanes = town.read(|reader| reader.lanes());
    let counts: Vec<(u64, u64)> = lanes.iter().map(|lane| (lane.queued, lane.awake)).collect();
    assert_eq!(counts, expected.into_iter().collect::<Vec<_>>());
}

pub(super) fn a_context_reads_back_exactly_as_it_was_written(subject: &dyn Subject) {
    let town = Town::new(subject);
    town.add_open(&["gt-a"]);
    let full = NewContext {
        place: Some(WorkerPlace::polecat(&slug("gear"), "toast").expect("a valid name")),
        account: Some("work".to_owned()),
        gated: true,
        forced: true,
        origin: Origin::Queue,
        parameters: SlingParameters {
            formula: Some("mol-review".to_owned()),
            vars: vec![("größe".to_owned(), "1=2\n3".to_owned())],
            merge: Some(Merge::Mr),
            convoy: Some(id("hq-cv-a")),
            ralph: true,
            retries: 2,
            ..SlingParameters::default()
        },
        enqueued_at: Some(at(5)),
        next_attempt_at: Some(at(99_999)),
        failures: 2,
        attempts: 1,
        ..new("gt-a")
    };

    let made = schedule(&town, full);

    assert_eq!(made.id.as_str(), "hq-ctx-00001");
    assert_eq!(town.read(|reader| reader.context("hq-ctx-00001")), Some(made.clone()));
    assert_eq!(town.read(|reader| reader.context_by_number(1)), Some(made.clone()));
    assert_eq!(town.read(|reader| reader.open_context(&id("gt-a"))), Some(made.clone()));
    let named = [id("hq-ctx-00001"), id("hq-ctx-00002"), id("gt-a")];
    assert_eq!(town.read(|reader| reader.contexts_named(&named)), [made]);
    let parts = |text: &str| town.read(|reader| reader.context_ids_containing(text));
    assert_eq!(parts("ctx-0"), [id("hq-ctx-00001")]);
    assert_eq!(parts("%"), []);
}

pub(super) fn a_bead_has_one_open_context(subject: &dyn Subject) {
    let town = Town::new(subject);
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

pub(super) fn open_contexts_and_convoys_of_many_beads_are_found_at_once(subject: &dyn Subject) {
    let town = Town::new(subject);
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

pub(super) fn numbers_are_given_in_line_and_never_again(subject: &dyn Subject) {
    let town = Town::new(subject);
    // A name that came with an import stays with whoever has it.
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

pub(super) fn what_happens_to_a_context_is_told_of_its_bead(subject: &dyn Subject) {
    let town = Town::new(subject);
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

pub(super) fn lanes_follow_whatever_keeps_a_bead(subject: &dyn Subject) {
    let town = Town::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-p"]);
    schedule(&town, new("gt-a"));
    assert_waiting(&town, Some((1, 1)));
    // By another bead,
    town.link("gt-a", DependencyType::Blocks, "gt-b");
    assert_waiting(&town, Some((1, 0)));
    town.close("gt-b");
    assert_waiting(&town, Some((1, 1)));
    // by whoever has it,
    town.change("gt-a", EventKind::Updated, |bead| "ann".clone_into(&mut bead.assignee));
    assert_waiting(&town, Some((1, 0)));
    town.change("gt-a", EventKind::Updated, |bead| bead.assignee = String::new());
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
    // by its type,
    town.change("gt-a", EventKind::Updated, |bead| bead.issue_type = kind("epic"));
    assert_waiting(&town, Some((1, 0)));
    town.change("gt-a", EventKind::Updated, |bead| bead.issue_type = kind("task"));
    // by a date of its own or of what it is a part of.
    town.change("gt-a", EventKind::Updated, |bead| bead.defer_until = Some(at(99_999)));
    assert_waiting(&town, Some((1, 0)));
    town.change("gt-a", EventKind::Updated, |bead| bead.defer_until = None);
    town.change("gt-p", EventKind::Updated, |bead| bead.defer_until = Some(at(99_999)));
    town.link("gt-a", DependencyType::ParentChild, "gt-p");
    assert_waiting(&town, Some((1, 0)));
    town.change("gt-p", EventKind::Updated, |bead| bead.defer_until = None);
    assert_waiting(&town, Some((1, 1)));
    // Whoever is started does not wait any more, nor whoever is gone.
    let context = context_of(&town, "gt-a");
    town.write(|writer| writer.set_starting(&context, true));
    assert_waiting(&town, None);
    town.write(|writer| writer.set_starting(&context, false));
    assert_waiting(&town, Some((1, 1)));
    town.delete("gt-a");
    assert_waiting(&town, None);
    assert_eq!(town.read(|reader| reader.context("hq-ctx-00001")), None);
}

pub(super) fn what_may_go_to_a_rig_depends_on_how_it_works(subject: &dyn Subject) {
    let town = Town::new(subject);
    town.add(gt_core::Bead { issue_type: kind("story"), ..bead("gt-a") });
    schedule(&town, new("gt-a"));
    assert_waiting(&town, Some((1, 0)));
    let pulls = gt_core::Rig { executor: gt_core::ExecutorKind::Pull, ..rig("gear", "gr") };
    town.write(|writer| writer.insert_rig(&pulls));
    assert_waiting(&town, Some((1, 1)));
    town.write(|writer| writer.delete_rig(&pulls));
    assert_waiting(&town, Some((1, 0)));
}

pub(super) fn lanes_are_told_apart_by_what_admission_looks_at(subject: &dyn Subject) {
    let town = Town::new(subject);
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
    let lanes = town.read(|reader| reader.lanes());
    let counts: Vec<u64> = lanes.iter().map(|lane| lane.queued).collect();
    assert_eq!(counts, [1, 2, 1, 1, 1]);
    let plain: &Lane = &lanes[1];
    let next = |number: u64| {
        let line = town.read(|reader| reader.lane_after(plain, number, 10));
        line.into_iter().map(|context| context.bead.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(next(0), ["gt-a", "gt-b"]);
    assert_eq!(next(1), ["gt-b"]);
    // A change of priority changes the lane.
    town.change("gt-a", EventKind::Updated, |bead| bead.priority = priority(0));
    let lanes = town.read(|reader| reader.lanes());
    assert_eq!(lanes.len(), 6);
}

pub(super) fn a_start_that_failed_is_put_off_until_its_date(subject: &dyn Subject) {
    let town = Town::new(subject);
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

pub(super) fn labels_follow_the_last_context(subject: &dyn Subject) {
    let town = Town::new(subject);
    let a = town.add(bead("gt-a"));
    town.label("gt-a", "red");
    let with = |label: &str| BeadFilter { labels: texts([label]), ..BeadFilter::default() };
    let check = |town: &Town| {
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

pub(super) fn a_label_that_was_also_given_is_there_once(subject: &dyn Subject) {
    let town = Town::new(subject);
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

pub(super) fn contexts_are_listed_as_beads_for_whoever_asks(subject: &dyn Subject) {
    let town = Town::new(subject);
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
    // Beside beads, without what is hidden for other reasons.
    town.add(gt_core::Bead { ephemeral: true, ..bead("gt-e") });
    let both = BeadFilter { include_contexts: true, ..BeadFilter::default() };
    town.finds(both.clone(), &["gt-a", "gt-b", first, third]);
    let ephemeral = BeadFilter { include_ephemeral: true, ..both.clone() };
    town.finds(ephemeral, &["gt-a", "gt-b", "gt-e", first, third]);
    town.finds(BeadFilter { ephemeral: Some(false), ..both.clone() }, &["gt-a", "gt-b"]);
    // Nobody else sees them.
    let everything = BeadFilter {
        include_contexts: false,
        include_hidden: true,
        include_ephemeral: true,
        types: Vec::new(),
        ..all.clone()
    };
    town.finds(everything, &["gt-a", "gt-b", "gt-c", "gt-e"]);
    let ready = Some(crate::Readiness { now: at(9), include_deferred: false });
    town.finds(BeadFilter { ready, types: all.types.clone(), ..both.clone() }, &[]);
    town.finds(BeadFilter { blocked: true, ..both }, &[]);
    assert_eq!(town.read(|reader| reader.statistics()).total(), 3);
}

pub(super) fn a_bead_with_the_name_of_a_context_is_the_only_one_shown(subject: &dyn Subject) {
    let town = Town::new(subject);
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

pub(super) fn what_older_queues_left_is_found(subject: &dyn Subject) {
    let town = Town::new(subject);
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
