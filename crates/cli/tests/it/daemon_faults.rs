//! Faults of the daemon, of supervisors and of agents, and the work that survives them.

use std::fs;

use gt_testkit::{Cluster, Sandbox, wait_until};

use crate::agents::{Stage as _, is_alive, set_agent, town_with_agent};
use crate::daemon::{has_logged, process, status, town_with_daemon};
use crate::support::{Steps as _, assert_says, town_on, wait_for_status};

fn sling(town: &Sandbox, ids: &[&str]) {
    for id in ids {
        town.bead(id, &[]);
        town.gt(["sling", id]).ok();
    }
}

#[test]
fn a_daemon_that_was_killed_is_followed_by_one_that_finds_all_workers() {
    let town = town_with_daemon(3, "wait_for go");
    sling(&town, &["we-a", "we-b", "we-c"]);
    for run in ["we-a#1", "we-b#1", "we-c#1"] {
        town.wait_for_agent(run);
    }
    let first = process(&town);

    town.signal("KILL", &first);
    wait_until("it is gone", || town.gt(["daemon", "status"]).code == 1);
    sling(&town, &["we-d"]);
    town.gt(["up"]).ok();

    assert_ne!(process(&town), first);
    assert_eq!(status(&town)["adopted"], 3);
    town.allow("go");
    for id in ["we-a", "we-b", "we-c", "we-d"] {
        wait_for_status(&town, id, "closed");
        assert_eq!(town.states(id), ["done"]);
    }
    town.assert_quiet();
}

#[test]
fn a_worker_that_was_killed_with_its_supervisor_is_noticed_and_replaced() {
    let town = town_with_daemon(1, "wait_for go");
    sling(&town, &["we-a"]);
    town.wait_for_agent("we-a#1");
    let supervisor = town.supervisor_of("we-a#1");
    set_agent(&town, "exit 0");

    town.signal("KILL", &format!("{supervisor} {}", town.agent_of("we-a")));

    wait_for_status(&town, "we-a", "closed");
    assert_eq!(town.states("we-a"), ["done", "lost"]);
    assert_eq!(status(&town)["scans"], 0, "no full scan was needed");
    assert!(has_logged(&town, "lost run"));
    town.assert_quiet();
}

#[test]
fn a_worker_whose_supervisor_was_killed_goes_on_and_its_end_is_noticed() {
    let town = town_with_daemon(1, "wait_for go");
    sling(&town, &["we-a", "we-b"]);
    town.wait_for_agent("we-a#1");

    town.signal("KILL", &town.supervisor_of("we-a#1"));

    assert!(is_alive(&town.agent_of("we-a")));
    assert_eq!(town.states("we-a"), ["running"], "it is alive, so nothing is lost");
    town.allow("go");
    town.wait_for_agent("we-b#1");
    wait_for_status(&town, "we-b", "closed");
    town.assert_quiet();
    assert_eq!(status(&town)["scans"], 0, "no full scan was needed");
}

#[test]
fn a_worker_that_another_daemon_began_is_noticed_too() {
    let town = town_with_daemon(1, "wait_for go");
    sling(&town, &["we-a"]);
    town.wait_for_agent("we-a#1");
    town.signal("KILL", &process(&town));
    wait_until("it is gone", || town.gt(["daemon", "status"]).code == 1);
    town.gt(["up"]).ok();
    let supervisor = town.supervisor_of("we-a#1");
    set_agent(&town, "exit 0");

    town.signal("KILL", &format!("{supervisor} {}", town.agent_of("we-a")));

    wait_for_status(&town, "we-a", "closed");
    assert_eq!(status(&town)["scans"], 0, "no full scan was needed");
    town.assert_quiet();
}

#[test]
fn a_stopped_process_delays_no_other_and_continues_later() {
    let town = town_with_daemon(2, "wait_for go");
    sling(&town, &["we-a", "we-b"]);
    town.wait_for_agent("we-a#1");
    town.wait_for_agent("we-b#1");
    let (supervisor, agent) = (town.supervisor_of("we-a#1"), town.agent_of("we-b"));
    town.signal("STOP", &format!("{supervisor} {agent}"));

    // Nothing that is stopped is lost, and others have their turn.
    town.signal("HUP", &process(&town));
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).ok();
    town.allow("go");
    sling(&town, &["we-c"]);
    wait_for_status(&town, "we-c", "closed");
    assert_eq!(town.states("we-a"), ["running"]);
    assert_eq!(town.states("we-b"), ["running"]);

    town.signal("CONT", &format!("{supervisor} {agent}"));

    for id in ["we-a", "we-b"] {
        wait_for_status(&town, id, "closed");
        assert_eq!(town.states(id), ["done"]);
    }
    town.assert_quiet();
}

#[test]
fn a_daemon_that_is_stopped_keeps_no_command_and_goes_on_later() {
    let town = town_with_daemon(2, "exit 0");
    let daemon = process(&town);
    town.signal("STOP", &daemon);

    // More often than its bell keeps.
    for number in 0..30 {
        town.bead(&format!("we-{number}"), &[]);
    }
    let slung = town.gt(["sling", "we-0"]).ok();
    let warning = format!("the daemon (process {daemon}) is stopped; resume it with kill -CONT");
    assert_says(&slung.stderr, &[&warning]);
    assert_says(&town.gt(["daemon", "status"]).ok().stdout, &["The daemon runs"]);
    let said = town.gt(["status"]).ok().stdout;
    let line = format!("The daemon (process {daemon}) is stopped and 1 bead is ready");
    assert!(said.starts_with(&line), "{said}");
    assert_eq!(town.story(), [""; 0]);

    town.signal("CONT", &daemon);

    wait_for_status(&town, "we-0", "closed");
    assert_eq!(town.states("we-0"), ["done"]);
}

#[test]
fn a_failed_pass_is_told_and_tried_again() {
    let town = town_with_daemon(2, "exit 0");
    let daemon = process(&town);
    // Given settings that are no JSON,
    let file = town.write("settings/config.json", "{not json");
    town.signal("HUP", &daemon);
    wait_until("it is told", || {
        let said = town.gt(["daemon", "status"]);
        said.stdout.contains("config.json")
    });

    // when they can be read again,
    fs::remove_file(file).unwrap();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    // then the same daemon goes on.
    wait_for_status(&town, "we-a", "closed");
    wait_until("nothing is wrong any more", || {
        status(&town)["reconcilers"]["dispatch"]["last_error"] == ""
    });
    assert!(status(&town)["reconcilers"]["dispatch"]["errors"].as_u64() > Some(0));
    assert_eq!(process(&town), daemon);
    assert!(has_logged(&town, "failed"));
}

#[test]
fn a_start_that_takes_its_time_keeps_no_other() {
    // Given a start that does not come to its end,
    let town = town_with_daemon(3, "exit 0");
    town.bead("we-slow", &[]);
    let files = town.make_dir(".gt/runs");
    let pipe = files.join("we-slow#1.log");
    town.command("mkfifo").arg(&pipe).run().ok();
    town.gt(["sling", "we-slow"]).ok();
    wait_until("it is being started", || town.show("we-slow")["status"] != "open");

    // when others are slung, then they are done.
    sling(&town, &["we-a", "we-b"]);
    wait_for_status(&town, "we-a", "closed");
    wait_for_status(&town, "we-b", "closed");
    assert_ne!(town.show("we-slow")["status"], "closed");
    // And it comes to its end when it can.
    town.command("cat").arg(&pipe).run().ok();
    wait_for_status(&town, "we-slow", "closed");
}

#[test]
fn it_outlives_a_restart_of_the_database_server() {
    let cluster = Cluster::start("");
    let town = town_on(&format!("{}?reconnect_wait=100ms", cluster.url("postgres")));
    town.gt(["rig", "add", "web"]).ok();
    set_agent(&town, "exit 0");
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town.gt(["up"]).ok();
    let daemon = process(&town);

    cluster.stop();
    wait_until("it is noticed", || has_logged(&town, "store away"));
    cluster.start_server();

    wait_until("it is back", || has_logged(&town, "store back"));
    sling(&town, &["we-a"]);
    wait_for_status(&town, "we-a", "closed");
    assert_eq!(process(&town), daemon);
    town.gt(["down"]).ok();
}

#[test]
fn a_worker_that_calls_while_the_database_server_is_away_waits_for_it() {
    let cluster = Cluster::start("");
    let town = town_on(&format!("{}?reconnect_wait=100ms", cluster.url("postgres")));
    town.gt(["rig", "add", "web"]).ok();
    let done = format!("'{}' done > $stage/said 2> $stage/noted", town.gt_path().display());
    set_agent(&town, &format!("wait_for go; {done} || exit 3"));
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.gt(["up"]).ok();
    sling(&town, &["we-a"]);
    town.wait_for_agent("we-a#1");

    cluster.stop();
    town.allow("go");
    let noted = || fs::read_to_string(town.stage("noted")).unwrap_or_default();
    wait_until("the worker is told", || noted().contains("waiting for the store: "));
    cluster.start_server();

    wait_for_status(&town, "we-a", "closed");
    assert_eq!(town.states("we-a"), ["done"]);
    assert_says(&fs::read_to_string(town.stage("said")).unwrap(), &["we-a#1 is done"]);
    assert_eq!(noted().lines().count(), 1, "{}", noted());
    town.gt(["down"]).ok();
}

#[test]
fn a_daemon_whose_town_was_removed_ends() {
    let town = town_with_daemon(1, "exit 0");
    let daemon = process(&town);

    fs::rename(town.cwd().join(".gt"), town.root().join("removed")).unwrap();

    wait_until("it has ended", || !is_alive(&daemon));
}

#[test]
fn a_supervisor_ends_with_its_run() {
    let town = town_with_daemon(3, "true");
    sling(&town, &["we-a", "we-b", "we-c"]);
    for id in ["we-a", "we-b", "we-c"] {
        wait_for_status(&town, id, "closed");
    }
    let daemon = process(&town);
    wait_until("no supervisor is left", || children_of(&daemon).is_empty());
    assert!(is_alive(&daemon));
}

/// The processes that any thread of a process has started.
fn children_of(process: &str) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let children =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    children
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[test]
fn a_town_deep_down_has_a_daemon_too() {
    let town = town_with_agent("exit 0");
    let deep = town.make_dir(town.root().join("d".repeat(100)));
    let root = deep.join("town");
    town.gt(["install", root.to_str().unwrap()]).ok();
    let deep = town.in_dir(&root);
    deep.gt(["rig", "add", "web"]).ok();
    let agent = deep.write_script("agent", "exit 0");
    deep.gt(["config", "set", "rig.web.command", &format!("'{}' {{bead}}", agent.display())]).ok();
    deep.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    deep.gt(["config", "set", "daemon.scan_every", "1h"]).ok();

    deep.gt(["up"]).ok();

    assert_eq!(status(&deep)["bell"], true);
    sling(&deep, &["we-a"]);
    wait_for_status(&deep, "we-a", "closed");
    deep.gt(["down"]).ok();
}
