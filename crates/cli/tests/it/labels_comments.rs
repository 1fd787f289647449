//! `bd label` and `bd comments`.

use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, keys, refusal, texts, town};

#[test]
fn a_label_is_added_to_several_beads_at_once() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    let updated = town.show("hq-a")["updated_at"].clone();

    let added = town.json(&["label", "add", "hq-a", "hq-b", "soon"]);

    assert_eq!(
        added,
        json!([
            {"status": "added", "issue_id": "hq-a", "label": "soon"},
            {"status": "added", "issue_id": "hq-b", "label": "soon"},
        ])
    );
    assert_eq!(town.json(&["label", "list", "hq-a"]), json!(["soon"]));
    assert_ne!(town.show("hq-a")["updated_at"], updated, "it changed");
    let events = town.events();
    let kinds: Vec<_> = events[2..].iter().map(|event| &event["event_type"]).collect();
    assert_eq!(kinds, ["label_added", "label_added"]);
}

#[test]
fn a_label_is_removed() {
    let town = town();
    town.bead("hq-a", &["-l", "soon,hot"]);

    let removed = town.json(&["label", "remove", "hq-a", "soon"]);

    assert_eq!(removed, json!([{"status": "removed", "issue_id": "hq-a", "label": "soon"}]));
    assert_eq!(town.json(&["label", "list", "hq-a"]), json!(["hot"]));
}

#[test]
fn having_it_already_or_not_at_all_is_fine() {
    let town = town();
    town.bead("hq-a", &["-l", "soon"]);
    let before = (town.show("hq-a"), town.last_event());

    let said = town.bd(["label", "add", "hq-a", "soon"]).ok();
    assert_says(&said.stdout, &["already has the label soon"]);
    let said = town.bd(["label", "remove", "hq-a", "late"]).ok();
    assert_says(&said.stdout, &["does not have the label late"]);

    assert_eq!((town.show("hq-a"), town.last_event()), before);
}

#[test]
fn all_beads_get_it_or_none() {
    let town = town();
    town.bead("hq-a", &[]);

    let error = refusal(&town.bd(["label", "add", "hq-a", "hq-none", "soon"]));
    assert_says(&error, &["hq-none"]);
    assert_eq!(town.json(&["label", "list", "hq-a"]), json!([]));
    json_refusal(&town.bd(["label", "add", "hq-none", "soon", "--json"]));
}

#[test]
fn a_label_must_be_a_name() {
    let town = town();
    town.bead("hq-a", &[]);
    for label in ["", " ", "a\nb", &"l".repeat(256)] {
        let error = refusal(&town.bd(["label", "add", "hq-a", label]));
        assert_says(&error, &["is not a valid label"]);
    }
    for label in ["🫖", "gt:task", "has spaces", &"l".repeat(255)] {
        town.bd(["label", "add", "hq-a", label]).ok();
        assert_eq!(town.ids(&["list", "--label", label]), ["hq-a"], "{label}");
    }
    town.bd(["label", "add", "hq-a"]).fails(1);
}

#[test]
fn all_labels_are_counted() {
    let town = town();
    town.bead("hq-a", &["-l", "x,y"]);
    town.bead("hq-b", &["-l", "y"]);

    assert_eq!(
        town.json(&["label", "list-all"]),
        json!([{"label": "x", "count": 1}, {"label": "y", "count": 2}])
    );
    let said = town.bd(["label", "list-all"]).ok();
    assert_eq!(said.stdout, "x  1\ny  2\n");
    town.bead("hq-c", &[]);
    let said = town.bd(["label", "list", "hq-c"]).ok();
    assert_eq!(said.line(), "hq-c has no labels");
}

#[test]
fn comments_are_written_and_read_in_order() {
    let town = town();
    town.bead("hq-a", &[]);

    let said = town.json(&["comments", "add", "hq-a", "first", "-a", "zed"]);
    town.bd(["comment", "hq-a", "second"]).ok();

    assert_eq!(keys(&said), ["author", "created_at", "id", "issue_id", "schema_version", "text"]);
    assert_eq!(said["author"], "zed");
    assert_eq!(said["id"].as_str().unwrap().len(), 36);
    let comments = town.json(&["comments", "hq-a"]);
    assert_eq!(texts(&comments, "text"), ["first", "second"]);
    assert_eq!(texts(&comments, "author"), ["zed", "Test Person"]);
    assert_eq!(town.json(&["comments", "list", "hq-a"]), comments);
    assert_eq!(town.show("hq-a")["comment_count"], 2);
    let said = town.bd(["comments", "hq-a"]).ok();
    assert_says(&said.stdout, &["zed (just now): first\n", "Test Person"]);
    let event = town.events().pop().unwrap();
    assert_eq!(event["event_type"], "commented");
}

#[test]
fn a_comment_can_come_from_a_file_or_standard_input() {
    let town = town();
    town.bead("hq-a", &[]);
    town.write("text.md", "# Long\n\nstory");

    town.bd(["comments", "add", "hq-a", "-f", "text.md"]).ok();
    let add = town.start_bd(&["comments", "add", "hq-a", "-f", "-"]);
    add.stdin("piped").run().ok();

    let comments = town.json(&["comments", "hq-a"]);
    assert_eq!(texts(&comments, "text"), ["# Long\n\nstory", "piped"]);
}

#[test]
fn a_comment_needs_words_and_a_bead() {
    let town = town();
    town.bead("hq-a", &[]);
    town.write("nul.txt", "a\0b");

    for text in ["", "  \n"] {
        let error = refusal(&town.bd(["comments", "add", "hq-a", text]));
        assert_says(&error, &["cannot be empty"]);
    }
    let error = refusal(&town.bd(["comments", "add", "hq-a", "-f", "nul.txt"]));
    assert_says(&error, &["NUL"]);
    let error = refusal(&town.bd(["comments", "add", "hq-a", "x", "-a", ""]));
    assert_says(&error, &["is not a valid author"]);
    refusal(&town.bd(["comments", "add", "hq-none", "x"]));
    refusal(&town.bd(["comments", "hq-none"]));
    assert_says(&refusal(&town.bd(["comments"])), &["which bead?"]);
    assert_eq!(town.json(&["comments", "hq-a"]), json!([]));
    let said = town.bd(["comments", "hq-a"]).ok();
    assert_eq!(said.line(), "hq-a has no comments");
}
