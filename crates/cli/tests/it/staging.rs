//! `gt convoy stage` and `launch`: the plan and its problems before anything runs, and then all of it at once.

use gt_testkit::Sandbox;
use serde_json::{Value, json};

use crate::agents::{Stage as _, town_with_agent};
use crate::support::{Steps as _, assert_says, keys, refusal, strings, texts};

/// A town with an epic: `we-b` and `we-c` wait for `we-a`, and `we-d` for both of them.
fn town_with_epic() -> Sandbox {
    let town = town_with_agent("true");
    town.bead("we-epic", &["--type", "epic"]);
    for bead in ["we-a", "we-b", "we-c", "we-d"] {
        part(&town, bead);
    }
    for (bead, needs) in [("we-b", "we-a"), ("we-c", "we-a"), ("we-d", "we-b"), ("we-d", "we-c")] {
        town.bd(["dep", "add", bead, needs]).ok();
    }
    town
}

/// A part of the epic.
fn part(town: &Sandbox, id: &str) {
    town.bead(id, &[]);
    town.bd(["dep", "add", id, "we-epic", "--type", "parent-child"]).ok();
}

fn waves(staged: &Value) -> Vec<Vec<String>> {
    staged["waves"].as_array().unwrap().iter().map(|wave| texts(&wave["tasks"], "id")).collect()
}

fn categories(staged: &Value, which: &str) -> Vec<String> {
    texts(&staged[which], "category")
}

/// A staging that is refused, as JSON.
#[track_caller]
fn refused(town: &Sandbox, arguments: &[&str]) -> Value {
    let ran = town.gt([&["convoy", "stage", "--json"], arguments].concat());
    assert_eq!(ran.code, 1, "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn an_epic_is_planned_in_waves_and_nothing_runs() {
    let town = town_with_epic();

    let staged = town.gt_json(&["convoy", "stage", "we-epic"]);

    assert_eq!((&staged["status"], &staged["restaged"]), (&json!("staged_ready"), &json!(false)));
    assert_eq!(waves(&staged), [vec!["we-a"], vec!["we-b", "we-c"], vec!["we-d"]]);
    assert_eq!(strings(&staged["waves"][2]["tasks"][0]["blocked_by"]), ["we-b", "we-c"]);
    assert_eq!((&staged["errors"], &staged["warnings"]), (&json!([]), &json!([])));
    assert_eq!(texts(&staged["tree"], "id"), ["we-a", "we-b", "we-c", "we-d"]);
    let task = &staged["waves"][0]["tasks"][0];
    assert_eq!(keys(task), ["id", "rig", "title", "type"]);
    let convoy = staged["convoy_id"].as_str().unwrap();
    assert_eq!(town.show(convoy)["status"], "staged_ready");
    town.cycle().ok();
    assert_eq!(town.gt_json(&["run", "list"]), json!([]), "it is inert");
    assert_says(&refusal(&town.gt(["sling", convoy])), &["staged", "gt convoy launch"]);

    let said = town.gt(["convoy", "stage", "we-epic"]).ok().stdout;
    assert_says(
        &said,
        &[
            "Wave 1  1 bead",
            "Wave 2  2 beads",
            "after we-b, we-c",
            "again (staged_ready): 4 beads in 3 waves",
        ],
    );
}

#[test]
fn a_launch_schedules_everything_at_once_and_it_runs_to_the_end() {
    let town = town_with_epic();
    let staged = town.gt_json(&["convoy", "stage", "we-epic", "--merge", "local"]);
    let convoy = staged["convoy_id"].as_str().unwrap();
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();

    let said = town.gt(["convoy", "launch", convoy]).ok().stdout;

    assert_says(&said, &["✓ Launched", "4 beads in 3 waves", "we-d"]);
    assert_eq!(town.show(convoy)["status"], "open");
    assert_eq!(town.gt_json(&["scheduler", "status"])["queued_total"], 4);
    for bead in ["we-a", "we-b", "we-c", "we-d"] {
        town.cycle().ok();
        town.gt(["wait", bead]).ok();
    }
    let landed = town.gt_json(&["convoy", "status", convoy]);
    assert_eq!((&landed["status"], &landed["close_reason"]), (&json!("closed"), &json!("landed")));
    assert_says(
        &refusal(&town.gt(["convoy", "launch", convoy])),
        &["only what has not begun can be staged"],
    );
}

#[test]
fn a_task_list_and_an_epic_are_launched_in_one_go() {
    let town = town_with_epic();
    town.bead("we-x", &[]);
    town.gt(["scheduler", "pause"]).ok();
    let launched = town.gt_json(&["convoy", "launch", "we-x", "we-a"]);
    assert_eq!((&launched["launched"], &launched["scheduled"]), (&json!(true), &json!(2)));
    let launched = town.gt_json(&["convoy", "stage", "we-epic", "--launch"]);
    assert_eq!((&launched["launched"], &launched["scheduled"]), (&json!(true), &json!(3)));
    assert_eq!(town.gt_json(&["convoy", "list"]).as_array().unwrap().len(), 2);
}

/// A record of an open bead with edges, each a target and a type.
fn record(id: &str, issue_type: &str, edges: &[(&str, &str)]) -> String {
    let edges: Vec<Value> = edges
        .iter()
        .map(|(target, kind)| json!({"issue_id": id, "depends_on_id": target, "type": kind}))
        .collect();
    json!({"id": id, "title": id, "issue_type": issue_type, "status": "open", "priority": 2, "dependencies": edges})
        .to_string()
}

#[test]
fn a_faulty_set_is_refused_and_nothing_is_written() {
    let town = town_with_epic();
    // No edge closes a circle, and yet none of them can ever start. Commands refuse that, an import does not.
    let records = [
        record("we-top", "epic", &[]),
        record("we-sub", "epic", &[("we-top", "parent-child")]),
        record("we-x", "task", &[("we-sub", "parent-child"), ("we-y", "blocks")]),
        record("we-y", "task", &[("we-top", "parent-child"), ("we-sub", "waits-for")]),
        // Two tasks that wait for each other's parents.
        record("we-p", "task", &[]),
        record("we-q", "task", &[]),
        record("we-p1", "task", &[("we-p", "parent-child"), ("we-q", "waits-for")]),
        record("we-q1", "task", &[("we-q", "parent-child"), ("we-p", "waits-for")]),
    ];
    town.write("circle.jsonl", &(records.join("\n") + "\n"));
    town.bd(["import", "circle.jsonl"]).ok();
    town.bead("hq-lost", &[]);
    let before = town.last_event();

    let staged = refused(&town, &["we-top"]);
    assert_eq!((&staged["status"], &staged["convoy_id"]), (&json!("error"), &json!("")));
    assert_eq!(categories(&staged, "errors"), ["cycle"]);
    assert_says(
        staged["errors"][0]["message"].as_str().unwrap(),
        &["we-sub → we-x → we-y → we-sub"],
    );
    // With and without the parents in the set, which then stand outside.
    for set in [&["we-p", "we-q", "we-p1", "we-q1"][..], &["we-p1", "we-q1"], &["we-p1"]] {
        let staged = refused(&town, set);
        assert_eq!(categories(&staged, "errors"), ["cycle"], "{set:?}");
        let beads = strings(&staged["errors"][0]["bead_ids"]);
        assert!(beads.contains(&"we-p1"), "{set:?}: {beads:?}");
    }
    let cycles = town.bd(["dep", "cycles"]).stdout;
    assert_says(&cycles, &["we-p1", "we-q1", "we-x", "we-y"]);
    let staged = refused(&town, &["hq-lost"]);
    assert_eq!(categories(&staged, "errors"), ["no-rig"]);
    assert_says(
        &town.gt(["convoy", "stage", "hq-lost"]).stdout,
        &["✗ no-rig: no rig does 1 bead: hq-lost"],
    );

    assert_eq!(town.last_event(), before);
}

#[test]
fn findings_that_only_say_how_the_work_goes_do_not_stop_a_launch() {
    let town = town_with_epic();
    town.gt(["rig", "add", "api", "--prefix", "ap"]).ok();
    town.gt(["config", "set", "rig.api.command", "true"]).ok();
    town.bead("we-outside", &[]);
    town.bd(["dep", "add", "we-b", "we-outside"]).ok();
    part(&town, "we-alone");
    part(&town, "ap-alone");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();

    let staged = town.gt_json(&["convoy", "stage", "we-epic"]);

    assert_eq!(staged["status"], "staged_warnings");
    assert_eq!(categories(&staged, "warnings"), ["orphan", "cross-rig", "capacity", "gated"]);
    assert_eq!(waves(&staged), [vec!["ap-alone", "we-a", "we-alone"], vec!["we-c"]]);
    assert_eq!(texts(&staged["gated"], "id"), ["we-b", "we-d"]);
    assert_eq!(strings(&staged["gated"][0]["gated_by"]), ["we-outside"]);
    let said = town.gt(["convoy", "stage", "we-epic"]).ok().stderr;
    assert!(!said.contains("--force"), "{said}");
    let convoy = staged["convoy_id"].as_str().unwrap();
    town.gt(["scheduler", "pause"]).ok();
    let said = town.gt(["convoy", "launch", convoy]).ok().stdout;
    assert_says(&said, &["✓ Launched", "! orphan: ", "! cross-rig: ", "! capacity: ", "! gated: "]);
    assert!(!said.contains("overridden"), "{said}");
    assert_eq!(town.show(convoy)["status"], "open");
}

#[test]
fn a_launch_lists_exactly_what_force_overrides() {
    let town = town_with_epic();
    part(&town, "we-alone");
    town.gt(["rig", "dock", "web"]).ok();

    let staged = town.gt_json(&["convoy", "stage", "we-epic"]);

    assert_eq!(categories(&staged, "warnings"), ["orphan", "blocked-rig"]);
    assert_says(&town.gt(["convoy", "stage", "we-epic"]).ok().stderr, &["--force"]);
    let convoy = staged["convoy_id"].as_str().unwrap();
    let refusal = refusal(&town.gt(["convoy", "launch", convoy]));
    assert_says(
        &refusal,
        &["stays staged", "blocked-rig: the rig web is docked", "gt rig undock web", "--force"],
    );
    assert!(!refusal.contains("orphan"), "{refusal}");
    assert_eq!(town.show(convoy)["status"], "staged_warnings");
    let said = town.gt(["convoy", "launch", convoy, "--force"]).ok().stdout;
    assert_says(
        &said,
        &["! orphan: ", "! overridden by --force: blocked-rig: the rig web is docked"],
    );
    assert_eq!(town.show(convoy)["status"], "open");
}

#[test]
fn a_launch_that_is_refused_leaves_it_staged() {
    let town = town_with_epic();
    let staged = town.gt_json(&["convoy", "stage", "we-epic"]);
    let convoy = staged["convoy_id"].as_str().unwrap();
    town.write(".beads/formulas/mol-polecat-work.formula.toml", "this is no recipe");
    let before = town.last_event();

    assert_says(&refusal(&town.gt(["convoy", "launch", convoy])), &["mol-polecat-work"]);

    assert_eq!(town.show(convoy)["status"], "staged_ready");
    assert_eq!(town.last_event(), before, "nothing of it is scheduled");
}

#[test]
fn a_launch_that_is_refused_leaves_nothing_of_its_own_unsaid() {
    let town = town_with_epic();
    town.gt(["rig", "dock", "web"]).ok();
    let before = town.last_event();

    let said = refusal(&town.gt(["convoy", "launch", "we-a", "we-b"]));

    let next = "gt convoy launch we-a we-b --force";
    assert_says(&said, &["nothing was staged or launched", "blocked-rig", next]);
    assert_eq!(town.last_event(), before, "nothing was staged");
    town.gt(["rig", "undock", "web"]).ok();
    town.gt(["config", "unset", "rig.web.command"]).ok();
    town.gt(["config", "set", "rig.web.runtime", "claude"]).ok();
    let gt = |arguments: &[&str]| {
        town.command(town.gt_path()).args(arguments).env("PATH", "/usr/bin:/bin").run()
    };
    let staged = gt(&["convoy", "stage", "we-a"]).ok();
    assert_says(&staged.stdout, &["! missing-agent: the rig web starts nothing", "claude"]);
    let said = gt(&["convoy", "launch", "we-epic"]).fails(1).stderr;
    assert_says(&said, &["not installed", "stays staged: gt convoy launch hq-cv-"]);
}

#[test]
fn staging_again_keeps_what_was_said_and_shows_what_changed() {
    let town = town_with_epic();
    let first = town.gt_json(&["convoy", "stage", "we-epic", "--owned", "--merge", "mr"]);
    let convoy = first["convoy_id"].as_str().unwrap();
    part(&town, "we-e");
    town.bd(["dep", "add", "we-e", "we-d"]).ok();
    town.bd(["close", "we-a"]).ok();
    town.bd(["delete", "we-c", "--force"]).ok();

    for input in ["we-epic", convoy] {
        let again = town.gt_json(&["convoy", "stage", input]);
        assert_eq!((&again["restaged"], &again["convoy_id"]), (&json!(true), &json!(convoy)));
        assert_eq!(
            waves(&again),
            [vec!["we-b"], vec!["we-d"], vec!["we-e"]],
            "what is over is in no wave"
        );
        let added: &[&str] = if input == "we-epic" { &["we-e"] } else { &[] };
        assert_eq!(strings(&again["added"]), added);
    }
    let shown = town.gt_json(&["convoy", "status", convoy]);
    assert_eq!((&shown["owned"], &shown["merge_strategy"]), (&json!(true), &json!("mr")));
    assert_eq!(texts(&shown["tracked"], "id"), ["we-a", "we-b", "we-d", "we-e"]);
}

#[test]
fn nonsense_is_refused_by_name() {
    let town = town_with_epic();
    town.bead("we-hollow", &["--type", "epic"]);
    town.bead("we-x", &[]);
    let staged = town.gt_json(&["convoy", "stage", "we-x"]);
    let convoy = staged["convoy_id"].as_str().unwrap();
    for (inputs, parts) in [
        (vec!["we-epic", "we-x"], ["we-epic is an epic", "name it alone"]),
        (vec![convoy, "we-x"], ["is a convoy", "name it alone"]),
        (vec!["we-nope"], ["we-nope", "no issue"]),
        (vec!["we-hollow"], ["we-hollow has no parts", "bd create --parent"]),
    ] {
        let message = refusal(&town.gt([vec!["convoy", "stage"], inputs].concat()));
        assert_says(&message, &parts);
    }
}

#[test]
fn dependencies_are_drawn_as_a_graph() {
    let town = town_with_epic();
    let dot = town.gt(["convoy", "stage", "we-epic", "--graph", "dot"]).ok().stdout;
    assert_says(
        &dot,
        &["digraph convoy {", "n0 [label=\"we-a: we-a\"];", "n0 -> n1;", "n2 -> n3;"],
    );
    let mermaid = town.gt(["convoy", "stage", "we-epic", "--graph", "mermaid"]).ok().stdout;
    assert_says(&mermaid, &["graph LR", "n0[\"we-a: we-a\"]", "n1 --> n3"]);
}

#[test]
fn a_rig_that_is_parked_is_named_and_one_that_is_docked_leaves_its_beads_out() {
    let town = town_with_epic();
    for (verb, undo) in [("park", "unpark"), ("dock", "undock")] {
        town.gt(["rig", verb, "web"]).ok();
        let staged = town.gt_json(&["convoy", "stage", "we-epic"]);
        assert_eq!(categories(&staged, "warnings"), ["blocked-rig"], "{verb}");
        let fix = staged["warnings"][0]["suggested_fix"].as_str().unwrap();
        assert_says(fix, &[&format!("gt rig {undo} web")]);
        if verb == "dock" {
            let launched = town.gt_json(&["convoy", "stage", "we-epic", "--launch", "--force"]);
            assert_eq!((&launched["launched"], &launched["scheduled"]), (&json!(true), &json!(0)));
            assert_says(&town.reasons("we-a").join(" "), &["rig-docked"]);
        }
        town.gt(["rig", undo, "web"]).ok();
    }
    // The beads that were left out are scheduled when the rig serves again.
    assert_eq!(town.gt_json(&["scheduler", "list"]).as_array().unwrap().len(), 4);
}

#[test]
fn beads_closed_or_deleted_between_stage_and_launch_are_left_out() {
    let town = town_with_epic();
    town.gt(["scheduler", "pause"]).ok();
    let staged = town.gt_json(&["convoy", "stage", "we-a", "we-b", "we-c"]);
    let convoy = staged["convoy_id"].as_str().unwrap();
    town.bd(["close", "we-a"]).ok();
    town.bd(["delete", "we-c", "--force"]).ok();

    town.gt(["convoy", "launch", convoy]).ok();

    assert_eq!(texts(&town.gt_json(&["scheduler", "list"]), "id"), ["we-b"]);
    let shown = town.gt_json(&["convoy", "status", convoy]);
    assert_eq!((&shown["completed"], &shown["total"]), (&json!(1), &json!(2)));
    // And what is done altogether has landed with its launch.
    let staged = town.gt_json(&["convoy", "stage", "we-d"]);
    let convoy = staged["convoy_id"].as_str().unwrap();
    town.bd(["close", "we-d", "--force"]).ok();
    town.gt(["convoy", "launch", convoy]).ok();
    assert_eq!(town.show(convoy)["close_reason"], "landed");
}

#[test]
fn a_circle_of_ten_thousand_is_found_and_told_in_a_line_that_can_be_read() {
    let town = town_with_agent("true");
    let made = "\"created_at\":\"2026-01-01T00:00:00Z\"";
    let bead = |id: &str, kind: &str, edges: &[(&str, String)]| {
        let edge = |(kind, target): &(&str, String)| {
            format!(
                "{{\"issue_id\":\"{id}\",\"depends_on_id\":\"{target}\",\"type\":\"{kind}\",{made}}}"
            )
        };
        let edges = edges.iter().map(edge).collect::<Vec<_>>().join(",");
        format!(
            "{{\"id\":\"{id}\",\"title\":\"t\",\"status\":\"open\",\"issue_type\":\"{kind}\",{made},\
             \"updated_at\":\"2026-01-01T00:00:00Z\",\"dependencies\":[{edges}]}}\n"
        )
    };
    // No edge closes the circle: the last waits for an epic, and the first is a part of that.
    let within = |epic: &str| ("parent-child", epic.to_owned());
    let mut lines = bead("we-epic", "epic", &[]) + &bead("we-sub", "epic", &[within("we-epic")]);
    for at in 0..9_999 {
        let next = match at {
            9_998 => ("waits-for", "we-sub".to_owned()),
            at => ("blocks", format!("we-{}", at + 1)),
        };
        let whole = if at == 0 { "we-sub" } else { "we-epic" };
        lines += &bead(&format!("we-{at}"), "task", &[within(whole), next]);
    }
    town.import(&lines);
    let before = town.last_event();

    let ran = town.gt(["convoy", "stage", "we-epic", "--json"]);

    assert_eq!(ran.code, 1);
    let staged: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(categories(&staged, "errors"), ["cycle"]);
    assert_eq!(staged["errors"][0]["bead_ids"].as_array().unwrap().len(), 10_000);
    let message = staged["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains(" → ") && message.len() < 2_000, "{} bytes", message.len());
    assert_eq!(town.last_event(), before);
}

#[test]
fn a_bead_that_waits_for_itself_cannot_come_about() {
    let town = town_with_agent("true");
    town.bead("we-a", &[]);
    let message = refusal(&town.gt(["bd", "dep", "add", "we-a", "we-a"]));
    assert_says(&message, &["itself"]);
    let staged = town.gt_json(&["convoy", "stage", "we-a", "we-a"]);
    assert_eq!(waves(&staged), [vec!["we-a"]], "who is named twice goes once");
}
