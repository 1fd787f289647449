//! `bd list`: in which order, and how many.

use gt_testkit::Sandbox;
use serde_json::json;

use crate::support::{Steps as _, assert_says, town};

/// Three beads that every order sorts differently.
fn three() -> Sandbox {
    let town = town();
    let lines = [
        json!({"id": "hq-a", "title": "Carrots", "priority": 1, "issue_type": "bug",
            "assignee": "zed", "created_at": "2026-01-03T00:00:00Z",
            "updated_at": "2026-01-04T00:00:00Z"}),
        json!({"id": "hq-b.2", "title": "apples", "priority": 2, "issue_type": "task",
            "assignee": "ann", "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-09T00:00:00Z", "status": "closed",
            "closed_at": "2026-01-09T00:00:00Z"}),
        json!({"id": "hq-b.10", "title": "Bread", "priority": 1, "issue_type": "chore",
            "created_at": "2026-01-05T00:00:00Z", "updated_at": "2026-01-06T00:00:00Z",
            "status": "in_progress"}),
    ];
    town.import(&lines.map(|line| line.to_string()).join("\n"));
    town
}

#[test]
fn most_urgent_first_then_newest_unless_told_otherwise() {
    assert_eq!(three().ids(&["list", "--all"]), ["hq-b.10", "hq-a", "hq-b.2"]);
}

#[test]
fn every_order_can_be_turned_round() {
    let town = three();
    for (order, expected) in [
        ("priority", ["hq-b.10", "hq-a", "hq-b.2"]),
        ("created", ["hq-b.10", "hq-a", "hq-b.2"]),
        ("updated", ["hq-b.2", "hq-b.10", "hq-a"]),
        ("id", ["hq-a", "hq-b.2", "hq-b.10"]),
        ("status", ["hq-b.2", "hq-b.10", "hq-a"]),
        ("type", ["hq-a", "hq-b.10", "hq-b.2"]),
        ("assignee", ["hq-b.10", "hq-b.2", "hq-a"]),
    ] {
        assert_eq!(town.ids(&["list", "--all", "--sort", order]), expected, "{order}");
        let mut turned = expected;
        turned.reverse();
        let reversed = town.ids(&["list", "--all", "--sort", order, "--reverse"]);
        assert_eq!(reversed, turned, "{order}");
    }
    let by_closing = town.ids(&["list", "--all", "--sort", "closed"]);
    assert_eq!(by_closing[0], "hq-b.2", "what is not closed comes last");
    let by_title = town.ids(&["list", "--all", "--sort", "title"]);
    assert_eq!(by_title.len(), 3);
}

#[test]
fn an_unknown_order_is_refused() {
    let town = town();
    let error = town.bd(["list", "--sort", "colour"]).fails(1);
    assert_says(&error.stderr, &["colour", "priority"]);
}

/// A town with this many beads.
fn many(count: usize) -> Sandbox {
    let town = town();
    let lines: Vec<String> = (0..count)
        .map(|number| format!(r#"{{"id":"hq-{number}","title":"Task {number}"}}"#))
        .collect();
    town.import(&lines.join("\n"));
    town
}

#[test]
fn fifty_are_shown_unless_told_otherwise() {
    let town = many(60);

    let list = town.bd(["list", "--json"]).ok();

    assert_eq!(list.json().as_array().unwrap().len(), 50);
    assert_says(&list.stderr, &["50", "--limit 0"]);
    for (flags, count) in [
        (&["--limit", "7"][..], 7),
        (&["-n", "0"], 60),
        (&["--limit", "60"], 60),
        (&["--all"], 60),
        (&["--all", "--limit", "5"], 5),
    ] {
        let list = town.start_bd(&["list", "--json"]).args(flags).run().ok();
        assert_eq!(list.json().as_array().unwrap().len(), count, "{flags:?}");
        assert_eq!(list.stderr.is_empty(), count == 60, "{flags:?}");
    }
}

#[test]
fn agents_are_shown_twenty() {
    let town = many(30);
    for variable in ["BD_AGENT_MODE", "CLAUDE_CODE"] {
        let list = town.bd_with(variable, "1", &["list", "--json"]).ok();
        assert_eq!(list.json().as_array().unwrap().len(), 20, "{variable}");
        let list = town.bd_with(variable, "1", &["list", "--json", "-n", "25"]).ok();
        assert_eq!(list.json().as_array().unwrap().len(), 25, "{variable}");
    }
}

#[test]
fn the_remark_that_there_is_more_is_no_data() {
    let town = many(3);

    let list = town.bd(["list", "--limit", "2"]).ok();

    assert_eq!(list.stdout.lines().count(), 2);
    assert_eq!(list.stderr.lines().count(), 1);
    let quiet = town.bd(["list", "--limit", "2", "--quiet"]).ok();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn a_limit_is_a_number() {
    let town = town();
    for limit in ["x", "-1", "1.5", "99999999999999999999999"] {
        let list = town.bd(["list", &format!("--limit={limit}")]).fails(1);
        assert_says(&list.stderr, &["Error: ", limit]);
    }
}
