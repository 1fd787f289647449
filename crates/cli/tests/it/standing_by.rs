//! Sessions that are begun before there is a run for them: they are used if one comes, and gone if none does.

use std::fs;

use gt_testkit::{Sandbox, wait_until};

use crate::agents::{Stage as _, is_alive};
use crate::support::{Steps as _, files_in, texts};
use crate::trees::{Trees as _, WAIT, town_with_trees};

/// The supervisors of a town that wait for an order.
fn waiting(town: &Sandbox) -> Vec<String> {
    let is_meant = |pid: &String| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        // Not the shell that holds the session.
        let is_ours = line.starts_with(&town.gt_path().display().to_string());
        is_ours && line.contains("--stand-by") && line.contains(&town.cwd().display().to_string())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.map(|one| one.file_name().to_string_lossy().into_owned());
    numbers.filter(|pid| is_meant(pid) && is_alive(pid)).collect()
}

/// The places where supervisors wait for orders.
fn posts(town: &Sandbox) -> Vec<String> {
    let files = files_in(town.cwd().join(".gt/runs")).into_iter();
    files.filter(|file| file.starts_with("standing-by-")).collect()
}

#[track_caller]
fn wait_until_nobody_waits(town: &Sandbox) {
    wait_until("nobody waits for orders", || posts(town).is_empty() && waiting(town).is_empty());
}

/// A town whose daemon keeps one tree ready.
fn town_that_is_ready() -> Sandbox {
    let town = town_with_trees("tmux");
    town.gt(["config", "set", "rig.web.warm_worktrees", "1"]).ok();
    town.gt(["up"]).ok();
    wait_until("somebody waits", || !waiting(&town).is_empty());
    town
}

#[test]
fn whoever_slings_a_bead_has_its_session_begun_meanwhile() {
    let town = town_with_trees("tmux");
    town.script("we-1", &format!("echo $GT_SESSION{WAIT}"));
    town.gt(["sling", "we-1"]).ok();
    assert_eq!(town.states("we-1"), ["running"]);
    let supervisor = town.supervisor_of("we-1#1");
    let line = fs::read_to_string(format!("/proc/{supervisor}/cmdline")).unwrap();
    assert!(line.contains("--stand-by"), "{line}");
    assert_eq!(town.polecats()[0]["session_alive"], true);
    assert_eq!(posts(&town), [""; 0]);
    town.gt(["run", "cancel", "we-1"]).ok();
    wait_until_nobody_waits(&town);
}

#[test]
fn where_nothing_starts_after_all_no_session_is_left() {
    let town = town_with_trees("tmux");
    town.gt(["config", "set", "rig.web.max_polecats", "1"]).ok();
    for bead in ["we-1", "we-2"] {
        town.script(bead, &format!("echo{WAIT}"));
        town.gt(["sling", bead]).ok();
    }
    assert_eq!(town.reasons("we-2"), ["no-slot"]);
    wait_until("only one has a supervisor", || waiting(&town).len() == 1);
    assert_eq!(posts(&town), [""; 0]);
    let sessions = town.polecats();
    assert_eq!(texts(&sessions, "name"), ["furiosa"]);
    town.gt(["run", "cancel", "we-1"]).ok();
    wait_until_nobody_waits(&town);
}

#[test]
fn a_daemon_has_a_session_ready_where_a_tree_is_and_takes_it_away_when_it_ends() {
    let town = town_that_is_ready();
    // Nobody works there yet.
    let polecat = &town.polecats()[0];
    assert_eq!((&polecat["state"], &polecat["session_alive"]), (&"warm".into(), &false.into()));
    let ready = waiting(&town);

    // Whoever has a run for it finds it, be it the daemon or a person.
    town.script("we-1", &format!("echo{WAIT}"));
    town.gt(["sling", "we-1"]).ok();
    assert_eq!([town.supervisor_of("we-1#1")], ready.as_slice());
    wait_until("the next one waits", || posts(&town) == ["standing-by-we-nux.orders"]);

    town.gt(["down"]).ok();
    wait_until("only the one that works is left", || waiting(&town) == ready);
    assert_eq!(town.states("we-1"), ["running"]);
    town.gt(["run", "cancel", "we-1"]).ok();
    wait_until_nobody_waits(&town);
}

#[test]
fn one_that_is_killed_while_it_waits_costs_nothing() {
    let town = town_that_is_ready();
    let ready = waiting(&town);
    town.signal("KILL", &ready[0]);
    wait_until("it is gone", || !is_alive(&ready[0]));

    town.script("we-1", "echo 1 > one.txt");
    town.gt(["sling", "we-1"]).ok();

    wait_until("it is done", || town.states("we-1") == ["done"]);
    wait_until("another one waits", || !waiting(&town).is_empty() && !posts(&town).is_empty());
    town.gt(["down"]).ok();
    wait_until_nobody_waits(&town);
}

#[test]
fn those_of_a_daemon_that_is_killed_leave() {
    let town = town_that_is_ready();
    let lock = fs::read_to_string(town.cwd().join(".gt/daemon.lock")).unwrap();
    town.signal("KILL", lock.split(' ').next().unwrap());
    wait_until_nobody_waits(&town);
}

#[test]
fn what_somebody_did_in_a_tree_that_a_daemon_watches_over_is_no_part_of_the_next_run() {
    let town = town_that_is_ready();
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.script("we-1", WAIT);
    town.script("we-2", "ls");
    for bead in ["we-1", "we-2"] {
        town.gt(["sling", bead]).ok();
    }
    wait_until("the next one waits", || posts(&town) == ["standing-by-we-nux.orders"]);
    fs::write(town.tree("nux").join("mine.txt"), "of a person").unwrap();

    town.write("go", "");

    wait_until("it is done", || town.states("we-2") == ["done"]);
    assert!(!town.gt(["polecat", "log", "we-2"]).ok().stdout.contains("mine.txt"));
    let path = town.trash()[0]["path"].as_str().unwrap().to_owned();
    assert!(town.cwd().join(path).join("tree/mine.txt").exists());
}
