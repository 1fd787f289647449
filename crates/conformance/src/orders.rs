//! In which order a list comes, and how much of it.

use gt_core::{Bead, Status, Title};

use super::EngineUnderTest;
use super::kit::{CheckedStore, at, bead, kind, priority, texts};
use gt_store::{BeadFilter, BeadOrder, Readiness, StatusFilter};

const DAY: i64 = 24 * 60 * 60;

fn ordered(order: BeadOrder) -> BeadFilter {
    BeadFilter { order, status: StatusFilter::All, ..BeadFilter::default() }
}

/// The order gives exactly this, its reverse the opposite.
fn comes_as(town: &CheckedStore, filter: &BeadFilter, expected: &[&str]) {
    assert_eq!(town.find(filter), expected, "{:?}", filter.order);
    let mut reversed = expected.to_vec();
    reversed.reverse();
    let filter = BeadFilter { reverse: true, ..filter.clone() };
    assert_eq!(town.find(&filter), reversed, "{:?} reversed", filter.order);
}

/// Three beads that every order puts differently, and `gt-10`, whose only claim is its name.
fn four(subject: &dyn EngineUnderTest) -> CheckedStore {
    let town = CheckedStore::new(subject);
    let add = |text: &str, number: i64, made: i64, changed: i64| Bead {
        priority: priority(number),
        created_at: at(made),
        updated_at: at(changed),
        ..bead(text)
    };
    town.add(Bead {
        status: Status::Closed,
        closed_at: Some(at(500)),
        title: Title::trusted("b".to_owned()),
        issue_type: kind("bug"),
        assignee: "zoe".to_owned(),
        ..add("gt-9", 2, 10, 30)
    });
    town.add(Bead {
        status: Status::Closed,
        closed_at: Some(at(600)),
        title: Title::trusted("c".to_owned()),
        issue_type: kind("task"),
        assignee: "ann".to_owned(),
        ..add("gt-1", 1, 20, 10)
    });
    town.add(Bead {
        status: Status::Hooked,
        title: Title::trusted("a".to_owned()),
        issue_type: kind("epic"),
        ..add("gt-2", 2, 30, 20)
    });
    town.add(Bead {
        title: Title::trusted("d".to_owned()),
        issue_type: kind("story"),
        assignee: "zoe".to_owned(),
        ..add("gt-10", 3, 20, 20)
    });
    town
}

pub(super) fn every_order_and_its_reverse(subject: &dyn EngineUnderTest) {
    let town = four(subject);
    let orders = [
        (BeadOrder::Priority, ["gt-1", "gt-2", "gt-9", "gt-10"]),
        (BeadOrder::Oldest, ["gt-9", "gt-1", "gt-10", "gt-2"]),
        (BeadOrder::Created, ["gt-2", "gt-1", "gt-10", "gt-9"]),
        (BeadOrder::Updated, ["gt-9", "gt-10", "gt-2", "gt-1"]),
        (BeadOrder::Closed, ["gt-1", "gt-9", "gt-10", "gt-2"]),
        (BeadOrder::Status, ["gt-1", "gt-9", "gt-2", "gt-10"]),
        (BeadOrder::Id, ["gt-1", "gt-2", "gt-9", "gt-10"]),
        (BeadOrder::Title, ["gt-2", "gt-9", "gt-1", "gt-10"]),
        (BeadOrder::Type, ["gt-9", "gt-2", "gt-10", "gt-1"]),
        (BeadOrder::Assignee, ["gt-2", "gt-1", "gt-10", "gt-9"]),
    ];
    for (order, expected) in orders {
        comes_as(&town, &ordered(order), &expected);
    }
}

pub(super) fn the_default_is_most_urgent_then_newest_first(subject: &dyn EngineUnderTest) {
    let town = four(subject);
    assert_eq!(town.find(&BeadFilter::default()), ["gt-2", "gt-10"], "of the current beads");
    assert_eq!(BeadOrder::default(), BeadOrder::Priority);
}

pub(super) fn the_hybrid_order_puts_the_young_first_by_urgency(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let now = 10 * DAY;
    for (text, number, age) in [
        ("gt-old-urgent", 0, 3 * DAY),
        ("gt-older", 4, 4 * DAY),
        ("gt-young-low", 4, DAY),
        ("gt-young-urgent", 1, 60),
        ("gt-young-urgent-too", 1, DAY),
        ("gt-two-days", 3, 2 * DAY),
    ] {
        town.add(Bead { priority: priority(number), created_at: at(now - age), ..bead(text) });
    }
    let hybrid = BeadFilter {
        ready: Some(Readiness { now: at(now), include_deferred: false }),
        ..ordered(BeadOrder::Hybrid)
    };
    let expected = [
        "gt-young-urgent-too",
        "gt-young-urgent",
        "gt-two-days",
        "gt-young-low",
        "gt-older",
        "gt-old-urgent",
    ];
    comes_as(&town, &hybrid, &expected);
}

pub(super) fn the_hybrid_order_without_a_clock_is_oldest_first(subject: &dyn EngineUnderTest) {
    let town = four(subject);
    let expected = ["gt-9", "gt-1", "gt-10", "gt-2"];
    comes_as(&town, &ordered(BeadOrder::Hybrid), &expected);
}

pub(super) fn a_limit_cuts_the_end_off(subject: &dyn EngineUnderTest) {
    let town = four(subject);
    for order in [BeadOrder::Priority, BeadOrder::Id, BeadOrder::Title] {
        for reverse in [false, true] {
            let filter = BeadFilter { reverse, ..ordered(order) };
            let all = town.find(&filter);
            for limit in [0, 1, 3, 4, 100, usize::MAX] {
                let limited = BeadFilter { limit: Some(limit), ..filter.clone() };
                let kept = &all[..limit.min(all.len())];
                assert_eq!(town.find(&limited), kept, "{order:?} {limit}");
                let counted = town.read(|reader| reader.count(&limited));
                assert_eq!(counted, 4, "a count has no limit");
            }
        }
    }
}

pub(super) fn ids_with_numbers_come_in_their_natural_order(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a.10", "gt-a.9", "gt-a", "gt-b2", "gt-b10", "ga-z"]);
    let expected = ["ga-z", "gt-a", "gt-a.9", "gt-a.10", "gt-b2", "gt-b10"];
    assert_eq!(town.find(&ordered(BeadOrder::Id)), texts(expected));
}

pub(super) fn ties_are_broken_by_id_in_every_order(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-b", "gt-d", "gt-a", "gt-c"]);
    let title = Title::trusted("The same".to_owned());
    for text in ["gt-a", "gt-b", "gt-c", "gt-d"] {
        town.write(|writer| {
            let old = writer.bead(&super::kit::id(text))?.expect("the bead is there");
            let new = Bead { title: title.clone(), ..old.clone() };
            writer.save_bead(&old, &new, gt_core::BeadChangeKind::Updated)
        });
    }
    for order in [
        BeadOrder::Priority,
        BeadOrder::Oldest,
        BeadOrder::Hybrid,
        BeadOrder::Created,
        BeadOrder::Updated,
        BeadOrder::Closed,
        BeadOrder::Status,
        BeadOrder::Id,
        BeadOrder::Title,
        BeadOrder::Type,
        BeadOrder::Assignee,
    ] {
        comes_as(&town, &ordered(order), &["gt-a", "gt-b", "gt-c", "gt-d"]);
        let first = BeadFilter { limit: Some(2), ..ordered(order) };
        assert_eq!(town.find(&first), texts(["gt-a", "gt-b"]), "{order:?}");
    }
}

pub(super) fn texts_are_ordered_by_their_bytes(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (number, title) in
        ["Z", "_", "a", "a b", "aB", "ab", "zz", "Ä", "ä", "修", "🔧"].iter().enumerate()
    {
        let title = Title::trusted((*title).to_owned());
        // From the last to the first, so that the order of the ids is the opposite.
        town.add(Bead { title, ..bead(&format!("gt-{}", 99 - number)) });
    }
    let expected: Vec<String> = (89..=99).rev().map(|number| format!("gt-{number}")).collect();
    assert_eq!(town.find(&ordered(BeadOrder::Title)), expected);
}
