//! The effect of `blocks` and `conditional-blocks`, and how `open_blockers` stays true.

use gt_core::{BeadChangeKind, DependencyType, Outcome, Status};

use super::EngineUnderTest;
use super::kit::{CheckedStore, bead, closed, edge, id, import};
use gt_store::BlockerFacts;

const BLOCKS: DependencyType = DependencyType::Blocks;
const CONDITIONAL: DependencyType = DependencyType::ConditionalBlocks;

/// `gt-b` depends on `gt-a`; both are open.
fn b_after_a(subject: &dyn EngineUnderTest, kind: DependencyType) -> CheckedStore {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b"]);
    town.link("gt-b", kind, "gt-a");
    town
}

fn blockers(town: &CheckedStore, text: &str) -> BlockerFacts {
    town.read(|reader| reader.blockers(&id(text)))
}

pub(super) fn a_bead_that_is_not_over_blocks_what_depends_on_it(subject: &dyn EngineUnderTest) {
    for kind in [BLOCKS, CONDITIONAL] {
        let town = b_after_a(subject, kind);
        assert_eq!(town.blockers_of("gt-b"), 1);
        let custom = Status::parse("staged_ready").expect("a custom status");
        for status in
            [Status::InProgress, Status::Hooked, Status::Blocked, Status::Deferred, custom]
        {
            town.set_status("gt-a", status.clone());
            assert_eq!(town.blockers_of("gt-b"), 1, "{status}");
        }
        assert_eq!(town.blockers_of("gt-a"), 0);
    }
}

pub(super) fn a_close_unblocks_its_dependents_in_the_same_transaction(
    subject: &dyn EngineUnderTest,
) {
    let town = b_after_a(subject, BLOCKS);

    let story = town.story_of(|town| {
        town.write(|writer| {
            let old = writer.bead(&id("gt-a"))?.expect("the bead is there");
            let new = gt_core::Bead {
                closed_at: Some(writer.now()),
                status: Status::Closed,
                ..old.clone()
            };
            writer.save_bead(&old, &new, BeadChangeKind::Closed)?;
            let dependent = writer.bead(&id("gt-b"))?.expect("the bead is there");
            assert_eq!(dependent.open_blockers, 0);
            Ok(())
        });
    });

    assert_eq!(story, ["closed gt-a", "unblocked gt-b"], "cause before effect");
}

pub(super) fn a_close_counts_as_done_unless_it_failed(subject: &dyn EngineUnderTest) {
    for outcome in [None, Some(Outcome::Success), Some(Outcome::Cancelled)] {
        let town = b_after_a(subject, BLOCKS);
        town.close_as("gt-a", outcome);
        assert_eq!(town.blockers_of("gt-b"), 0, "{outcome:?}");
    }
    let town = b_after_a(subject, BLOCKS);
    town.close_as("gt-a", Some(Outcome::Failed));
    assert_eq!(town.blockers_of("gt-b"), 1);
}

pub(super) fn after_a_failure_dependents_wait_until_it_is_closed_again(
    subject: &dyn EngineUnderTest,
) {
    let town = b_after_a(subject, BLOCKS);

    let failing = town.story_of(|town| town.close_as("gt-a", Some(Outcome::Failed)));
    assert_eq!(failing, ["closed gt-a"]);
    assert_eq!(blockers(&town, "gt-b").failed, [id("gt-a")]);

    let waiving = town.story_of(|town| town.close_as("gt-a", None));
    assert_eq!(waiving, ["closed gt-a", "unblocked gt-b"]);
    assert_eq!(blockers(&town, "gt-b"), BlockerFacts::default());
}

pub(super) fn an_outcome_that_turns_into_a_failure_blocks_again(subject: &dyn EngineUnderTest) {
    let town = b_after_a(subject, BLOCKS);
    town.close_as("gt-a", Some(Outcome::Success));

    town.close_as("gt-a", Some(Outcome::Failed));

    assert_eq!(town.blockers_of("gt-b"), 1);
}

pub(super) fn a_conditional_edge_is_satisfied_by_any_close(subject: &dyn EngineUnderTest) {
    for outcome in [None, Some(Outcome::Failed), Some(Outcome::Cancelled)] {
        let town = b_after_a(subject, CONDITIONAL);
        town.close_as("gt-a", outcome);
        assert_eq!(town.blockers_of("gt-b"), 0, "{outcome:?}");
    }
}

pub(super) fn reopening_blocks_again(subject: &dyn EngineUnderTest) {
    for kind in [BLOCKS, CONDITIONAL] {
        let town = b_after_a(subject, kind);
        town.close("gt-a");
        let story = town.story_of(|town| town.reopen("gt-a"));
        assert_eq!(story, ["reopened gt-a"]);
        assert_eq!(town.blockers_of("gt-b"), 1);
    }
}

pub(super) fn a_pinned_bead_never_blocks(subject: &dyn EngineUnderTest) {
    for kind in [BLOCKS, CONDITIONAL, DependencyType::WaitsFor] {
        let town = b_after_a(subject, kind);
        let story = town.story_of(|town| town.set_status("gt-a", Status::Pinned));
        assert_eq!(story, ["status_changed gt-a", "unblocked gt-b"]);
        assert_eq!(town.blockers_of("gt-b"), 0);
        town.set_status("gt-a", Status::Open);
        assert_eq!(town.blockers_of("gt-b"), 1);
    }
}

pub(super) fn edges_of_other_types_never_block(subject: &dyn EngineUnderTest) {
    for name in ["parent-child", "tracks", "related", "until", "my-own"] {
        let kind = DependencyType::parse(name).expect("a valid type");
        let town = b_after_a(subject, kind);
        assert_eq!(town.blockers_of("gt-b"), 0, "{name}");
        let story = town.story_of(|town| town.close("gt-a"));
        assert_eq!(story, ["closed gt-a"], "{name}");
    }
}

pub(super) fn an_absent_target_blocks_once_it_appears(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-b", "gt-c"]);
    town.link("gt-b", BLOCKS, "gt-late");
    town.link("gt-c", BLOCKS, "gt-done");
    assert_eq!(town.blockers_of("gt-b"), 0);

    town.add_open(&["gt-late"]);
    town.add(closed("gt-done", None));

    assert_eq!(town.blockers_of("gt-b"), 1);
    assert_eq!(town.blockers_of("gt-c"), 0);
    town.close("gt-late");
    assert_eq!(town.blockers_of("gt-b"), 0);
}

pub(super) fn retyping_an_edge_blocks_and_unblocks(subject: &dyn EngineUnderTest) {
    let town = b_after_a(subject, DependencyType::Tracks);

    town.link("gt-b", BLOCKS, "gt-a");
    assert_eq!(town.blockers_of("gt-b"), 1);
    let story = town.story_of(|town| town.link("gt-b", CONDITIONAL, "gt-a"));
    assert_eq!(story, ["dependency_changed gt-b"]);
    assert_eq!(town.blockers_of("gt-b"), 1);

    town.close_as("gt-a", Some(Outcome::Failed));
    assert_eq!(town.blockers_of("gt-b"), 0);
    town.link("gt-b", BLOCKS, "gt-a");
    assert_eq!(town.blockers_of("gt-b"), 1);
    let story = town.story_of(|town| town.link("gt-b", DependencyType::Tracks, "gt-a"));
    assert_eq!(story, ["dependency_changed gt-b", "unblocked gt-b"]);
    assert_eq!(town.blockers_of("gt-b"), 0);
}

pub(super) fn removing_an_edge_unblocks(subject: &dyn EngineUnderTest) {
    let town = b_after_a(subject, BLOCKS);
    let story = town.story_of(|town| town.unlink("gt-b", "gt-a"));
    assert_eq!(story, ["dependency_removed gt-b", "unblocked gt-b"]);
    assert_eq!(town.blockers_of("gt-b"), 0);
}

pub(super) fn deleting_a_blocker_unblocks(subject: &dyn EngineUnderTest) {
    let town = b_after_a(subject, BLOCKS);
    let story = town.story_of(|town| town.delete("gt-a"));
    assert_eq!(story, ["deleted gt-a", "unblocked gt-b"]);
    assert_eq!(town.blockers_of("gt-b"), 0);
}

pub(super) fn deleting_a_blocked_bead_does_not_announce_it_as_unblocked(
    subject: &dyn EngineUnderTest,
) {
    let town = b_after_a(subject, BLOCKS);
    let story = town.story_of(|town| town.delete("gt-b"));
    assert_eq!(story, ["deleted gt-b"]);
}

pub(super) fn a_bead_waits_for_the_last_of_its_blockers(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c"]);
    town.link("gt-c", BLOCKS, "gt-a");
    town.link("gt-c", CONDITIONAL, "gt-b");
    assert_eq!(town.blockers_of("gt-c"), 2);

    let first = town.story_of(|town| town.close("gt-a"));
    assert_eq!(first, ["closed gt-a"]);
    assert_eq!(town.blockers_of("gt-c"), 1);
    let last = town.story_of(|town| town.close("gt-b"));
    assert_eq!(last, ["closed gt-b", "unblocked gt-c"]);

    town.add_open(&["gt-p.10", "gt-p.9", "gt-q"]);
    town.link("gt-q", BLOCKS, "gt-p.10");
    town.link("gt-q", BLOCKS, "gt-p.9");
    let named = [id("gt-p.9"), id("gt-p.10")];
    assert_eq!(blockers(&town, "gt-q").open, named, "as people count");
    let of_each = town.read(|reader| reader.blockers_of(&[id("gt-q")]));
    assert_eq!(of_each[&id("gt-q")].open, named);
}

pub(super) fn one_close_unblocks_everything_that_waited_for_it(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    for issue in ["gt-b", "gt-c", "gt-d"] {
        town.link(issue, BLOCKS, "gt-a");
    }

    let mut story = town.story_of(|town| town.close("gt-a"));

    story.sort();
    let expected = ["closed gt-a", "unblocked gt-b", "unblocked gt-c", "unblocked gt-d"];
    assert_eq!(story, expected);
}

pub(super) fn a_bead_that_is_over_is_not_announced_as_unblocked(subject: &dyn EngineUnderTest) {
    let town = b_after_a(subject, BLOCKS);
    town.close("gt-b");
    assert_eq!(town.blockers_of("gt-b"), 1);

    let story = town.story_of(|town| town.close("gt-a"));

    assert_eq!(story, ["closed gt-a"]);
    assert_eq!(town.blockers_of("gt-b"), 0);
}

pub(super) fn blockers_are_split_into_open_and_failed(subject: &dyn EngineUnderTest) {
    let town = CheckedStore::new(subject);
    town.add_open(&["gt-new", "gt-open"]);
    town.add(closed("gt-failed", Some(Outcome::Failed)));
    town.add(closed("gt-done", None));
    for target in ["gt-open", "gt-failed", "gt-done", "gt-absent"] {
        town.link("gt-new", BLOCKS, target);
    }

    let facts = blockers(&town, "gt-new");

    assert_eq!(facts.open, [id("gt-open")]);
    assert_eq!(facts.failed, [id("gt-failed")]);
}

pub(super) fn the_edges_of_a_new_bead_block_it_in_any_order_of_arrival(
    subject: &dyn EngineUnderTest,
) {
    let town = CheckedStore::new(subject);
    let write = |text: &str, target: &str| {
        town.write(|writer| import(writer, &bead(text), &[edge(text, BLOCKS, target)]));
    };

    write("gt-a", "gt-b");
    assert_eq!(town.blockers_of("gt-a"), 0);
    write("gt-b", "gt-c");
    write("gt-c", "gt-a");

    for text in ["gt-a", "gt-b", "gt-c"] {
        assert_eq!(town.blockers_of(text), 1, "{text}");
    }
}

pub(super) fn a_failed_bead_is_listed_with_those_that_wait_for_it(subject: &dyn EngineUnderTest) {
    let town = b_after_a(subject, BLOCKS);
    town.add_open(&["gt-c", "gt-alone"]);
    town.link("gt-c", BLOCKS, "gt-a");
    let failed = |town: &CheckedStore| town.read(|reader| reader.failed_blockers(9));
    let waiting = |limit| town.read(|reader| reader.beads_blocked_by(&id("gt-a"), limit));
    assert_eq!(failed(&town), []);
    assert_eq!(waiting(9), [id("gt-b"), id("gt-c")]);
    assert_eq!(waiting(1), [id("gt-b")]);

    town.close_as("gt-alone", Some(Outcome::Failed));
    town.close_as("gt-a", Some(Outcome::Failed));
    assert_eq!(failed(&town), [id("gt-a")], "nothing waits for the other");
    town.close_as("gt-c", None);
    assert_eq!(waiting(9), [id("gt-b")]);
    town.close_as("gt-b", None);
    assert_eq!(failed(&town), []);
}
