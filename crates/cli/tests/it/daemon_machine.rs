//! Faults of the machine under a daemon that has work: its disk, its clock, its database server.

use std::fs;

use gt_testkit::{Cluster, Sandbox, TestClock, wait_until};

use crate::agents::{Stage as _, set_agent};
use crate::daemon::{has_logged, process, status};
use crate::support::{Steps as _, nowhere, town_on, wait_for_status};
use crate::tree_faults::SmallDisk;

/// Writes until nothing more fits. It only adds, so that it can be repeated without making room.
fn fill(town: &Sandbox) {
    let fill = "head -c 64M /dev/zero >> fill; while head -c 1K /dev/zero >> more; do :; done";
    let _ = town.command("sh").args(["-c", fill]).run();
}

#[test]
fn a_disk_that_is_full_under_a_town_stops_it_and_loses_nothing() {
    // Given a town on a small disk, with two at work and one in line,
    let sandbox = nowhere();
    let root = sandbox.make_dir("small");
    let Some(_disk) = SmallDisk::at(&sandbox, root.clone(), 24) else { return };
    sandbox.gt(["install", root.to_str().unwrap()]).ok();
    let town = sandbox.in_dir(&root);
    town.gt(["rig", "add", "web"]).ok();
    // The guard would not let it come to that.
    town.gt(["config", "set", "guard.disk_min_mb", "0"]).ok();
    set_agent(&town, "wait_for go");
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town.gt(["up"]).ok();
    let daemon = process(&town);
    for id in ["we-a", "we-b", "we-c"] {
        town.bead(id, &[]);
        town.gt(["sling", id]).ok();
    }
    town.wait_for_agent("we-a#1");
    town.wait_for_agent("we-b#1");

    // when it is full, and the two come to their ends,
    fill(&town);
    town.allow("go");
    wait_until("they have ended", || town.story().iter().any(|line| line == "- we-b#1"));
    // Processes that end, and the log of the store when it is folded into its file, make some room again.
    wait_until("a new bead finds no room", || {
        fill(&town);
        town.bd(["create", "No room", "--rig", "web"]).code != 0
    });

    // then they are done as soon as there is room, and the same daemon goes on.
    fs::remove_file(root.join("more")).unwrap();
    fs::remove_file(root.join("fill")).unwrap();
    for id in ["we-a", "we-b", "we-c"] {
        wait_for_status(&town, id, "closed");
        assert_eq!(town.states(id), ["done"], "{id}");
    }
    assert_eq!(process(&town), daemon);
    town.assert_quiet();
    town.gt(["doctor"]).ok();
    town.gt(["down"]).ok();
}

#[test]
fn work_that_ends_while_the_database_server_is_away_is_done_once() {
    let cluster = Cluster::start("");
    let town = town_on(&format!("{}?reconnect_wait=100ms", cluster.url("postgres")));
    town.gt(["rig", "add", "web"]).ok();
    set_agent(&town, "wait_for go");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.gt(["up"]).ok();
    let daemon = process(&town);
    for id in ["we-a", "we-b"] {
        town.bead(id, &[]);
        town.gt(["sling", id]).ok();
    }
    town.wait_for_agent("we-a#1");

    cluster.stop();
    town.allow("go");
    wait_until("the worker has ended", || town.story().contains(&"- we-a#1".to_owned()));
    wait_until("the daemon has noticed", || has_logged(&town, "store away"));
    cluster.start_server();

    for id in ["we-a", "we-b"] {
        wait_for_status(&town, id, "closed");
        assert_eq!(town.states(id), ["done"], "{id}");
    }
    assert_eq!(process(&town), daemon);
    town.assert_quiet();
    town.gt(["down"]).ok();
}

#[test]
fn a_clock_that_is_set_while_a_daemon_works_loses_nothing_and_delays_no_start() {
    let town = crate::agents::town_with_agent("wait_for \"go-$bead\"");
    let clock = TestClock::wrong_by(&town, 0);
    let gt = |arguments: &[&str]| clock.read_by(town.start_gt(arguments)).run().ok();
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    gt(&["up"]);
    let daemon = process(&town);
    let steps = [(100_000, "clock set forward"), (-100_000, "clock set back")];
    for (round, (wrong_by, event)) in steps.into_iter().enumerate() {
        // Given one at work and one in line,
        let (first, second) = (format!("we-{round}-a"), format!("we-{round}-b"));
        for id in [&first, &second] {
            town.bead(id, &[]);
            gt(&["sling", id]);
        }
        town.wait_for_agent(&format!("{first}#1"));

        // when the clock is set,
        clock.set(wrong_by);
        wait_until("it is noticed", || has_logged(&town, event));

        // then the one goes on, and the next one starts when it has ended.
        assert_eq!(town.states(&first), ["running"], "{wrong_by}");
        for id in [&first, &second] {
            town.allow(&format!("go-{id}"));
            wait_for_status(&town, id, "closed");
            assert_eq!(town.states(id), ["done"], "{wrong_by}");
        }
    }
    assert_eq!(process(&town), daemon);
    assert_eq!(status(&town)["ready"], true);
    town.assert_quiet();
    town.gt(["down"]).ok();
}
