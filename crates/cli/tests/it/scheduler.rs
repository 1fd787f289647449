//! `gt scheduler`: how it stands, and how it is steered.

use gt_testkit::wait_until;
use serde_json::json;

use crate::support::{
    Steps, assert_says, gastown, gastown_that_takes_time, gastown_with, json_refusal, keys,
    let_work_end, wait_for_status,
};

#[test]
fn the_status_in_deferred_mode() {
    let town = gastown_that_takes_time();
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town.gt(["config", "set", "rig.gastown.max_polecats", "1"]).ok();
    for id in ["gt-1", "gt-2"] {
        town.bead(id, &[]);
    }
    town.gt(["sling", "gt-1", "gt-2"]).ok();
    town.gt(["scheduler", "run"]).ok();

    let said = town.gt(["scheduler"]).ok().stdout;
    assert_eq!(said, town.gt(["scheduler", "status"]).ok().stdout);
    assert_says(&said, &["Queued: 1 total, 1 ready\n", "Running: 1/2 polecats, 1 slots free\n"]);
    assert_says(&said, &["Mode: deferred", "Last dispatch: 1, just now"]);
    assert_says(&said, &["gastown  active  1       1      1        1"]);
    assert!(!said.contains("gt-2"), "it costs the same however much waits");

    let status = town.gt_json(&["scheduler", "status"]);
    assert_eq!(
        keys(&status),
        [
            "active_polecats",
            "beads",
            "budgets",
            "capacity",
            "daemon_absence",
            "free_slots",
            "last_dispatch_at",
            "last_dispatch_count",
            "max_polecats",
            "mode",
            "parked",
            "paused",
            "queue_enabled",
            "queue_max_polecats",
            "queued_ready",
            "queued_total",
            "reasons",
            "rigs",
            "schema_version",
        ]
    );
    assert_eq!((&status["mode"], &status["max_polecats"]), (&json!("deferred"), &json!(2)));
    let bead = &status["beads"][0];
    assert_eq!(bead["id"], "gt-2");
    assert_eq!((&bead["status"], &bead["target_rig"]), (&json!("open"), &json!("gastown")));
    assert_says(bead["reason"].as_str().unwrap(), &["no slot", "rig gastown"]);
    assert_eq!(town.gt_json(&["scheduler", "list"]), status["beads"]);
    let whole = town.gt_json(&["status"]);
    assert_eq!(whole["scheduler"]["queued_total"], 1);
    assert_says(&town.gt(["status"]).ok().stdout, &["Scheduler: 1 queued, 1 ready, 1/2 polecats"]);
    let_work_end(&town);
}

#[test]
fn nothing_is_scheduled_yet() {
    let town = gastown();
    assert_says(&town.gt(["scheduler"]).ok().stdout, &["Queued: 0 total, 0 ready", "Mode: direct"]);
    assert_eq!(town.gt_json(&["scheduler", "list"]), json!([]));
    let status = town.gt_json(&["scheduler"]);
    assert_eq!((&status["beads"], &status["max_polecats"]), (&json!([]), &json!(-1)));
    assert_says(
        &town.gt(["scheduler", "run"]).ok().stdout,
        &["Found 0 queued bead(s)", "Dispatched: 0"],
    );
    town.gt(["scheduler", "lits"]).fails(2);
}

#[test]
fn pausing_stops_starts_and_nothing_else() {
    let town = gastown();
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town.bead("gt-1", &[]);

    assert_says(&town.gt(["scheduler", "pause", "--actor", "ann"]).ok().stdout, &["✓ Paused"]);
    let again = town.gt(["queue", "pause", "--actor", "bob"]).ok();
    assert_says(&again.stdout, &["Paused already by ann since", "nothing to do"]);
    town.gt(["sling", "gt-1"]).ok();
    let run = town.gt(["scheduler", "run"]).ok();
    assert_says(&run.stdout, &["Paused by ann since", "gt scheduler resume"]);
    assert!(!run.stdout.contains("Dispatched"));
    let status = town.gt_json(&["scheduler"]);
    assert_eq!((&status["paused"], &status["paused_by"]), (&json!(true), &json!("ann")));
    assert_says(
        &town.gt(["scheduler"]).ok().stdout,
        &["Queued: 1 total, 1 ready", "Paused: by ann"],
    );
    let list = town.gt(["scheduler", "list"]).ok();
    assert_says(&list.stdout, &["  gt-1  gt-1\n"]);
    assert_says(&list.stderr, &["Nothing starts: paused by ann"]);
    town.gt(["scheduler", "run", "--until-done"]).ok();
    assert_eq!(town.gt_json(&["scheduler", "run"])["paused_by"], "ann");

    assert_says(&town.gt(["scheduler", "resume"]).ok().stdout, &["✓ Resumed", "paused by ann"]);
    assert_eq!(town.gt(["scheduler", "resume"]).ok().stdout, "Not paused; nothing to do\n");
    assert_says(&town.gt(["scheduler", "run"]).ok().stdout, &["Dispatched: 1"]);
    let feed = town.gt(["feed", "--type", "paused,resumed,scheduled,dispatched"]).ok().stdout;
    assert_says(
        &feed,
        &["→ town paused (ann)", "→ town resumed", "+ gt-1 scheduled · hq-ctx-00001 · sling"],
    );
    assert_says(&feed, &["→ gt-1 dispatched · gt-1#1 · gastown/process"]);
}

#[test]
fn draining_waits_for_what_runs() {
    let town = gastown_that_takes_time();
    town.bead("gt-1", &[]);
    town.gt(["sling", "gt-1"]).ok();

    let ran = town.gt(["scheduler", "drain", "--timeout", "0s"]).fails(1);
    assert_says(&ran.stderr, &["Waiting for 1 run (gt-1#1)", "the time is over", "gt-1#1"]);
    let said = town.gt(["scheduler", "drain", "--timeout", "0s", "--json"]).fails(1).json();
    assert_eq!((&said["drained"], &said["running"]), (&json!(false), &json!(["gt-1#1"])));
    assert_eq!(town.gt_json(&["scheduler"])["paused"], true);

    let drain = town.command(town.gt_path()).args(["scheduler", "drain"]).start();
    wait_until("it waits", || drain.stderr().contains("Waiting for"));
    let_work_end(&town);
    assert_says(&drain.wait().ok().stdout, &["✓ Drained"]);
    wait_for_status(&town, "gt-1", "closed");
    town.gt(["scheduler", "drain", "--timeout", "soon"]).fails(2);
    json_refusal(&town.gt(["scheduler", "clear", "--bead", "gt-nope", "--json"]));
}

#[test]
fn a_worker_that_is_killed_loses_its_run_and_its_bead_is_started_again() {
    let once = "[ -e \"$GT_TOWN_ROOT/once\" ] || { : > \"$GT_TOWN_ROOT/once\"; kill -9 $$; }";
    let town = gastown_with(once);
    town.bead("gt-1", &[]);
    town.gt(["queue", "gt-1"]).ok();

    let said = town.gt(["scheduler", "run", "--until-done"]).ok();

    assert_says(&said.stdout, &["✗ gt-1 run lost · gt-1#1", "✓ gt-1 run done · gt-1#2"]);
    assert_says(&said.stdout, &["Started 2, done 1, failed 0; 0 still queued"]);
    assert_eq!(town.show("gt-1")["outcome"], "success");
}

#[test]
fn on_a_terminal_more_than_ten_beads_are_cleared_only_after_a_question() {
    let town = crate::agents::town_with_agent("true");
    let ids: Vec<String> = (1..=11).map(|number| format!("we-{number}")).collect();
    for id in &ids {
        town.bead(id, &[]);
    }
    let clear = |flags: &str, answer: &str| {
        let command = format!("'{}' scheduler clear {flags}", town.gt_path().display());
        let script = town.command("script").args(["-qec", &command, "/dev/null"]);
        script.env("TERM", "xterm").stdin(answer).run().ok().stdout
    };
    let queue = || {
        let words: Vec<&str> =
            ["queue"].into_iter().chain(ids.iter().map(String::as_str)).collect();
        town.gt(words).ok();
    };
    let queued = || town.gt_json(&["scheduler", "status"])["queued_total"].clone();
    queue();

    assert_says(
        &clear("", "n\n"),
        &["Take all 11 beads out of the queue? [y/N]", "Nothing was changed"],
    );
    assert_eq!(queued(), 11);
    assert_says(&clear("", "yes\n"), &["Cleared 11 bead(s) from queue"]);
    queue();
    assert!(!clear("--yes", "").contains("[y/N]"));
    // Ten go without a question, and so does everything where no person could answer.
    queue();
    town.gt(["scheduler", "clear", "--bead", "we-1"]).ok();
    assert!(!clear("", "").contains("[y/N]"));
    queue();
    town.gt(["scheduler", "clear"]).ok();
    assert_eq!(queued(), 0);
}
