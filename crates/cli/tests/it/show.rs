//! `bd show`: beads with everything about them.

use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, keys, printed_keys, refusal, town};

#[test]
fn a_bead_is_shown_as_an_array_of_one_in_the_order_of_the_record() {
    let town = town();
    town.bead("hq-a", &["-d", "what", "-l", "x", "-a", "ann", "-p", "1"]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    let shown = town.bd(["show", "hq-a", "--json"]).ok();

    assert_eq!(
        printed_keys(&shown.stdout, 4),
        [
            "id",
            "title",
            "description",
            "status",
            "priority",
            "issue_type",
            "assignee",
            "owner",
            "created_at",
            "created_by",
            "updated_at",
            "labels",
            "dependents",
            "dependency_count",
            "dependent_count",
            "comment_count",
        ]
    );
    let bead = &shown.json()[0];
    assert_eq!((&bead["dependency_count"], &bead["dependent_count"]), (&json!(0), &json!(1)));
}

#[test]
fn dependencies_are_whole_beads_with_the_type_of_the_edge() {
    let town = town();
    town.bead("hq-a", &["-d", "what"]);
    town.bead("hq-b", &["--deps", "hq-a,related:other-1"]);

    let bead = town.show("hq-b");

    let edges = bead["dependencies"].as_array().unwrap();
    assert_eq!(edges.len(), 2);
    assert_eq!(edges[0]["id"], "hq-a");
    assert_eq!(edges[0]["description"], "what");
    assert_eq!(edges[0]["dependency_type"], "blocks");
    assert_eq!(
        edges[1],
        json!({"id": "other-1", "dependency_type": "related"}),
        "of what is not here, only what is known"
    );
}

#[test]
fn all_edges_count_here_and_only_blocking_ones_in_lists() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-c", &[]);
    town.bead("hq-b", &["--deps", "hq-a,related:hq-c"]);

    assert_eq!(town.show("hq-b")["dependency_count"], 2);
    assert_eq!(town.show("hq-c")["dependent_count"], 1);
    let listed = town.json(&["list", "--sort", "id"]);
    let counts: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|bead| (&bead["dependency_count"], &bead["dependent_count"]))
        .collect();
    let (zero, one) = (&json!(0), &json!(1));
    assert_eq!(counts, [(zero, one), (one, zero), (zero, zero)]);
}

#[test]
fn dependents_and_comments_come_with_a_bead() {
    let town = town();
    town.bead("hq-e", &["-t", "epic"]);
    let part = town.create("Part", &["--parent", "hq-e", "-p", "1"]);
    town.bd(["comments", "add", "hq-e", "hello"]).ok();

    let bare = town.show(&part);
    assert_eq!((bare.get("dependents"), bare.get("comments")), (None, None));
    let bare = town.json(&["show", &part, "--include-dependents", "--include-comments"]);
    assert_eq!((&bare[0]["dependents"], &bare[0]["comments"]), (&json!([]), &json!([])));

    let full = town.json(&["show", "hq-e"]);
    assert_eq!(full[0]["comment_count"], 1);
    let dependent = &full[0]["dependents"][0];
    assert_eq!((&dependent["id"], &dependent["title"]), (&json!(part), &json!("Part")));
    assert_eq!(dependent["dependency_type"], "parent-child");
    assert_eq!(full[0]["epic_total_children"], 1);
    assert_eq!(full[0]["epic_closed_children"], 0);
    assert_eq!(full[0]["epic_closeable"], false);
    let comment = &full[0]["comments"][0];
    assert_eq!(keys(comment), ["author", "created_at", "id", "issue_id", "text"]);
    assert_eq!(comment["text"], "hello");

    town.bd(["close", &part]).ok();
    let full = town.json(&["show", "hq-e", "--include-dependents"]);
    assert_eq!(full[0]["epic_closeable"], true);
}

#[test]
fn several_beads_come_in_the_order_asked_for() {
    let town = town();
    for id in ["hq-a", "hq-b", "hq-c"] {
        town.bead(id, &[]);
    }
    assert_eq!(town.ids(&["show", "hq-c", "hq-a"]), ["hq-c", "hq-a"]);
    assert_eq!(town.ids(&["show", "--id", "hq-b"]), ["hq-b"]);
}

#[test]
fn missing_ones_are_told_and_the_others_shown() {
    let town = town();
    town.bead("hq-a", &[]);

    let shown = town.bd(["show", "hq-none", "hq-a", "nada", "--json"]).ok();

    assert_eq!(shown.json()[0]["id"], "hq-a");
    assert_eq!(shown.json().as_array().unwrap().len(), 1);
    assert_eq!(
        shown.stderr,
        "Error: no issue found matching \"hq-none\"\nError: no issue found matching \"nada\"\n"
    );
}

#[test]
fn if_none_is_found_the_command_fails() {
    let town = town();

    let error = refusal(&town.bd(["show", "nope"]));
    assert_eq!(error, "no issue found matching \"nope\"");

    let shown = town.bd(["show", "nope", "nada", "--json"]).fails(1);
    assert_eq!(
        shown.json(),
        json!({"error": "no issues found matching the provided IDs", "schema_version": 1})
    );
    let error = json_refusal(&town.bd(["show", "--json"]));
    assert_says(&error, &["which bead?"]);
}

#[test]
fn text_output_shows_every_field() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead(
        "hq-b",
        &[
            "-d",
            "At length",
            "--design",
            "Like this",
            "--acceptance",
            "It boils",
            "--notes",
            "Careful",
            "-a",
            "ann",
            "-l",
            "hot,wet",
            "--deps",
            "hq-a",
            "--due",
            "2031-01-01",
            "--metadata",
            r#"{"k":1}"#,
        ],
    );
    town.bd(["comments", "add", "hq-b", "Almost", "-a", "zed"]).ok();

    let shown = town.bd(["show", "hq-b"]).ok();

    assert_says(
        &shown.stdout,
        &[
            "hq-b  hq-b\n",
            "P2 · task · open · @ann",
            "by Test Person",
            "due 2031-01-01 00:00:00",
            "labels: hot, wet",
            "Description\nAt length",
            "Design\nLike this",
            "Acceptance criteria\nIt boils",
            "Notes\nCareful",
            "{\"k\":1}",
            "Depends on\n  hq-a (blocks) open · hq-a",
            "zed (just now): Almost",
        ],
    );
    let other = town.bd(["show", "hq-a", "hq-b", "--short"]).ok();
    assert_eq!(other.stdout.lines().count(), 2);
    assert_says(
        &town.bd(["show", "hq-a"]).ok().stdout,
        &["Needed by\n  hq-b (blocks) open · hq-b"],
    );
}
