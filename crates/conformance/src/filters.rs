//! Which beads each field of a filter admits. Text and JSON fields are in `texts`, readiness is in
//! `readiness`.

use gt_core::{Bead, DependencyType, Outcome, Status};

use super::EngineUnderTest;
use super::kit::{CheckedStore, at, bead, closed, id, kind, priority, rig, slug, texts};
use gt_store::{BeadFilter, Between, StatusFilter};

fn any() -> BeadFilter {
    BeadFilter::default()
}

/// Everything there is.
fn everything() -> BeadFilter {
    BeadFilter {
        status: StatusFilter::All,
        include_hidden: true,
        include_templates: true,
        include_ephemeral: true,
        ..any()
    }
}

fn after(seconds: i64) -> Between {
    Between { after: Some(at(seconds)), before: None }
}

fn before(seconds: i64) -> Between {
    Between { after: None, before: Some(at(seconds)) }
}

pub(super) fn a_plain_list_shows_what_is_current(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    town.add(closed("gt-closed", None));
    let hidden = [
        Bead { status: Status::Pinned, ..bead("gt-pinned-status") },
        Bead { pinned: true, ..bead("gt-pinned") },
        Bead { is_template: true, ..bead("gt-template") },
        Bead { ephemeral: true, ..bead("gt-ephemeral") },
        Bead { issue_type: kind("gate"), ..bead("gt-gate") },
    ];
    for bead in hidden {
        town.add(bead);
    }

    town.finds(any(), &["gt-a"]);
    let all_ids = [
        "gt-a",
        "gt-closed",
        "gt-ephemeral",
        "gt-gate",
        "gt-pinned",
        "gt-pinned-status",
        "gt-template",
    ];
    town.finds(everything(), &all_ids);
}

pub(super) fn by_id(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    let ids = vec![id("gt-c"), id("gt-a"), id("gt-absent")];
    town.finds(BeadFilter { ids, ..any() }, &["gt-a", "gt-c"]);
}

pub(super) fn by_status(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let custom = Status::parse("staged_ready").expect("a custom status");
    for (text, status) in [
        ("gt-open", Status::Open),
        ("gt-hooked", Status::Hooked),
        ("gt-pinned", Status::Pinned),
        ("gt-staged", custom.clone()),
    ] {
        town.add(Bead { status, ..bead(text) });
    }
    town.add(closed("gt-closed", None));
    let with = |status| BeadFilter { status, ..any() };

    town.finds(any(), &["gt-hooked", "gt-open", "gt-staged"]);
    town.finds(
        with(StatusFilter::All),
        &["gt-closed", "gt-hooked", "gt-open", "gt-pinned", "gt-staged"],
    );
    town.finds(
        with(StatusFilter::OneOf(vec![custom, Status::Closed, Status::Pinned])),
        &["gt-closed", "gt-pinned", "gt-staged"],
    );
    town.finds(with(StatusFilter::OneOf(vec![])), &[]);
}

pub(super) fn by_being_blocked(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    town.link("gt-b", DependencyType::Blocks, "gt-a");
    town.link("gt-c", DependencyType::Blocks, "gt-a");
    town.close("gt-c");
    for status in [StatusFilter::Current, StatusFilter::All] {
        let blocked = BeadFilter { blocked: true, status, ..any() };
        town.finds(blocked, &["gt-b"]);
    }
}

pub(super) fn by_rig(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.write(|writer| writer.insert_rig(&rig("gear", "gt")));
    town.add(Bead { rig: Some(slug("gear")), ..bead("gt-a") });
    town.add_open(&["hq-a"]);
    let rig = |name| BeadFilter { rig: Some(slug(name)), ..any() };
    town.finds(rig("gear"), &["gt-a"]);
    town.finds(rig("zoo"), &[]);
}

pub(super) fn by_type(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for name in ["task", "bug", "epic", "gate", "agent", "molecule"] {
        town.add(Bead { issue_type: kind(name), ..bead(&format!("gt-{name}")) });
    }
    let types = |names: &[&str]| names.iter().map(|name| kind(name)).collect::<Vec<_>>();

    town.finds(any(), &["gt-bug", "gt-epic", "gt-molecule", "gt-task"]);
    town.finds(BeadFilter { types: types(&["bug", "gate"]), ..any() }, &["gt-bug", "gt-gate"]);
    town.finds(
        BeadFilter { exclude_types: types(&["bug", "molecule"]), ..any() },
        &["gt-epic", "gt-task"],
    );
    town.finds(
        BeadFilter { exclude_types: types(&["task", "bug"]), include_hidden: true, ..any() },
        &["gt-agent", "gt-epic", "gt-gate", "gt-molecule"],
    );
    town.finds(
        BeadFilter { types: types(&["bug", "task"]), exclude_types: types(&["bug"]), ..any() },
        &["gt-task"],
    );
}

pub(super) fn by_flags(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-plain"]);
    town.add(Bead { is_template: true, ..bead("gt-template") });
    town.add(Bead { ephemeral: true, ..bead("gt-ephemeral") });
    town.add(Bead { pinned: true, ..bead("gt-pinned") });
    let cases = [
        (BeadFilter { include_templates: true, ..any() }, vec!["gt-plain", "gt-template"]),
        (BeadFilter { include_ephemeral: true, ..any() }, vec!["gt-ephemeral", "gt-plain"]),
        (BeadFilter { ephemeral: Some(true), ..any() }, vec!["gt-ephemeral"]),
        (BeadFilter { ephemeral: Some(false), include_ephemeral: true, ..any() }, vec!["gt-plain"]),
        (BeadFilter { pinned: Some(true), ..any() }, vec!["gt-pinned"]),
        (BeadFilter { pinned: Some(false), status: StatusFilter::All, ..any() }, vec!["gt-plain"]),
        (BeadFilter { status: StatusFilter::All, ..any() }, vec!["gt-pinned", "gt-plain"]),
    ];
    for (filter, expected) in cases {
        town.finds(filter, &expected);
    }
}

pub(super) fn by_priority(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for number in 0..5 {
        town.add(Bead { priority: priority(number), ..bead(&format!("gt-{number}")) });
    }
    let between = |from: Option<i64>, to: Option<i64>| BeadFilter {
        priority_from: from.map(priority),
        priority_to: to.map(priority),
        ..any()
    };
    town.finds(between(Some(3), None), &["gt-3", "gt-4"]);
    town.finds(between(None, Some(1)), &["gt-0", "gt-1"]);
    town.finds(between(Some(2), Some(2)), &["gt-2"]);
    town.finds(between(Some(3), Some(2)), &[]);
}

pub(super) fn by_assignee(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (text, assignee) in [("gt-a", "toast"), ("gt-b", "Toast"), ("gt-c", "")] {
        town.add(Bead { assignee: assignee.to_owned(), ..bead(text) });
    }
    let toast = BeadFilter { assignee: Some("toast".to_owned()), ..any() };
    town.finds(toast, &["gt-a"]);
    let unassigned = BeadFilter { unassigned: true, ..any() };
    town.finds(unassigned, &["gt-c"]);
}

pub(super) fn by_labels(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-none", "gt-red", "gt-both", "gt-blue"]);
    for (text, label) in
        [("gt-red", "red"), ("gt-both", "red"), ("gt-both", "blue"), ("gt-blue", "blue")]
    {
        town.label(text, label);
    }
    let cases = [
        (BeadFilter { labels: texts(["red"]), ..any() }, vec!["gt-both", "gt-red"]),
        (BeadFilter { labels: texts(["red", "blue"]), ..any() }, vec!["gt-both"]),
        (
            BeadFilter { labels_any: texts(["red", "blue", "green"]), ..any() },
            vec!["gt-blue", "gt-both", "gt-red"],
        ),
        (BeadFilter { exclude_labels: texts(["blue"]), ..any() }, vec!["gt-none", "gt-red"]),
        (BeadFilter { no_labels: true, ..any() }, vec!["gt-none"]),
        (
            BeadFilter {
                labels: texts(["red"]),
                labels_any: texts(["red", "blue"]),
                exclude_labels: texts(["blue"]),
                ..any()
            },
            vec!["gt-red"],
        ),
        (BeadFilter { labels: texts(["re"]), ..any() }, vec![]),
    ];
    for (filter, expected) in cases {
        town.finds(filter, &expected);
    }
}

pub(super) fn by_parent(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-p", "gt-p.1", "gt-b", "gt-c"]);
    town.link("gt-b", DependencyType::ParentChild, "gt-p");
    town.link("gt-c", DependencyType::ParentChild, "gt-b");
    town.link("gt-c", DependencyType::Blocks, "gt-p");

    let parent = |text| BeadFilter { parent: Some(id(text)), ..any() };
    town.finds(parent("gt-p"), &["gt-b"]);
    town.finds(parent("gt-b"), &["gt-c"]);
    town.finds(parent("gt-c"), &[]);
    let top = BeadFilter { no_parent: true, ..any() };
    town.finds(top, &["gt-p", "gt-p.1"]);
}

/// One of the spans of a filter.
type Span = fn(&mut BeadFilter) -> &mut Between;

pub(super) fn by_the_times_of_a_bead(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (text, seconds) in [("gt-a", 10), ("gt-b", 20), ("gt-c", 30)] {
        town.add(Bead {
            created_at: at(seconds),
            updated_at: at(seconds + 100),
            closed_at: Some(at(seconds + 200)),
            due_at: Some(at(seconds + 300)),
            defer_until: Some(at(seconds + 400)),
            ..closed(text, None)
        });
    }
    town.add(Bead { created_at: at(20), updated_at: at(120), ..bead("gt-open") });
    let all = || BeadFilter { status: StatusFilter::All, ..any() };
    let fields: [(i64, Span, bool); 5] = [
        (0, |filter| &mut filter.created, true),
        (100, |filter| &mut filter.updated, true),
        (200, |filter| &mut filter.closed, false),
        (300, |filter| &mut filter.due, false),
        (400, |filter| &mut filter.deferred, false),
    ];
    for (offset, field, open_has_it) in fields {
        let finds = |span: Between, mut expected: Vec<&str>, with_open: bool| {
            let mut filter = all();
            *field(&mut filter) = span;
            expected.extend((with_open && open_has_it).then_some("gt-open"));
            town.finds(filter, &expected);
        };
        finds(after(offset + 10), vec!["gt-b", "gt-c"], true);
        finds(before(offset + 30), vec!["gt-a", "gt-b"], true);
        let inside = Between { after: Some(at(offset + 10)), before: Some(at(offset + 30)) };
        finds(inside, vec!["gt-b"], true);
        finds(after(offset + 30), vec![], false);
    }
}

pub(super) fn by_being_put_off(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    town.add(Bead { status: Status::Deferred, ..bead("gt-without-date") });
    town.add(Bead { defer_until: Some(at(5)), ..bead("gt-with-date") });
    let deferred = BeadFilter { only_deferred: true, ..any() };
    town.finds(deferred, &["gt-with-date", "gt-without-date"]);
}

pub(super) fn by_being_overdue(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-no-date"]);
    for (text, seconds) in [("gt-late", 10), ("gt-now", 20), ("gt-later", 30)] {
        town.add(Bead { due_at: Some(at(seconds)), ..bead(text) });
    }
    town.add(Bead { due_at: Some(at(10)), ..closed("gt-done", None) });
    let overdue = BeadFilter { overdue_at: Some(at(20)), status: StatusFilter::All, ..any() };
    town.finds(overdue, &["gt-late"]);
}

pub(super) fn by_outcome(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-open"]);
    town.add(closed("gt-plain", None));
    for (text, outcome) in
        [("gt-good", Outcome::Success), ("gt-bad", Outcome::Failed), ("gt-off", Outcome::Cancelled)]
    {
        town.add(closed(text, Some(outcome)));
        let filter = BeadFilter { outcome: Some(outcome), status: StatusFilter::All, ..any() };
        town.finds(filter, &[text]);
    }
}

pub(super) fn by_several_fields_at_once(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (text, number, assignee) in [("gt-a", 1, "me"), ("gt-b", 1, ""), ("gt-c", 3, "me")] {
        town.add(Bead { priority: priority(number), assignee: assignee.to_owned(), ..bead(text) });
        town.label(text, "red");
    }
    let filter = BeadFilter {
        assignee: Some("me".to_owned()),
        priority_to: Some(priority(2)),
        labels: texts(["red"]),
        text: Some("title".to_owned()),
        created: after(10),
        ..any()
    };
    town.finds(filter, &["gt-a"]);
}

pub(super) fn an_unset_time_is_neither_before_nor_after(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let spans = [
        Between { after: Some(at(i64::MIN / 1_000_000_000)), before: None },
        Between { after: None, before: Some(at(i64::MAX / 1_000_000_000)) },
    ];
    for span in spans {
        for filter in [
            BeadFilter { closed: span, ..BeadFilter::default() },
            BeadFilter { due: span, ..BeadFilter::default() },
            BeadFilter { deferred: span, ..BeadFilter::default() },
        ] {
            let filter = BeadFilter { status: StatusFilter::All, ..filter };
            town.finds(filter, &[]);
        }
        town.finds(BeadFilter { created: span, ..BeadFilter::default() }, &["gt-a"]);
    }
    town.finds(BeadFilter { outcome: Some(Outcome::Success), ..BeadFilter::default() }, &[]);
    town.finds(BeadFilter { rig: Some(slug("gear")), ..BeadFilter::default() }, &[]);
    let overdue = Some(at(i64::MAX / 1_000_000_000));
    town.finds(BeadFilter { overdue_at: overdue, ..BeadFilter::default() }, &[]);
}
