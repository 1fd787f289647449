//! The dependencies that block a bead, and the changes that unblock it.

use gt_testkit::Sandbox;
use serde_json::json;

use crate::support::{Steps as _, assert_says, town};

/// The blockers of a bead, as `bd blocked` has them; nothing if it is not blocked.
fn blockers(town: &Sandbox, id: &str) -> Vec<String> {
    let blocked = town.json(&["blocked"]);
    let beads = blocked.as_array().unwrap();
    let Some(bead) = beads.iter().find(|bead| bead["id"] == id) else {
        return Vec::new();
    };
    let ids: Vec<String> = serde_json::from_value(bead["blocked_by"].clone()).unwrap();
    assert_eq!(bead["blocked_by_count"], ids.len());
    ids
}

#[test]
fn a_blocked_bead_is_not_ready_until_everything_in_its_way_is_closed() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    town.bead("hq-c", &["--deps", "hq-a,hq-b"]);
    assert_eq!(town.ready(), ["hq-a", "hq-b"]);
    assert_eq!(blockers(&town, "hq-c"), ["hq-a", "hq-b"]);

    town.bd(["close", "hq-a"]).ok();
    assert_eq!(blockers(&town, "hq-c"), ["hq-b"]);
    town.bd(["close", "hq-b"]).ok();

    assert_eq!(town.ready(), ["hq-c"]);
    assert_eq!(blockers(&town, "hq-c"), [""; 0]);
}

#[test]
fn only_open_and_closed_matter_not_how_far_it_is() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    for status in ["in_progress", "hooked", "blocked", "deferred"] {
        town.bd(["update", "hq-a", "--status", status]).ok();
        assert_eq!(blockers(&town, "hq-b"), ["hq-a"], "{status}");
    }
    town.bd(["update", "hq-a", "--status", "pinned"]).ok();
    assert_eq!(blockers(&town, "hq-b"), [""; 0], "references never block");
}

#[test]
fn a_reopened_bead_blocks_again() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bd(["close", "hq-a"]).ok();
    assert_eq!(town.ready(), ["hq-b"]);

    town.bd(["reopen", "hq-a"]).ok();

    assert_eq!(town.ready(), ["hq-a"]);
}

#[test]
fn a_failed_blocker_keeps_blocking_until_it_is_closed_again() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    town.bd(["close", "hq-a", "--outcome", "failed"]).ok();
    assert_eq!(town.ready(), [""; 0]);
    assert_eq!(blockers(&town, "hq-b"), ["hq-a"]);
    let explained = town.bd(["ready", "--explain"]).ok();
    assert_says(&explained.stdout, &["hq-b", "blocker failed: hq-a"]);

    town.bd(["close", "hq-a"]).ok();
    assert_eq!(town.ready(), ["hq-b"]);
}

#[test]
fn a_failed_blocker_can_be_tried_again_or_its_edge_removed() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &["--deps", "hq-a"]);
    town.bd(["close", "hq-a", "--outcome", "failed"]).ok();

    town.bd(["dep", "remove", "hq-b", "hq-a"]).ok();
    assert_eq!(town.ready(), ["hq-b"]);

    town.bd(["reopen", "hq-a"]).ok();
    town.bd(["close", "hq-a", "--outcome", "success"]).ok();
    assert_eq!(town.ready(), ["hq-b", "hq-c"]);
}

#[test]
fn a_cancelled_blocker_is_out_of_the_way() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    town.bd(["close", "hq-a", "--outcome", "cancelled"]).ok();

    assert_eq!(town.ready(), ["hq-b"]);
}

#[test]
fn a_conditional_blocker_may_end_as_it_likes() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "conditional-blocks:hq-a"]);
    assert_eq!(town.ready(), ["hq-a"]);

    town.bd(["close", "hq-a", "--outcome", "failed"]).ok();

    assert_eq!(town.ready(), ["hq-b"]);
}

#[test]
fn other_types_never_block() {
    let town = town();
    town.bead("hq-a", &[]);
    for kind in ["parent-child", "tracks", "related", "discovered-from", "my-own"] {
        let id = format!("hq-{kind}");
        town.bead(&id, &[]);
        town.bd(["dep", "add", &id, "hq-a", "--type", kind]).ok();
        assert!(town.ready().contains(&id), "{kind}");
    }
    assert_eq!(town.json(&["blocked"]), json!([]));
}

#[test]
fn a_part_of_a_blocked_bead_is_not_blocked() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-p", &["--deps", "hq-a"]);

    town.create("Part", &["--parent", "hq-p"]);

    assert_eq!(town.ready(), ["hq-a", "hq-p.1"]);
}

#[test]
fn waiting_for_a_bead_without_parts_is_waiting_for_the_bead() {
    let town = town();
    town.bead("hq-s", &[]);
    town.bead("hq-w", &["--waits-for", "hq-s"]);
    assert_eq!(town.ready(), ["hq-s"]);

    town.bd(["close", "hq-s"]).ok();

    assert_eq!(town.ready(), ["hq-w"]);
}

#[test]
fn waiting_for_all_parts_ends_with_the_last() {
    let town = town();
    town.bead("hq-s", &[]);
    town.create("One", &["--parent", "hq-s"]);
    town.create("Two", &["--parent", "hq-s"]);
    town.bead("hq-w", &["--waits-for", "hq-s"]);

    town.bd(["close", "hq-s"]).ok();
    town.bd(["close", "hq-s.1"]).ok();
    assert_eq!(blockers(&town, "hq-w"), ["hq-s"]);
    town.bd(["close", "hq-s.2"]).ok();

    assert_eq!(town.ready(), ["hq-w"]);
}

#[test]
fn waiting_for_any_part_ends_with_the_first() {
    let town = town();
    town.bead("hq-s", &[]);
    town.create("One", &["--parent", "hq-s"]);
    town.create("Two", &["--parent", "hq-s"]);
    town.bead("hq-w", &["--waits-for", "hq-s", "--waits-for-gate", "any-children"]);

    town.bd(["close", "hq-s.1"]).ok();
    assert_eq!(blockers(&town, "hq-w"), ["hq-s"], "the bead itself is open");
    town.bd(["close", "hq-s"]).ok();

    assert_eq!(town.ready(), ["hq-s.2", "hq-w"]);
}

#[test]
fn a_new_part_is_waited_for_too() {
    let town = town();
    town.bead("hq-s", &[]);
    town.bead("hq-w", &["--waits-for", "hq-s"]);
    town.bd(["close", "hq-s"]).ok();
    assert_eq!(town.ready(), ["hq-w"]);

    town.create("Late", &["--parent", "hq-s"]);
    assert_eq!(town.ready(), ["hq-s.1"]);

    town.bd(["update", "hq-s.1", "--parent", ""]).ok();
    assert_eq!(town.ready(), ["hq-s.1", "hq-w"]);
}

#[test]
fn a_target_that_appears_later_blocks_from_then_on() {
    let town = town();
    town.bead("hq-b", &[]);
    town.bd(["dep", "add", "hq-b", "zz-1"]).ok();
    assert_eq!(town.ready(), ["hq-b"]);

    town.bead("zz-1", &[]);
    assert_eq!(town.ready(), ["zz-1"]);
    assert_eq!(blockers(&town, "hq-b"), ["zz-1"]);

    town.bd(["close", "zz-1"]).ok();
    assert_eq!(town.ready(), ["hq-b"]);
}

#[test]
fn a_target_that_is_imported_later_blocks_too() {
    let town = town();
    town.import(
        r#"{"id":"hq-b","title":"b","dependencies":[{"depends_on_id":"hq-a","type":"blocks"}]}"#,
    );
    assert_eq!(town.ready(), ["hq-b"]);

    town.import(r#"{"id":"hq-a","title":"a"}"#);

    assert_eq!(town.ready(), ["hq-a"]);
}

#[test]
fn a_deleted_blocker_blocks_no_more() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    town.bd(["delete", "hq-a", "--force"]).ok();

    assert_eq!(town.ready(), ["hq-b"]);
    town.gt(["store", "check"]).ok();
}

#[test]
fn dependencies_across_rigs_block_like_any_other() {
    let town = crate::support::town_with_rigs(&["web", "api"]);
    let first = town.create("First", &["--rig", "api"]);
    let second = town.create("Second", &["--rig", "web", "--deps", &first]);
    assert_eq!(town.ready(), [first.as_str()]);

    town.bd(["close", &first]).ok();

    assert_eq!(town.ready(), [second]);
}

#[test]
fn the_blocked_are_listed_most_urgent_first_with_reasons_for_people() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-low", &["--deps", "hq-a", "-p", "3"]);
    town.bead("hq-high", &["--deps", "hq-a", "-p", "0"]);

    assert_eq!(town.ids(&["blocked"]), ["hq-high", "hq-low"]);
    assert_eq!(town.ids(&["blocked", "--limit", "1"]), ["hq-high"]);
    let said = town.bd(["blocked"]).ok();
    assert_says(&said.stdout, &["hq-high", "blocked by hq-a"]);
    town.bd(["close", "hq-a"]).ok();
    let said = town.bd(["blocked"]).ok();
    assert_eq!(said.line(), "Nothing is blocked");
}

#[test]
fn blockers_and_dependencies_are_named_as_people_count() {
    let town = town();
    for id in ["hq-a.9", "hq-a.10", "hq-a.11"] {
        town.bead(id, &[]);
    }
    town.bead("hq-b", &["--deps", "hq-a.9,hq-a.10,hq-a.11"]);
    let in_order = |text: &str| {
        let places: Vec<_> =
            ["hq-a.9", "hq-a.10", "hq-a.11"].iter().map(|id| text.find(id).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
    };

    in_order(&town.bd(["blocked"]).ok().stdout);
    in_order(&town.gt(["why", "hq-b"]).ok().stdout);
    in_order(&town.bd(["show", "hq-b"]).ok().stdout);
    in_order(&town.bd(["delete", "hq-a.10", "hq-a.9", "hq-a.11"]).ok().stdout);
    in_order(&town.bd(["close", "hq-b"]).fails(1).stderr);
}

#[test]
fn the_blocked_can_be_narrowed() {
    let town = crate::support::town_with_rigs(&["web"]);
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("we-b", &["--deps", "hq-a"]);
    let part = town.create("Part", &["--parent", "hq-a", "--deps", "hq-b"]);

    assert_eq!(town.ids(&["blocked", "--rig", "web"]), ["we-b"]);
    assert_eq!(town.ids(&["blocked", "--parent", "hq-a"]), [part]);
}
