//! The limits of a single run: its time, its cost and its tokens.

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::support::{Steps as _, assert_says, gastown_with, texts};
use crate::trees::{Trees as _, town_with_trees};

/// Shell functions of an agent that tells of its model calls: `call <number> <tokens>`.
const CALLS: &str = r#"
header=$(echo "$OTEL_EXPORTER_OTLP_HEADERS" | sed 's/=/: /')
call() {
    curl --silent --output /dev/null --header "$header" "$OTEL_EXPORTER_OTLP_ENDPOINT/v1/logs" --data '{"resourceLogs":
[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"'$1'","attributes":[{"key":"event.name","value":{"stringValue":
"api_request"}},{"key":"model","value":{"stringValue":"gpt-5"}},{"key":"input_tokens","value":{"intValue":"'$2'"}}]}]}]}]}'
}
until_file() { while [ ! -e "$GT_TOWN_ROOT/$1" ] && [ -d "$GT_TOWN_ROOT" ]; do sleep 0.02; done; }
"#;

/// A town whose agent follows this script and tells of its model calls.
fn town_of(script: &str) -> Sandbox {
    let town = gastown_with(&format!("{CALLS}{script}"));
    tells_calls(&town);
    town
}

fn tells_calls(town: &Sandbox) {
    town.write(".gt/runtimes/custom.toml", "[telemetry]\nOTEL_LOGS_EXPORTER = 'otlp'\n");
}

fn set(town: &Sandbox, settings: &[(&str, &str)]) {
    for (setting, value) in settings {
        town.gt(["config", "set", setting, value]).ok();
    }
}

/// The only row of the inbox.
#[track_caller]
fn inbox_row(town: &Sandbox) -> Value {
    let rows = town.gt_json(&["inbox"]);
    assert_eq!(texts(&rows, "code"), ["over-limit"]);
    rows[0].clone()
}

#[track_caller]
fn wait_until_ended(town: &Sandbox, run: &str) -> Value {
    wait_until(&format!("{run} has ended"), || town.run_of(run)["ended_at"].is_string());
    town.run_of(run)
}

#[test]
fn a_run_over_its_tokens_is_asked_to_hand_over_and_then_ended() {
    // Given an agent that makes one call for the asking, one more, and would go on for ever,
    let town = town_of(
        "call 1 900\ncall 2 200\nuntil_file asked\ncall 3 150\ncall 4 150\nuntil_file never",
    );
    set(&town, &[("budget.run_tokens", "1000"), ("budget.handoff_tokens", "200")]);
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a"]).ok();

    // Then it is asked at its limit,
    wait_until("it is asked", || town.run_of("gt-a#1")["over_limit"] == "tokens");
    let asked = town.gt_json(&["mail", "show", "1"]);
    assert_eq!((&asked["kind"], &asked["to"]), (&json!("nudge"), &json!("gt-a")));
    assert_says(&asked["body"].to_string(), &["1100 of 1000 tokens", "gt handoff", "gt done"]);
    assert_eq!(town.run_of("gt-a#1")["state"], "running");

    // and ended when the handoff has used its share, with no call after that.
    town.write("asked", "");
    let run = wait_until_ended(&town, "gt-a#1");
    assert_eq!((&run["state"], &run["over_limit"]), (&json!("lost"), &json!("tokens")));
    assert_eq!(run["tokens"], 1400);

    // A person decides about it, and it is not tried again.
    let row = inbox_row(&town);
    assert_eq!(row["bead"], "gt-a");
    assert_eq!(
        row["commands"],
        json!(["gt run log gt-a#1", "gt scheduler retry gt-a", "bd close gt-a"])
    );
    assert_says(
        &town.gt(["why", "gt-a"]).stdout,
        &["budget.run_tokens", "gt scheduler retry gt-a"],
    );
    assert_eq!(town.states("gt-a"), ["lost"]);
    let again = town.gt(["deacon", "redispatch", "gt-a"]);
    assert_says(&format!("{}{}", again.stdout, again.stderr), &["only a person lifts that"]);
    let events: Vec<Value> = town.events();
    assert!(events.iter().any(|event| event["event_type"] == "over_limit"), "{events:?}");
    assert_eq!(events.iter().filter(|event| event["event_type"] == "escalated").count(), 0);
}

#[test]
fn the_limit_of_a_rig_counts_before_that_of_the_town() {
    let town = town_of("call 1 2000\nuntil_file never");
    let handoff = ("budget.handoff_tokens", "0");
    set(&town, &[("budget.run_tokens", "100"), ("rig.gastown.budget.run_tokens", "3000"), handoff]);
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a"]).ok();
    wait_until("it is told", || town.run_of("gt-a#1")["tokens"] == 2000);
    assert_eq!(town.run_of("gt-a#1")["over_limit"], Value::Null);

    // A limit that was raised counts for the runs that are under way.
    set(&town, &[("rig.gastown.budget.run_tokens", "1500")]);
    town.gt(["run", "cancel", "gt-a"]).ok();
    town.gt(["sling", "gt-a"]).ok();
    let run = wait_until_ended(&town, "gt-a#2");
    assert_eq!((&run["state"], &run["over_limit"]), (&json!("lost"), &json!("tokens")));
}

#[test]
fn a_run_ends_at_its_time_and_its_work_is_kept() {
    // Given an agent that tells no usage at all, and works in a tree,
    let town = town_with_trees("process");
    let waits =
        "echo half > half.txt; touch begun; while [ -d \"$GT_TOWN_ROOT\" ]; do sleep 0.02; done";
    town.script("we-1", waits);
    set(&town, &[("budget.run_time", "1s"), ("budget.handoff_time", "1s")]);

    town.begin("we-1");

    let run = wait_until_ended(&town, "we-1#1");
    assert_eq!((&run["state"], &run["over_limit"]), (&json!("lost"), &json!("time")));
    assert_eq!(town.rescued("we-1#1", "half.txt").trim(), "half");
    assert_eq!(inbox_row(&town)["bead"], "we-1");
}

#[test]
fn a_worker_that_hands_over_leaves_its_note_to_the_next_run() {
    // Given an agent that sees that it is asked to hand over, and does,
    let town = town_with_trees("process");
    tells_calls(&town);
    let agent = format!(
        "{CALLS}if [ $GT_RUN = we-1#1 ]; then\n  call 1 500; echo half > half.txt; touch begun\n  \
         until gt mail inbox | grep -q 'ends soon'; do sleep 0.05; done\n  \
         touch \"$GT_TOWN_ROOT/seen\"; until_file never\nfi\ngt prime; echo whole > half.txt; gt done"
    );
    town.script("we-1", &agent);
    set(&town, &[("budget.run_tokens", "400")]);
    town.begin("we-1");
    wait_until("it sees that", || town.cwd().join("seen").exists());
    let note = "The other half is missing";
    let said = town.gt(["handoff", "--run", "we-1", "-m", note]).ok().stdout;
    assert_says(&said, &["we-1#1 ends here: it is over its limit of tokens", "msg-2"]);

    // Then the run ends, instead of going on in a fresh session,
    let run = wait_until_ended(&town, "we-1#1");
    assert_eq!((&run["state"], &run["over_limit"]), (&json!("lost"), &json!("tokens")));
    assert_eq!(inbox_row(&town)["bead"], "we-1");

    // and the run that a person allows reads the note.
    town.gt(["scheduler", "retry", "we-1"]).ok();
    town.gt(["scheduler", "run"]).ok();
    let run = wait_until_ended(&town, "we-1#2");
    assert_eq!((&run["state"], &run["over_limit"]), (&json!("done"), &Value::Null));
    assert_says(&town.gt(["run", "log", "we-1#2"]).ok().stdout, &[note]);
}

#[test]
fn a_worker_that_finishes_when_it_is_asked_is_done() {
    let town = town_of("call 1 500\nuntil_file asked\nexit 0");
    set(&town, &[("budget.run_cost", "0.0005")]);
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a"]).ok();
    wait_until("it is asked", || town.run_of("gt-a#1")["over_limit"] == "cost");
    town.write("asked", "");
    assert_eq!(wait_until_ended(&town, "gt-a#1")["state"], "done");
    assert_eq!(town.gt_json(&["inbox"]), json!([]));
}

#[test]
fn the_doctor_names_runtimes_that_tell_nothing_while_they_work() {
    let town = gastown_with("exit 0");
    let told = || town.gt(["doctor"]).ok().stdout;
    assert!(!told().contains("budget.run_time"), "{}", told());
    set(&town, &[("budget.run_cost", "5")]);
    assert_says(&told(), &["gastown (its own command): the usage is known when a run has ended"]);
    tells_calls(&town);
    assert!(!told().contains("budget.run_time"), "{}", told());
}
