//! Commands of the tools around beads that rename, check and mend: ids, prefixes, gates, swarms, texts and findings.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use gt_testkit::Sandbox;
use serde_json::json;

use crate::support::{Steps as _, assert_says, nowhere, refusal, town, town_with_rigs};

/// A repository with a store of its own, whose beads begin with `we`.
fn repository() -> Sandbox {
    let place = nowhere();
    let repo = place.in_dir(place.git_repository("repo"));
    repo.bd(["init", "--prefix", "we"]).ok();
    repo
}

#[test]
fn a_renamed_bead_takes_everything_along() {
    let repo = repository();
    repo.bead("we-a", &["--labels", "hot"]);
    repo.bead("we-b", &["--description", "see we-a, not we-a1", "--deps", "we-a"]);
    repo.bd(["create", "A part", "--parent", "we-a"]).ok();
    repo.bd(["comment", "we-a", "first"]).ok();
    repo.bead("we-c", &["--deps", "we-b"]);
    repo.bd(["dep", "add", "we-a", "we-c", "--type", "related"]).ok();

    let renamed = repo.json(&["rename", "we-a", "we-login"]);
    assert_eq!(renamed["new_id"], "we-login");
    assert_eq!(renamed["references_updated"], 1);
    let shown = repo.show("we-login");
    assert_eq!(shown["labels"], json!(["hot"]));
    assert_eq!(shown["comment_count"], 1);
    assert_eq!(shown["dependencies"][0]["id"], "we-c");
    assert_eq!(repo.show("we-a.1")["parent"], "we-login");
    assert_eq!(repo.show("we-b")["description"], "see we-login, not we-a1");
    assert_eq!(repo.json(&["blocked"])[1]["blocked_by"], json!(["we-login"]));
    // The old id is only a part of another one now.
    assert_eq!(repo.show("we-a")["id"], "we-a.1");

    for (arguments, said) in [
        (["rename", "we-b", "we-login"], "already exists"),
        (["rename", "we-b", "we-b"], "is its id already"),
        (["rename", "we-b", "xx-b"], "prefix of the rig"),
        (["rename", "we-b", ""], "may not be empty"),
        (["rename", "we-b", "a b"], "is not a bead id"),
        (["rename", "nope", "we-x"], "no issue found"),
    ] {
        assert_says(&refusal(&repo.bd(arguments)), &[said]);
    }
    assert_says(&repo.bd(["doctor", "--agent"]).ok().stdout, &["checks were run"]);
}

#[test]
fn a_prefix_is_renamed_for_all_beads_or_none() {
    let repo = repository();
    repo.bead("we-a", &[]);
    repo.bd(["create", "A part", "--parent", "we-a", "--description", "a part of we-a."]).ok();
    repo.bead("we-b", &["--deps", "we-a.1"]);
    let preview = repo.bd(["rename-prefix", "kw-", "--dry-run"]).ok();
    assert_says(&preview.stdout, &["Would rename 3 beads from we to kw", "we-a.1 to kw-a.1"]);
    assert_eq!(repo.show("we-a")["id"], "we-a");

    let renamed = repo.json(&["rename-prefix", "kw-"]);
    assert_eq!((&renamed["old_prefix"], &renamed["issues_count"]), (&json!("we"), &json!(3)));
    let part = repo.show("kw-a.1");
    assert_eq!(
        (&part["parent"], &part["description"]),
        (&json!("kw-a"), &json!("a part of kw-a."))
    );
    assert_eq!(repo.json(&["blocked"])[0]["blocked_by"], json!(["kw-a.1"]));
    assert!(repo.bd(["q", "New"]).ok().line().starts_with("kw-"));
    assert_eq!(repo.json(&["where"])["prefix"], "kw");
    let metadata = fs::read_to_string(repo.cwd().join(".beads/metadata.json")).unwrap();
    assert_says(&metadata, &["\"issue_prefix\":\"kw\""]);
    for (prefix, said) in
        [("kw", "is the prefix already"), ("hq", "is reserved"), ("", "is not a prefix")]
    {
        assert_says(&refusal(&repo.bd(["rename-prefix", prefix])), &[said]);
    }
}

#[test]
fn a_bead_with_work_keeps_its_id() {
    let town = town_with_rigs(&["web"]);
    town.bead("we-a", &[]);
    town.gt(["config", "set", "rig.web.command", "true {bead}"]).ok();
    town.gt(["scheduler", "pause"]).ok();
    town.gt(["sling", "we-a", "web", "--queue"]).ok();
    assert_says(&refusal(&town.bd(["rename", "we-a", "we-b"])), &["we-a: it is scheduled"]);
    assert_says(&refusal(&town.bd(["rename-prefix", "kw"])), &["we-a: it is scheduled"]);
    assert_eq!(town.show("we-a")["id"], "we-a");
}

#[test]
fn the_editor_changes_one_text_of_a_bead() {
    let town = town();
    town.bead("hq-a", &["--description", "first"]);
    let editor = town.root().join("editor");
    fs::write(&editor, "#!/bin/sh\nprintf 'second\\n' >> \"$1\"\n").unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let edit = |arguments: &[&str], editor: &str| {
        let arguments = [&["edit"], arguments].concat();
        town.start_bd(&arguments).env("EDITOR", editor).run()
    };
    let program = editor.to_str().unwrap();
    edit(&["hq-a"], program).ok();
    assert_eq!(town.show("hq-a")["description"], "firstsecond");
    edit(&["hq-a", "--notes"], program).ok();
    assert_eq!(town.show("hq-a")["notes"], "second");
    assert_says(&edit(&["hq-a"], "true").ok().stdout, &["No changes made to hq-a"]);
    assert_says(&refusal(&edit(&["hq-a"], "false")), &["the editor failed, and hq-a stays"]);
    assert_says(&refusal(&edit(&["nope"], program)), &["no issue found"]);
    // An unseen editor would wait for ever.
    assert_says(&refusal(&edit(&["hq-a"], "")), &["there is no terminal", "bd update"]);
}

#[test]
fn commits_name_beads_that_are_still_open() {
    let repo = repository();
    for id in ["we-a", "we-b", "we-c"] {
        repo.bead(id, &[]);
    }
    repo.bd(["close", "we-b"]).ok();
    let commit = |message: &str| {
        let arguments = ["commit", "--quiet", "--allow-empty", "-m", message];
        repo.command("git").args(arguments).run().ok();
    };
    assert_eq!(repo.json(&["orphans"]), json!([]));
    commit("Do we-a and we-b, not we-c.1");
    commit("Unrelated\n\nwe-ab");
    let found = repo.json(&["orphans"]);
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found[0]["issue_id"], "we-a");
    assert_eq!(found[0]["latest_commit_message"], "Do we-a and we-b, not we-c.1");
    assert_says(&repo.bd(["orphans", "--details"]).ok().stdout, &["we-a", "Do we-a and we-b"]);
    repo.bd(["orphans", "--fix"]).ok();
    assert_eq!(repo.show("we-a")["status"], "closed");
    let outside = town();
    assert_says(&refusal(&outside.bd(["orphans"])), &["is in no git repository"]);
}

#[test]
fn gates_open_when_their_wait_is_over() {
    let town = town();
    town.bead("hq-work", &[]);
    town.bead("hq-other", &[]);
    let gate = |arguments: &[&str]| {
        let arguments = [&["gate", "create", "--blocks", "hq-work"], arguments].concat();
        town.json(&arguments)["id"].as_str().unwrap().to_owned()
    };
    let soon = gate(&["--type", "timer", "--timeout", "1ns"]);
    let late = gate(&["--await", "timer:2h"]);
    let bead = gate(&["--type", "bead", "--await-id", "hq-other"]);
    let lost = gate(&["--type", "bead:hq-nothing"]);
    gate(&["--type", "human"]);

    let preview = town.json(&["gate", "check", "--dry-run"]);
    assert_eq!(preview["resolved"], 1);
    assert_eq!(town.show(&soon)["status"], "open");
    let checked = town.json(&["gate", "check"]);
    assert_eq!((&checked["checked"], &checked["escalated"]), (&json!(4), &json!(1)));
    assert_eq!(town.show(&soon)["status"], "closed");
    town.bd(["close", "hq-other"]).ok();
    assert_eq!(town.json(&["gate", "check", "--type", "bead"])["resolved"], 1);
    assert_eq!(town.show(&bead)["status"], "closed");
    assert_eq!(town.show(&late)["status"], "open");
    town.bd(["gate", "check", "--escalate"]).ok();
    assert_says(&town.gt(["inbox"]).ok().stdout, &[&lost, "does not open"]);
    assert_says(&refusal(&town.bd(["gate", "create", "--type", "timer"])), &["--timeout"]);
    assert_says(&refusal(&town.bd(["gate", "create", "--type", ""])), &["cannot be empty"]);
}

#[test]
fn a_swarm_stands_for_the_work_on_an_epic() {
    let town = town();
    town.bead("hq-e", &["--type", "epic"]);
    town.bd(["create", "First", "--parent", "hq-e"]).ok();
    town.bd(["create", "Second", "--parent", "hq-e", "--deps", "hq-e.1"]).ok();
    town.bead("hq-alone", &[]);
    let plan = town.json(&["swarm", "validate", "hq-e"]);
    assert_eq!((&plan["swarmable"], &plan["max_parallelism"]), (&json!(true), &json!(1)));
    assert_eq!(plan["ready_fronts"][1]["issues"], json!(["hq-e.2"]));
    let made = town.json(&["swarm", "create", "hq-e", "--coordinator", "mayor"]);
    let swarm = made["swarm_id"].as_str().unwrap();
    assert_eq!(made["analysis"]["total_issues"], 2);
    let record = town.show(swarm);
    assert_eq!((&record["mol_type"], &record["assignee"]), (&json!("swarm"), &json!("mayor")));
    assert_says(&refusal(&town.bd(["swarm", "create", "hq-e"])), &["swarm already exists", swarm]);
    town.bd(["close", "hq-e.1"]).ok();
    let listed = town.json(&["swarm", "list"]);
    assert_eq!(listed["swarms"][0]["epic_id"], "hq-e");
    assert_eq!(listed["swarms"][0]["progress_percent"], 50);
    assert_eq!(town.json(&["swarm", "status", swarm])["epic_id"], "hq-e");
    let wrapped = town.json(&["swarm", "create", "hq-alone"]);
    assert_eq!(town.show("hq-alone")["parent"], wrapped["epic_id"]);
    assert_says(&refusal(&town.bd(["swarm", "create", "nope"])), &["no issue found"]);
}

#[test]
fn the_doctor_mends_what_loses_nothing() {
    let town = town_with_rigs(&["web"]);
    let directory = town.cwd().join("web");
    fs::remove_dir_all(&directory).unwrap();
    let preview = town.bd(["doctor", "--fix", "--dry-run", "--check", "rig"]).ok();
    assert_says(&preview.stderr, &["to mend: make", "web"]);
    assert!(!directory.exists());
    assert_says(&town.bd(["doctor", "--agent"]).ok().stdout, &["warning: rig", "fix: mkdir"]);
    town.bd(["doctor", "--fix", "--yes"]).ok();
    assert!(directory.is_dir());
    assert_says(
        &town.bd(["doctor", "--fix"]).ok().stderr,
        &["nothing that can be mended without you"],
    );
}

#[test]
fn sql_is_answered_and_changes_nothing() {
    let town = town();
    town.create("Say \"hi\", twice", &["--id", "hq-a", "--labels", "hot"]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    let query = "select i.id, i.priority, l.label from issues i left join labels l on l.issue_id = i.id order by i.id";
    assert_eq!(
        town.json(&["sql", query]),
        json!([
            {"id": "hq-a", "priority": 2, "label": "hot"},
            {"id": "hq-b", "priority": 2, "label": null},
        ])
    );
    let csv = town.bd(["sql", "--csv", "select title, id from issues where id = 'hq-a'"]).ok();
    assert_eq!(csv.stdout, "title,id\n\"Say \"\"hi\"\", twice\",hq-a\n");
    assert_says(&town.bd(["sql", "select * from wisps"]).ok().stdout, &["(0 rows)"]);
    for (change, said) in [
        ("delete from issues", "only SELECT is answered"),
        ("select 1; delete from beads", "the query failed"),
        ("select absent from issues", "no such column: absent"),
    ] {
        assert_says(&refusal(&town.bd(["sql", change])), &[said]);
    }
    assert_eq!(town.ids(&["list"]).len(), 2);
}

#[test]
fn the_graph_of_all_beads_begins_where_no_bead_depends() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bead("hq-alone", &[]);
    town.bead("hq-over", &[]);
    town.bd(["close", "hq-over"]).ok();
    let nodes = town.json(&["graph", "--all"]);
    let shown: Vec<(&str, u64)> = nodes
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["id"].as_str().unwrap(), node["depth"].as_u64().unwrap()))
        .collect();
    assert_eq!(shown, [("hq-alone", 0), ("hq-b", 0), ("hq-a", 1)]);
    let mermaid = town.bd(["graph", "--all", "--format", "mermaid"]).ok();
    assert_says(&mermaid.stdout, &["hq_b -->|blocks| hq_a"]);
}

#[test]
fn a_gate_keeps_the_addresses_that_wait_for_it() {
    let town = town();
    town.bead("hq-work", &[]);
    let gate = town.json(&["gate", "create", "--blocks", "hq-work"]);
    let gate = gate["id"].as_str().unwrap();
    let said = town.bd(["gate", "add-waiter", gate, "web/polecats/furiosa"]).ok();
    assert_says(&said.stdout, &["Added waiter to gate", gate]);
    let again = town.bd(["gate", "add-waiter", gate, "web/polecats/furiosa"]).ok();
    assert_says(&again.stdout, &["already"]);
    town.bd(["gate", "add-waiter", gate, "mayor"]).ok();
    assert_eq!(town.show(gate)["waiters"], json!(["web/polecats/furiosa", "mayor"]));
    assert_says(&refusal(&town.bd(["gate", "add-waiter", "hq-work", "mayor"])), &["not a gate"]);
    assert_says(&refusal(&town.bd(["gate", "add-waiter", gate, ""])), &["cannot be empty"]);
    assert_says(&town.bd(["gate", "discover"]).ok().stdout, &["No pending gh:run gates found"]);
}

#[test]
fn an_epic_becomes_a_formula_that_can_be_poured() {
    let town = town();
    let epic = ["--id", "hq-e", "--type", "epic", "--description", "All of web"];
    town.create("Ship web 2", &epic);
    town.bd(["create", "Test web", "--parent", "hq-e"]).ok();
    town.bd(["create", "Tag web", "--parent", "hq-e", "--deps", "hq-e.1", "-p", "0"]).ok();
    let preview = town.bd(["mol", "distill", "hq-e", "--dry-run"]).ok();
    assert_says(&preview.stdout, &["\"formula\": \"ship-web-2\"", "test-web"]);
    let made = town.json(&["mol", "distill", "hq-e", "release", "--var", "project=web"]);
    assert_eq!((&made["steps"], &made["variables"]), (&json!(2), &json!(["project"])));
    assert!(
        made["formula_path"].as_str().unwrap().ends_with(".beads/formulas/release.formula.json")
    );
    let poured = town.json(&["mol", "pour", "release", "--var", "project=docs"]);
    let root = poured["new_epic_id"].as_str().unwrap();
    let steps = town.json(&["mol", "show", root]);
    assert_eq!(steps[0]["steps"][1]["issue"]["title"], "Tag docs");
    assert_eq!(steps[0]["steps"][1]["issue"]["priority"], 0);
    assert_eq!(steps[0]["steps"][1]["status"], "blocked");
    for (arguments, said) in [
        (&["mol", "distill", "hq-e", "release"][..], "exists"),
        (&["mol", "distill", "hq-e", "../x"], "cannot be the name"),
        (&["mol", "distill", "hq-e.1"], "has no parts"),
        (&["mol", "distill", "hq-e", "r", "--var", "unused=nowhere"], "neither"),
    ] {
        assert_says(&refusal(&town.bd(arguments)), &[said]);
    }
}
