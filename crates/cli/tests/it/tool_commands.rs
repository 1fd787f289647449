//! Commands that the tools and agents around beads call, and the lines that scripts cut ids from.

use serde_json::json;

use crate::support::{Steps as _, assert_says, refusal, town};

#[test]
fn scripts_find_ids_in_the_first_line_of_a_success() {
    let town = town();
    let created = town.bd(["create", "Boil water", "--id", "hq-a"]).ok();
    assert_eq!(created.line(), "✓ Created issue: hq-a — Boil water");
    town.bead("hq-b", &[]);
    let said = town.bd(["dep", "add", "hq-b", "hq-a"]).ok();
    assert_eq!(said.line(), "✓ Added dependency: hq-b depends on hq-a (blocks)");
    assert_eq!(town.bd(["comment", "hq-a", "hot"]).ok().line(), "✓ Comment added to hq-a");
    assert_eq!(town.bd(["label", "add", "hq-a", "soon"]).ok().line(), "✓ Added label soon to hq-a");
    assert!(town.bd(["stats"]).ok().stdout.starts_with("Total Issues:"));
    let export = town.export();
    let said = town.start_bd(&["import", "-"]).stdin(export.as_str()).run().ok();
    assert!(said.stdout.starts_with("✓ Imported 0 issues"), "{}", said.stdout);

    assert_says(&refusal(&town.bd(["create", " "])), &["cannot be empty"]);
    assert_says(&refusal(&town.bd(["label", "add", "hq-a", ""])), &["cannot be empty"]);
    assert_says(&refusal(&town.bd(["comment", "hq-a", " "])), &["cannot be empty"]);
    assert_says(&refusal(&town.bd(["list", "--status", "opne"])), &["invalid status"]);
    assert_says(&refusal(&town.bd(["list", "--status", "OPEN!"])), &["invalid status"]);
}

#[test]
fn short_commands_do_what_the_long_ones_do() {
    let town = town();
    let quick = town.bd(["q", "Boil water", "-p", "1", "-p", "3"]).ok();
    let id = quick.line().to_owned();
    assert_eq!(town.json(&["view", &id])[0]["priority"], 3);
    town.bd(["new", "Another", "--id", "hq-b", "--json=false"]).ok();
    town.bd(["note", &id, "first", "words"]).ok();
    town.start_bd(&["note", &id, "--stdin"]).stdin("second\n").run().ok();
    town.bd(["tag", &id, "soon", "hot"]).ok();
    town.bd(["assign", &id, "ann"]).ok();
    town.bd(["priority", &id, "P0"]).ok();
    town.start_bd(&["comment", &id, "--stdin", "--author", "bob"]).stdin("from a pipe").run().ok();
    let shown = town.show(&id);
    assert_eq!(shown["notes"], "first words\nsecond");
    assert_eq!(shown["labels"], json!(["hot", "soon"]));
    assert_eq!((&shown["assignee"], &shown["priority"]), (&json!("ann"), &json!(0)));
    assert_eq!(town.json(&["comments", &id])[0]["author"], "bob");
    town.bd(["done", &id, "it", "boils"]).ok();
    assert_eq!(town.show(&id)["close_reason"], "it boils");

    assert_eq!(town.json(&["ping"])["status"], "ok");
    assert_eq!(town.json(&["types"])["core_types"][0]["name"], "task");
    assert_eq!(town.json(&["statuses"])["built_in_statuses"][0]["name"], "open");
    assert_says(&town.bd(["completion", "bash"]).ok().stdout, &["_bd()"]);
    assert_says(&town.bd(["help", "dep", "add"]).ok().stdout, &["DEPENDS-ON"]);
    assert_says(&town.bd(["help", "--all"]).ok().stdout, &["bd dep add", "bd epic close-eligible"]);
    assert_says(&town.bd(["onboard"]).ok().stdout, &["bd prime", "bd ready"]);
    assert_says(&town.bd(["quickstart"]).ok().stdout, &["bd init"]);
}

#[test]
fn memories_are_kept_shown_and_forgotten() {
    let town = town();
    let kept = town.json(&["remember", "Run the tests with --locked"]);
    assert_eq!(kept["key"], "run-the-tests-with-locked");
    assert_eq!(kept["action"], "remembered");
    town.bd(["remember", "Tokens, not sessions", "--key", "auth"]).ok();
    assert_eq!(town.json(&["remember", "Tokens only", "--key", "auth"])["action"], "updated");
    let all = town.json(&["memories"]);
    assert_eq!(all["auth"], "Tokens only");
    assert_eq!(town.json(&["memories", "LOCKED"]).as_object().map(serde_json::Map::len), Some(2));
    assert_eq!(town.bd(["recall", "auth"]).ok().line(), "Tokens only");
    assert_says(
        &town.export(),
        &["{\"_type\":\"memory\",\"key\":\"auth\",\"value\":\"Tokens only\"}"],
    );
    assert_says(&town.bd(["forget", "auth"]).ok().stdout, &["Forgot [auth]"]);
    assert_says(&refusal(&town.bd(["recall", "auth"])), &["no memory \"auth\""]);
    assert_says(&refusal(&town.bd(["forget", "auth"])), &["bd memories"]);
    assert_says(&refusal(&town.bd(["remember", " "])), &["cannot be empty"]);
}

#[test]
fn epics_close_when_their_parts_are_closed() {
    let town = town();
    town.gt(["config", "set", "epics.auto_close", "false"]).ok();
    town.bead("hq-e", &["--type", "epic"]);
    town.bead("hq-f", &["--type", "epic"]);
    let part = town.create("Part", &["--parent", "hq-e"]);
    let status = town.json(&["epic", "status"]);
    assert_eq!(status.as_array().map(Vec::len), Some(2));
    assert_eq!(town.json(&["epic", "status", "--eligible-only"]), json!([]));
    town.bd(["close", &part]).ok();
    let status = &town.json(&["epic", "status", "--eligible-only"])[0];
    assert_eq!(status["epic"]["id"], "hq-e");
    assert_eq!((&status["total_children"], &status["closed_children"]), (&json!(1), &json!(1)));
    assert_eq!(town.json(&["epic", "close-eligible", "--dry-run"])[0]["eligible_for_close"], true);
    let closed = town.json(&["epic", "close-eligible"]);
    assert_eq!((&closed["closed"], &closed["count"]), (&json!(["hq-e"]), &json!(1)));
    assert_eq!(town.show("hq-e")["close_reason"], "All children completed");
    assert_says(&town.bd(["epic", "close-eligible"]).ok().stdout, &["No epics eligible"]);
}

#[test]
fn beads_are_related_superseded_and_merged() {
    let town = town();
    for id in ["hq-a", "hq-b", "hq-c"] {
        town.bead(id, &[]);
    }
    town.bd(["dep", "relate", "hq-a", "hq-b"]).ok();
    assert_eq!(town.ids(&["dep", "list", "hq-b"]), ["hq-a"]);
    assert_eq!(town.ready(), ["hq-a", "hq-b", "hq-c"]);
    assert_eq!(town.json(&["dep", "unrelate", "hq-a", "hq-b"])["related"], false);
    assert_eq!(town.ids(&["dep", "list", "hq-b"]), [""; 0]);
    town.bd(["link", "hq-a", "hq-b"]).ok();
    town.bd(["dep", "rm", "hq-a", "hq-b"]).ok();

    let marked = town.json(&["duplicate", "hq-a", "--of", "hq-b"]);
    assert_eq!(marked["canonical"], "hq-b");
    let closed = town.show("hq-a");
    assert_eq!(
        (&closed["status"], &closed["close_reason"]),
        (&json!("closed"), &json!("Duplicate of hq-b"))
    );
    assert_eq!(closed["dependencies"][0]["dependency_type"], "duplicates");
    assert_eq!(town.json(&["supersede", "hq-b", "--with", "hq-c"])["replacement"], "hq-c");
    assert_says(&refusal(&town.bd(["duplicate", "hq-c", "--of", "hq-c"])), &["itself"]);

    assert_says(&town.bd(["duplicates"]).ok().stdout, &["No duplicates"]);
    for id in ["hq-m", "hq-n"] {
        town.bd(["create", "The same", "--id", id]).ok();
    }
    let part = town.create("Part", &["--parent", "hq-m"]);
    let groups = town.json(&["duplicates"]);
    assert_eq!(groups["groups"][0]["suggested_target"], "hq-m");
    assert_eq!(groups["groups"][0]["suggested_sources"], json!(["hq-n"]));
    town.bd(["duplicates", "--auto-merge"]).ok();
    assert_eq!(town.show("hq-n")["status"], "closed");
    town.bd(["label", "propagate", "hq-m", "soon"]).ok();
    assert_eq!(town.show(&part)["labels"], json!(["soon"]));
}
