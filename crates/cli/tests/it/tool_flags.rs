//! Flags, input and JSON that the tools and agents around beads rely on.

use serde_json::json;

use crate::support::{Steps as _, assert_says, nowhere, refusal, town};

#[test]
fn times_and_missing_ids_are_read_as_people_write_them() {
    let town = town();
    town.bead("hq-a", &["--due", "next monday"]);
    assert_eq!(town.ids(&["list", "--created-after", "7d"]), ["hq-a"]);
    assert_eq!(town.ids(&["list", "--created-after", "2 days ago"]), ["hq-a"]);
    assert_eq!(town.ids(&["list", "--created-before", "2 days ago"]), [""; 0]);
    let said = town.bd(["create", "Late", "--id", "hq-b", "--due", "2020-01-01"]).ok();
    assert_says(&said.stderr, &["warning: the due date has passed"]);
    let said = town.bd(["defer", "hq-b", "--until", "2020-01-01"]).ok();
    assert_says(&said.stderr, &["has passed"]);
    assert_says(&town.bd(["stale", "--days", "0"]).fails(1).stderr, &["--days"]);

    town.bd(["update", "--priority", "0"]).ok();
    assert_eq!(town.show("hq-b")["priority"], 0);
    assert_eq!(town.json(&["show", "--current"])[0]["id"], "hq-b");
    town.bd(["close"]).ok();
    assert_eq!(town.show("hq-b")["status"], "closed");
    let stranger = town.bd(["close", "--actor", "a-stranger"]);
    assert_says(&refusal(&stranger), &["which bead?"]);
    let past = town.json(&["show", "hq-b", "--as-of", "now"]);
    assert_eq!(past[0]["status"], "closed");

    let lines = "create bug 1 The pump leaks\nclose hq-a done\n";
    let path = town.write("batch.txt", lines);
    town.bd(["batch", "--file", path.to_str().unwrap()]).ok();
    let made = town.json(&["search", "--query", "pump"]);
    assert_eq!(
        (&made[0]["issue_type"], &made[0]["title"]),
        (&json!("bug"), &json!("The pump leaks"))
    );
}

#[test]
fn json_has_the_shape_that_clients_read() {
    let town = town();
    town.bead("hq-a", &["--labels", "core", "--priority", "1"]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    town.bd(["comment", "hq-a", "hot"]).ok();
    let shown = town.show("hq-a");
    assert_eq!(shown["comments"][0]["text"], "hot");
    assert_eq!(shown["dependents"][0]["id"], "hq-b");
    assert!(shown["dependents"][0]["created_at"].is_string(), "{shown}");
    assert_eq!(town.json(&["doctor", "--check", "store"])["overall_ok"], true);
    assert_eq!(town.json(&["doctor", "--check=pollution"])["overall_ok"], true);
    let unknown = town.bd(["doctor", "--check=stroe"]).fails(1).stderr;
    assert_says(&unknown, &["no check \"stroe\"", "store"]);
    assert_eq!(town.show("hq-b")["dependencies"][0]["labels"], json!(["core"]));
    assert_eq!(town.json(&["dep", "list", "hq-b"])[0]["labels"], json!(["core"]));
    assert_eq!(town.json(&["dep", "tree", "hq-b"])[1]["labels"], json!(["core"]));
    assert_eq!(town.ids(&["dep", "tree", "hq-a", "--reverse"]), ["hq-a", "hq-b"]);
    assert_eq!(town.json(&["count", "--by-priority"])["groups"][0]["group"], "P1");
    assert_eq!(town.json(&["count", "--by-assignee"])["groups"][0]["group"], "(unassigned)");
    town.bd(["lint", "--json"]).ok();
    town.bd(["lint"]).fails(1);
    assert_eq!(town.ids(&["list", "--label-pattern", "co*"]), ["hq-a"]);
    assert_eq!(town.ids(&["list", "--label-regex", "^x"]), [""; 0]);
    let skipped = town.json(&["list", "--skip-labels", "--limit", "1"]);
    assert_eq!(skipped["meta"]["has_more"], true);
    assert_eq!(town.json(&["info", "--schema"])["schema"]["statuses"][0], "open");
    assert_eq!(town.json(&["status", "--assigned"])["summary"]["total_issues"], 0);

    let closed = town.json(&["close", "hq-a", "--suggest-next"]);
    assert_eq!(closed["unblocked"], json!(["hq-b"]));
    let closed = town.json(&["close", "hq-b", "--suggest-next"]);
    assert_eq!(closed[0]["id"], "hq-b");
    assert_eq!(town.json(&["delete", "hq-b", "--force"])["deleted"], "hq-b");
    town.bd(["remember", "a fact"]).ok();
    town.bd(["export", "--no-memories", "-o", ".beads/issues.jsonl"]).ok();
    let exported = std::fs::read_to_string(town.cwd().join(".beads/issues.jsonl")).unwrap();
    assert_eq!(exported.lines().count(), 1, "{exported}");
}

#[test]
fn agents_are_set_up_and_primed() {
    let place = nowhere();
    place.bd(["init", "--prefix", "app", "--skip-hooks", "--stealth", "--server"]).ok();
    let directory = place.cwd().to_owned();
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
    assert_says(&read(".beads/metadata.json"), &["\"backend\":\"gt\""]);
    place.bd(["create", "Boil water", "--id", "app-a"]).ok();
    assert_eq!(read(".beads/last-touched"), "app-a\n");
    assert!(place.json(&["where"])["path"].as_str().unwrap().ends_with("/.beads"));
    assert_eq!(place.json(&["where"])["prefix"], "app");
    assert_eq!(place.json(&["context"])["bd_version"], "1.0.5");
    let from_elsewhere = place.start_bd(&["-C", "/", "list", "--json"]);
    let by_file = from_elsewhere.env("BEADS_DB", directory.join(".beads/beads.db")).run().ok();
    assert_eq!(by_file.json()[0]["id"], "app-a");

    place.bd(["remember", "kettles are hot", "--key", "kettle"]).ok();
    let answer = place.bd(["prime", "--hook-json", "--stealth"]).ok().json();
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned();
    assert_says(&context, &["bd ready", "`kettle`: kettles are hot"]);
    let answer = place.start_bd(&["codex-hook", "SessionStart"]).stdin("{}").run().ok().json();
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], "SessionStart");
    assert_eq!(place.start_bd(&["codex-hook", "PreCompact"]).stdin("{}").run().ok().stdout, "");
    let only = place.bd(["prime", "--memories-only"]).ok().stdout;
    assert!(!only.contains("bd ready"), "{only}");
    assert!(!place.bd(["prime", "--mcp"]).ok().stdout.contains("## Commands"));
    place.write(".beads/PRIME.md", "Our own words\n");
    assert_says(&place.bd(["prime"]).ok().stdout, &["Our own words", "kettle"]);
    assert_says(&place.bd(["prime", "--export"]).ok().stdout, &["bd ready"]);

    place.bd(["setup", "claude", "--check"]).fails(1);
    for agent in ["claude", "codex", "cursor"] {
        place.bd(["setup", agent]).ok();
        assert_eq!(place.json(&["setup", agent, "--check"])["installed"], true);
    }
    assert_says(&read(".claude/settings.json"), &["bd prime --hook-json"]);
    assert_says(&read("AGENTS.md"), &["bd prime"]);
    place.bd(["setup", "codex", "--remove"]).ok();
    assert_eq!(read("AGENTS.md"), "");
}

#[test]
fn molecules_are_poured_followed_and_burned() {
    let town = town();
    town.write(
        "tea.formula.toml",
        "formula = \"tea\"\nversion = 1\n[vars.cup]\nrequired = true\n[[steps]]\nid = \"boil\"\n\
         title = \"Boil for {{cup}}\"\n[[steps]]\nid = \"brew\"\ntitle = \"Brew\"\nneeds = [\"boil\"]\n",
    );
    let poured = town.json(&["mol", "pour", "./tea.formula.toml", "--var", "cup=mine"]);
    let root = poured["new_epic_id"].as_str().unwrap().to_owned();
    assert_eq!((&poured["created"], &poured["phase"]), (&json!(3), &json!("liquid")));
    let ready = town.json(&["ready", "--mol", &root]);
    assert_eq!(ready[0]["title"], "Boil for mine");
    let boil = ready[0]["id"].as_str().unwrap().to_owned();
    let current = &town.json(&["mol", "current", &root])[0];
    assert_eq!((&current["total"], &current["steps"][1]["status"]), (&json!(2), &json!("blocked")));
    let closed = town.json(&["close", &boil, "--continue"]);
    assert_eq!(closed["continue"]["auto_advanced"], true);
    assert_eq!(town.json(&["mol", "list"])[0]["completed"], 1);

    let wisp = town.json(&["mol", "wisp", "./tea.formula.toml", "--var", "cup=x"]);
    let wisp = wisp["new_epic_id"].as_str().unwrap().to_owned();
    assert_eq!(town.json(&["mol", "wisp", "list"])["count"], 3);
    let squashed = town.json(&["mol", "squash", &wisp, "--summary", "drunk"]);
    let digest = squashed["digest_id"].as_str().unwrap();
    assert_eq!(town.show(digest)["description"], "drunk");
    assert_eq!(town.json(&["mol", "wisp", "list"])["count"], 0);

    town.bead("hq-a", &[]);
    let gate = town.json(&["gate", "create", "--blocks", "hq-a", "--reason", "ordered"]);
    let gate = gate["id"].as_str().unwrap().to_owned();
    assert_eq!(town.ids(&["gate", "list"]), [gate.as_str()]);
    assert!(!town.ready().contains(&"hq-a".to_owned()));
    let unknown = town.bd(["gate", "resolve", &gate, "hq-a"]);
    assert_says(&refusal(&unknown), &["hq-a is a task, not a gate"]);
    assert_eq!(town.show(&gate)["status"], "open", "all names are checked first");
    town.bd(["gate", "resolve", &gate]).ok();
    assert_eq!(town.json(&["ready", "--gated"])["molecules"][0]["ready_step"]["id"], "hq-a");

    town.bd(["set-state", "hq-a", "health=poor"]).ok();
    town.bd(["set-state", "hq-a", "health=good"]).ok();
    assert_eq!(town.bd(["state", "hq-a", "health"]).ok().line(), "good");
    assert_says(&town.bd(["history", "hq-a"]).ok().stdout, &["hq-a"]);
    assert_says(&town.bd(["graph", "hq-a", "--format", "mermaid"]).ok().stdout, &["flowchart"]);
    town.bd(["merge-slot", "create"]).ok();
    assert_eq!(town.json(&["merge-slot", "acquire", "--holder", "ann"])["holder"], "ann");
    town.bd(["merge-slot", "acquire", "--holder", "bob"]).fails(1);
    town.bd(["merge-slot", "release", "--holder", "bob"]).fails(1);
    town.bd(["merge-slot", "release", "--holder", "ann"]).ok();
    assert_eq!(town.json(&["merge-slot", "check"])["available"], true);
    assert_eq!(town.json(&["swarm", "status", &root])["total_issues"], 2);
    town.bd(["todo", "add", "Call the bank"]).ok();
    assert_says(&town.bd(["todo"]).ok().stdout, &["Call the bank"]);
    let asked = town.create("Which key?", &["--labels", "human"]);
    assert_eq!(town.ids(&["human", "list"]), [asked.as_str()]);
    town.bd(["human", "respond", &asked, "--response", "the second"]).ok();
    let kept = town.create("Kept", &["--ephemeral"]);
    town.bd(["promote", &kept]).ok();
    assert!(town.ids(&["list"]).contains(&kept));
    town.bd(["create", "Gone", "--id", "hq-wisp-x", "--ephemeral"]).ok();
    town.bd(["close", "hq-wisp-x"]).ok();
    assert_eq!(town.json(&["purge", "--force"])["deleted_ids"], json!(["hq-wisp-x"]));
}
