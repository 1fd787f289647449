//! `bd dep`: dependencies between beads.

use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, keys, refusal, texts, town};

#[test]
fn one_bead_is_made_to_depend_on_another() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    let updated = town.show("hq-b")["updated_at"].clone();

    let added = town.json(&["dep", "add", "hq-b", "hq-a"]);

    assert_eq!(
        added,
        json!({
            "status": "added", "issue_id": "hq-b", "depends_on_id": "hq-a", "type": "blocks",
            "schema_version": 1,
        })
    );
    assert_eq!(town.ready(), ["hq-a"]);
    assert_ne!(town.show("hq-b")["updated_at"], updated, "it changed");
    let event = town.events().pop().unwrap();
    assert_eq!(event["event_type"], "dependency_added");
    assert_eq!(event["payload"]["depends_on_id"], "hq-a");
}

#[test]
fn there_are_several_ways_to_say_it() {
    let town = town();
    town.bead("hq-a", &[]);
    for (id, command) in [
        ("hq-b", &["dep", "add", "hq-b", "--blocked-by", "hq-a"]),
        ("hq-c", &["dep", "add", "hq-c", "--depends-on", "hq-a"]),
    ] {
        town.bead(id, &[]);
        town.bd(command).ok();
    }
    town.bead("hq-d", &[]);
    let blocks = town.json(&["dep", "hq-a", "--blocks", "hq-d"]);

    assert_eq!(
        blocks,
        json!({
            "status": "added", "blocker_id": "hq-a", "blocked_id": "hq-d", "type": "blocks",
            "schema_version": 1,
        })
    );
    let mut blocked = town.ids(&["blocked"]);
    blocked.sort();
    assert_eq!(blocked, ["hq-b", "hq-c", "hq-d"]);
}

#[test]
fn adding_it_again_is_fine() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    let before = town.last_event();

    let said = town.bd(["dep", "add", "hq-b", "hq-a"]).ok();

    assert_says(&said.stdout, &["already depends on"]);
    assert_eq!(town.last_event(), before);
}

#[test]
fn there_is_one_edge_between_two_beads_and_its_type_is_changed_on_purpose() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    let error = refusal(&town.bd(["dep", "add", "hq-b", "hq-a", "-t", "related"]));
    assert_says(&error, &["already depends on hq-a as blocks", "--retype"]);
    assert_eq!(town.ready(), ["hq-a"]);

    town.bd(["dep", "add", "hq-b", "hq-a", "-t", "related", "--retype"]).ok();
    assert_eq!(town.ready(), ["hq-a", "hq-b"]);
    assert_eq!(town.show("hq-b")["dependencies"][0]["dependency_type"], "related");
    town.bd(["dep", "add", "hq-b", "hq-a", "--retype"]).ok();
    assert_eq!(town.ready(), ["hq-a"]);
}

#[test]
fn any_short_word_is_a_type() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);

    town.bd(["dep", "add", "hq-b", "hq-a", "-t", "inspired by"]).ok();

    let listed = town.json(&["dep", "list", "hq-b"]);
    assert_eq!(listed[0]["dependency_type"], "inspired by");
    for kind in ["", &"x".repeat(51), "a\nb"] {
        let error = refusal(&town.bd(["dep", "add", "hq-b", "hq-a", "-t", kind]));
        assert_says(&error, &["is not a valid dependency type"]);
    }
}

#[test]
fn a_circle_is_refused_and_shown() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &["--deps", "hq-b"]);
    let before = town.last_event();

    for kind in ["blocks", "conditional-blocks", "waits-for"] {
        let error = refusal(&town.bd(["dep", "add", "hq-a", "hq-b", "-t", kind]));
        assert_says(&error, &["cycle", "hq-a → hq-b → hq-a"]);
        let error = refusal(&town.bd(["dep", "add", "hq-a", "hq-c", "-t", kind]));
        assert_says(&error, &["cycle", "hq-a → hq-c → hq-b → hq-a"]);
    }
    let error = json_refusal(&town.bd(["dep", "add", "hq-a", "hq-c", "--json"]));
    assert_says(&error, &["hq-a → hq-c → hq-b → hq-a"]);
    assert_eq!(town.last_event(), before);
    assert_eq!(town.json(&["dep", "cycles"]), json!([]));
    assert_eq!(town.bd(["dep", "cycles"]).ok().line(), "No cycles");
}

#[test]
fn a_circle_that_blocks_nothing_is_fine() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &[]);
    town.bd(["dep", "add", "hq-b", "hq-a", "-t", "related"]).ok();

    town.bd(["dep", "add", "hq-a", "hq-b", "-t", "related"]).ok();
}

#[test]
fn nothing_depends_on_itself() {
    let town = town();
    town.bead("hq-a", &[]);
    for kind in ["blocks", "related", "parent-child"] {
        let error = refusal(&town.bd(["dep", "add", "hq-a", "hq-a", "-t", kind]));
        assert_says(&error, &["hq-a cannot depend on itself"]);
    }
}

#[test]
fn epics_and_others_do_not_block_each_other() {
    let town = town();
    town.bead("hq-e", &["-t", "epic"]);
    town.bead("hq-f", &["-t", "epic"]);
    town.bead("hq-t", &[]);

    let error = refusal(&town.bd(["dep", "add", "hq-t", "hq-e"]));
    assert_says(&error, &["tasks can only block other tasks, not epics", "waits-for"]);
    let error = refusal(&town.bd(["dep", "add", "hq-e", "hq-t"]));
    assert_says(&error, &["epics can only block other epics", "waits-for"]);
    town.bd(["dep", "add", "hq-e", "hq-f"]).ok();
    town.bd(["dep", "add", "hq-t", "hq-e", "-t", "waits-for"]).ok();
}

#[test]
fn a_part_does_not_wait_for_what_it_is_a_part_of() {
    let town = town();
    town.bead("hq-p", &[]);
    town.create("Part", &["--parent", "hq-p"]);
    town.create("Part of it", &["--parent", "hq-p.1"]);

    let error = refusal(&town.bd(["dep", "add", "hq-p.1.1", "hq-p"]));
    assert_says(&error, &["hq-p.1.1 is a part of hq-p"]);

    town.bead("hq-x", &["--deps", "hq-p"]);
    let error = refusal(&town.bd(["update", "hq-x", "--parent", "hq-p.1"]));
    assert_says(&error, &["hq-x waits for hq-p"]);
}

#[test]
fn unknown_ids_are_refused_unless_they_are_of_another_place() {
    let town = town();
    town.bead("hq-a", &[]);
    for target in ["hq-none", "nonsense"] {
        let error = refusal(&town.bd(["dep", "add", "hq-a", target]));
        assert_eq!(error, format!("no issue found matching \"{target}\""));
    }
    refusal(&town.bd(["dep", "add", "hq-none", "hq-a"]));

    for target in ["other-1", "external:project:capability"] {
        town.bd(["dep", "add", "hq-a", target]).ok();
    }
    let said = town.bd(["dep", "list", "hq-a"]).ok();
    assert_says(
        &said.stdout,
        &["other-1 (blocks) not here", "external:project:capability (blocks)"],
    );
    assert_eq!(town.ready(), ["hq-a"]);
}

#[test]
fn an_edge_is_removed_and_removing_nothing_is_fine() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);

    let other = town.bd(["dep", "remove", "hq-b", "hq-a", "--type", "related"]).ok();
    assert_says(&other.stdout, &["nothing to do"]);
    assert_eq!(town.ready(), ["hq-a"]);

    let removed = town.json(&["dep", "remove", "hq-b", "hq-a"]);
    assert_eq!(
        removed,
        json!({
            "status": "removed", "issue_id": "hq-b", "depends_on_id": "hq-a", "schema_version": 1,
        })
    );
    assert_eq!(town.ready(), ["hq-a", "hq-b"]);
    let before = town.last_event();
    assert_eq!(town.json(&["dep", "remove", "hq-b", "hq-a"]), removed);
    assert_eq!(town.last_event(), before);
}

#[test]
fn edges_to_other_places_can_be_removed_too() {
    let town = town();
    town.import(
        r#"{"id":"hq-a","title":"a","dependencies":[
            {"depends_on_id":"external:project:capability","type":"blocks"},
            {"depends_on_id":"other-1","type":"blocks"}]}"#
            .replace('\n', " ")
            .as_str(),
    );

    for target in ["external:project:capability", "other-1"] {
        town.bd(["dep", "remove", "hq-a", target]).ok();
    }

    assert_eq!(town.show("hq-a").get("dependencies"), None);
}

#[test]
fn neighbours_are_listed_in_both_directions() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-x", &[]);
    town.bead("hq-b", &["--deps", "hq-a,tracks:hq-x"]);
    town.bead("hq-c", &["--deps", "hq-b"]);

    let down = town.json(&["dep", "list", "hq-b"]);
    assert_eq!(texts(&down, "id"), ["hq-a", "hq-x"]);
    assert_eq!(texts(&down, "dependency_type"), ["blocks", "tracks"]);
    assert_eq!(down[0]["title"], "hq-a");
    assert_eq!(town.ids(&["dep", "list", "hq-b", "-t", "tracks"]), ["hq-x"]);
    assert_eq!(town.ids(&["dep", "list", "hq-b", "--direction=up"]), ["hq-c"]);
    let both = town.ids(&["dep", "list", "hq-b", "--direction", "both"]);
    assert_eq!(both, ["hq-a", "hq-x", "hq-c"]);
    assert_eq!(town.json(&["dep", "list", "hq-a"]), json!([]));
    let said = town.bd(["dep", "list", "hq-a"]).ok();
    assert_eq!(said.line(), "hq-a depends on nothing");
}

#[test]
fn several_beads_are_listed_as_edges() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &["--deps", "hq-b,other-1"]);

    let listed = town.bd(["dep", "list", "hq-b", "hq-c", "hq-none", "--json"]).ok();

    let edges = listed.json();
    assert_eq!(texts(&edges, "depends_on_id"), ["hq-a", "hq-b", "other-1"]);
    assert_eq!(keys(&edges[0]), ["created_at", "created_by", "depends_on_id", "issue_id", "type"]);
    assert_says(&listed.stderr, &["warning: no issue found matching \"hq-none\""]);
    refusal(&town.bd(["dep", "list", "hq-none"]));
}

#[test]
fn a_tree_shows_everything_below_once() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &["--deps", "hq-a"]);
    town.bead("hq-d", &["--deps", "hq-b,hq-c,relates-to:hq-a"]);

    let tree = town.json(&["dep", "tree", "hq-d"]);

    assert_eq!(texts(&tree, "id"), ["hq-d", "hq-b", "hq-a", "hq-c", "hq-a"]);
    let depths: Vec<_> = tree.as_array().unwrap().iter().map(|node| &node["depth"]).collect();
    assert_eq!(depths, [0, 1, 2, 1, 2]);
    assert_eq!(texts(&tree, "parent_id"), ["", "hq-d", "hq-b", "hq-d", "hq-c"]);
    assert_eq!(tree[0].get("edge_from_parent"), None);
    assert_eq!(tree[1]["edge_from_parent"], "blocks");
    let said = town.bd(["dep", "tree", "hq-d"]).ok();
    assert_says(&said.stdout, &["hq-d open · hq-d\n  hq-b (blocks) open · hq-b\n    hq-a"]);
}

#[test]
fn a_tree_can_be_cut_turned_and_drawn() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-c", &["--deps", "hq-b"]);

    let cut = town.json(&["dep", "tree", "hq-c", "-d", "1"]);
    assert_eq!(texts(&cut, "id"), ["hq-c", "hq-b"]);
    assert_eq!(cut[1]["truncated"], true);
    assert_eq!(town.ids(&["dep", "tree", "hq-a", "--direction", "up"]), ["hq-a", "hq-b", "hq-c"]);
    assert_eq!(town.ids(&["dep", "tree", "hq-b", "--direction", "both"]), ["hq-b", "hq-a", "hq-c"]);
    town.bd(["close", "hq-a"]).ok();
    assert_eq!(town.ids(&["dep", "tree", "hq-c", "--status", "open"]), ["hq-c", "hq-b"]);
    let drawn = town.bd(["dep", "tree", "hq-c", "--format", "mermaid"]).ok();
    assert_says(
        &drawn.stdout,
        &["flowchart TD\n", "hq_c[\"hq-c: hq-c\"]", "hq_c -->|blocks| hq_b"],
    );
}

#[test]
fn missing_arguments_are_named() {
    let town = town();
    town.bead("hq-a", &[]);
    assert_says(&refusal(&town.bd(["dep"])), &["bd dep add|remove|list|tree|cycles"]);
    assert_says(&refusal(&town.bd(["dep", "add", "hq-a"])), &["on which bead?"]);
    town.bd(["dep", "add"]).fails(1);
}

#[test]
fn beads_that_would_wait_for_each_other_through_children_are_refused() {
    let town = town();
    for id in ["hq-a", "hq-b", "hq-c", "hq-x", "hq-new"] {
        town.bead(id, &[]);
    }
    let epic = ["--type", "epic"];
    town.bead("hq-epic", &epic);
    town.bead("hq-deep", &epic);
    for (child, parent) in [("hq-a1", "hq-a"), ("hq-b1", "hq-b"), ("hq-deep1", "hq-deep")] {
        town.bead(child, &[]);
        town.bd(["dep", "add", child, parent, "--type", "parent-child"]).ok();
    }
    town.bd(["dep", "add", "hq-deep", "hq-epic", "--type", "parent-child"]).ok();
    let waits = |issue: &str, target: &str| {
        town.command(town.bd_path())
            .args(["dep", "add", issue, target, "--type", "waits-for"])
            .run()
    };

    waits("hq-a1", "hq-b").ok();
    let error = refusal(&waits("hq-b1", "hq-a"));
    assert_says(&error, &["cycle", "hq-b1 → hq-a1 → hq-b1"]);
    // A plain edge closes the circle as well,
    let error = refusal(&town.bd(["dep", "add", "hq-b1", "hq-a1"]));
    assert_says(&error, &["cycle", "hq-b1 → hq-a1 → hq-b1"]);
    // and so does a part of an epic at any depth,
    waits("hq-x", "hq-epic").ok();
    assert_says(
        &refusal(&town.bd(["dep", "add", "hq-deep1", "hq-x"])),
        &["cycle", "hq-x → hq-deep"],
    );
    // and a bead that becomes a part of what is waited for.
    town.bd(["dep", "add", "hq-new", "hq-a1"]).ok();
    let error = refusal(&town.bd(["dep", "add", "hq-new", "hq-b", "--type", "parent-child"]));
    assert_says(&error, &["hq-new cannot become a part of hq-b", "hq-new → hq-a1 → hq-new"]);

    // A child that is done is not waited for any more.
    town.bd(["close", "hq-a1", "--force"]).ok();
    waits("hq-b1", "hq-a").ok();
    town.bd(["dep", "add", "hq-new", "hq-b", "--type", "parent-child"]).ok();
    assert_says(&town.bd(["dep", "cycles"]).ok().stdout, &["No"]);
}
