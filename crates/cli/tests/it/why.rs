//! `gt why`: a true answer for every bead.

use gt_testkit::wait_until;
use serde_json::json;

use crate::agents::{Stage as _, set_agent, town_with_agent};
use crate::support::{Steps as _, assert_says, keys, refusal, strings, texts};

#[test]
fn an_unscheduled_bead_says_so_before_other_reasons() {
    let town = town_with_agent("");
    town.bead("we-a", &[]);
    town.bead("we-b", &["--deps", "we-a"]);

    let why = town.why("we-a");
    assert_eq!((&why["state"], &why["status"]), (&json!("idle"), &json!("open")));
    assert_eq!(why["reasons"][0]["remedy"], "gt sling we-a");
    assert_eq!(
        town.gt(["why", "we-a"]).ok().stdout,
        "we-a  we-a\nis not scheduled\n  → gt sling we-a\n"
    );
    // That its blocker is closed would not start it.
    assert_eq!(town.reasons("we-b"), ["blocked", "not-scheduled"]);
    let said = town.gt(["why", "we-b"]).ok().stdout;
    assert_says(
        &said,
        &["these 2 reasons", "• blocked by we-a\n  → that is over when we-a is closed"],
    );
}

#[test]
fn a_running_bead_names_its_run() {
    let town = town_with_agent("wait_for go");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");

    let why = town.why("we-a");
    assert_eq!((&why["state"], &why["run"]["id"]), (&json!("running"), &json!("we-a#1")));
    let said = town.gt(["why", "we-a"]).ok().stdout;
    assert_says(&said, &["is running as we-a#1 for ", "→ gt run log we-a#1 -f follows it"]);
    town.allow("go");
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");
    let said = town.gt(["why", "we-a"]).ok().stdout;
    assert_says(&said, &["is over: done (done by we-a#1)", "Last run", "bd reopen we-a"]);
    town.assert_quiet();
}

#[test]
fn without_a_slot_it_names_who_has_them_and_who_is_before_it() {
    let town = town_with_agent("wait_for go");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    for id in ["we-a", "we-b", "we-c"] {
        town.bead(id, &[]);
    }
    town.gt(["sling", "we-a", "we-b", "we-c"]).ok();
    assert_eq!(town.why("we-a")["state"], "next");
    town.cycle().ok();
    town.wait_for_agent("we-a#1");

    let why = town.why("we-c");

    assert_eq!((&why["state"], &why["reasons"][0]["code"]), (&json!("waiting"), &json!("no-slot")));
    assert_eq!(texts(&why["holders"], "id"), ["we-a#1"]);
    assert_eq!((&why["line"]["position"], &why["line"]["of"]), (&json!(2), &json!(2)));
    assert_eq!(strings(&why["line"]["ahead"]), ["we-b"]);
    let said = town.gt(["why", "we-c"]).ok().stdout;
    assert_says(
        &said,
        &[
            "waits, for this reason:",
            "gt config set scheduler.max_polecats <n>",
            "In line  2 of 2\n  after we-b\n",
            "Slots are held by\n  we-a#1  running",
            "Scheduled  hq-ctx-0000",
        ],
    );
    assert_eq!(
        keys(&why),
        [
            "attempts",
            "context",
            "convoys",
            "daemon_absence",
            "holders",
            "id",
            "line",
            "max_attempts",
            "needs_you",
            "reasons",
            "schema_version",
            "state",
            "status",
            "title"
        ]
    );
    // The name of a context means its bead.
    let context = why["context"]["id"].as_str().unwrap();
    assert_eq!(town.why(context)["id"], "we-c");
    town.gt(["unsling", "we-b", "we-c"]).ok();
    town.allow("go");
    town.assert_quiet();
}

#[test]
fn every_reason_that_holds_is_given() {
    let town = town_with_agent("");
    town.bead("we-a", &[]);
    town.bead("we-b", &["--deps", "we-a"]);
    town.gt(["sling", "we-b", "--queue"]).ok();
    town.gt(["rig", "park", "web"]).ok();
    town.gt(["scheduler", "pause", "--actor", "ann"]).ok();

    let why = town.why("we-b");

    assert_eq!(texts(&why["reasons"], "code"), ["blocked", "rig-parked", "paused", "queue-gate"]);
    let remedies = texts(&why["reasons"], "remedy");
    assert_eq!(remedies[0], "it starts when we-a is closed");
    assert_eq!(remedies[1], "gt rig unpark web");
    assert_eq!(remedies[2], "gt scheduler resume");
    let said = town.gt(["why", "we-b"]).ok().stdout;
    assert_says(&said, &["these 4 reasons", "• paused by ann since "]);
}

#[test]
fn beads_that_are_not_dispatched_say_why() {
    let town = town_with_agent("");
    town.bead("we-e", &["--type", "epic"]);
    town.bead("hq-a", &[]);
    town.bead("we-c", &[]);
    town.bd(["update", "we-c", "--claim", "--actor", "ann"]).ok();
    town.bead("we-d", &[]);
    town.bd(["defer", "we-d"]).ok();
    town.bead("we-f", &["--assignee", "bob"]);
    town.bead("we-g", &[]);
    town.bd(["close", "we-g"]).ok();

    for (id, code, remedy) in [
        ("we-e", "not-slingable", "gt sling we-e schedules the beads that it is made of"),
        ("hq-a", "town-level", "bd update hq-a --rig"),
        ("we-c", "claimed", "bd update we-c --status open"),
        ("we-d", "deferred", "bd undefer we-d"),
        ("we-f", "assigned", "gt sling we-f --force"),
        ("we-g", "status", "bd reopen we-g"),
    ] {
        let why = town.why(id);
        assert_eq!(why["reasons"][0]["code"], code, "{id}");
        assert_says(why["reasons"][0]["remedy"].as_str().unwrap(), &[remedy]);
        town.gt(["why", id]).ok();
    }
    assert_says(&refusal(&town.gt(["why", "we-x"])), &["we-x"]);
    assert_says(&refusal(&town.gt(["why", "hq-ctx-zzzzz"])), &["hq-ctx-zzzzz"]);
}

#[test]
fn a_convoy_is_its_parts() {
    let town = town_with_agent("");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a", "--queue"]).ok();
    let convoy = town.ids(&["list", "--type", "convoy"]).remove(0);

    let why = town.why(&convoy);

    assert_eq!(texts(&why["reasons"], "code"), ["members-open"]);
    assert_eq!((&why["state"], &why["causes"][0]["id"]), (&json!("waiting"), &json!("we-a")));
    let remedy = why["reasons"][0]["remedy"].as_str().unwrap();
    assert_says(remedy, &[&format!("gt convoy status {convoy}")]);
}

#[test]
fn a_start_that_failed_is_told_with_its_reason() {
    let town = town_with_agent("");
    town.gt(["config", "set", "rig.web.command", "no-such-program {bead}"]).ok();
    town.bead("we-a", &[]);

    town.gt(["sling", "we-a"]).fails(1);

    let why = town.why("we-a");
    assert_eq!((&why["state"], &why["reasons"][0]["code"]), (&json!("waiting"), &json!("backoff")));
    assert_eq!(why["context"]["failures"], 1);
    assert_says(why["context"]["last_failure"].as_str().unwrap(), &["no-such-program"]);
    let said = town.gt(["why", "we-a"]).ok().stdout;
    assert_says(&said, &["Failed starts", "1, the last: cannot start no-such-program"]);
    set_agent(&town, "");
    town.assert_quiet();
}

#[test]
fn why_follows_the_blockers_to_the_root_cause() {
    let town = town_with_agent("");
    town.bead("we-a", &[]);
    town.bead("we-b", &["--deps", "we-a"]);
    town.bead("we-c", &["--deps", "we-b"]);

    let why = town.why("we-c");

    assert_eq!(texts(&why["causes"], "id"), ["we-b", "we-a"]);
    assert_eq!(why["causes"][1]["reasons"][0]["code"], "not-scheduled");
    assert_eq!(why["causes"][1]["remedy"], "gt sling we-a");
    let said = town.gt(["why", "we-c"]).ok().stdout;
    assert_says(
        &said,
        &[
            "Root cause\n  we-c waits for we-b waits for we-a\n",
            "  we-a \"we-a\" (open): not scheduled\n  → gt sling we-a\n",
        ],
    );
    assert!(town.why("we-a").get("causes").is_none());
    town.bd(["defer", "we-a", "--until", "2199-05-31"]).ok();
    let said = town.gt(["why", "we-c"]).ok().stdout;
    assert_says(&said, &["(deferred): deferred until 2199-05-31 00:00:00\n"]);
}

#[test]
fn why_names_a_failed_blocker_with_the_last_line_that_its_worker_printed() {
    let town = town_with_agent("echo \"no space for $bead\"; exit 3");
    town.bead("we-a", &[]);
    town.bead("we-b", &["--deps", "we-a"]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    let failed = "it ended with exit status 3; last output: no space for we-a";
    assert_eq!(town.show("we-a")["close_reason"], failed);
    let said = town.gt(["why", "we-b"]).ok().stdout;
    assert_says(
        &said,
        &[&format!("  we-a \"we-a\" (failed): {failed}"), "gt scheduler retry we-a"],
    );
    // A bead that failed does not look like one that is done.
    let feed = town.gt(["feed", "--limit", "20"]).ok().stdout;
    assert_says(&feed, &["✗ we-a closed as failed · we-a"]);
    assert!(!feed.contains("✓ we-a closed"), "{feed}");
    assert_says(&town.bd(["list", "--all"]).ok().stdout, &["closed (failed)"]);
    town.assert_quiet();
}

#[test]
fn ready_work_without_a_daemon_is_the_first_line_everywhere() {
    let town = town_with_agent("");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    let commands = [&["status"][..], &["scheduler", "status"], &["scheduler", "list"]];
    for command in commands {
        let said = town.gt(command.iter().copied()).ok().stdout;
        assert!(!said.contains("No daemon is running"), "nothing is ready: {said}");
    }
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    let line = "No daemon is running and 1 bead is ready; start the daemon with gt up\n";
    for command in commands.into_iter().chain([&["why", "we-a"][..]]) {
        let said = town.gt(command.iter().copied()).ok().stdout;
        assert!(said.starts_with(line), "{command:?}: {said}");
        let json = town.gt_json(command);
        let json = json.get(0).cloned().unwrap_or(json);
        assert_eq!(json["daemon_absence"]["ready"], 1, "{command:?}");
        assert_eq!(json["daemon_absence"]["remedy"], "gt up");
    }
    let said = town.gt(["prime"]).ok().stdout;
    assert!(said.starts_with(line), "{said}");
    // Scripts read the block of the queue from its first line on.
    assert_eq!(town.gt(["queue"]).ok().stderr, format!("warning: {line}"));
    // A pause holds the work back on purpose.
    town.gt(["scheduler", "pause"]).ok();
    let said = town.gt(["status"]).ok().stdout;
    assert!(!said.contains("No daemon is running"), "{said}");
    town.gt(["scheduler", "resume"]).ok();
    town.gt(["up"]).ok();
    let said = town.gt(["status"]).ok().stdout;
    assert!(!said.contains("No daemon is running"), "{said}");
    town.gt(["down"]).ok();
}

#[test]
fn work_that_could_not_start_yet_is_not_called_ready_without_a_daemon() {
    let town = town_with_agent("");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.gt(["config", "set", "guard.disk_min_mb", "100000000"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    let said = town.gt(["status"]).ok().stdout;
    assert!(
        said.starts_with("No daemon is running and 1 bead waits for room on this host; "),
        "{said}"
    );

    town.gt(["config", "unset", "guard.disk_min_mb"]).ok();
    town.gt(["config", "set", "rig.web.command", "no-such-program {bead}"]).ok();
    let _ = town.gt(["scheduler", "run"]);
    let said = town.gt(["why", "we-a"]).ok().stdout;
    assert_says(&said, &["backoff until"]);
    let line =
        "No daemon is running and 1 bead waits to be started again; start the daemon with gt up\n";
    assert!(said.starts_with(line), "{said}");
}

#[test]
fn a_docked_bead_is_told_of_each_convoy_as_it_stands() {
    let town = town_with_agent("true");
    for bead in ["we-a", "we-b", "we-c"] {
        town.bead(bead, &[]);
    }
    town.gt(["scheduler", "pause"]).ok();
    town.gt(["rig", "dock", "web"]).ok();
    let stage = |beads: &[&str]| {
        let staged = town.gt_json(&[&["convoy", "stage"], beads].concat());
        staged["convoy_id"].as_str().unwrap().to_owned()
    };
    let launched = stage(&["we-a", "we-b"]);
    let staged = stage(&["we-a", "we-c"]);
    town.gt(["convoy", "launch", &launched, "--force"]).ok();

    // In a staged convoy alone.
    assert_eq!(town.reasons("we-c"), ["convoy-staged", "rig-docked"]);
    let said = town.gt(["why", "we-c"]).ok().stdout;
    let launch = format!("gt rig undock web, then gt convoy launch {staged}");
    assert_says(&said, &[&launch, &format!("{staged} (staged_warnings)")]);
    // In a launched convoy, with and without a staged one beside it.
    for bead in ["we-a", "we-b"] {
        assert_eq!(town.reasons(bead), ["not-scheduled", "rig-docked"], "{bead}");
        let said = town.gt(["why", bead]).ok().stdout;
        let undock = format!("because the open convoy {launched} tracks it");
        assert_says(
            &said,
            &["gt rig undock web schedules it", &undock, &format!("{launched} (open)")],
        );
    }
    let convoys = &town.why("we-a")["convoys"];
    let told: Vec<(&str, &str)> = convoys
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one["status"].as_str().unwrap()))
        .collect();
    assert!(
        told.contains(&(&launched, "open")) && told.contains(&(&staged, "staged_warnings")),
        "{told:?}"
    );

    town.gt(["rig", "undock", "web"]).ok();
    assert_eq!(town.reasons("we-a"), ["paused"]);
    assert_eq!(town.reasons("we-c"), ["convoy-staged"]);
}

#[test]
fn a_command_that_lets_work_start_again_warns_that_no_daemon_runs() {
    let town = town_with_agent("");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.bead("we-a", &[]);
    let made = town.gt_json(&["convoy", "create", "One", "we-a"]);
    let convoy = made["convoy"].as_str().unwrap();

    let warning =
        "warning: No daemon is running and 1 bead is ready; start the daemon with gt up\n";
    let pairs: [[&[&str]; 2]; 4] = [
        [&["scheduler", "pause"], &["scheduler", "resume"]],
        [&["rig", "park", "web"], &["rig", "unpark", "web"]],
        [&["rig", "dock", "web"], &["rig", "undock", "web"]],
        [&["convoy", "pause", convoy], &["convoy", "resume", convoy]],
    ];
    for [hold, go_on] in pairs {
        assert_eq!(town.gt(hold.iter().copied()).ok().stderr, "", "{hold:?}");
        assert_eq!(town.gt(go_on.iter().copied()).ok().stderr, warning, "{go_on:?}");
    }
    town.gt(["scheduler", "clear"]).ok();
    assert_eq!(town.gt(["scheduler", "resume"]).ok().stderr, "", "nothing waits for a daemon");
}
