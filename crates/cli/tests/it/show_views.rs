//! `bd show --children`, `--refs` and `--long`.

use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, keys, texts, town};

#[test]
fn the_children_of_beads_are_shown_by_parent() {
    let town = town();
    town.bead("hq-e", &["-t", "epic"]);
    town.create("First", &["--parent", "hq-e"]);
    town.create("Second", &["--parent", "hq-e"]);
    town.bead("hq-b", &["--deps", "hq-e.1"]);
    town.bd(["close", "hq-e.1"]).ok();

    let shown = town.json(&["show", "hq-e", "hq-b", "--children"]);

    assert_eq!(keys(&shown), ["hq-b", "hq-e", "schema_version"]);
    assert_eq!(texts(&shown["hq-e"], "id"), ["hq-e.1", "hq-e.2"]);
    assert_eq!(texts(&shown["hq-e"], "dependency_type"), ["parent-child", "parent-child"]);
    assert_eq!(shown["hq-b"], json!([]));
    let said = town.bd(["show", "hq-e", "hq-b", "--children"]).ok();
    assert_says(
        &said.stdout,
        &["(2 children, 1 closed)", "hq-e.1", "closed", "hq-b  hq-b (no children)"],
    );
}

#[test]
fn references_are_dependents_and_beads_that_mention_a_bead() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &["--deps", "related:hq-a"]);
    town.bead("hq-d", &["-d", "After HQ-A. And", "--notes", "(hq-a)"]);
    town.bead("hq-e", &["-d", "hq-ab, hq-a.1 and xhq-a are others"]);
    town.bead("hq-f", &["-d", "see hq-a"]);
    town.bd(["close", "hq-f", "--reason", "like hq-a"]).ok();

    let shown = town.json(&["show", "hq-a", "--refs"]);

    let found: Vec<_> = shown["hq-a"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bead| json!([bead["id"], bead["dependency_type"], bead["mentioned_in"]]))
        .collect();
    let mut mentions = found[2..].to_vec();
    mentions.sort_by_key(ToString::to_string);
    assert_eq!(found[..2], [json!(["hq-b", "blocks", null]), json!(["hq-c", "related", null])]);
    assert_eq!(
        mentions,
        [
            json!(["hq-d", "mentions", ["description", "notes"]]),
            json!(["hq-f", "mentions", ["description", "close_reason"]]),
        ]
    );
    let said = town.bd(["show", "hq-a", "--refs"]).ok();
    assert_says(
        &said.stdout,
        &[
            "  blocks\n    hq-b open",
            "  related\n",
            "  mentions\n",
            "hq-d open · hq-d (in description, notes)",
        ],
    );
    assert_says(&town.bd(["show", "hq-d", "--refs"]).ok().stdout, &["no bead refers to it"]);
}

#[test]
fn the_long_view_has_every_field() {
    let town = town();
    town.import(
        r#"{"id":"hq-a","title":"t","priority":1,"metadata":{"k":[1]},"odd_field":{"x":1},"spec_id":"s"}"#,
    );
    town.bd(["update", "hq-a", "--estimate", "5"]).ok();

    let shown = &town.json(&["show", "hq-a", "--long"])[0];

    assert_eq!(shown["odd_field"], json!({"x": 1}));
    assert_eq!(shown["event_count"], 2);
    assert_eq!(shown["open_blockers"], 0);
    assert_eq!(shown["uid"].as_str().map(str::len), Some(36));
    let said = town.bd(["show", "hq-a", "--long"]).ok();
    assert_says(
        &said.stdout,
        &["uid", "events", "odd_field", "{\"x\":1}", "estimated_minutes", "{\"k\":[1]}"],
    );
    assert!(!town.bd(["show", "hq-a"]).ok().stdout.contains("odd_field"));
}

#[test]
fn views_say_what_is_missing_like_show_does() {
    let town = town();
    town.bead("hq-a", &[]);

    for view in ["--children", "--refs", "--long"] {
        let ran = town.bd(["show", "nope", "hq-a", view]).ok();
        assert_says(&ran.stderr, &["no issue found matching \"nope\""]);
        let error = json_refusal(&town.bd(["show", "nope", view, "--json"]));
        assert_eq!(error, "no issues found matching the provided IDs");
    }
    town.bd(["show", "hq-a", "--refs", "--children"]).fails(1);
}
