//! Worktrees that are made ready before a run needs them.

use std::fs;

use gt_testkit::{Sandbox, wait_until};

use crate::agents::Stage as _;
use crate::support::{Steps as _, assert_says, texts};
use crate::trees::{Trees as _, WAIT, git, town_with_trees};

/// Steps of tests with warm trees.
trait Warmth {
    /// Sets the number of warm trees and runs one pass; returns its output.
    fn want(&self, count: &str) -> String;
    /// Runs one pass of the reconcilers; returns its output.
    fn look_after(&self) -> String;
    /// Each polecat with what it does.
    fn standing(&self) -> Vec<String>;
    /// How often the command of the rig was run.
    fn setups(&self) -> usize;
    /// A commit more at the origin, which it is.
    fn move_base(&self, file: &str) -> String;
}

/// Leaves something that git does not see, and counts.
const SETUP: &str = "echo ready > setup.log; echo $GT_ROLE >> \"$GT_TOWN_ROOT/setups\"";

impl Warmth for Sandbox {
    #[track_caller]
    fn want(&self, count: &str) -> String {
        self.gt(["config", "set", "rig.web.warm_worktrees", count]).ok();
        self.look_after()
    }

    #[track_caller]
    fn look_after(&self) -> String {
        self.gt(["scheduler", "run"]).ok().stderr
    }

    #[track_caller]
    fn standing(&self) -> Vec<String> {
        let polecats = self.polecats();
        let (names, states) = (texts(&polecats, "name"), texts(&polecats, "state"));
        names.iter().zip(states).map(|(name, state)| format!("{name} {state}")).collect()
    }

    fn setups(&self) -> usize {
        let text = fs::read_to_string(self.cwd().join("setups")).unwrap_or_default();
        text.lines().count()
    }

    #[track_caller]
    fn move_base(&self, file: &str) -> String {
        let seed = self.root().join("seed");
        fs::write(seed.join(file), file).unwrap();
        git(self, &seed, &["add", "--all"]);
        git(self, &seed, &["commit", "--quiet", "--message", file]);
        let origin = self.root().join("origin.git").display().to_string();
        git(self, &seed, &["push", "--quiet", &origin, "HEAD:main"]);
        git(self, &seed, &["rev-parse", "HEAD"])
    }
}

/// A town whose trees are set up by a command.
fn town_with_setup() -> Sandbox {
    let town = town_with_trees("process");
    town.gt(["config", "set", "rig.web.setup", SETUP]).ok();
    town
}

#[test]
fn warm_trees_are_given_away_at_once_and_made_again() {
    let town = town_with_setup();
    town.want("2");
    assert_eq!(town.standing(), ["furiosa warm", "nux warm"]);
    assert_eq!(town.setups(), 2);
    assert!(town.tree("nux").join("setup.log").exists());
    // Trees that are warm already are left alone.
    town.look_after();
    assert_eq!(town.setups(), 2);

    // The oldest is taken, and nothing has to be done in it any more.
    town.script("we-1", "git branch --show-current; cat setup.log; echo 1 > one.txt");
    assert_eq!(town.work("we-1", &[]), "done");
    assert_eq!(town.setups(), 2);
    let printed = town.gt(["polecat", "log", "web/furiosa"]).ok().stdout;
    assert_says(&printed, &["polecat/furiosa/we-1@", "ready"]);

    // It is free again, and as good as a new one. The landed work has moved the base.
    assert_eq!(town.standing(), ["furiosa idle", "nux warm"]);
    town.look_after();
    assert_eq!(town.standing(), ["furiosa warm", "nux warm"]);
    assert_eq!(town.setups(), 4);
    for name in ["furiosa", "nux"] {
        assert!(town.tree(name).join("one.txt").exists(), "{name}");
    }
    assert_eq!(town.trash().as_array().unwrap().len(), 0);
}

#[test]
fn warm_trees_follow_the_base_and_a_start_never_gets_an_old_one() {
    let town = town_with_setup();
    town.want("2");
    let moved = town.move_base("moved.txt");
    // The new base is not fetched yet; the start fetches it.
    town.script("we-1", "git rev-parse HEAD; ls moved.txt");
    assert_eq!(town.work("we-1", &[]), "done");
    assert_says(&town.gt(["polecat", "log", "we-1"]).ok().stdout, &[&moved, "moved.txt"]);
    assert_eq!(town.setups(), 3);
    assert!(!town.tree("nux").join("moved.txt").exists());

    town.look_after();
    assert_eq!(git(&town, &town.tree("nux"), &["rev-parse", "HEAD"]), moved);
    assert_eq!(town.standing(), ["furiosa warm", "nux warm"]);

    // Nor one in which something else was done than is wanted now.
    town.gt(["config", "set", "rig.web.setup", &SETUP.replace("ready", "other")]).ok();
    town.script("we-2", "cat setup.log");
    assert_eq!(town.work("we-2", &[]), "done");
    assert_eq!(town.gt(["polecat", "log", "we-2"]).ok().stdout, "other\n");
}

#[test]
fn trees_that_are_not_wanted_any_more_are_moved_away() {
    let town = town_with_setup();
    town.want("3");
    fs::write(town.tree("nux").join("mine.txt"), "of a person").unwrap();
    town.want("1");
    assert_eq!(town.standing(), ["furiosa warm"]);
    let trash = town.trash();
    assert_eq!(trash.as_array().unwrap().len(), 2);
    // One of them comes back as it was.
    town.gt(["polecat", "undelete", "web/nux"]).ok();
    assert_eq!(fs::read_to_string(town.tree("nux").join("mine.txt")).unwrap(), "of a person");
    town.want("0");
    assert!(town.standing().is_empty());
}

#[test]
fn uncommitted_files_in_a_warm_tree_are_kept() {
    let town = town_with_setup();
    town.want("1");
    fs::write(town.tree("furiosa").join("mine.txt"), "of a person").unwrap();
    town.script("we-1", "ls");
    assert_eq!(town.work("we-1", &[]), "done");
    assert!(!town.gt(["polecat", "log", "we-1"]).ok().stdout.contains("mine.txt"));
    let path = town.trash()[0]["path"].as_str().unwrap().to_owned();
    assert!(town.cwd().join(path).join("tree/mine.txt").exists());
}

#[test]
fn the_tree_of_a_failed_run_is_not_warmed() {
    let town = town_with_setup();
    town.want("1");
    town.script("we-1", "echo precious > work.txt; exit 1");
    assert_eq!(town.work("we-1", &[]), "failed");
    town.look_after();
    assert_eq!(town.standing(), ["furiosa idle", "nux warm"]);
    assert!(town.tree("furiosa").join("work.txt").exists());
    // The next run gets the warm one.
    town.script("we-2", "pwd");
    assert_eq!(town.work("we-2", &[]), "done");
    let printed = town.gt(["polecat", "log", "we-2"]).ok().stdout;
    assert_eq!(printed.trim_end(), town.tree("nux").display().to_string());
}

#[test]
fn a_command_that_fails_is_told_once_and_not_tried_again_at_once() {
    let town = town_with_setup();
    let count = "echo x >> \"$GT_TOWN_ROOT/setups\"; echo no compiler >&2; exit 4";
    town.gt(["config", "set", "rig.web.setup", count]).ok();
    assert_says(&town.want("2"), &["no tree can be made ahead in web", "no compiler"]);
    assert_eq!(town.standing(), ["furiosa absent"]);
    for _ in 0..3 {
        assert_eq!(town.look_after(), "");
    }
    assert_eq!(town.setups(), 1);

    // Something has changed, so it is worth trying.
    town.gt(["config", "set", "rig.web.setup", SETUP]).ok();
    town.look_after();
    assert_eq!(town.standing(), ["furiosa warm", "nux warm"]);
}

#[test]
fn a_half_made_tree_is_not_taken_for_ready() {
    let town = town_with_setup();
    let slow = format!(
        "{SETUP}; touch \"$GT_TOWN_ROOT/begun\"; \
         while [ -e \"$GT_TOWN_ROOT/.gt\" ] && [ ! -e \"$GT_TOWN_ROOT/go\" ]; do sleep 0.02; done"
    );
    town.gt(["config", "set", "rig.web.setup", &slow]).ok();
    town.gt(["config", "set", "rig.web.warm_worktrees", "1"]).ok();
    let keeper = town.start_gt(&["scheduler", "run"]).start();
    wait_until("the command has begun", || town.cwd().join("begun").exists());
    // While one process makes the tree, another neither makes it too nor waits.
    town.look_after();
    assert_eq!((town.standing(), town.setups()), (vec!["furiosa absent".to_owned()], 1));
    keeper.kill();
    assert_eq!(town.standing(), ["furiosa absent"]);

    town.write("go", "");
    town.look_after();
    assert_eq!((town.standing(), town.setups()), (vec!["furiosa warm".to_owned()], 2));
    assert_eq!(git(&town, &town.tree("furiosa"), &["status", "--short"]), "");
}

#[test]
fn a_process_that_makes_warm_trees_may_be_killed_at_any_moment() {
    let town = town_with_setup();
    town.gt(["config", "set", "rig.web.warm_worktrees", "2"]).ok();
    for round in 0..10_u64 {
        let moved = town.move_base(&format!("{round}.txt"));
        let keeper = town.start_gt(&["scheduler", "run"]).start();
        std::thread::sleep(std::time::Duration::from_millis(round * 23 % 200));
        keeper.kill();
        // In any case a run begins at the base, in a worktree that was set up.
        let bead = format!("we-{round}");
        town.script(&bead, "git rev-parse HEAD; git status --short; cat setup.log");
        assert_eq!(town.work(&bead, &[]), "done");
        assert_eq!(town.gt(["polecat", "log", &bead]).ok().stdout, format!("{moved}\nready\n"));
    }
    town.look_after();
    let standing = town.standing();
    assert_eq!(standing.iter().filter(|one| one.ends_with(" warm")).count(), 2, "{standing:?}");
}

#[test]
fn a_daemon_sees_to_them_by_itself() {
    let town = town_with_setup();
    town.gt(["config", "set", "daemon.scan_every", "1h"]).ok();
    town.gt(["up"]).ok();

    town.gt(["config", "set", "rig.web.warm_worktrees", "2"]).ok();

    wait_until("they are warm", || town.standing() == ["furiosa warm", "nux warm"]);
    town.gt(["config", "set", "rig.web.warm_worktrees", "0"]).ok();
    wait_until("they are gone", || town.standing().is_empty());
    town.gt(["down"]).ok();
}

#[test]
fn files_that_a_person_left_in_a_warm_tree_of_a_daemon_are_kept_and_not_part_of_the_next_run() {
    let town = town_with_trees("tmux");
    town.gt(["config", "set", "rig.web.warm_worktrees", "1"]).ok();
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.gt(["up"]).ok();
    wait_until("a tree is warm", || town.standing() == ["furiosa warm"]);
    town.script("we-1", WAIT);
    town.script("we-2", "ls");
    for bead in ["we-1", "we-2"] {
        town.gt(["sling", bead]).ok();
    }
    wait_until("the next tree is warm", || town.standing() == ["furiosa working", "nux warm"]);
    fs::write(town.tree("nux").join("mine.txt"), "of a person").unwrap();

    town.write("go", "");

    wait_until("it is done", || town.states("we-2") == ["done"]);
    assert!(!town.gt(["polecat", "log", "we-2"]).ok().stdout.contains("mine.txt"));
    let path = town.trash()[0]["path"].as_str().unwrap().to_owned();
    assert!(town.cwd().join(path).join("tree/mine.txt").exists());
    town.gt(["down"]).ok();
}
