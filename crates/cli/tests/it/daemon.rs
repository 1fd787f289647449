//! `gt daemon`, `gt up`, `gt down`: work that starts by itself.
//!
//! The daemon of these tests makes a full scan once an hour, unless a test sets another interval: so it acts on events.

use std::fs;

use gt_testkit::{Sandbox, wait_until};
use serde_json::Value;

use crate::agents::{Stage as _, peak, set_agent, town_with_agent};
use crate::support::{Steps as _, assert_says, refusal, texts, wait_for_status};

/// A town with room for so many agents, which are this script, and a daemon that has to be told of everything.
pub(crate) fn town_with_daemon(room: u32, script: &str) -> Sandbox {
    let town = town_with_agent(script);
    town.gt(["config", "set", "scheduler.max_polecats", &room.to_string()]).ok();
    town.gt(["config", "set", "daemon.scan_every", "1h"]).ok();
    town.gt(["up"]).ok();
    town
}

/// The status of the daemon.
pub(crate) fn status(town: &Sandbox) -> Value {
    town.gt_json(&["daemon", "status"])
}

/// The process of the daemon.
pub(crate) fn process(town: &Sandbox) -> String {
    status(town)["pid"].to_string()
}

/// The log of the daemon, as `gt daemon logs` prints it.
fn log(town: &Sandbox) -> Vec<Value> {
    let logs = town.start_gt(&["daemon", "logs", "-n", "100000", "--json"]);
    logs.run().ok().json_lines()
}

/// Whether the daemon has logged this.
pub(crate) fn has_logged(town: &Sandbox, event: &str) -> bool {
    log(town).iter().any(|entry| entry["event"] == event)
}

#[test]
fn it_is_started_once_and_stopped_once() {
    let town = town_with_agent("exit 0");
    let before = town.gt(["daemon", "status"]).fails(1);
    assert_says(&before.stdout, &["not running", "gt up"]);
    assert_eq!(
        town.start_gt(&["daemon", "status", "--json"]).run().fails(1).json()["running"],
        false
    );

    let started = town.gt(["up"]).ok();

    let pid = process(&town);
    let log = town.cwd().join(".gt/logs/daemon.log");
    assert_says(&started.stdout, &[&format!("process {pid}"), log.to_str().unwrap()]);
    let again = town.gt(["up"]).ok();
    assert_says(&again.stdout, &["already runs", &format!("process {pid}"), "since "]);
    assert_eq!(town.gt_json(&["daemon", "start"])["started"], false);
    let second = refusal(&town.gt(["daemon", "run"]));
    assert_says(
        &second,
        &["already runs", &format!("process {pid}"), "since ", "gt daemon status"],
    );
    assert_says(&town.gt(["daemon", "status"]).ok().stdout, &["The daemon runs", "RECONCILER"]);

    let stopped = town.gt(["down"]).ok();

    assert_says(&stopped.stdout, &[&format!("process {pid}"), "has ended"]);
    assert_says(&town.gt(["down"]).ok().stdout, &["No daemon runs"]);
    assert_eq!(town.gt_json(&["daemon", "stop"])["stopped"], false);
    town.gt(["daemon", "status"]).fails(1);
    assert!(!town.cwd().join(".gt/daemon.sock").exists());
}

#[test]
fn scheduled_beads_start_without_a_hint_to_start_a_daemon() {
    let town = town_with_daemon(3, "exit 0");
    town.bead("we-a", &[]);

    let slung = town.gt(["sling", "we-a"]).ok();

    assert_eq!(slung.stderr, "");
    wait_for_status(&town, "we-a", "closed");
    town.gt(["down"]).ok();
    town.bead("we-b", &[]);
    assert_says(&town.gt(["sling", "we-b"]).ok().stderr, &["no daemon is running"]);
}

#[test]
fn a_new_daemon_starts_beads_that_waited_for_it() {
    let town = town_with_agent("exit 0");
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    town.gt(["up"]).ok();

    wait_for_status(&town, "we-a", "closed");
}

#[test]
fn a_freed_slot_goes_to_the_next_in_line_and_no_cap_is_exceeded() {
    let town = town_with_daemon(2, "sleep 0.02");
    let ids: Vec<String> = (0..12).map(|number| format!("we-{number}")).collect();
    for id in &ids {
        town.bead(id, &[]);
    }
    town.command(town.gt_path()).arg("sling").args(&ids).arg("web").run().ok();

    wait_until("everything is done", || town.story().len() == 24);

    assert!(peak(&town.story()) <= 2, "{:?}", town.story());
    town.assert_quiet();
    wait_until("it says how long it took", || status(&town)["end_to_start"]["count"] == 10);
    assert_eq!(status(&town)["scan_findings"], 0);
}

#[test]
fn a_close_starts_everything_that_waited_for_it() {
    let town = town_with_daemon(10, "wait_for go");
    town.bead("we-first", &[]);
    let ids: Vec<String> = (0..10).map(|number| format!("we-{number}")).collect();
    for id in &ids {
        town.bead(id, &["--deps", "we-first"]);
        town.gt(["sling", id]).ok();
    }
    assert_eq!(town.story(), [""; 0]);

    town.bd(["close", "we-first"]).ok();

    for id in &ids {
        town.wait_for_agent(&format!("{id}#1"));
    }
    wait_until("it says how long it took", || status(&town)["close_to_start"]["count"] == 10);
    let times = &status(&town)["close_to_start"];
    assert!(times["p50_ms"].as_f64() <= times["max_ms"].as_f64(), "{times}");
    town.allow("go");
    town.assert_quiet();
}

#[test]
fn a_deferred_bead_starts_at_its_time() {
    let town = town_with_daemon(1, "exit 0");
    town.bead("we-a", &["--defer", "+1s"]);
    town.gt(["sling", "we-a"]).ok();

    wait_for_status(&town, "we-a", "closed");

    assert_eq!(status(&town)["scans"], 0);
}

#[test]
fn settings_hold_from_the_next_pass_on_and_pausing_stops_starts() {
    let town = town_with_daemon(1, "wait_for go");
    for id in ["we-a", "we-b", "we-c"] {
        town.bead(id, &[]);
        town.gt(["sling", id]).ok();
    }
    town.wait_for_agent("we-a#1");
    town.gt(["scheduler", "pause"]).ok();

    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    assert_eq!(town.story(), ["+ we-a#1"]);
    town.gt(["scheduler", "resume"]).ok();

    town.wait_for_agent("we-b#1");
    assert_eq!(town.story(), ["+ we-a#1", "+ we-b#1"]);
    set_agent(&town, "exit 0");
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).ok();
    wait_for_status(&town, "we-c", "closed");
    town.allow("go");
    town.assert_quiet();
}

#[test]
fn a_batch_is_followed_by_the_next_until_no_slot_is_free() {
    let town = town_with_daemon(4, "wait_for go");
    town.gt(["config", "set", "scheduler.batch_size", "1"]).ok();
    for id in ["we-a", "we-b", "we-c"] {
        town.bead(id, &[]);
    }

    town.gt(["sling", "we-a", "we-b", "we-c", "web"]).ok();

    for run in ["we-a#1", "we-b#1", "we-c#1"] {
        town.wait_for_agent(run);
    }
    town.allow("go");
    town.assert_quiet();
}

#[test]
fn a_cycle_by_hand_works_beside_it() {
    let town = town_with_daemon(1, "wait_for go");
    for id in ["we-a", "we-b"] {
        town.bead(id, &[]);
        town.gt(["sling", id]).ok();
    }
    town.wait_for_agent("we-a#1");

    let cycle = town.gt(["scheduler", "run", "--max-polecats", "2"]).ok();

    assert_says(&cycle.stdout, &["Dispatched: 1"]);
    town.wait_for_agent("we-b#1");
    town.allow("go");
    town.assert_quiet();
}

#[test]
fn stopping_it_leaves_workers_alone_and_says_how_many_go_on() {
    let town = town_with_daemon(2, "wait_for go");
    for id in ["we-a", "we-b"] {
        town.bead(id, &[]);
        town.gt(["sling", id]).ok();
        town.wait_for_agent(&format!("{id}#1"));
    }

    let stopped = town.gt(["down"]).ok();

    assert_says(&stopped.stdout, &["2 workers go on"]);
    town.allow("go");
    wait_for_status(&town, "we-a", "closed");
    wait_for_status(&town, "we-b", "closed");
    assert_eq!(town.states("we-a"), ["done"]);
}

#[test]
fn a_full_scan_counts_changes_without_an_event() {
    // Given a daemon that makes full scans all the time,
    let town = town_with_agent("exit 0");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.gt(["config", "set", "daemon.scan_every", "200ms"]).ok();
    town.gt(["up"]).ok();

    // when it has looked often,
    wait_until("it has looked", || status(&town)["scans"].as_u64() > Some(3));

    // then it has found nothing, because it was told of everything.
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_for_status(&town, "we-a", "closed");
    assert_eq!(status(&town)["scan_findings"], 0);
}

#[test]
fn the_daemon_log_names_its_actions_and_keeps_to_its_size() {
    let town = town_with_daemon(3, "true");
    town.gt(["config", "set", "daemon.log_size", "4KiB"]).ok();
    let ids: Vec<String> = (0..150).map(|number| format!("we-{number}")).collect();
    let line = |id: &String| format!(r#"{{"id":"{id}","title":"{id}","status":"open"}}"#);
    let lines: Vec<String> = ids.iter().map(line).collect();
    town.import(&lines.join("\n"));
    town.command(town.gt_path()).arg("sling").args(&ids).arg("web").run().ok();
    wait_until("everything is done", || town.story().len() == 300);
    town.assert_quiet();

    wait_until("the end is logged", || {
        let last = log(&town);
        last.iter().filter(|entry| entry["event"] == "done").count() > 0
    });
    let files = crate::support::files_in(town.cwd().join(".gt/logs"));
    let of_log: Vec<&String> = files.iter().filter(|name| name.starts_with("daemon.log")).collect();
    assert!((4..=6).contains(&of_log.len()), "{files:?}");
    for name in of_log {
        let size = fs::metadata(town.cwd().join(".gt/logs").join(name)).unwrap().len();
        assert!(size <= 4096, "{name} has {size} bytes");
    }
    let shown = town.gt(["daemon", "logs", "-n", "3"]).ok().stdout;
    assert_eq!(shown.lines().count(), 3);
    assert_says(&shown, &["run=we-"]);
}

#[test]
fn its_log_can_be_followed_and_is_opened_anew_when_asked() {
    let town = town_with_daemon(1, "exit 0");
    let follower = town.start_gt(&["daemon", "logs", "--follow"]).start();
    wait_until("the past is shown", || follower.stdout().contains("ready"));
    let log = town.cwd().join(".gt/logs/daemon.log");
    fs::rename(&log, town.cwd().join("moved.log")).unwrap();

    town.signal("HUP", &process(&town));

    wait_until("the log is there again", || log.exists());
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("it is told", || follower.stdout().contains("done  bead=we-a run=we-a#1"));
    follower.kill();
}

#[test]
fn events_that_the_daemon_saw_are_those_of_the_town() {
    let town = town_with_daemon(1, "exit 0");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_for_status(&town, "we-a", "closed");
    wait_until("it has seen the last event", || status(&town)["last_event"] == town.last_event());
    let said = status(&town);
    assert_eq!(said["ready"], true);
    assert_eq!(said["bell"], true);
    assert_eq!(said["town"], town.cwd().to_str().unwrap());
    assert_eq!(said["reconcilers"]["dispatch"]["done"], 1);
    let names: Vec<&String> = said["reconcilers"].as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "convoys",
            "dispatch",
            "liveness",
            "merge-queue",
            "outbox",
            "retention",
            "stalls",
            "trees",
            "work"
        ]
    );
    assert_eq!(texts(&town.gt_json(&["run", "list", "we-a"]), "state"), ["done"]);
}
