//! `bd delete`: shown first, done with `--force`.

use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, refusal, texts, town};

#[test]
fn without_force_it_only_says_what_would_go() {
    let town = town();
    town.bead("hq-a", &["-l", "x,y"]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bd(["comments", "add", "hq-a", "hello"]).ok();
    let before = (town.export(), town.last_event());

    let said = town.bd(["delete", "hq-a"]).ok();
    let json = town.json(&["delete", "hq-a"]);
    town.bd(["delete", "hq-a", "--dry-run"]).ok();

    assert_says(
        &said.stdout,
        &["Would delete hq-a", "1 dependency, 2 labels and 1 comment", "hq-b", "--force"],
    );
    assert_eq!(
        json,
        json!({
            "would_delete": ["hq-a"], "deleted_count": 0, "dependencies_removed": 1,
            "labels_removed": 2, "comments_removed": 1, "orphaned": ["hq-b"],
            "schema_version": 1,
        })
    );
    assert_eq!((town.export(), town.last_event()), before);
}

#[test]
fn a_forced_delete_removes_the_bead_and_its_edges() {
    let town = town();
    town.bead("hq-a", &["-l", "x"]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    let deleted = town.json(&["delete", "hq-a", "--force"]);

    assert_eq!(deleted["deleted"], "hq-a");
    assert_eq!(deleted["deleted_count"], 1);
    refusal(&town.bd(["show", "hq-a"]));
    assert_eq!(town.show("hq-b").get("dependencies"), None);
    assert_eq!(town.json(&["label", "list-all"]), json!([]));
    assert_eq!(town.export().lines().count(), 1);
    let kinds = texts(&json!(town.events()), "event_type");
    assert_eq!(kinds.last().map(String::as_str), Some("unblocked"), "{kinds:?}");
    assert!(kinds.contains(&"deleted".to_owned()), "{kinds:?}");
}

#[test]
fn all_of_them_or_none() {
    let town = town();
    town.bead("hq-a", &[]);

    let error = refusal(&town.bd(["delete", "hq-a", "hq-none", "--force"]));
    assert_says(&error, &["no issue found matching \"hq-none\""]);
    assert_eq!(town.ids(&["list"]), ["hq-a"]);
    let error = json_refusal(&town.bd(["delete", "hq-none", "--json"]));
    assert_says(&error, &["hq-none"]);
}

#[test]
fn a_cascade_takes_what_depends_on_it() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &["--deps", "hq-b"]);
    town.bead("hq-d", &[]);
    town.create("Part of c", &["--parent", "hq-c"]);

    let would = town.json(&["delete", "hq-b", "--cascade"]);
    assert_eq!(would["would_delete"], json!(["hq-b", "hq-c", "hq-c.1"]));
    town.bd(["delete", "hq-b", "--cascade", "--force"]).ok();

    assert_eq!(town.ids(&["list", "--sort", "id"]), ["hq-a", "hq-d"]);
}

#[test]
fn ids_can_come_from_a_file_or_standard_input() {
    let town = town();
    for id in ["hq-a", "hq-b", "hq-c"] {
        town.bead(id, &[]);
    }
    town.write("ids.txt", "# these go\nhq-a\n\n");

    town.bd(["delete", "--from-file", "ids.txt", "--force"]).ok();
    let delete = town.start_bd(&["delete", "--from-file", "-", "--force"]);
    delete.stdin("  hq-b\n").run().ok();

    assert_eq!(town.ids(&["list"]), ["hq-c"]);
}

#[test]
fn a_delete_without_an_id_is_refused() {
    let town = town();
    let error = refusal(&town.bd(["delete"]));
    assert_says(&error, &["which bead?", "bd delete"]);
    town.bd(["delete", "hq-a", "--force", "--dry-run"]).fails(1);
}

#[test]
fn the_history_of_a_deleted_bead_can_still_be_read() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bd(["delete", "hq-a", "--force"]).ok();

    let history = town.json(&["activity", "--bead", "hq-a"]);

    assert_eq!(texts(&history, "event_type"), ["created", "deleted"]);
    let error = refusal(&town.bd(["activity", "--bead", "hq-never"]));
    assert_says(&error, &["no issue found matching \"hq-never\""]);
}
