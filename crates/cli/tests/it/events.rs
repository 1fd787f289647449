//! The event log: every change writes its events, in order, without gaps; nothing else does.

use gt_core::Timestamp;
use gt_testkit::Sandbox;
use serde_json::{Value, json};

use crate::support::{Steps as _, texts, town, town_with_rigs};

/// The kinds of events since event `number`.
fn since(town: &Sandbox, number: u64) -> Vec<String> {
    let events = town.json(&["activity", "--after", &number.to_string()]);
    texts(&events, "event_type")
}

#[test]
fn every_change_writes_its_events() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    town.bead("hq-e", &["-t", "epic"]);
    for (command, expected) in [
        (&["create", "New"][..], &["created"][..]),
        (&["update", "hq-a", "--title", "Newer"], &["updated"]),
        (&["update", "hq-a", "--status", "blocked"], &["status_changed"]),
        (&["update", "hq-a", "--status", "open"], &["status_changed"]),
        (&["update", "hq-a", "--claim"], &["claimed"]),
        (&["update", "hq-a", "--add-label", "x"], &["label_added"]),
        (&["label", "remove", "hq-a", "x"], &["label_removed"]),
        (&["update", "hq-b", "--parent", "hq-e"], &["dependency_added"]),
        (&["update", "hq-b", "--parent", ""], &["dependency_removed"]),
        (&["dep", "add", "hq-b", "hq-a"], &["dependency_added"]),
        (&["dep", "add", "hq-b", "hq-a", "-t", "waits-for", "--retype"], &["dependency_changed"]),
        (&["comments", "add", "hq-a", "hello"], &["commented"]),
        (&["close", "hq-a"], &["closed", "unblocked"]),
        (&["reopen", "hq-a"], &["reopened"]),
        (&["dep", "remove", "hq-b", "hq-a"], &["dependency_removed", "unblocked"]),
        (&["delete", "hq-a", "--force"], &["deleted"]),
        (&["config", "set", "k", "v"], &["setting_changed"]),
    ] {
        let before = town.last_event();
        town.bd(command).ok();
        let mut kinds = since(&town, before);
        kinds.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(kinds, expected, "{command:?}");
    }
}

#[test]
fn rigs_write_theirs() {
    let town = town_with_rigs(&["web"]);
    town.gt(["rig", "park", "web"]).ok();
    town.gt(["rig", "unpark", "web"]).ok();
    town.gt(["rig", "remove", "web"]).ok();

    assert_eq!(since(&town, 0), ["rig_added", "rig_changed", "rig_changed", "rig_removed"]);
}

#[test]
fn an_update_tells_the_old_and_the_new_value() {
    let town = town();
    town.bead("hq-a", &["-p", "3"]);

    town.bd(["update", "hq-a", "--priority", "1", "--status", "blocked"]).ok();

    let event = town.events().pop().unwrap();
    let changes = &event["payload"]["changes"];
    assert_eq!(changes["status"], json!({"old": "open", "new": "blocked"}));
    assert_eq!(changes["priority"], json!({"old": 3, "new": 1}));
}

#[test]
fn failed_commands_leave_no_gaps_in_the_log() {
    let town = town();
    town.bead("hq-a", &[]);
    for wrong in [
        &["create", "No", "--deps", "hq-none"][..],
        &["update", "hq-a", "--parent", "hq-none", "--add-label", "x"],
        &["close", "hq-a", "hq-none"],
        &["dep", "add", "hq-a", "hq-a"],
        &["delete", "hq-a", "hq-none", "--force"],
        &["label", "add", "hq-a", "hq-none", "x"],
    ] {
        town.bd(wrong).fails(1);
        town.create("Between", &[]);
    }
    town.bd(["update", "hq-a", "hq-none", "--title", "Half"]).ok();
    town.import(r#"{"id":"hq-i","title":"i"}"#);

    let events = town.events();

    let numbers: Vec<u64> = events.iter().map(|e| e["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=9).collect::<Vec<_>>());
    let time = |event: &Value| Timestamp::parse(event["created_at"].as_str().unwrap()).unwrap();
    let times: Vec<Timestamp> = events.iter().map(time).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn reading_writes_nothing() {
    let town = town_with_rigs(&["web"]);
    town.bead("hq-a", &["-l", "x"]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    let before = town.last_event();

    for command in [
        &["show", "hq-a"][..],
        &["list", "--all"],
        &["ready", "--explain"],
        &["blocked"],
        &["dep", "tree", "hq-b"],
        &["dep", "cycles"],
        &["label", "list-all"],
        &["comments", "hq-a"],
        &["search", "a"],
        &["stats"],
        &["count", "--by-label"],
        &["export"],
        &["config", "list"],
        &["delete", "hq-a"],
        &["create", "x", "--dry-run"],
    ] {
        town.bd(command).ok();
    }
    for command in [&["status"][..], &["doctor"], &["rig", "list"], &["config", "list"]] {
        town.gt(command).ok();
    }

    assert_eq!(town.last_event(), before);
}
