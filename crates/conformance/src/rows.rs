//! Beads with the values that a list shows.

use gt_core::{BeadId, DependencyType, EventKind};

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, comment, edge, id, texts};

pub(super) fn a_row_shows_what_stands_around_a_bead(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c", "gt-d", "gt-p"]);
    for label in ["red", "blue"] {
        town.label("gt-a", label);
    }
    town.link("gt-a", DependencyType::Blocks, "gt-c");
    town.link("gt-a", DependencyType::ParentChild, "gt-p");
    town.link("gt-b", DependencyType::Blocks, "gt-a");
    town.link("gt-c", DependencyType::Tracks, "gt-a");
    town.link("gt-d", DependencyType::WaitsFor, "gt-a");
    let a = town.get("gt-a");
    town.write(|writer| {
        writer.add_comment(&a, &comment("gt-a", "1", "one", 1), true)?;
        writer.add_comment(&a, &comment("gt-a", "2", "two", 2), true)
    });

    let row = town.read(|reader| reader.bead_rows(&[id("gt-a")])).remove(0);

    assert_eq!(row.bead, a);
    assert_eq!(row.bead.open_blockers, 1);
    assert_eq!(row.labels, texts(["blue", "red"]));
    let edges = [
        edge("gt-a", DependencyType::Blocks, "gt-c"),
        edge("gt-a", DependencyType::ParentChild, "gt-p"),
    ];
    assert_eq!(row.dependencies, edges);
    assert_eq!(row.dependencies_blocking(), 1);
    assert_eq!(row.parent(), Some(&id("gt-p")));
    assert_eq!((row.dependents, row.dependents_blocked), (3, 1));
    assert_eq!(row.comments, 2);
}

pub(super) fn a_bead_on_its_own_has_an_empty_row(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let row = town.read(|reader| reader.bead_rows(&[id("gt-a")])).remove(0);
    assert_eq!(row.labels, texts([]));
    assert_eq!(row.dependencies, []);
    assert_eq!(row.parent(), None);
    assert_eq!((row.dependents, row.dependents_blocked, row.comments), (0, 0, 0));
}

pub(super) fn rows_come_in_the_order_asked_for_without_the_absent(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    let rows = |ids: &[&str]| {
        let ids: Vec<BeadId> = ids.iter().map(|text| id(text)).collect();
        let rows = town.read(|reader| reader.bead_rows(&ids));
        rows.iter().map(|row| row.bead.id.to_string()).collect::<Vec<_>>()
    };

    assert_eq!(rows(&["gt-c", "gt-x", "gt-a"]), ["gt-c", "gt-a"]);
    assert_eq!(rows(&["gt-b"]), ["gt-b"]);
    assert_eq!(rows(&["gt-x"]), texts([]));
    assert_eq!(rows(&[]), texts([]));
}

pub(super) fn rows_are_read_in_pages_of_any_number(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    let ids: Vec<BeadId> = (0..600).map(|n| id(&format!("gt-{n:03}"))).collect();
    town.write(|writer| {
        for each in &ids {
            let new = bead(each.as_str());
            writer.insert_bead(&new, EventKind::Created)?;
            writer.add_label(&new, each.as_str(), false)?;
        }
        Ok(())
    });
    for count in [2, 15, 16, 17, 255, 256, 257, 512, 600] {
        let mut wanted = ids[..count].to_vec();
        wanted.reverse();
        let rows = town.read(|reader| reader.bead_rows(&wanted));
        assert_eq!(rows.len(), count);
        for (row, wanted) in rows.iter().zip(&wanted) {
            assert_eq!(row.bead.id, *wanted);
            assert_eq!(row.labels, [wanted.to_string()]);
        }
    }
}
