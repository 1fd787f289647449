//! New names for beads.

use gt_core::decide::IdSeed;
use gt_core::{BeadId, EventKind, Prefix};

use super::EngineUnderTest;
use super::kit::{CheckedStore, at, bead, id};
use gt_store::StoreError;

fn prefix(text: &str) -> Prefix {
    Prefix::parse(text).expect("the case names a valid prefix")
}

fn seed(title: &str) -> IdSeed<'_> {
    IdSeed { title, description: "", creator: "tester", at: at(1) }
}

fn length_of_a_free_id(town: &CheckedStore, of: &str) -> usize {
    let free = town.read(|reader| reader.free_id(&prefix(of), &seed("x")));
    free.as_str().len() - of.len() - 1
}

fn next_child(town: &CheckedStore, parent: &str) -> BeadId {
    town.write(|writer| {
        let child = writer.next_child_id(&id(parent))?;
        writer.insert_bead(&bead(child.as_str()), EventKind::Created)?;
        Ok(child)
    })
}

pub(super) fn a_free_id_is_the_first_unused_one(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let (prefix, seed) = (prefix("gt"), seed("Fix login"));
    let free = || town.read(|reader| reader.free_id(&prefix, &seed));

    let first = free();
    assert_eq!(first, seed.id(&prefix, 3, 0));
    town.add_open(&[first.as_str()]);
    assert_eq!(free(), seed.id(&prefix, 3, 1));
}

pub(super) fn ids_grow_longer_as_their_prefix_fills_up(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let fill = |from: i64, to: i64| {
        town.write(|writer| {
            for number in from..to {
                writer.insert_bead(&bead(&format!("gt-n{number}")), EventKind::Created)?;
            }
            Ok(())
        });
    };

    fill(0, 163);
    assert_eq!(length_of_a_free_id(&town, "gt"), 3);
    fill(163, 164);
    assert_eq!(length_of_a_free_id(&town, "gt"), 4);
    fill(164, 984);
    assert_eq!(length_of_a_free_id(&town, "gt"), 5);
    town.delete("gt-n0");
    assert_eq!(length_of_a_free_id(&town, "gt"), 4);
}

pub(super) fn each_prefix_fills_up_for_itself_and_children_do_not_count(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    town.add_open(&["my-app-p"]);
    town.write(|writer| {
        for number in 0..200 {
            writer.insert_bead(&bead(&format!("my-app-p.{number}")), EventKind::Created)?;
            writer.insert_bead(&bead(&format!("my-{number}")), EventKind::Created)?;
        }
        Ok(())
    });

    assert_eq!(length_of_a_free_id(&town, "my"), 4);
    assert_eq!(length_of_a_free_id(&town, "my-app"), 3);
    assert_eq!(length_of_a_free_id(&town, "hq"), 3);
}

pub(super) fn children_are_numbered_from_one(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);

    assert_eq!(next_child(&town, "gt-a"), id("gt-a.1"));
    assert_eq!(next_child(&town, "gt-a"), id("gt-a.2"));
    assert_eq!(next_child(&town, "gt-b"), id("gt-b.1"));
    assert_eq!(next_child(&town, "gt-a.1"), id("gt-a.1.1"));
    assert_eq!(next_child(&town, "gt-a"), id("gt-a.3"));
}

pub(super) fn the_number_of_a_deleted_child_is_not_given_again(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    next_child(&town, "gt-a");
    next_child(&town, "gt-a");

    town.delete("gt-a.2");

    assert_eq!(next_child(&town, "gt-a"), id("gt-a.3"));
}

pub(super) fn the_number_of_a_deleted_imported_child_is_not_given_again(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-a.1", "gt-b", "gt-b.2"]);
    next_child(&town, "gt-b");

    town.delete("gt-a.1");
    town.delete("gt-b.2");

    assert_eq!(next_child(&town, "gt-a"), id("gt-a.2"));
    assert_eq!(next_child(&town, "gt-b"), id("gt-b.4"));
}

pub(super) fn imported_children_keep_their_numbers(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-a.1", "gt-a.5", "gt-a.5.9", "gt-a.x"]);

    assert_eq!(next_child(&town, "gt-a"), id("gt-a.6"));
    town.add_open(&["gt-a.7", "gt-a.8"]);
    assert_eq!(next_child(&town, "gt-a"), id("gt-a.9"));
}

pub(super) fn a_number_that_was_not_used_is_not_lost(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);

    town.refuse(|writer| {
        writer.next_child_id(&id("gt-a"))?;
        Err::<(), _>(StoreError::NotCommitted("changed my mind".to_owned()))
    });

    assert_eq!(next_child(&town, "gt-a"), id("gt-a.1"));
}

pub(super) fn absurd_numbers_of_imported_children_do_no_harm(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-a.99999999999", "gt-a.9223372036854775807"]);
    town.add_open(&["gt-b", "gt-b.4294967295"]);

    assert_eq!(next_child(&town, "gt-a"), id("gt-a.1"));
    town.delete("gt-a.9223372036854775807");
    assert_eq!(next_child(&town, "gt-a"), id("gt-a.2"));
    let refused = town.refuse(|writer| writer.next_child_id(&id("gt-b")));
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
}
