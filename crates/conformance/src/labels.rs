//! Labels.

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, texts};

pub(super) fn labels_are_sorted_and_remember_in_which_order_they_came(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    let a = town.add(bead("gt-a"));
    for label in ["red", "blue", "green"] {
        assert!(town.label("gt-a", label));
    }
    let sorted = || town.read(|reader| reader.labels(&a));
    let in_order = || town.read(|reader| reader.labels_in_order(&a));

    assert_eq!(sorted(), texts(["blue", "green", "red"]));
    assert_eq!(in_order(), texts(["red", "blue", "green"]));
    town.write(|writer| writer.remove_label(&a, "red", true));
    town.label("gt-a", "red");
    assert_eq!(in_order(), texts(["blue", "green", "red"]));
}

pub(super) fn a_label_is_there_or_not_but_never_twice(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let a = town.add(bead("gt-a"));

    let story = town.story_of(|town| {
        assert!(town.label("gt-a", "red"));
        assert!(!town.label("gt-a", "red"));
        assert!(town.write(|writer| writer.remove_label(&a, "red", true)));
        assert!(!town.write(|writer| writer.remove_label(&a, "red", true)));
    });

    assert_eq!(story, ["label_added gt-a", "label_removed gt-a"]);
    assert_eq!(town.read(|reader| reader.labels(&a)), texts([]));
}

pub(super) fn a_label_is_announced_only_when_asked(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let a = town.add(bead("gt-a"));

    let story = town.story_of(|town| {
        town.write(|writer| writer.add_label(&a, "red", false));
        town.write(|writer| writer.remove_label(&a, "red", false));
    });
    assert!(story.is_empty(), "{story:?}");

    let before = town.last_event();
    town.label("gt-a", "red");
    let payload = &town.events_since(before)[0].payload;
    assert_eq!(payload.as_str(), r#"{"title":"Title of gt-a","label":"red"}"#);
}

pub(super) fn labels_are_told_apart_by_every_letter(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    for label in ["red", "Red", "gt:agent", "größe 🔧"] {
        assert!(town.label("gt-a", label));
    }
    town.label("gt-b", "red");

    let all = town.read(|reader| reader.all_labels());
    let expected = [("Red", 1), ("größe 🔧", 1), ("gt:agent", 1), ("red", 2)];
    assert_eq!(all, expected.map(|(label, count)| (label.to_owned(), count)));
}

pub(super) fn a_bead_that_is_not_there_gets_no_label(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.refuse(|writer| writer.add_label(&bead("gt-absent"), "red", true));
}
