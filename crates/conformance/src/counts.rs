//! Counting.

use gt_core::{Bead, DependencyType, Status, Timestamp};

use super::EngineUnderTest;
use super::kit::{CheckedStore, at, bead, closed, kind, priority};
use gt_store::{BeadFilter, CountGroup, Statistics, StatusFilter};

fn pairs<const N: usize>(pairs: [(&str, i64); N]) -> Vec<(String, i64)> {
    pairs.map(|(name, count)| (name.to_owned(), count)).to_vec()
}

pub(super) fn beads_are_counted_by_each_group(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for (text, number, name, assignee) in
        [("gt-a", 0, "task", "zoe"), ("gt-b", 2, "bug", ""), ("gt-c", 2, "task", "ann")]
    {
        town.add(Bead {
            priority: priority(number),
            issue_type: kind(name),
            assignee: assignee.to_owned(),
            ..bead(text)
        });
    }
    town.add(closed("gt-done", None));
    for (text, label) in [("gt-a", "red"), ("gt-a", "blue"), ("gt-b", "red")] {
        town.label(text, label);
    }
    let all = BeadFilter { status: StatusFilter::All, limit: Some(1), ..BeadFilter::default() };
    let by = |group| town.read(|reader| reader.count_by(&all, group));

    assert_eq!(by(CountGroup::Status), pairs([("closed", 1), ("open", 3)]));
    assert_eq!(by(CountGroup::Priority), pairs([("0", 1), ("2", 3)]));
    assert_eq!(by(CountGroup::Type), pairs([("bug", 1), ("task", 3)]));
    assert_eq!(by(CountGroup::Assignee), pairs([("", 2), ("ann", 1), ("zoe", 1)]));
    assert_eq!(by(CountGroup::Label), pairs([("blue", 1), ("red", 2)]));
}

pub(super) fn counts_obey_the_filter(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    town.add(closed("gt-c", None));
    town.label("gt-a", "red");
    town.label("gt-c", "red");
    let red = BeadFilter {
        labels: vec!["red".to_owned()],
        text: Some("gt".to_owned()),
        ..BeadFilter::default()
    };

    assert_eq!(town.read(|reader| reader.count(&red)), 1);
    for (group, name) in [
        (CountGroup::Status, "open"),
        (CountGroup::Priority, "2"),
        (CountGroup::Type, "task"),
        (CountGroup::Assignee, ""),
        (CountGroup::Label, "red"),
    ] {
        let counted = town.read(|reader| reader.count_by(&red, group));
        assert_eq!(counted, pairs([(name, 1)]), "{group:?}");
    }
}

pub(super) fn an_empty_store_has_empty_statistics(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let statistics = town.read(|reader| reader.statistics());
    assert_eq!(statistics, Statistics::default());
    assert_eq!(statistics.total(), 0);
    let counted = town.read(|r| r.count_by(&BeadFilter::default(), CountGroup::Status));
    assert_eq!(counted, []);
}

pub(super) fn statistics_count_what_is_not_ephemeral(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    town.link("gt-b", DependencyType::Blocks, "gt-a");
    town.link("gt-c", DependencyType::Blocks, "gt-a");
    town.set_status("gt-c", Status::Pinned);
    town.add(Bead { ephemeral: true, ..bead("gt-ephemeral") });
    town.add(Bead { created_at: at(100), closed_at: Some(at(160)), ..closed("gt-quick", None) });
    town.add(Bead { created_at: at(100), closed_at: Some(at(400)), ..closed("gt-slow", None) });

    let statistics = town.read(|reader| reader.statistics());

    assert_eq!(statistics.total(), 5);
    assert_eq!(statistics.with_status("open"), 2);
    assert_eq!(statistics.with_status("closed"), 2);
    assert_eq!(statistics.with_status("pinned"), 1);
    assert_eq!(statistics.with_status("hooked"), 0);
    assert_eq!(statistics.blocked, 1, "a pinned bead waits for no other");
    assert_eq!(statistics.lead_time_seconds, 180);
    assert!((statistics.lead_time_hours() - 0.05).abs() < 1e-9);
}

pub(super) fn an_epic_whose_parts_are_all_over_could_be_closed(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    for text in ["gt-full", "gt-half", "gt-empty", "gt-over"] {
        town.add(Bead { issue_type: kind("epic"), ..bead(text) });
    }
    town.add_open(&["gt-1", "gt-2", "gt-3", "gt-4", "gt-plain"]);
    for (child, parent) in
        [("gt-1", "gt-full"), ("gt-2", "gt-half"), ("gt-3", "gt-half"), ("gt-4", "gt-over")]
    {
        town.link(child, DependencyType::ParentChild, parent);
    }
    for text in ["gt-1", "gt-2", "gt-4", "gt-over"] {
        town.close(text);
    }

    assert_eq!(town.read(|reader| reader.statistics()).closable_epics, 1);
    town.close("gt-3");
    assert_eq!(town.read(|reader| reader.statistics()).closable_epics, 2);
}

pub(super) fn the_longest_life_there_can_be_does_not_break_the_statistics(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    town.add(Bead {
        created_at: Timestamp::from_nanos(i64::MIN),
        closed_at: Some(Timestamp::from_nanos(i64::MAX)),
        ..closed("gt-old", None)
    });
    let seconds = town.read(|reader| reader.statistics()).lead_time_seconds;
    assert!((18_446_744_072..=18_446_744_074).contains(&seconds));
}
