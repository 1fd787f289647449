//! The commands of a worker: `gt prime`, `gt hook`, `gt step`.

use std::fs;

use gt_testkit::{FinishedProgram, Sandbox, SandboxCommand, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, town_with_agent};
use crate::support::{
    Steps as _, assert_says, everything, gastown, json_refusal, refusal, strings, texts,
};

const MAX: &str = "gastown/crew/max";

const RECIPE: &str = r#"
formula = "tea"
[[steps]]
id = "boil"
title = "Boil water"
description = "In the kettle.\n\nNot in the pan."
acceptance = "It bubbles."
[[steps]]
id = "steep"
title = "Steep the leaves"
needs = ["boil"]
[[steps]]
id = "serve"
title = "Serve it"
needs = ["steep"]
"#;

/// A town in which a person has gt-a as the run gt-a#1, with the steps of [`RECIPE`].
fn town_with_tea() -> Sandbox {
    let town = gastown();
    town.write(".beads/formulas/tea.formula.toml", RECIPE);
    let flags = ["--id", "gt-a", "--force", "-d", "With milk.", "--design", "Milk last."];
    town.create("Make tea", &flags);
    town.bd(["update", "gt-a", "--acceptance", "It is hot.", "--notes", "No sugar."]).ok();
    sling(&town);
    town
}

fn sling(town: &Sandbox) {
    town.gt(["sling", "gt-a", MAX, "--formula", "tea", "-a", "Use the blue cup"]).ok();
}

/// `gt` as the worker of a run.
fn in_run(town: &Sandbox, run: &str, arguments: &[&str]) -> SandboxCommand {
    town.start_gt(arguments).env("GT_RUN", run).env("GT_ROLE", MAX).env("BD_ACTOR", MAX)
}

fn worker(town: &Sandbox, arguments: &[&str]) -> FinishedProgram {
    in_run(town, "gt-a#1", arguments).run()
}

fn worker_json(town: &Sandbox, arguments: &[&str]) -> Value {
    in_run(town, "gt-a#1", arguments).arg("--json").run().ok().json()
}

#[test]
fn a_worker_is_told_everything_it_needs() {
    let town = town_with_tea();
    town.bd(["comments", "add", "gt-a", "The kettle leaks"]).ok();
    town.gt(["nudge", "gt-a", "Hurry up,", "please"]).ok();
    worker(&town, &["step", "done", "boil"]).ok();

    let told = worker(&town, &["prime"]).ok().stdout;

    let comment = town.json(&["comments", "list", "gt-a"])[0]["created_at"].clone();
    let comment = comment.as_str().unwrap();
    let expected = format!(
        "# gt-a: Make tea

You are gastown/crew/max, the worker of the run gt-a#1 in the rig gastown.

## What is to be done

With milk.

## How it is to be done

Milk last.

## It is done when

It is hot.

## Notes

No sugar.

## Instructions

Use the blue cup

## Comments

Test Person, {comment}:
      The kettle leaks

## Steps (1/3)

- [x] boil: Boil water
- [ ] steep: Steep the leaves  ← next
- [ ] serve: Serve it

## Messages

msg-1 from Test Person
      Hurry up, please

## Rules

- Do not close, reopen or reassign gt-a and do not sling anything: gt done says how it ended, and others decide what starts.
- Stay inside gt-a. What else you find becomes a bead of its own: bd create \"…\" --deps discovered-from:gt-a
- Tick off each step when it is done: gt step done <step>
- Write down what the next one needs to know: bd comments add gt-a \"…\". Your memory ends with your session.
- Messages reach you through gt prime and gt mail inbox; answer with gt mail reply <message> -m \"…\"
- When a command says that your run is over, stop: another worker may have the work, and yours does not count any more.

## How to finish

- `gt done`: everything that the bead asks for is done and committed
- `bd close gt-a`: the same, by hand
- `gt escalate \"…\"`: you need a person, and can go on meanwhile; say what you need to know
- `gt done --status escalated`: you cannot go on without a person
- `gt done --status deferred`: it should wait for something that is not there yet
"
    );
    assert_eq!(told, expected);
    // Printed messages count as seen.
    assert_eq!(town.gt_json(&["mail", "show", "1"])["receipt"], "seen");
    assert!(!worker(&town, &["prime"]).ok().stdout.contains("Hurry"));
}

#[test]
fn a_step_that_is_to_be_done_is_told_at_length() {
    let town = town_with_tea();
    let told = worker(&town, &["prime"]).ok().stdout;
    let lines = "- [ ] boil: Boil water  ← next\n      In the kettle.\n\n      Not in the pan.\n      Done when: \
                 It bubbles.\n- [ ] steep";
    assert_says(&told, &[lines]);
}

#[test]
fn programs_are_told_the_same() {
    let town = town_with_tea();
    town.gt(["mail", "send", "gt-a", "-s", "Cups", "-m", "They are blue"]).ok();

    let told = worker_json(&town, &["prime"]);

    assert_eq!((&told["who"], &told["run"]["id"]), (&json!("worker"), &json!("gt-a#1")));
    assert_eq!(
        (&told["bead"]["title"], &told["bead"]["acceptance_criteria"], &told["instructions"]),
        (&json!("Make tea"), &json!("It is hot."), &json!("Use the blue cup"))
    );
    assert_eq!(texts(&told["steps"], "name"), ["boil", "steep", "serve"]);
    assert_eq!(told["steps"][1]["waits_for"], json!(["boil"]));
    assert_eq!(
        (&told["next"], &told["progress"]),
        (&json!("boil"), &json!({"done": 0, "total": 3}))
    );
    assert_eq!(told["messages"][0]["subject"], "Cups");
    assert!(strings(&told["rules"]).len() > 3);
    assert_eq!(told["finish"][0]["command"], "gt done");
    assert_eq!(town.gt_json(&["mail", "show", "1"])["receipt"], "seen");
}

#[test]
fn a_person_sees_what_a_worker_is_told_without_reading_its_messages() {
    let town = town_with_tea();
    town.gt(["nudge", "gt-a", "Hurry"]).ok();

    for run in ["gt-a", "gt-a#1"] {
        let told = town.gt(["prime", "--run", run]).ok().stdout;
        assert_says(&told, &["You are gastown/crew/max", "Hurry"]);
    }

    assert_eq!(town.gt_json(&["mail", "show", "1"])["receipt"], "queued");
    assert_says(&refusal(&town.gt(["prime", "--run", "gt-a#7"])), &["gt-a has no run 7"]);
}

#[test]
fn a_real_agent_primes_itself_and_ticks_off_its_steps() {
    let gt = env!("CARGO_BIN_EXE_gt");
    let town = town_with_agent(&format!(
        "'{gt}' prime > $stage/primed; '{gt}' step done understand implement && wait_for go"
    ));
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    wait_until("two steps are done", || town.why("we-a")["progress"]["done"] == 2);

    let primed = fs::read_to_string(town.stage("primed")).unwrap();
    assert_says(&primed, &["# we-a: we-a", "worker of the run we-a#1", "Steps (0/5)", "gt done"]);
    for told in [
        town.gt(["why", "we-a"]).ok().stdout,
        town.gt(["status"]).ok().stdout,
        town.gt(["run", "list"]).ok().stdout,
        town.gt(["run", "show", "we-a"]).ok().stdout,
        town.gt(["prime"]).ok().stdout,
        town.gt(["hook", "we-a"]).ok().stdout,
    ] {
        assert_says(&told, &["we-a#1", "2/5"]);
    }
    let progress = json!({"done": 2, "total": 5});
    assert_eq!(town.run_of("we-a")["progress"], progress);
    assert_eq!(town.run_of("we-a")["steps_done"], json!(["understand", "implement"]));
    assert_eq!(town.gt_json(&["run", "list"])[0]["progress"], progress);
    assert_eq!(town.gt_json(&["status"])["running"][0]["progress"], progress);
    town.allow("go");
    town.assert_quiet();
}

#[test]
fn the_worker_of_a_run_that_is_over_is_told_to_stop() {
    let town = town_with_tea();
    town.gt(["nudge", "gt-a", "Hurry"]).ok();
    town.gt(["run", "cancel", "gt-a", "--actor", "ann"]).ok();
    let over = [
        &["prime"][..],
        &["hook"],
        &["step", "list"],
        &["step", "done", "boil", "--force"],
        &["mail", "inbox"],
        &["mail", "read", "msg-1"],
        &["mail", "send", "mayor", "-s", "Hello"],
        &["nudge", "mayor", "Hello"],
        &["escalate", "Help"],
    ];
    let before = everything(&town);
    for arguments in over {
        let told = refusal(&worker(&town, arguments));
        assert_says(&told, &["gt-a#1 was cancelled by ann", "stop working"]);
        let told = json_refusal(&in_run(&town, "gt-a#1", arguments).arg("--json").run());
        assert_says(&told, &["stop working"]);
    }
    assert_eq!(everything(&town), before);

    // Another worker has it now.
    sling(&town);
    for arguments in over {
        let told = refusal(&worker(&town, arguments));
        assert_says(&told, &["gt-a#1 is over", "gastown/crew/max has gt-a now as gt-a#2", "stop"]);
    }
    let unknown = in_run(&town, "gt-z#1", &["prime"]).run();
    assert_says(&refusal(&unknown), &["this town has no such run", "unset GT_RUN"]);
}

#[test]
fn the_next_worker_is_told_how_far_the_last_one_came() {
    let town = town_with_tea();
    town.bd(["update", "gt-a", "--claim", "--actor", MAX]).ok();
    worker(&town, &["step", "done", "boil", "steep"]).ok();
    town.gt(["run", "cancel", "gt-a"]).ok();
    sling(&town);

    let told = in_run(&town, "gt-a#2", &["prime"]).run().ok().stdout;

    assert_says(
        &told,
        &[
            "The run before yours, gt-a#1, was cancelled",
            "after it had done boil, steep",
            "Steps (0/3)",
        ],
    );
}

#[test]
fn prime_without_a_run_shows_the_town() {
    let town = town_with_tea();
    worker(&town, &["escalate", "Which cup?", "--severity", "high"]).ok();

    let told = town.gt(["prime"]).ok().stdout;

    assert_says(
        &told,
        &[
            "You are Test Person",
            "no worker",
            "Running",
            "gt-a#1",
            "0/3",
            "Needs you",
            "! gt-a [high] Which cup? (gt mail read msg-1)",
            "Unread  1 message",
        ],
    );
    let told = town.gt_json(&["prime"]);
    assert_eq!((&told["who"], &told["addresses"]), (&json!("other"), &json!(["mayor"])));
    assert_eq!(told["needs_you"][0]["severity"], "high");
    // Looking around is not reading.
    assert_eq!(told["unread"].as_array().unwrap().len(), 1);
    assert_eq!(town.gt_json(&["mail", "show", "1"])["receipt"], "queued");
}

#[test]
fn the_hook_holds_the_bead_of_the_worker() {
    let town = town_with_tea();
    town.bead("gt-b", &[]);
    town.gt(["nudge", "gt-a", "Hurry"]).ok();

    let hooked = worker_json(&town, &["hook"]);
    assert_eq!(
        (&hooked[0]["bead"]["id"], &hooked[0]["run"]["id"], &hooked[0]["unread"]),
        (&json!("gt-a"), &json!("gt-a#1"), &json!(1))
    );
    // It was told that there is something to read.
    assert_eq!(town.gt_json(&["mail", "show", "1"])["receipt"], "delivered");
    assert_says(
        &worker(&town, &["hook"]).ok().stdout,
        &["gt-a  Make tea", "steps 0/3", "1 unread message", "gt prime"],
    );
    // A crew member without a run has the beads that were slung to its address.
    let crew = town.start_gt(&["hook", "--json"]).env("GT_ROLE", MAX).run().ok().json();
    assert_eq!(crew[0]["run"]["id"], "gt-a#1");
    assert_says(&town.gt(["hook"]).ok().stdout, &["Nothing is on your hook"]);
    assert_eq!(town.gt_json(&["hook"]), json!([]));
    assert_says(&town.gt(["hook", "gt-a"]).ok().stdout, &["gt-a#1 by gastown/crew/max"]);
    assert_says(&town.gt(["hook", "gt-b"]).ok().stdout, &["is on no hook", "gt why gt-b"]);
    assert_says(&refusal(&town.gt(["hook", "gt-z"])), &["gt-z"]);
}

#[test]
fn steps_are_ticked_off_in_order_and_once() {
    let town = town_with_tea();
    let listed = worker(&town, &["step", "list"]).ok().stdout;
    assert_says(
        &listed,
        &["gt-a#1  0/3", "· boil: Boil water  ← next", "· steep: Steep the leaves  (after boil)"],
    );
    let before = everything(&town);
    let early = refusal(&worker(&town, &["step", "done", "boil", "serve"]));
    assert_says(&early, &["serve comes after steep", "gt step done steep", "--force"]);
    let unknown = refusal(&worker(&town, &["step", "done", "drink"]));
    assert_says(&unknown, &["no step \"drink\"", "boil, steep, serve"]);
    assert_eq!(everything(&town), before, "all or nothing");

    let first = worker(&town, &["step", "done", "boil"]).ok().stdout;
    assert_eq!(first, "✓ boil: Boil water\n1/3 of gt-a#1; next is steep: Steep the leaves\n");
    let after = town.last_event();
    let again = worker_json(&town, &["step", "done", "boil"]);
    assert_eq!(
        again,
        json!({"already_done": ["boil"], "done": [], "fresh_session": false, "next": "steep", "progress": {"done": 1, "total": 3},
            "run": "gt-a#1", "schema_version": 1})
    );
    assert_eq!(town.last_event(), after, "saying it twice changes nothing");

    worker(&town, &["step", "done", "serve", "--force"]).ok();
    let last = worker(&town, &["step", "done", "steep"]).ok().stdout;
    assert_says(&last, &["3/3", "all steps are done; finish with gt done"]);
    let events = town.json(&["activity", "--bead", "gt-a", "--type", "step_done"]);
    let titles: Vec<&str> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["payload"]["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["Boil water", "Serve it", "Steep the leaves"]);
    assert_eq!((&events[0]["run"], &events[0]["actor"]), (&json!("gt-a#1"), &json!(MAX)));
    let steps = worker_json(&town, &["step", "list"]);
    assert_eq!(
        (&steps["steps"][0]["done"], &steps["steps"][0]["done_by"]),
        (&json!(true), &json!(MAX))
    );
}

#[test]
fn a_person_names_the_run_and_a_worker_has_only_its_own() {
    let town = town_with_tea();
    town.bead("gt-b", &[]);
    town.gt(["sling", "gt-b", MAX, "--hook-raw-bead"]).ok();

    assert_says(&refusal(&town.gt(["step", "list"])), &["GT_RUN names no run", "--run <run>"]);
    assert_says(&refusal(&town.gt(["step", "done", "boil"])), &["--run <run>"]);
    let other = refusal(&worker(&town, &["step", "done", "boil", "--run", "gt-b#1"]));
    assert_says(&other, &["worker of gt-a#1", "its own run only"]);
    assert_says(&refusal(&worker(&town, &["prime", "--run", "gt-b"])), &["gt run show gt-b#1"]);

    town.gt(["step", "done", "boil", "--run", "gt-a"]).ok();
    worker(&town, &["step", "list", "--run", "gt-a#1"]).ok();
    assert_eq!(town.gt_json(&["step", "list", "--run", "gt-a"])["progress"]["done"], 1);
    assert_says(&town.gt(["step", "list", "--run", "gt-b"]).ok().stdout, &["follows no recipe"]);
    let none = refusal(&town.gt(["step", "done", "boil", "--run", "gt-b"]));
    assert_says(&none, &["follows no recipe"]);

    town.gt(["run", "cancel", "gt-a"]).ok();
    let over = refusal(&town.gt(["step", "done", "steep", "--run", "gt-a#1"]));
    assert_says(&over, &["gt-a#1 is cancelled", "live run"]);
    assert_eq!(town.gt_json(&["step", "list", "--run", "gt-a"])["progress"]["done"], 1);
}
