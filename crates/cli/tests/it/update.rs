//! `bd update`: each bead changes whole or not at all.

use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, refusal, town};

#[test]
fn every_field_can_be_changed() {
    let town = town();
    town.bead("hq-a", &[]);

    let updated = town.json(&[
        "update",
        "hq-a",
        "--title",
        "New",
        "-p",
        "0",
        "-t",
        "bug",
        "-a",
        "zed",
        "-d",
        "what",
        "--design",
        "how",
        "--acceptance",
        "when",
        "--notes",
        "more",
        "--external-ref",
        "gh-1",
        "--spec-id",
        "s-1",
        "-e",
        "5",
        "--due",
        "2031-01-01",
        "--status",
        "blocked",
    ]);

    for (field, value) in [
        ("title", json!("New")),
        ("priority", json!(0)),
        ("issue_type", json!("bug")),
        ("assignee", json!("zed")),
        ("description", json!("what")),
        ("design", json!("how")),
        ("acceptance_criteria", json!("when")),
        ("notes", json!("more")),
        ("external_ref", json!("gh-1")),
        ("spec_id", json!("s-1")),
        ("estimated_minutes", json!(5)),
        ("due_at", json!("2031-01-01T00:00:00Z")),
        ("status", json!("blocked")),
    ] {
        assert_eq!(updated[0][field], value, "{field}");
        assert_eq!(town.show("hq-a")[field], value, "{field}");
    }
    assert_ne!(updated[0]["updated_at"], updated[0]["created_at"]);
}

#[test]
fn an_empty_value_clears_a_field() {
    let town = town();
    town.bead(
        "hq-a",
        &[
            "-a",
            "zed",
            "--external-ref",
            "gh-1",
            "--spec-id",
            "s-1",
            "--due",
            "2031-01-01",
            "-d",
            "what",
            "--notes",
            "more",
        ],
    );

    town.bd([
        "update",
        "hq-a",
        "-a",
        "",
        "--external-ref",
        "",
        "--spec-id",
        "",
        "--due",
        "",
        "-d",
        "",
        "--notes",
        "",
    ])
    .ok();

    let bead = town.show("hq-a");
    for field in ["assignee", "external_ref", "spec_id", "due_at", "description", "notes"] {
        assert_eq!(bead.get(field), None, "{field}");
    }
}

#[test]
fn notes_are_replaced_or_appended_to() {
    let town = town();
    town.bead("hq-a", &[]);

    town.bd(["update", "hq-a", "--append-notes", "one"]).ok();
    town.bd(["update", "hq-a", "--append-notes", "two"]).ok();
    assert_eq!(town.show("hq-a")["notes"], "one\ntwo");

    town.bd(["update", "hq-a", "--notes", "three"]).ok();
    assert_eq!(town.show("hq-a")["notes"], "three");
}

#[test]
fn the_description_comes_from_a_file_or_standard_input() {
    let town = town();
    town.bead("hq-a", &[]);
    town.write("body.txt", "From a file");

    town.bd(["update", "hq-a", "--body-file", "body.txt"]).ok();
    assert_eq!(town.show("hq-a")["description"], "From a file");
    let update = town.start_bd(&["update", "hq-a", "--stdin"]);
    update.stdin("From input").run().ok();
    assert_eq!(town.show("hq-a")["description"], "From input");
}

#[test]
fn labels_are_added_removed_or_replaced() {
    let town = town();
    town.bead("hq-a", &["-l", "a,b"]);
    let labels = || town.show("hq-a")["labels"].clone();

    town.bd(["update", "hq-a", "--add-label", "c,d", "--remove-label", "a"]).ok();
    assert_eq!(labels(), json!(["b", "c", "d"]));
    town.bd(["update", "hq-a", "--set-labels", "x", "--set-labels", "b"]).ok();
    assert_eq!(labels(), json!(["b", "x"]));
    town.bd(["update", "hq-a", "--set-labels", ""]).ok();
    assert_eq!(labels(), json!(null));
}

#[test]
fn metadata_fields_are_typed() {
    let town = town();
    town.bead("hq-a", &["--metadata", r#"{"old": 1, "gone": 2}"#]);

    let update = town.start_bd(&["update", "hq-a", "--unset-metadata", "gone"]);
    let fields = [
        "n=5",
        "f=-1.5",
        "big=123456789012345678901234567890",
        "t=true",
        "nul=null",
        "s=5x",
        "empty=",
        "eq=a=b",
        "quoted=\"x\"",
        "object={\"a\":1}",
    ];
    let update =
        fields.into_iter().fold(update, |update, field| update.args(["--set-metadata", field]));
    update.run().ok();

    assert_says(
        &town.export(),
        &[concat!(
            r#""metadata":{"old":1,"n":5,"f":-1.5,"big":123456789012345678901234567890,"#,
            r#""t":true,"nul":null,"s":"5x","empty":"","eq":"a=b","quoted":"\"x\"","#,
            r#""object":"{\"a\":1}"}"#
        )],
    );
}

#[test]
fn a_metadata_object_is_merged_by_its_top_level_keys() {
    let town = town();
    town.bead("hq-a", &["--metadata", r#"{"a": 1, "b": {"x": 1}}"#]);

    town.bd(["update", "hq-a", "--metadata", r#"{"b": {"y": 2}, "c": [3]}"#]).ok();

    assert_eq!(town.show("hq-a")["metadata"], json!({"a": 1, "b": {"y": 2}, "c": [3]}));
}

#[test]
fn metadata_without_fields_is_gone() {
    let town = town();
    town.bead("hq-a", &["--metadata", r#"{"a": 1}"#]);

    town.bd(["update", "hq-a", "--unset-metadata", "a"]).ok();

    assert_eq!(town.show("hq-a").get("metadata"), None);
}

#[test]
fn metadata_that_is_no_object_keeps_its_shape() {
    let town = town();
    town.bead("hq-a", &["--metadata", "[1]"]);

    let error = refusal(&town.bd(["update", "hq-a", "--set-metadata", "a=1"]));
    assert_says(&error, &["hq-a", "not a JSON object"]);
    let error = refusal(&town.bd(["update", "hq-a", "--metadata", "[2]"]));
    assert_says(&error, &["needs a JSON object"]);
    assert_eq!(town.show("hq-a")["metadata"], json!([1]));
}

#[test]
fn a_date_to_come_defers_and_none_opens_again() {
    let town = town();
    town.bead("hq-a", &[]);

    town.bd(["update", "hq-a", "--defer", "+1d"]).ok();
    assert_eq!(town.show("hq-a")["status"], "deferred");
    assert_eq!(town.ready(), [""; 0]);

    town.bd(["update", "hq-a", "--defer", ""]).ok();
    assert_eq!(town.show("hq-a")["status"], "open");
    assert_eq!(town.ready(), ["hq-a"]);

    town.bd(["update", "hq-a", "--defer", "2001-01-01"]).ok();
    assert_eq!(town.show("hq-a")["status"], "open", "the past defers nothing");
}

#[test]
fn the_parent_can_be_changed_and_removed() {
    let town = town();
    for id in ["hq-a", "hq-p", "hq-q"] {
        town.bead(id, &[]);
    }
    let parent = || town.show("hq-a")["parent"].clone();

    town.bd(["update", "hq-a", "--parent", "hq-p"]).ok();
    assert_eq!(parent(), "hq-p");
    town.bd(["update", "hq-a", "--parent", "hq-q"]).ok();
    assert_eq!(parent(), "hq-q");
    town.bd(["update", "hq-a", "--parent", ""]).ok();
    assert_eq!(parent(), json!(null));
}

#[test]
fn a_bead_is_no_part_of_itself() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    town.bd(["update", "hq-b", "--parent", "hq-a"]).ok();

    let error = refusal(&town.bd(["update", "hq-a", "--parent", "hq-a"]));
    assert_says(&error, &["hq-a", "itself"]);
    let error = refusal(&town.bd(["update", "hq-a", "--parent", "hq-b"]));
    assert_says(&error, &["cycle", "hq-a → hq-b → hq-a"]);
}

#[test]
fn a_bead_is_ephemeral_or_unrecorded_but_not_both() {
    let town = town();
    town.bead("hq-a", &[]);

    town.bd(["update", "hq-a", "--ephemeral"]).ok();
    assert_eq!(town.show("hq-a")["ephemeral"], true);
    let error = refusal(&town.bd(["update", "hq-a", "--no-history"]));
    assert_says(&error, &["either ephemeral or"]);
    town.bd(["update", "hq-a", "--persistent", "--no-history"]).ok();
    let bead = town.show("hq-a");
    assert_eq!(bead.get("ephemeral"), None);
    assert_eq!(bead["no_history"], true);
    town.bd(["update", "hq-a", "--history"]).ok();
    assert_eq!(town.show("hq-a").get("no_history"), None);
}

#[test]
fn closing_and_opening_by_status_sets_and_clears_what_belongs_to_it() {
    let town = town();
    town.bead("hq-a", &[]);

    let closed = town.json(&["update", "hq-a", "--status", "closed"]);
    assert!(closed[0]["closed_at"].is_string());
    assert_eq!(closed[0].get("close_reason"), None);

    let error = refusal(&town.bd(["update", "hq-a", "--status", "in_progress"]));
    assert_says(&error, &["hq-a", "closed", "bd reopen"]);

    let open = town.json(&["update", "hq-a", "--status", "open"]);
    assert_eq!(open[0]["status"], "open");
    assert_eq!(open[0].get("closed_at"), None);
}

#[test]
fn the_first_start_is_remembered() {
    let town = town();
    town.bead("hq-a", &[]);
    let status = |status: &str| town.json(&["update", "hq-a", "--status", status])[0].clone();

    let started = status("in_progress")["started_at"].clone();
    assert!(started.is_string());
    status("open");
    assert_eq!(status("in_progress")["started_at"], started);
}

#[test]
fn an_update_with_one_invalid_field_changes_nothing() {
    let town = town();
    town.bead("hq-a", &["-l", "old"]);
    town.bead("hq-b", &[]);
    town.bd(["update", "hq-b", "--parent", "hq-a"]).ok();
    let before = (town.show("hq-a"), town.last_event());

    for wrong in [
        ["--parent", "hq-none"],
        ["--parent", "hq-b"],
        ["--status", "nonsense"],
        ["--title", ""],
        ["--set-metadata", "novalue"],
        ["--add-label", "bad\nlabel"],
        ["--priority", "7"],
        ["--due", "someday"],
    ] {
        let update =
            ["update", "hq-a", "--add-label", "new", "--remove-label", "old", "-d", "changed"];
        refusal(&town.start_bd(&update).args(wrong).run());
        assert_eq!(town.show("hq-a"), before.0, "{wrong:?}");
    }
    assert_eq!(town.last_event(), before.1);
}

#[test]
fn each_bead_stands_and_falls_alone() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);

    let updated = town.bd(["update", "hq-a", "hq-none", "hq-b", "--title", "New", "--json"]).ok();

    assert_eq!(crate::support::texts(&updated.json(), "id"), ["hq-a", "hq-b"]);
    assert_eq!(updated.stderr, "Error: no issue found matching \"hq-none\"\n");
    assert_eq!(town.show("hq-b")["title"], "New");
}

#[test]
fn if_none_changes_the_command_fails_and_says_why() {
    let town = town();
    let error = refusal(&town.bd(["update", "hq-none", "--title", "New"]));
    assert_eq!(error, "no issue found matching \"hq-none\"");
    let error = json_refusal(&town.bd(["update", "hq-none", "--title", "New", "--json"]));
    assert_eq!(error, "no issue found matching \"hq-none\"");
}

#[test]
fn nothing_to_change_is_fine() {
    let town = town();
    town.bead("hq-a", &["-l", "x", "-p", "1"]);
    let before = (town.show("hq-a"), town.last_event());

    let said = town.bd(["update", "hq-a"]).ok();
    assert_eq!(said.line(), "No updates specified");
    assert_eq!(town.json(&["update", "hq-a"]), json!([]));
    town.bd(["update", "hq-a", "--priority", "1", "--add-label", "x", "--status", "open"]).ok();

    assert_eq!((town.show("hq-a"), town.last_event()), before);
}

#[test]
fn people_are_told_what_was_updated() {
    let town = town();
    town.bead("hq-a", &[]);
    let said = town.bd(["update", "hq-a", "--title", "New"]).ok();
    assert_eq!(said.line(), "✓ Updated hq-a");
}
