//! Edges between beads.

use gt_core::{Bead, BeadChangeKind, Dependency, DependencyType, IssueType};

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, closed, edge, id, import, json};
use gt_store::DependencyChange;

const BLOCKS: DependencyType = DependencyType::Blocks;
const PART: DependencyType = DependencyType::ParentChild;

fn other(name: &str) -> DependencyType {
    DependencyType::parse(name).expect("the case names a valid type")
}

pub(super) fn an_edge_reads_back_exactly_as_it_was_written(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let full = Dependency {
        created_by: "bob".to_owned(),
        metadata: r#"{"gate":"any-children","x":[1]}"#.to_owned(),
        thread_id: "thread-1".to_owned(),
        carried: vec![("extra".to_owned(), json("true"))],
        ..edge("gt-a", other("caused-by"), "gt-b")
    };

    town.put(&full);

    let found = town.read(|reader| reader.edge(&id("gt-a"), &id("gt-b")));
    assert_eq!(found, Some(full));
    let backwards = town.read(|reader| reader.edge(&id("gt-b"), &id("gt-a")));
    assert_eq!(backwards, None);
}

pub(super) fn an_edge_is_added_then_the_same_then_changed(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let first = edge("gt-a", BLOCKS, "gt-b");
    let retyped = edge("gt-a", other("related"), "gt-b");
    let annotated = Dependency { metadata: r#"{"why":"because"}"#.to_owned(), ..retyped.clone() };

    let story = town.story_of(|town| {
        assert_eq!(town.put(&first), DependencyChange::Added);
        assert_eq!(town.put(&first), DependencyChange::Same);
        assert_eq!(town.put(&retyped), DependencyChange::Changed);
        assert_eq!(town.put(&annotated), DependencyChange::Changed);
    });

    let expected = [
        "dependency_added gt-a",
        "dependency_changed gt-a",
        "unblocked gt-a",
        "dependency_changed gt-a",
    ];
    assert_eq!(story, expected);
    let edges = town.read(|reader| reader.edges_from(&id("gt-a")));
    assert_eq!(edges, [annotated], "there is one edge per pair");
}

pub(super) fn an_edge_that_comes_by_an_import_is_told_as_one(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let related = edge("gt-a", other("related"), "gt-b");

    let quiet = town.story_of(|town| {
        town.write(|writer| writer.put_dependency(&related, false));
        town.write(|writer| writer.remove_dependency(&related, false));
    });
    assert_eq!(quiet, ["imported gt-a", "imported gt-a"]);

    let before = town.last_event();
    town.put(&related);
    let event = &town.events_since(before)[0];
    assert_eq!(event.bead, Some(id("gt-a")));
    assert_eq!(
        event.payload.as_str(),
        r#"{"depends_on_id":"gt-b","type":"related","old":null,"new":"related"}"#
    );
}

pub(super) fn edges_are_listed_from_both_ends_in_order(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    let (ac, ab, bc) = (
        edge("gt-a", BLOCKS, "gt-c"),
        edge("gt-a", PART, "gt-b"),
        edge("gt-b", other("tracks"), "gt-c"),
    );
    for edge in [&ac, &ab, &bc] {
        town.put(edge);
    }

    let from = |text| town.read(|reader| reader.edges_from(&id(text)));
    let to = |text| town.read(|reader| reader.edges_to(&id(text)));
    assert_eq!(from("gt-a"), [ab.clone(), ac.clone()]);
    assert_eq!(from("gt-c"), []);
    assert_eq!(to("gt-c"), [ac, bc]);
    assert_eq!(to("gt-b"), [ab]);
}

pub(super) fn a_removed_edge_is_gone_and_removing_it_again_is_nothing(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let related = edge("gt-a", other("related"), "gt-b");
    town.put(&related);

    let story = town.story_of(|town| {
        town.unlink("gt-a", "gt-b");
        town.write(|writer| writer.remove_dependency(&related, true));
    });

    assert_eq!(story, ["dependency_removed gt-a"]);
    assert_eq!(town.read(|reader| reader.edges_from(&id("gt-a"))), []);
}

pub(super) fn an_edge_may_point_to_a_bead_that_is_not_there(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let dangling = edge("gt-a", BLOCKS, "external:other-thing");

    town.put(&dangling);

    let found = town.read(|reader| reader.edges_to(&dangling.target));
    assert_eq!(found, [dangling]);
    assert_eq!(town.blockers_of("gt-a"), 0);
}

pub(super) fn an_edge_of_a_bead_that_is_not_there_is_refused(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    for kind in [BLOCKS, PART] {
        town.refuse(|writer| writer.put_dependency(&edge("gt-absent", kind, "gt-a"), true));
    }
}

pub(super) fn a_bead_cannot_depend_on_itself(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    for kind in [BLOCKS, PART, other("related")] {
        town.refuse(|writer| writer.put_dependency(&edge("gt-a", kind, "gt-a"), true));
    }
}

pub(super) fn only_edges_that_can_block_count_as_blocking(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    let kinds = [
        BLOCKS,
        DependencyType::ConditionalBlocks,
        DependencyType::WaitsFor,
        PART,
        DependencyType::Tracks,
        other("related"),
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        town.put(&edge("gt-a", kind, &format!("gt-t{number}")));
    }
    town.link("gt-b", BLOCKS, "gt-a");

    let mut targets = town.read(|reader| reader.blocking_targets(&id("gt-a")));
    targets.sort();
    assert_eq!(targets, [id("gt-t0"), id("gt-t1"), id("gt-t2")]);
    let mut all = Vec::new();
    town.read(|reader| reader.for_each_blocking_edge(|from, to| all.push((from, to))));
    all.sort();
    let from_a = ["gt-t0", "gt-t1", "gt-t2"].map(|target| (id("gt-a"), id(target)));
    assert_eq!(all[..3], from_a);
    assert_eq!(all[3..], [(id("gt-b"), id("gt-a"))]);
}

pub(super) fn edges_are_followed_to_their_ends(subject: &dyn EngineUnderTest) {
    // Several parents, parents that meet again, a circle of old data, and edges of other types in between.
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c", "gt-d", "gt-e", "gt-f"]);
    for (issue, target) in [
        ("gt-a", "gt-b"),
        ("gt-a", "gt-c"),
        ("gt-b", "gt-d"),
        ("gt-c", "gt-d"),
        ("gt-d", "gt-e"),
        ("gt-e", "gt-a"),
    ] {
        town.link(issue, PART, target);
    }
    town.link("gt-a", BLOCKS, "gt-f");
    town.link("gt-c", other("waits-for"), "gt-gone");
    let pairs = |from: &str| {
        let mut pairs = town.read(|reader| reader.parent_edges_above(&id(from)));
        pairs.sort();
        pairs.into_iter().map(|(issue, target)| format!("{issue} {target}")).collect::<Vec<_>>()
    };
    let circle = ["gt-a gt-b", "gt-a gt-c", "gt-b gt-d", "gt-c gt-d", "gt-d gt-e", "gt-e gt-a"];
    assert_eq!(pairs("gt-a"), circle);
    assert_eq!(pairs("gt-f"), [""; 0]);

    let mut below: Vec<_> =
        town.read(|reader| reader.children_below(&id("gt-d"))).into_iter().collect();
    below.sort();
    assert_eq!(below, ["gt-a", "gt-b", "gt-c", "gt-d", "gt-e"].map(id));

    town.add_open(&["gt-g"]);
    town.link("gt-g", BLOCKS, "gt-a");
    town.link("gt-g", other("conditional-blocks"), "gt-c");
    let mut waited = town.read(|reader| reader.waited_for_edges(&id("gt-g")));
    waited.sort();
    let expected = [("gt-a", "gt-f"), ("gt-c", "gt-gone"), ("gt-g", "gt-a"), ("gt-g", "gt-c")];
    assert_eq!(waited, expected.map(|(issue, target)| (id(issue), id(target))));
    assert!(town.read(|reader| reader.is_waited_for(&id("gt-a"))));
    assert!(!town.read(|reader| reader.is_waited_for(&id("gt-b"))));
    assert!(town.read(|reader| reader.has_children(&id("gt-b"))));
    assert!(!town.read(|reader| reader.has_children(&id("gt-g"))));
}

pub(super) fn a_bead_knows_its_parts_and_what_it_is_a_part_of(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    town.link("gt-b", PART, "gt-a");
    town.link("gt-c", PART, "gt-a");
    town.link("gt-c", BLOCKS, "gt-b");
    let open_children = || town.read(|reader| reader.has_open_children(&id("gt-a")));

    let children = town.read(|reader| reader.children(&id("gt-a")));
    assert_eq!(children, [id("gt-b"), id("gt-c")]);
    let parents = town.read(|reader| reader.parents(&id("gt-c")));
    assert_eq!(parents, [id("gt-a")]);
    assert!(town.read(|reader| reader.parents(&id("gt-a"))).is_empty());
    assert!(!town.read(|reader| reader.has_open_children(&id("gt-b"))));

    assert!(open_children());
    town.close("gt-b");
    assert!(open_children());
    town.close("gt-c");
    assert!(!open_children());
    town.reopen("gt-b");
    assert!(open_children());
}

pub(super) fn the_edges_of_a_new_bead_are_written_in_one_go(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-parent"]);
    town.add(closed("gt-done", None));
    let edges = [
        edge("gt-new", BLOCKS, "gt-a"),
        edge("gt-new", BLOCKS, "gt-absent"),
        edge("gt-new", BLOCKS, "gt-done"),
        edge("gt-new", PART, "gt-parent"),
    ];

    let story = town.story_of(|town| {
        town.write(|writer| import(writer, &bead("gt-new"), &edges));
    });

    assert_eq!(story, ["imported gt-new"]);
    assert_eq!(town.blockers_of("gt-new"), 1);
    assert_eq!(town.read(|reader| reader.edges_from(&id("gt-new"))), edges);
}

pub(super) fn a_new_bead_with_two_edges_to_the_same_target_is_refused(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a"]);
    let edges = [edge("gt-new", BLOCKS, "gt-a"), edge("gt-new", PART, "gt-a")];
    town.refuse(|writer| import(writer, &bead("gt-new"), &edges));
}

pub(super) fn a_wait_for_a_parent_names_its_unfinished_children(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-wait", "gt-any", "gt-parent", "gt-b", "gt-c", "gt-epic", "gt-part"]);
    town.add(closed("gt-done", None));
    for child in ["gt-b", "gt-c", "gt-done"] {
        town.link(child, PART, "gt-parent");
    }
    town.write(|writer| {
        let epic = writer.bead(&id("gt-epic"))?.expect("it was made");
        let changed =
            Bead { issue_type: IssueType::parse("epic").expect("it is a type"), ..epic.clone() };
        writer.save_bead(&epic, &changed, BeadChangeKind::Updated)
    });
    town.link("gt-part", PART, "gt-epic");
    town.link("gt-wait", DependencyType::WaitsFor, "gt-parent");
    let mut any = edge("gt-any", DependencyType::WaitsFor, "gt-parent");
    "{\"gate\":\"any-children\"}".clone_into(&mut any.metadata);
    town.put(&any);
    let pairs = || {
        let mut pairs = Vec::new();
        town.read(|reader| reader.for_each_awaited_part(|from, to| pairs.push((from, to))));
        pairs
    };

    let children = town.read(|reader| reader.unfinished_children(&id("gt-parent")));
    assert_eq!(children, [id("gt-b"), id("gt-c")]);
    assert!(town.read(|reader| reader.unfinished_parts(&id("gt-parent"))).is_empty());
    assert_eq!(town.read(|reader| reader.unfinished_parts(&id("gt-epic"))), [id("gt-part")]);
    let of_wait = [(id("gt-wait"), id("gt-b")), (id("gt-wait"), id("gt-c"))];
    let asked = [id("gt-wait"), id("gt-any")];
    assert_eq!(town.read(|reader| reader.awaited_children(&asked)), of_wait);
    assert_eq!(pairs(), of_wait, "no bead waits for the epic yet");
    town.link("gt-wait", DependencyType::WaitsFor, "gt-epic");
    assert_eq!(pairs().len(), 4);
    town.close("gt-b");
    assert_eq!(town.read(|reader| reader.unfinished_children(&id("gt-parent"))), [id("gt-c")]);
}
