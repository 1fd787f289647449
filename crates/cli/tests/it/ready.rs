//! `bd ready`: beads that can be worked on now, and the reasons why others cannot.

use gt_testkit::Sandbox;
use serde_json::json;

use crate::support::{
    Steps as _, assert_says, json_refusal, keys, refusal, texts, town, town_with_rigs,
};

#[test]
fn only_open_work_that_nothing_holds_up() {
    let town = town();
    town.bead("hq-open", &[]);
    town.bead("hq-epic", &["-t", "epic"]);
    town.bead("hq-waits", &["--deps", "hq-open"]);
    for status in ["in_progress", "hooked", "blocked", "deferred", "pinned", "closed"] {
        let id = format!("hq-{status}");
        town.bead(&id, &[]);
        town.bd(["update", &id, "--status", status]).ok();
    }
    for kind in ["merge-request", "gate", "molecule", "message", "agent", "role", "rig"] {
        town.bead(&format!("hq-{kind}"), &["-t", kind]);
    }
    town.bead("hq-wisp-1", &["--ephemeral"]);
    town.bead("hq-quiet", &["--no-history"]);
    town.import(concat!(
        r#"{"id":"hq-flagged","title":"t","pinned":true}"#,
        "\n",
        r#"{"id":"hq-woken","title":"t","status":"deferred","defer_until":"2001-01-01T00:00:00Z"}"#
    ));

    assert_eq!(town.ready(), ["hq-epic", "hq-open", "hq-quiet", "hq-woken"]);
}

#[test]
fn parts_of_a_deferred_bead_wait_with_it() {
    let town = town();
    town.bead("hq-p", &["--defer", "+1d"]);
    town.create("Part", &["--parent", "hq-p"]);
    assert_eq!(town.ready(), [""; 0]);
    assert_eq!(town.ids(&["ready", "--include-deferred", "--sort", "oldest"]), ["hq-p", "hq-p.1"]);

    town.bd(["update", "hq-p", "--defer", ""]).ok();

    assert_eq!(town.ready(), ["hq-p", "hq-p.1"]);
}

#[test]
fn types_that_are_no_work_come_when_asked_for() {
    let town = town();
    town.bead("hq-mr", &["-t", "merge-request"]);
    town.bead("hq-w", &["--ephemeral"]);

    assert_eq!(town.ids(&["ready", "--type", "merge-request"]), ["hq-mr"]);
    assert_eq!(town.ids(&["ready", "--include-ephemeral"]), ["hq-w"]);
}

#[test]
fn filters_narrow_it() {
    let town = town_with_rigs(&["web"]);
    town.bead("hq-a", &["-p", "0", "-l", "x,y", "-a", "ann", "--metadata", r#"{"k":"v"}"#]);
    town.bead("hq-b", &["-p", "1", "-l", "y", "-t", "bug"]);
    town.bead("we-c", &["-p", "1"]);
    town.create("Part", &["--parent", "we-c"]);
    town.create("Deeper", &["--parent", "we-c.1"]);

    for (flags, expected) in [
        (&["--priority", "0"][..], &["hq-a"][..]),
        (&["--assignee", "ann"], &["hq-a"]),
        (&["--unassigned", "--label", "y"], &["hq-b"]),
        (&["--label", "x,y"], &["hq-a"]),
        (&["--label-any", "x,z"], &["hq-a"]),
        (&["--exclude-label", "x", "--rig", "web", "-p", "1"], &["we-c"]),
        (&["--exclude-type", "task"], &["hq-b"]),
        (&["--type", "bug"], &["hq-b"]),
        (&["--metadata-field", "k=v"], &["hq-a"]),
        (&["--has-metadata-key", "k"], &["hq-a"]),
        (&["--parent", "we-c", "--sort", "oldest"], &["we-c.1", "we-c.1.1"]),
        (&["--parent", "hq-a"], &[]),
    ] {
        let mut command = vec!["ready"];
        command.extend(flags);
        assert_eq!(town.ids(&command), expected, "{flags:?}");
    }
    json_refusal(&town.bd(["ready", "--json", "--priority", "9"]));
    json_refusal(&town.bd(["ready", "--json", "--parent", "hq-none"]));
    refusal(&town.bd(["ready", "--rig", "nope"]));
}

/// Beads of three priorities and ages.
fn aged() -> Sandbox {
    let town = town();
    let lines = [
        json!({"id": "hq-old", "title": "old", "priority": 2, "created_at": "2020-01-01T00:00:00Z"}),
        json!({"id": "hq-older", "title": "older", "priority": 1,
            "created_at": "2019-01-01T00:00:00Z"}),
    ];
    town.import(&lines.map(|line| line.to_string()).join("\n"));
    town.bead("hq-new", &["-p", "3"]);
    town.bead("hq-newer", &["-p", "2"]);
    town
}

#[test]
fn three_orders() {
    let town = aged();
    for (order, expected) in [
        ("priority", ["hq-older", "hq-newer", "hq-old", "hq-new"]),
        ("oldest", ["hq-older", "hq-old", "hq-new", "hq-newer"]),
        ("hybrid", ["hq-newer", "hq-new", "hq-older", "hq-old"]),
    ] {
        assert_eq!(town.ids(&["ready", "--sort", order]), expected, "{order}");
    }
    assert_eq!(town.ids(&["ready"]), town.ids(&["ready", "-s", "priority"]));
    town.bd(["ready", "--sort", "title"]).fails(1);
}

#[test]
fn a_hundred_unless_told_otherwise() {
    let town = town();
    let lines: Vec<String> = (0..110)
        .map(|number| format!(r#"{{"id":"hq-{number}","title":"Task {number}"}}"#))
        .collect();
    town.import(&lines.join("\n"));

    let ready = town.bd(["ready", "--json"]).ok();
    assert_eq!(ready.json().as_array().unwrap().len(), 100);
    assert_says(&ready.stderr, &["100", "--limit 0"]);
    let all = town.bd(["ready", "--json", "--limit=0"]).ok();
    assert_eq!(all.json().as_array().unwrap().len(), 110);
    assert_eq!(all.stderr, "");
    assert_eq!(town.ids(&["ready", "-n", "3"]).len(), 3);
}

#[test]
fn nothing_ready_is_said_and_is_an_empty_array() {
    let town = town();
    let said = town.bd(["ready"]).ok();
    assert_says(&said.stdout, &["Nothing is ready", "--explain"]);
    assert_eq!(town.bd(["ready", "--json"]).ok().stdout, "[]\n");
}

#[test]
fn every_reason_to_wait_is_explained() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &["--defer", "2200-01-01"]);
    town.bead("hq-d", &[]);
    town.bd(["update", "hq-d", "--status", "in_progress"]).ok();
    town.create("Part", &["--parent", "hq-c"]);

    let explained = town.json(&["ready", "--explain"]);

    assert_eq!(keys(&explained), ["blocked", "ready", "schema_version", "summary"]);
    assert_eq!(texts(&explained["ready"], "id"), ["hq-a"]);
    assert_eq!(explained["ready"][0]["reason"], "no blocking dependencies");
    assert_eq!(explained["ready"][0]["resolved_blockers"], json!([]));
    assert_eq!(
        explained["summary"],
        json!({"total_ready": 1, "total_blocked": 4, "cycle_count": 0})
    );
    let waiting = explained["blocked"].as_array().unwrap();
    let reasons = |id: &str| {
        let bead = waiting.iter().find(|bead| bead["id"] == id).unwrap();
        bead["reasons"].clone()
    };
    assert_eq!(reasons("hq-b"), json!(["blocked by hq-a"]));
    assert_eq!(reasons("hq-c"), json!(["deferred until 2200-01-01T00:00:00Z"]));
    assert_eq!(reasons("hq-d"), json!(["status in_progress"]));
    assert_eq!(
        reasons("hq-c.1"),
        json!(["its parent hq-c is deferred until 2200-01-01T00:00:00Z"])
    );
    let blocked = waiting.iter().find(|bead| bead["id"] == "hq-b").unwrap();
    assert_eq!(blocked["blocked_by_count"], 1);
    assert_eq!(
        blocked["blocked_by"],
        json!([{"id": "hq-a", "title": "hq-a", "status": "open", "priority": 2}])
    );
    let said = town.bd(["ready", "--explain"]).ok();
    assert_says(&said.stdout, &["hq-b", "blocked by hq-a", "1 ready, 4 waiting"]);
}

#[test]
fn blockers_that_are_out_of_the_way_are_explained_too() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bd(["close", "hq-a"]).ok();

    let explained = town.json(&["ready", "--explain"]);

    assert_eq!(explained["ready"][0]["resolved_blockers"], json!(["hq-a"]));
}

#[test]
fn a_convoy_is_not_work() {
    let town = town();
    let task = town.create("A task", &[]);
    let convoy = town.create("A convoy", &["--type", "convoy"]);

    assert_eq!(town.ready(), [task]);
    assert_eq!(town.ids(&["ready", "--type", "convoy"]), [convoy]);
}
