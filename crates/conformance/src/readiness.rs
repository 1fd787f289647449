//! The beads that are ready.

use gt_core::decide::{ReadinessFacts, WaitReason, wait_reasons};
use gt_core::{Bead, DependencyType, IssueType, Outcome, Status, Timestamp};

use super::EngineUnderTest;
use super::kit::{CheckedStore, at, bead, closed, id, kind, priority, texts};
use gt_store::{BeadFilter, Reader, Readiness, StoreError};

const NOW: i64 = 50_000;

fn ready() -> BeadFilter {
    BeadFilter {
        ready: Some(Readiness { now: at(NOW), include_deferred: false }),
        ..BeadFilter::default()
    }
}

fn ready_or_deferred() -> BeadFilter {
    BeadFilter {
        ready: Some(Readiness { now: at(NOW), include_deferred: true }),
        ..BeadFilter::default()
    }
}

/// Why the pure evaluator would not start this bead, from the facts in the store.
pub fn reasons_to_wait(
    reader: &Reader<'_>,
    bead: &Bead,
    now: Timestamp,
) -> Result<Vec<WaitReason>, StoreError> {
    let blockers = reader.blockers(&bead.id)?;
    let mut deferred = None;
    for parent in reader.parents(&bead.id)? {
        let until = reader.bead(&parent)?.and_then(|parent| parent.defer_until);
        deferred = deferred.max(until.map(|until| (until, parent)));
    }
    let facts = ReadinessFacts {
        status: &bead.status,
        issue_type: &bead.issue_type,
        pinned: bead.pinned,
        ephemeral: bead.ephemeral,
        defer_until: bead.defer_until,
        parent_deferred: deferred.as_ref().map(|(until, parent)| (parent, *until)),
        open_blockers: &blockers.open,
        failed_blockers: &blockers.failed,
    };
    Ok(wait_reasons(&facts, now))
}

/// The beads that the pure evaluator has nothing against.
fn judged_ready(town: &CheckedStore, texts: &[&str]) -> Vec<String> {
    let ready = texts.iter().filter(|text| {
        let bead = town.get(text);
        let reasons = town.read(|reader| reasons_to_wait(reader, &bead, at(NOW)));
        reasons.is_empty()
    });
    ready.map(|text| (*text).to_owned()).collect()
}

/// The filter and the pure evaluator agree that, of `all`, exactly `expected` are ready.
fn is_ready(town: &CheckedStore, all: &[&str], expected: &[&str]) {
    town.finds(ready(), expected);
    assert_eq!(judged_ready(town, all), expected);
}

pub(super) fn only_open_beads_are_ready(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let mut all = Vec::new();
    let custom = Status::parse("staged_ready").expect("a custom status");
    for status in Status::BUILT_IN.into_iter().chain([custom]) {
        let text = format!("gt-{status}");
        town.add(match status {
            Status::Closed => closed(&text, None),
            status => Bead { status, ..bead(&text) },
        });
        all.push(text);
    }
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    is_ready(&town, &all, &["gt-open"]);
}

pub(super) fn a_blocked_bead_becomes_ready_when_its_last_blocker_is_done(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    let all = ["gt-a", "gt-b", "gt-c"];
    town.add_open(&all);
    town.link("gt-c", DependencyType::Blocks, "gt-a");
    town.link("gt-c", DependencyType::Blocks, "gt-b");
    is_ready(&town, &all, &["gt-a", "gt-b"]);

    town.close("gt-a");
    is_ready(&town, &all, &["gt-b"]);
    town.close_as("gt-b", Some(Outcome::Failed));
    is_ready(&town, &all, &[]);
    town.close("gt-b");
    is_ready(&town, &all, &["gt-c"]);
}

pub(super) fn a_deferred_bead_wakes_when_its_date_has_come(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let mut all = Vec::new();
    for (name, status) in [("open", Status::Open), ("deferred", Status::Deferred)] {
        for (when, until) in [
            ("never", None),
            ("earlier", Some(NOW - 1)),
            ("now", Some(NOW)),
            ("later", Some(NOW + 1)),
        ] {
            let text = format!("gt-{name}-{when}");
            town.add(Bead { status: status.clone(), defer_until: until.map(at), ..bead(&text) });
            all.push(text);
        }
    }
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut expected = vec![
        "gt-deferred-earlier",
        "gt-deferred-now",
        "gt-open-earlier",
        "gt-open-never",
        "gt-open-now",
    ];
    town.finds(ready(), &expected);
    let mut judged = judged_ready(&town, &all);
    judged.sort();
    assert_eq!(judged, expected);

    expected.extend(["gt-deferred-later", "gt-deferred-never", "gt-open-later"]);
    expected.sort_unstable();
    town.finds(ready_or_deferred(), &expected);
}

pub(super) fn a_woken_bead_takes_its_place_in_the_order(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (text, number, status) in [
        ("gt-low", 3, Status::Open),
        ("gt-woken", 2, Status::Deferred),
        ("gt-urgent", 1, Status::Open),
    ] {
        town.add(Bead {
            status,
            defer_until: Some(at(1)),
            priority: priority(number),
            ..bead(text)
        });
    }
    assert_eq!(town.find(&ready()), texts(["gt-urgent", "gt-woken", "gt-low"]));
    let first = BeadFilter { limit: Some(2), ..ready() };
    assert_eq!(town.find(&first), texts(["gt-urgent", "gt-woken"]));
}

pub(super) fn the_parts_of_a_deferred_bead_wait_with_it(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let all = ["gt-child", "gt-due", "gt-friend", "gt-grandchild", "gt-later"];
    town.add_open(&["gt-child", "gt-friend", "gt-grandchild"]);
    for (text, seconds) in [("gt-due", NOW), ("gt-later", NOW + 1)] {
        town.add(Bead { defer_until: Some(at(seconds)), ..bead(text) });
    }
    town.link("gt-child", DependencyType::ParentChild, "gt-later");
    town.link("gt-grandchild", DependencyType::ParentChild, "gt-child");
    town.link("gt-friend", DependencyType::Tracks, "gt-later");
    is_ready(&town, &all, &["gt-due", "gt-friend", "gt-grandchild"]);
    town.finds(ready_or_deferred(), &all);

    town.unlink("gt-child", "gt-later");
    town.link("gt-child", DependencyType::ParentChild, "gt-due");
    is_ready(&town, &all, &["gt-child", "gt-due", "gt-friend", "gt-grandchild"]);
}

pub(super) fn a_type_that_is_not_work_is_ready_only_on_request(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-task"]);
    town.add(Bead { issue_type: kind("epic"), ..bead("gt-epic") });
    let mut all = vec!["gt-epic".to_owned(), "gt-task".to_owned()];
    for name in IssueType::NOT_WORK {
        let text = format!("gt-{name}");
        town.add(Bead { issue_type: kind(name), ..bead(&text) });
        town.finds(BeadFilter { types: vec![kind(name)], ..ready() }, &[&text]);
        all.push(text);
    }
    all.sort();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    is_ready(&town, &all, &["gt-epic", "gt-task"]);
    town.finds(BeadFilter { include_hidden: true, ..ready() }, &all);
}

pub(super) fn ephemeral_beads_are_ready_only_when_asked_for(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-plain"]);
    for (text, name) in [("gt-gate", "gate"), ("gt-task", "task")] {
        town.add(Bead { ephemeral: true, issue_type: kind(name), ..bead(text) });
    }
    is_ready(&town, &["gt-gate", "gt-plain", "gt-task"], &["gt-plain"]);
    town.finds(BeadFilter { include_ephemeral: true, ..ready() }, &["gt-plain", "gt-task"]);
    town.finds(BeadFilter { ephemeral: Some(true), ..ready() }, &["gt-task"]);
}

pub(super) fn references_are_never_ready_and_templates_are_like_any_bead(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    let all = ["gt-flagged", "gt-pinned", "gt-template"];
    town.add(Bead { pinned: true, ..bead("gt-flagged") });
    town.add(Bead { pinned: true, status: Status::Pinned, ..bead("gt-pinned") });
    town.add(Bead { is_template: true, ..bead("gt-template") });
    is_ready(&town, &all, &["gt-template"]);
    town.finds(BeadFilter { types: vec![kind("task")], ..ready() }, &["gt-template"]);
}

pub(super) fn other_fields_narrow_what_is_ready(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    town.label("gt-a", "red");
    town.label("gt-b", "red");
    town.link("gt-b", DependencyType::Blocks, "gt-c");
    let red = BeadFilter { labels: texts(["red"]), ..ready() };
    town.finds(red, &["gt-a"]);
    let chosen = BeadFilter { ids: vec![id("gt-b"), id("gt-c")], ..ready() };
    town.finds(chosen, &["gt-c"]);
}
