//! `rig.<rig>.unblock`: work that starts from the accepted commit of its blocker.

use gt_testkit::Sandbox;

use crate::agents::Stage as _;
use crate::projects::{Origin as _, STAYS, Worker, town_with_project};
use crate::support::{Steps as _, assert_says};

/// A town whose rig lands through the queue, with `we-b` that waits for `we-a`.
fn town_with_blocker(unblock: &str) -> Sandbox {
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "rig.web.merge", "mr"]).ok();
    town.gt(["config", "set", "rig.web.unblock", unblock]).ok();
    town.bead("we-a", &[]);
    town.bead("we-b", &[]);
    town.bd(["dep", "add", "we-b", "we-a"]).ok();
    town
}

/// Starts the blocker and ends its work, which waits for a review.
#[track_caller]
fn accept_blocker(town: &Sandbox) {
    accept(town, "we-a", "tea");
}

/// The same of any blocker, whose work is one file.
#[track_caller]
fn accept(town: &Sandbox, bead: &str, file: &str) {
    town.gt(["sling", bead, "--review"]).ok();
    let worker = Worker::of(town, &format!("{bead}#1"));
    worker.commit(file, &format!("{file} of {bead}\n"), &format!("Add {file}"));
    assert_says(&worker.gt(&["done"]).ok().stdout, &["review"]);
    worker.wait_until_gone();
}

#[test]
fn by_default_work_waits_until_its_blocker_has_landed() {
    let town = town_with_blocker("landed");
    accept_blocker(&town);

    town.gt(["sling", "we-b"]).ok();
    town.cycle().ok();

    assert_eq!(town.reasons("we-b"), ["blocked"]);
    town.gt(["review", "approve", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    town.cycle().ok();
    Worker::of(&town, "we-b#1");
    town.allow("end-we-b");
    town.assert_quiet();
}

#[test]
fn work_starts_from_the_accepted_commit_of_its_blocker_and_lands_after_it() {
    let town = town_with_blocker("accepted");
    town.gt(["sling", "we-b"]).ok();
    assert_eq!(town.reasons("we-b"), ["blocked"]);
    accept_blocker(&town);
    town.cycle().ok();

    let worker = Worker::of(&town, "we-b#1");

    assert!(worker.tree.join("tea").exists(), "it begins from the work of we-a");
    worker.commit("milk", "milk\n", "Add milk");
    assert_says(&worker.gt(&["done"]).ok().stdout, &["we-b@1"]);
    worker.wait_until_gone();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.gt_json(&["mq", "show", "we-b"])["state"], "queued");
    let shown = town.gt(["mq", "show", "we-b"]).ok().stdout;
    assert_says(&shown, &["we-a, which it is built on, lands first", "gt why we-a"]);
    let why = town.gt(["why", "we-b"]).ok().stdout;
    assert_says(&why, &["waits until we-a, which it is built on, has landed"]);
    assert_eq!(town.landed("main"), ["First commit"]);

    town.gt(["review", "approve", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(town.landed("main"), ["First commit", "Add tea", "Add milk"]);
    assert_eq!(town.show("we-b")["status"], "closed");
}

#[test]
fn work_waits_for_a_blocker_that_is_given_up_until_that_is_done_again_or_closed() {
    for is_done_again in [true, false] {
        let town = town_with_blocker("accepted");
        accept_blocker(&town);
        town.gt(["sling", "we-b"]).ok();
        let worker = Worker::of(&town, "we-b#1");
        worker.commit("milk", "milk\n", "Add milk");
        worker.gt(&["done"]).ok();
        worker.wait_until_gone();

        town.gt(["mq", "cancel", "we-a"]).ok();
        town.gt(["mq", "run"]).ok();

        assert_eq!(town.landed("main"), ["First commit"]);
        let why = town.gt(["why", "we-b"]).ok().stdout;
        assert_says(&why, &["waits until we-a, which it is built on, has landed", "gt why we-a"]);
        if is_done_again {
            town.gt(["sling", "we-a"]).ok();
            let again = Worker::of_next(&town, "we-a", 1);
            again.commit("coffee", "coffee\n", "Add coffee");
            again.gt(&["done"]).ok();
            again.wait_until_gone();
        } else {
            town.bd(["close", "we-a", "--reason", "not wanted"]).ok();
        }
        town.gt(["mq", "run"]).ok();
        let others: &[&str] = if is_done_again { &["Add coffee"] } else { &[] };
        assert_eq!(town.landed("main"), [&["First commit"], others, &["Add milk"]].concat());
    }
}

/// The same with a second blocker, `we-c`, that changes this file.
#[track_caller]
fn town_with_two_blockers(second_file: &str) -> Sandbox {
    let town = town_with_blocker("accepted");
    town.bead("we-c", &[]);
    town.bd(["dep", "add", "we-b", "we-c"]).ok();
    town.gt(["sling", "we-b"]).ok();
    accept(&town, "we-a", "tea");
    town.cycle().ok();
    assert_eq!(town.reasons("we-b"), ["blocked"], "one of two is not enough");
    accept(&town, "we-c", second_file);
    town
}

#[test]
fn work_starts_from_the_accepted_commits_of_all_its_blockers() {
    let town = town_with_two_blockers("coffee");
    // The counts say what a cycle would start.
    assert_eq!(town.gt_json(&["scheduler", "status"])["queued_ready"], 1);
    town.gt(["config", "set", "rig.web.unblock", "landed"]).ok();
    assert_eq!(town.gt_json(&["scheduler", "status"])["queued_ready"], 0);
    town.gt(["config", "set", "rig.web.unblock", "accepted"]).ok();

    town.cycle().ok();

    let worker = Worker::of(&town, "we-b#1");
    for file in ["tea", "coffee"] {
        assert!(worker.tree.join(file).exists(), "it begins from {file}");
    }
    worker.commit("milk", "milk\n", "Add milk");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    for bead in ["we-a", "we-c"] {
        town.gt(["mq", "run"]).ok();
        assert_eq!(town.gt_json(&["mq", "show", "we-b"])["state"], "queued");
        town.gt(["review", "approve", bead]).ok();
    }
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Add tea", "Add coffee", "Add milk"]);
}

#[test]
fn accepted_commits_that_conflict_are_waited_for() {
    let town = town_with_two_blockers("tea");

    let _not_started = town.cycle();

    assert_says(&town.gt(["why", "we-b"]).ok().stdout, &["conflict", "when we-a has landed"]);
    assert_eq!(town.show("we-b")["status"], "open");
}

#[test]
fn a_worker_is_told_when_a_repair_replaces_the_commit_it_began_from() {
    let town = town_with_blocker("accepted");
    accept_blocker(&town);
    town.gt(["sling", "we-b"]).ok();
    let worker = Worker::of(&town, "we-b#1");
    worker.commit("milk", "milk\n", "Add milk");

    town.gt(["review", "reject", "we-a", "-m", "sweeter"]).ok();
    town.cycle().ok();
    let repair = Worker::of_next(&town, "we-a", 1);
    repair.git(&["reset", "--quiet", "--hard", "HEAD~1"]).ok();
    repair.commit("tea", "sweet tea\n", "Add sweet tea");
    repair.gt(&["done"]).ok();
    repair.wait_until_gone();

    let inbox = worker.gt(&["mail", "inbox"]).ok().stdout;
    assert_says(&inbox, &["we-a, which your work began from, was repaired"]);
    let message = town.gt_json(&["mq", "show", "we-a@2"])["accepted"].as_str().unwrap().to_owned();
    let old = town.gt_json(&["mq", "show", "we-a@1"])["accepted"].as_str().unwrap().to_owned();
    worker.git(&["rebase", "--quiet", "--onto", &message, &old]).ok();
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    town.gt(["review", "approve", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Add sweet tea", "Add milk"]);
    assert_eq!(town.landed_file("tea").as_deref(), Some("sweet tea\n"));
}
