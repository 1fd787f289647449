//! The effect of `waits-for`: it depends on its target and on the target's children.

use gt_core::{DependencyType, Outcome, Status};

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, edge, gated, id, import};

const WAITS: DependencyType = DependencyType::WaitsFor;
const PART: DependencyType = DependencyType::ParentChild;

/// `gt-w` waits for `gt-p`, which is closed and has the open children `gt-1` and `gt-2`.
fn waiting(subject: &dyn EngineUnderTest, gate: &str) -> CheckedStore {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-w", "gt-p", "gt-1", "gt-2"]);
    town.link("gt-1", PART, "gt-p");
    town.link("gt-2", PART, "gt-p");
    town.put(&gated("gt-w", "gt-p", gate));
    town.close("gt-p");
    assert_eq!(town.blockers_of("gt-w"), 1);
    town
}

fn all(subject: &dyn EngineUnderTest) -> CheckedStore {
    waiting(subject, "all-children")
}

fn any(subject: &dyn EngineUnderTest) -> CheckedStore {
    waiting(subject, "any-children")
}

pub(super) fn a_target_without_children_is_waited_for_by_itself(subject: &dyn EngineUnderTest) {
    for gate in ["all-children", "any-children", "something-new"] {
        let town = CheckedStore::new(subject);
        town.add_open(&["gt-w", "gt-p"]);
        town.put(&gated("gt-w", "gt-p", gate));
        assert_eq!(town.blockers_of("gt-w"), 1, "{gate}");
        town.close_as("gt-p", Some(Outcome::Failed));
        assert_eq!(town.blockers_of("gt-w"), 1, "{gate}");
        town.close("gt-p");
        assert_eq!(town.blockers_of("gt-w"), 0, "{gate}");
    }
}

pub(super) fn an_open_target_blocks_with_any_state_of_its_children(subject: &dyn EngineUnderTest) {
    for gate in ["all-children", "any-children"] {
        let town = waiting(subject, gate);
        town.reopen("gt-p");
        town.close("gt-1");
        town.close("gt-2");
        assert_eq!(town.blockers_of("gt-w"), 1, "{gate}");
        let story = town.story_of(|town| town.close("gt-p"));
        assert_eq!(story, ["closed gt-p", "unblocked gt-w"], "{gate}");
    }
}

pub(super) fn all_children_are_waited_for(subject: &dyn EngineUnderTest) {
    let town = all(subject);
    let first = town.story_of(|town| town.close("gt-1"));
    assert_eq!(first, ["closed gt-1"]);
    assert_eq!(town.blockers_of("gt-w"), 1);
    let last = town.story_of(|town| town.close("gt-2"));
    assert_eq!(last, ["closed gt-2", "unblocked gt-w"]);
}

pub(super) fn with_the_gate_any_children_one_is_enough(subject: &dyn EngineUnderTest) {
    let town = any(subject);
    let first = town.story_of(|town| town.close("gt-1"));
    assert_eq!(first, ["closed gt-1", "unblocked gt-w"]);
    let other = town.story_of(|town| town.close_as("gt-2", Some(Outcome::Failed)));
    assert_eq!(other, ["closed gt-2"]);
    assert_eq!(town.blockers_of("gt-w"), 0);
}

pub(super) fn a_child_that_failed_is_not_done(subject: &dyn EngineUnderTest) {
    for gate in ["all-children", "any-children"] {
        let town = waiting(subject, gate);
        town.close_as("gt-1", Some(Outcome::Failed));
        town.close_as("gt-2", Some(Outcome::Failed));
        assert_eq!(town.blockers_of("gt-w"), 1, "{gate}");
        let blockers = town.read(|reader| reader.blockers(&id("gt-w")));
        assert_eq!(blockers.open, [id("gt-p")], "{gate}: its family is not over");
        town.close("gt-1");
        town.close("gt-2");
        assert_eq!(town.blockers_of("gt-w"), 0, "{gate}");
    }
}

pub(super) fn reopening_a_child_blocks_again(subject: &dyn EngineUnderTest) {
    for gate in ["all-children", "any-children"] {
        let town = waiting(subject, gate);
        town.close("gt-1");
        town.close("gt-2");
        town.reopen("gt-1");
        let expected = u32::from(gate == "all-children");
        assert_eq!(town.blockers_of("gt-w"), expected, "{gate}");
        town.reopen("gt-2");
        assert_eq!(town.blockers_of("gt-w"), 1, "{gate}");
    }
}

pub(super) fn pinned_children_do_not_count(subject: &dyn EngineUnderTest) {
    for gate in ["all-children", "any-children"] {
        let town = waiting(subject, gate);
        town.set_status("gt-1", Status::Pinned);
        assert_eq!(town.blockers_of("gt-w"), 1, "{gate}");
        town.set_status("gt-2", Status::Pinned);
        assert_eq!(town.blockers_of("gt-w"), 0, "{gate}");
        town.set_status("gt-1", Status::Open);
        assert_eq!(town.blockers_of("gt-w"), 1, "{gate}");
    }
}

pub(super) fn a_new_child_of_a_closed_target_blocks_again(subject: &dyn EngineUnderTest) {
    let town = all(subject);
    town.close("gt-1");
    town.close("gt-2");
    town.add_open(&["gt-3", "gt-4"]);

    town.link("gt-3", PART, "gt-p");
    assert_eq!(town.blockers_of("gt-w"), 1);
    town.unlink("gt-3", "gt-p");
    assert_eq!(town.blockers_of("gt-w"), 0);
    town.write(|writer| import(writer, &bead("gt-new"), &[edge("gt-new", PART, "gt-p")]));
    assert_eq!(town.blockers_of("gt-w"), 1);
}

pub(super) fn a_child_that_moves_away_is_waited_for_there(subject: &dyn EngineUnderTest) {
    let town = all(subject);
    town.close("gt-1");
    town.add_open(&["gt-q", "gt-v"]);
    town.put(&edge("gt-v", WAITS, "gt-q"));
    town.close("gt-q");
    assert_eq!(town.blockers_of("gt-v"), 0);

    town.write(|writer| {
        writer.remove_dependency(&edge("gt-2", PART, "gt-p"), true)?;
        writer.put_dependency(&edge("gt-2", PART, "gt-q"), true).map(drop)
    });

    assert_eq!(town.blockers_of("gt-w"), 0);
    assert_eq!(town.blockers_of("gt-v"), 1);
}

pub(super) fn retyping_the_edge_of_a_part_makes_it_none(subject: &dyn EngineUnderTest) {
    let town = all(subject);
    town.close("gt-1");

    let story = town.story_of(|town| town.link("gt-2", DependencyType::Tracks, "gt-p"));
    assert_eq!(story, ["dependency_changed gt-2", "unblocked gt-w"]);
    let story = town.story_of(|town| town.link("gt-2", PART, "gt-p"));
    assert_eq!(story, ["dependency_changed gt-2"]);
    assert_eq!(town.blockers_of("gt-w"), 1);
}

pub(super) fn a_part_that_becomes_a_waiter_does_not_wait_for_itself(subject: &dyn EngineUnderTest) {
    let town = all(subject);
    town.close("gt-1");

    let story = town.story_of(|town| town.link("gt-2", WAITS, "gt-p"));

    assert_eq!(town.blockers_of("gt-2"), 0);
    assert_eq!(story, ["dependency_changed gt-2", "unblocked gt-w"]);
}

pub(super) fn deleting_the_last_open_child_unblocks(subject: &dyn EngineUnderTest) {
    let town = all(subject);
    town.close("gt-1");
    let story = town.story_of(|town| town.delete("gt-2"));
    assert_eq!(story, ["deleted gt-2", "unblocked gt-w"]);
    assert_eq!(town.blockers_of("gt-w"), 0);
}

pub(super) fn deleting_the_only_child_that_is_done_blocks_again(subject: &dyn EngineUnderTest) {
    let town = any(subject);
    town.close("gt-1");
    assert_eq!(town.blockers_of("gt-w"), 0);
    town.delete("gt-1");
    assert_eq!(town.blockers_of("gt-w"), 1);
}

pub(super) fn deleting_the_target_unblocks_and_says_so_only_if_it_did(
    subject: &dyn EngineUnderTest,
) {
    let town = all(subject);
    let story = town.story_of(|town| town.delete("gt-p"));
    assert_eq!(story, ["deleted gt-p", "unblocked gt-w"]);

    let town = any(subject);
    town.close("gt-1");
    let story = town.story_of(|town| town.delete("gt-p"));
    assert_eq!(story, ["deleted gt-p"]);
    assert_eq!(town.blockers_of("gt-w"), 0);
}

pub(super) fn changing_the_gate_counts_at_once(subject: &dyn EngineUnderTest) {
    let town = all(subject);
    town.close("gt-1");
    assert_eq!(town.blockers_of("gt-w"), 1);

    town.put(&gated("gt-w", "gt-p", "any-children"));
    assert_eq!(town.blockers_of("gt-w"), 0);
    town.put(&edge("gt-w", WAITS, "gt-p"));
    assert_eq!(town.blockers_of("gt-w"), 1);
}

pub(super) fn a_target_that_appears_late_is_waited_for_with_its_children(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-w", "gt-1"]);
    town.link("gt-1", PART, "gt-p");
    town.link("gt-w", WAITS, "gt-p");
    assert_eq!(town.blockers_of("gt-w"), 0);

    town.add(super::kit::closed("gt-p", None));

    assert_eq!(town.blockers_of("gt-w"), 1);
    town.close("gt-1");
    assert_eq!(town.blockers_of("gt-w"), 0);
}

pub(super) fn grandchildren_are_not_waited_for(subject: &dyn EngineUnderTest) {
    let town = all(subject);
    town.add_open(&["gt-grandchild"]);
    town.link("gt-grandchild", PART, "gt-1");
    town.close("gt-1");
    town.close("gt-2");
    assert_eq!(town.blockers_of("gt-w"), 0);
}

pub(super) fn other_edges_do_not_look_at_children(subject: &dyn EngineUnderTest) {
    let town = all(subject);
    town.add_open(&["gt-b", "gt-c"]);
    town.link("gt-b", DependencyType::Blocks, "gt-p");
    town.link("gt-c", DependencyType::ConditionalBlocks, "gt-p");
    assert_eq!(town.blockers_of("gt-b"), 0);
    assert_eq!(town.blockers_of("gt-c"), 0);
}

pub(super) fn a_part_may_wait_for_its_siblings(subject: &dyn EngineUnderTest) {
    let town = all(subject);
    town.add_open(&["gt-q"]);
    town.link("gt-1", WAITS, "gt-q");
    town.link("gt-2", PART, "gt-q");
    town.close("gt-q");

    assert_eq!(town.blockers_of("gt-1"), 1);
    town.close("gt-2");
    assert_eq!(town.blockers_of("gt-1"), 0);
    assert_eq!(town.blockers_of("gt-w"), 1);
    town.close("gt-1");
    assert_eq!(town.blockers_of("gt-w"), 0);
}
