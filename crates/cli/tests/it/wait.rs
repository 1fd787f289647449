//! `gt wait`: until work is over, or only a person can get it further.

use gt_testkit::wait_until;
use serde_json::{Value, json};

use crate::agents::{Stage as _, town_with_agent};
use crate::support::{Steps as _, assert_says, json_refusal, refusal, texts};

/// The result of each bead, as `gt wait --json` prints it.
fn results(waited: &Value) -> Vec<(String, String)> {
    let beads = waited["beads"].as_array().unwrap();
    let text = |bead: &Value, field: &str| bead[field].as_str().unwrap().to_owned();
    beads.iter().map(|bead| (text(bead, "id"), text(bead, "result"))).collect()
}

#[test]
fn waiting_ends_when_the_work_has_ended_well() {
    let town = town_with_agent("wait_for go");
    town.bead("we-a", &[]);
    town.bead("we-b", &[]);
    town.gt(["sling", "we-a", "we-b"]).ok();
    let waiting = town.start_gt(&["wait", "we-a", "we-b"]).start();
    town.wait_for_agent("we-b#1");

    town.allow("go");

    let waited = waiting.wait().ok();
    assert_says(&waited.stdout, &["✓ we-a is done: we-a\n", "✓ we-b is done: we-b\n"]);
    // A run that is over is not waited for.
    let again = town.gt_json(&["wait", "we-a"]);
    assert_eq!((&again["ok"], &again["timed_out"]), (&json!(true), &json!(false)));
    assert_eq!(results(&again), [("we-a".to_owned(), "done".to_owned())]);
    town.assert_quiet();
}

#[test]
fn a_failed_bead_is_told_with_the_reason() {
    let town = town_with_agent("[ $bead = we-a ] && exit 7");
    town.bead("we-a", &[]);
    town.bead("we-b", &[]);
    town.gt(["sling", "we-a", "we-b"]).ok();

    let waited = town.gt(["wait", "we-a", "we-b"]).fails(1);

    assert_says(
        &waited.stdout,
        &["✗ we-a failed (it ended with exit status 7): we-a", "✓ we-b is done"],
    );
    assert_says(&waited.stderr, &["Error: of 2 beads, 1 failed"]);
    let waited = town.gt(["wait", "we-a", "--json"]).fails(1).json();
    assert_eq!(waited["beads"][0]["why"], "it ended with exit status 7");
    town.assert_quiet();
}

#[test]
fn the_time_may_be_up_first() {
    let town = town_with_agent("wait_for go");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    let waited = town.gt(["wait", "we-a", "--timeout", "50ms"]).fails(1);
    assert_says(&waited.stdout, &["… we-a is not over"]);
    assert_says(&waited.stderr, &["the time is up: of 1 bead, 1 not over"]);
    let waited = town.gt(["wait", "--all", "--timeout", "50ms", "--json"]).fails(1).json();
    assert_eq!(waited["timed_out"], true);
    assert_eq!(results(&waited), [("we-a".to_owned(), "going".to_owned())]);
    assert_says(&refusal(&town.gt(["wait", "we-a", "--timeout", "soon"])), &["soon"]);

    town.allow("go");
    town.assert_quiet();
}

#[test]
fn a_bead_that_needs_a_person_is_not_waited_for() {
    let town = town_with_agent("");
    for id in ["we-a", "we-b", "we-c", "we-d"] {
        town.bead(id, &[]);
    }
    town.bd(["dep", "add", "we-c", "we-b"]).ok();
    town.gt(["sling", "we-a", "--queue"]).ok();
    // we-c is scheduled, and waits for we-b, which is not scheduled.
    town.gt(["sling", "we-c"]).ok();
    town.bd(["update", "we-d", "--claim", "--actor", "ann"]).ok();

    let waited = town.gt(["wait", "we-a", "we-b", "we-c", "we-d", "--json"]).fails(1).json();

    let codes = |at: usize| texts(&waited["beads"][at]["reasons"], "code");
    assert_eq!(codes(0), ["queue-gate"]);
    assert_eq!(codes(1), ["not-scheduled"]);
    assert_eq!(codes(2), ["blocked"]);
    assert_eq!(codes(3), ["claimed"]);
    let waited = town.gt(["wait", "--all"]).fails(1);
    assert_says(
        &waited.stdout,
        &["! we-a is stuck (queue gate", "see gt why we-a", "! we-c is stuck"],
    );
    assert_says(&waited.stderr, &["of 2 beads, 2 stuck"]);
}

#[test]
fn a_bead_blocked_by_running_work_is_waited_for() {
    let town = town_with_agent("[ $bead = we-a ] && wait_for go");
    town.bead("we-a", &[]);
    town.bead("we-b", &["--deps", "we-a"]);
    town.bead("we-c", &["--deps", "we-b"]);
    town.gt(["sling", "we-a", "we-b", "we-c"]).ok();
    town.wait_for_agent("we-a#1");
    let waiting = town.start_gt(&["wait", "we-c"]).start();

    town.allow("go");
    for id in ["we-a", "we-b"] {
        wait_until("one is done", || town.show(id)["status"] == "closed");
        town.cycle().ok();
    }

    assert_eq!(waiting.wait().ok().line(), "✓ we-c is done: we-c");
    assert_eq!(town.story()[..2], ["+ we-a#1", "- we-a#1"]);
    town.assert_quiet();
}

#[test]
fn wait_all_includes_work_scheduled_meanwhile() {
    let town = town_with_agent("wait_for $bead.go; [ $bead != we-b ] || exit 1");
    assert_eq!(town.gt(["wait", "--all"]).ok().line(), "Nothing is scheduled or running");
    town.bead("we-a", &[]);
    town.bead("we-b", &[]);
    town.gt(["sling", "we-a"]).ok();
    let waiting = town.start_gt(&["wait", "--all", "--json"]).start();
    town.wait_for_agent("we-a#1");
    town.gt(["sling", "we-b"]).ok();

    town.allow("we-b.go");
    wait_until("the second has failed", || town.show("we-b")["status"] == "closed");
    town.allow("we-a.go");

    let waited = waiting.wait().fails(1).json();
    let expected = [("we-a", "done"), ("we-b", "failed")];
    assert_eq!(results(&waited), expected.map(|(id, result)| (id.to_owned(), result.to_owned())));
    town.assert_quiet();
}

#[test]
fn an_epic_stands_for_its_parts() {
    let town = town_with_agent("");
    town.bead("we-e", &["--type", "epic"]);
    let mut parts = ["one", "two"].map(|title| town.create(title, &["--parent", "we-e"]));
    parts.sort();
    town.gt(["sling", "we-e"]).ok();

    let waited = town.gt_json(&["wait", "we-e"]);

    let mut beads = texts(&waited["beads"], "id");
    beads.sort();
    assert_eq!(beads, parts);
    town.assert_quiet();
}

#[test]
fn a_run_whose_processes_died_is_noticed() {
    let town = town_with_agent("wait_for never");
    town.gt(["config", "set", "recovery.max_attempts", "1"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let waiting = town.start_gt(&["wait", "we-a", "--json"]).start();

    // No process is left to record the end.
    let supervisor = town.supervisor_of("we-a#1");
    town.signal("KILL", &supervisor);
    town.signal("KILL", &town.agent_of("we-a"));

    let waited = waiting.wait().fails(1).json();
    assert_eq!(texts(&waited["beads"][0]["reasons"], "code"), ["attempts-used-up"]);
    assert_eq!(town.states("we-a"), ["lost"]);
    town.assert_quiet();
}

#[test]
fn a_wait_without_a_dispatcher_says_so() {
    let town = town_with_agent("");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    let waiting = town.start_gt(&["wait", "we-a"]).start();

    wait_until("it says so", || waiting.stderr().contains("gt scheduler run"));
    town.cycle().ok();

    waiting.wait().ok();
    town.assert_quiet();
}

#[test]
fn a_wait_without_a_bead_is_refused() {
    let town = town_with_agent("");
    town.gt(["wait"]).fails(2);
    town.gt(["wait", "we-a", "--all"]).fails(2);
    assert_says(&json_refusal(&town.gt(["wait", "we-a", "--json"])), &["we-a"]);
}

#[test]
fn times_are_told_as_people_read_them() {
    let town = town_with_agent("exit 0");
    town.bead("we-a", &[]);
    town.gt(["scheduler", "pause"]).ok();
    town.gt(["sling", "we-a"]).ok();

    let waited = town.gt(["wait", "we-a"]).fails(1);

    assert_says(&waited.stdout, &["! we-a is stuck (paused by ", " since "]);
    assert!(!waited.stdout.contains("Z)"), "{waited}");
    let next = town.gt(["work", "next", "--agent", "joe"]).ok();
    assert_says(&next.stdout, &["Nothing to do: paused by ", " since "]);
    assert!(!next.stdout.contains("Z;"), "{next}");
}
