//! `gt queue`: putting beads in line, and the words it shares with `gt scheduler`.

use gt_testkit::wait_until;
use serde_json::json;

use crate::support::{
    Steps, assert_says, gastown, gastown_that_takes_time, gastown_with, let_work_end, refusal,
    texts, town, wait_for_status,
};

#[test]
fn a_bead_queued_in_direct_mode_waits_for_gt_queue_run() {
    let town = gastown();
    town.bead("gt-a", &[]);

    let said = town.gt(["queue", "gt-a"]).ok();

    assert_says(&said.stdout, &["✓ Scheduled gt-a → gastown (hq-ctx-00001), waiting: queue gate"]);
    assert_says(&said.stderr, &["It waits for gt queue run", "queue.enabled true"]);
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town.bead("gt-b", &[]);
    town.gt(["sling", "gt-b"]).ok();
    let list = town.gt(["queue", "list"]).ok();
    assert_says(
        &list.stdout,
        &["  gt-a  gt-a  (queue gate: waits for a run by hand)\n  gt-b  gt-b\n"],
    );
    assert_eq!(list.stderr, "", "something starts");
    let (whole, why) = (town.gt_json(&["queue", "list"]), town.gt_json(&["why", "gt-a"]));
    assert_eq!(texts(&whole[0]["reasons"], "code"), texts(&why["reasons"], "code"));
    town.gt(["queue", "clear", "--bead", "gt-b"]).ok();
    town.gt(["config", "set", "scheduler.max_polecats", "-1"]).ok();
    let run = town.command(town.gt_path()).args(["queue", "run"]);
    let by_daemon = run.clone().env("GT_DAEMON", "1").env("BD_DOLT_AUTO_COMMIT", "off").run().ok();
    assert_says(&by_daemon.stdout, &["Dispatched: 0", "Skipped (queue.enabled is false): 1"]);
    assert!(!by_daemon.stdout.contains("capacity)"), "{by_daemon}");
    assert_says(&run.run().ok().stdout, &["Found 1 queued bead(s)", "Dispatched: 1"]);
    wait_for_status(&town, "gt-a", "closed");
}

#[test]
fn with_the_queue_enabled_the_daemon_opens_the_gate() {
    let town = gastown();
    town.gt(["config", "set", "queue.enabled", "true"]).ok();
    town.bead("gt-a", &[]);

    let said = town.gt(["queue", "gt-a"]).ok();

    assert_eq!(
        said.stderr,
        "warning: no daemon is running; start it with gt up, or start what is ready with gt scheduler run\n"
    );
    let run = town.command(town.gt_path()).args(["scheduler", "run"]).env("GT_DAEMON", "1").run();
    assert_says(&run.ok().stdout, &["Dispatched: 1"]);
}

#[test]
fn words_of_commands_win_over_beads_and_every_flag_of_sling_is_taken() {
    let town = gastown();
    town.bead("gt-list", &[]);
    town.bead("gt-a", &[]);

    assert_eq!(town.gt(["queue", "list"]).ok().stdout, "Queued beads: 0\n");
    town.gt(["queue", "gt-list"]).ok();
    let flags = ["queue", "gt-a", "gastown", "--force", "--args", "x", "--no-convoy", "--ralph"];
    let merge = ["--merge", "direct", "--base-branch", "next", "--agent", "scripted", "--owned"];
    let ran = town.command(town.gt_path()).args(flags).args(&merge[..6]).run();
    assert_says(&ran.ok().stdout, &["✓ Scheduled gt-a"]);
    assert_eq!(texts(&town.gt_json(&["queue", "list"]), "id"), ["gt-list", "gt-a"]);
    let error = refusal(&town.gt(["queue", "--dry-run"]));
    assert_says(&error, &["name what is to be slung"]);
    for (slip, verb) in [("lits", "gt queue list?"), ("retyr", "gt queue retry?")] {
        assert_says(&refusal(&town.gt(["queue", slip])), &[slip, "did you mean", verb]);
    }
    town.bead("gt-lits", &[]);
    town.gt(["queue", "lits"]).ok();
}

#[test]
fn caps_hold_and_the_rest_is_counted() {
    let town = gastown_that_takes_time();
    for number in 1..=7 {
        town.bead(&format!("gt-{number}"), &[]);
    }
    town.bead("gt-8", &["--deps", "gt-1"]);
    let ids = ["gt-1", "gt-2", "gt-3", "gt-4", "gt-5", "gt-6", "gt-7", "gt-8"];
    town.command(town.gt_path()).arg("queue").args(ids).run().ok();

    let run = |flags: &[&str]| town.command(town.gt_path()).args(["queue", "run"]).args(flags);
    let said = run(&["--queue-max-polecats", "3", "--spawn-batch-size", "2"]).run().ok().stdout;
    assert_eq!(
        said,
        "Found 8 queued bead(s)\nCapacity: 0/3 polecats running, 3 slots available\nDispatched: 3\n\
         Skipped (capacity): 4\nWaiting for something else: 1 (gt queue list says what)\n  \
         gt-1 → gastown (gt-1#1)  gt-1\n  gt-2 → gastown (gt-2#1)  gt-2\n  \
         gt-3 → gastown (gt-3#1)  gt-3\n"
    );
    let said = run(&["--max-polecats", "3"]).run().ok().stdout;
    assert_says(&said, &["Capacity: 3/3 polecats running, 0 slots available", "Dispatched: 0"]);
    assert_says(&said, &["Skipped (capacity): 4"]);
    let said = run(&["--batch", "1", "--max-polecats", "0", "--json"]).run().ok().json();
    assert_eq!(texts(&said["dispatched"], "run"), ["gt-4#1"]);
    assert_eq!(
        (&said["reason"], &said["skipped"], &said["free_slots"]),
        (&json!("batch"), &json!(3), &json!(null))
    );
    let said = run(&["--max-polecats", "-1", "--dry-run"]).run().ok().stdout;
    assert_says(&said, &["Capacity: 4/unlimited polecats running, unlimited slots available"]);
    assert_says(&said, &["Would dispatch: 3"]);

    let_work_end(&town);
    wait_for_status(&town, "gt-4", "closed");
}

#[test]
fn a_bare_queue_shows_the_numbers() {
    let town = gastown_that_takes_time();
    town.gt(["rig", "add", "beads", "--prefix", "bd"]).ok();
    town.gt(["config", "set", "rig.beads.command", "/bin/true {bead}"]).ok();
    for id in ["gt-1", "gt-2", "gt-3", "bd-1"] {
        town.bead(id, &[]);
    }
    town.gt(["queue", "gt-1"]).ok();
    town.gt(["queue", "run"]).ok();
    town.gt(["queue", "gt-2", "gt-3", "bd-1"]).ok();

    assert_eq!(
        town.gt(["queue"]).ok().stdout,
        "Queue Status:\n\n  Pending:  3 beads\n  Running:  1 polecat\n  Capacity: 1/10\n\n  By rig:\n    \
         gastown: 2\n    beads: 1\n"
    );
    town.gt(["config", "set", "queue.max_polecats", "0"]).ok();
    assert_says(&town.gt(["queue"]).ok().stdout, &["  Capacity: 1/unlimited\n"]);
    let bare = town.gt_json(&["queue"]);
    assert_eq!(bare, town.gt_json(&["scheduler", "status"]));
    assert_eq!(bare["queued_total"], 3);
    let_work_end(&town);
}

#[test]
fn until_done_stays_until_everything_that_can_be_done_is() {
    let town = gastown();
    town.bead("gt-1", &[]);
    town.bead("gt-2", &["--deps", "gt-1"]);
    town.bead("gt-3", &["--deps", "gt-2"]);
    town.bead("gt-4", &["--defer", "+30d"]);
    town.gt(["queue", "gt-1", "gt-2", "gt-3", "gt-4"]).ok();

    let said = town.gt(["queue", "run", "--until-done", "--max-polecats", "1"]).ok();

    assert_says(&said.stdout, &["gt-3 run done", "Started 3, done 3, failed 0; 1 still queued"]);
    for id in ["gt-1", "gt-2", "gt-3"] {
        assert_eq!(town.show(id)["status"], "closed", "{id}");
    }
    let nothing = town.gt_json(&["queue", "run", "--until-done"]);
    assert_eq!((&nothing["started"], &nothing["failed"]), (&json!(0), &json!([])));
}

#[test]
fn until_done_hears_of_work_that_others_schedule() {
    let town = gastown_that_takes_time();
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town.bead("gt-1", &[]);
    town.bead("gt-2", &[]);
    town.gt(["sling", "gt-1"]).ok();
    let run = town.command(town.gt_path()).args(["scheduler", "run", "--until-done"]).start();
    wait_for_status(&town, "gt-1", "in_progress");

    town.gt(["sling", "gt-2"]).ok();

    wait_for_status(&town, "gt-2", "in_progress");
    let_work_end(&town);
    assert_says(&run.wait().ok().stdout, &["Started 2, done 2"]);
}

#[test]
fn clearing_takes_out_one_or_all() {
    let town = gastown();
    for id in ["gt-1", "gt-2", "gt-3"] {
        town.bead(id, &[]);
    }
    town.gt(["queue", "gt-1", "gt-2", "gt-3"]).ok();

    let error = refusal(&town.gt(["queue", "clear", "--bead", "gt-1", "--bead", "gt-nope"]));
    assert_says(&error, &["gt-nope"]);
    let said = town.gt(["queue", "clear", "--bead", "gt-2"]).ok();
    assert_eq!(said.stdout, "Cleared 1 bead(s) from queue\n");
    let error = refusal(&town.gt(["queue", "clear", "--bead", "gt-2"]));
    assert_says(&error, &["gt-2 is not scheduled", "gt why gt-2"]);
    let cleared = town.gt_json(&["scheduler", "clear"]);
    assert_eq!((&cleared["cleared"], &cleared["beads"]), (&json!(2), &json!(["gt-1", "gt-3"])));
    assert_eq!(town.gt(["queue", "clear"]).ok().stdout, "Cleared 0 bead(s) from queue\n");
    assert_eq!(town.show("gt-1")["status"], "open");
    town.gt(["queue", "gt-2"]).ok();
}

#[test]
fn a_formula_that_is_gone_when_its_turn_comes_is_quarantined_and_can_be_retried() {
    let town = gastown();
    let text = "formula = \"mol-mine\"\nversion = 1\n[[steps]]\nid = \"do\"\ntitle = \"Do it\"\n";
    let file = town.write(".beads/formulas/mol-mine.formula.toml", text);
    town.bead("gt-1", &[]);
    town.gt(["queue", "mol-mine", "--on", "gt-1"]).ok();
    std::fs::remove_file(&file).unwrap();

    let ran = town.gt(["queue", "run"]).fails(1);

    assert_says(&ran.stdout, &["Dispatched: 0"]);
    assert_says(
        &ran.stderr,
        &["gt-1 was given up (quarantined)", "mol-mine", "gt scheduler retry gt-1"],
    );
    assert_eq!(town.show("gt-1")["labels"], json!(["gt:dispatch-failed"]));
    assert_eq!(town.gt_json(&["queue", "list"]), json!([]));
    let last = town.last_event();
    for which in ["gt-1", "--all"] {
        let ran = town.gt(["scheduler", "retry", which]).fails(1);
        assert_says(&ran.stderr, &["cannot retry gt-1", "mol-mine", "--formula"]);
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(town.last_event(), last, "nothing happened");
    town.write(".beads/formulas/mol-mine.formula.toml", text);
    let said = town.gt(["scheduler", "retry", "--all"]).ok();
    assert_says(&said.stdout, &["✓ Scheduled gt-1 → gastown (hq-ctx-00002)"]);
    assert_says(&town.gt(["queue", "run"]).ok().stdout, &["Dispatched: 1"]);
}

#[test]
fn a_rig_that_is_parked_meanwhile_keeps_its_work() {
    let town = gastown();
    town.bead("gt-1", &[]);
    town.gt(["queue", "gt-1"]).ok();
    town.gt(["rig", "park", "gastown"]).ok();

    assert_says(
        &town.gt(["queue", "run"]).ok().stdout,
        &["Dispatched: 0", "Waiting for something else: 1"],
    );
    assert_says(
        &town.gt(["queue", "list"]).ok().stdout,
        &[
            "\ngastown (1):\n  gt-1  gt-1  (the rig gastown is parked; queue gate: waits for a run by hand)\n",
        ],
    );
    assert_eq!(town.gt_json(&["queue", "list"])[0]["blocked"], true);
    assert_says(&town.gt(["queue", "status"]).ok().stdout, &["Queued: 1 total, 0 ready"]);
}

#[test]
fn failed_beads_are_retried_only_by_name() {
    let town = gastown_with("exit 1");
    town.bead("gt-1", &[]);
    town.bead("gt-2", &[]);
    town.gt(["sling", "gt-1"]).ok();
    wait_until("it failed", || town.show("gt-1")["outcome"] == "failed");

    let ran = town.gt(["queue", "retry", "gt-1", "gt-2", "gt-nope"]).fails(1);

    assert_says(&ran.stderr, &["gt-nope"]);
    assert_eq!(town.show("gt-1")["status"], "closed", "an unknown name stops the whole command");

    let ran = town.gt(["queue", "retry", "gt-1", "gt-2"]).fails(1);

    assert_says(&ran.stdout, &["✓ Scheduled gt-1 → gastown", "open again"]);
    assert_says(&ran.stderr, &["cannot retry gt-2: it was never scheduled"]);
    assert_eq!(town.gt(["queue", "retry"]).fails(2).stdout, "");
    let again = town.gt(["queue", "retry", "gt-1", "--json"]).fails(1).json();
    assert_says(again["errors"][0].as_str().unwrap(), &["scheduled already"]);
}

#[test]
fn a_failed_bead_that_cannot_start_is_not_retried() {
    let town = gastown_with("exit 1");
    town.bead("gt-1", &[]);
    town.gt(["sling", "gt-1"]).ok();
    wait_until("it failed", || town.show("gt-1")["outcome"] == "failed");
    let refused = |parts: &[&str]| {
        let ran = town.gt(["scheduler", "retry", "gt-1"]).fails(1);
        assert_says(&ran.stderr, &["cannot retry gt-1"]);
        assert_says(&ran.stderr, parts);
        assert_eq!(town.show("gt-1")["status"], "closed");
    };

    town.gt(["rig", "dock", "gastown"]).ok();
    refused(&["docked", "gt rig undock gastown"]);
    town.gt(["rig", "undock", "gastown"]).ok();
    town.gt(["config", "unset", "rig.gastown.command"]).ok();
    refused(&["gt config set rig.gastown.command"]);
    town.gt(["config", "set", "rig.gastown.command", "/bin/true {bead}"]).ok();

    town.gt(["scheduler", "retry", "gt-1"]).ok();
}

/// The list, the dry run and the run are the same walk.
#[test]
fn the_list_the_dry_run_and_the_run_agree() {
    let town = gastown_that_takes_time();
    town.gt(["rig", "add", "parked", "--prefix", "pk"]).ok();
    town.gt(["config", "set", "rig.parked.command", "/bin/true {bead}"]).ok();
    town.bead("gt-1", &["--priority", "3"]);
    town.bead("gt-2", &["--deps", "gt-1"]);
    town.bead("gt-3", &["--defer", "+30d"]);
    town.bead("gt-4", &["--priority", "0"]);
    town.bead("gt-5", &[]);
    town.bead("gt-6", &[]);
    town.bead("pk-1", &[]);
    let ids = ["gt-1", "gt-2", "gt-3", "gt-4", "gt-5", "gt-6", "pk-1"];
    town.command(town.gt_path()).arg("queue").args(ids).run().ok();
    town.gt(["rig", "park", "parked"]).ok();
    town.bd(["update", "gt-5", "--assignee", "ann"]).ok();
    town.gt(["config", "set", "queue.max_polecats", "2"]).ok();
    town.gt(["config", "set", "queue.enabled", "true"]).ok();

    let list = town.gt_json(&["queue", "list"]);
    let free = |entry: &&serde_json::Value| entry["reasons"] == json!([]);
    let startable: Vec<_> = list.as_array().unwrap().iter().filter(free).cloned().collect();
    assert_eq!(texts(&json!(startable), "id"), ["gt-4", "gt-6"]);
    let reasons: Vec<_> =
        list.as_array().unwrap().iter().map(|e| e["reasons"][0]["code"].clone()).collect();
    assert_eq!(
        json!(reasons),
        json!([null, "blocked", "deferred", "assigned", null, "rig-parked", "no-slot"])
    );
    let status = town.gt_json(&["queue", "status"]);
    assert_eq!((&status["queued_total"], &status["queued_ready"]), (&json!(7), &json!(3)));
    assert_eq!(status["beads"], list);
    let dry = town.gt_json(&["queue", "run", "--dry-run"]);
    assert_eq!(texts(&dry["dispatched"], "id"), ["gt-4", "gt-6"]);
    let run = town.gt_json(&["queue", "run"]);
    assert_eq!(texts(&run["dispatched"], "id"), ["gt-4", "gt-6"]);
    assert_eq!((&run["skipped"], &run["reason"]), (&json!(1), &json!("capacity")));
    let_work_end(&town);
}

#[test]
fn failed_work_that_agents_ask_for_is_tried_again_with_the_rest() {
    let town = town();
    town.gt(["rig", "add", "er", "--executor", "pull"]).ok();
    let made = town.gt_json(&["work", "add", "task", "Do it", "--project", "er"]);
    let bead = made["bead"].as_str().unwrap();
    town.gt(["work", "next", "--agent", "a"]).ok();
    town.gt(["work", "update", bead, "--status", "failed", "--notes", "no"]).ok();

    let said = town.gt(["scheduler", "retry", "--all"]).ok().stdout;

    assert_says(&said, &[bead, "is open again"]);
    assert_eq!(town.show(bead)["status"], "open");
}
