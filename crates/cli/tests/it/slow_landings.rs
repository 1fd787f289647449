//! Landings take as long as they take, and nothing else waits for them.

use std::fs::File;

use gt_testkit::wait_until;

use crate::agents::{Stage as _, is_alive};
use crate::daemon::status;
use crate::endings::supervisor_died_after;
use crate::landing::cut_off;
use crate::projects::{Origin as _, STAYS, Worker, town_with_project};
use crate::support::Steps as _;

#[test]
fn a_bead_starts_while_another_run_is_landing() {
    let town = town_with_project(STAYS);
    let dead = cut_off(&town, "pre-receive", "exit 1");
    dead.kill_all();
    let landing = File::options().append(true).open(town.cwd().join("web/.repo.git.landing.lock"));
    let landing = landing.unwrap();
    landing.lock().unwrap();

    town.bead("we-b", &[]);
    town.gt(["sling", "we-b"]).ok();
    town.wait_for_agent("we-b#1");

    // The work is where it was until a pass finds that it can land.
    town.cycle().ok();
    assert_eq!((dead.state(), town.landed("main").len()), ("done".to_owned(), 2));
    drop(landing);
    town.cycle().ok();
    assert_eq!(town.landed("main").len(), 3);
    town.allow("end-we-b");
    town.assert_quiet();
}

#[test]
fn a_pass_that_finds_finished_work_does_not_wait_for_another_landing() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.commit("tea", "tea\n", "Tea");
    supervisor_died_after(&town, &worker, "exited 0");
    let landing = town.cwd().join("web/.repo.git.landing.lock");
    let landing = File::options().append(true).create(true).open(landing).unwrap();
    landing.lock().unwrap();

    // This would wait for ever.
    town.cycle().ok();

    assert_eq!((worker.state(), town.landed("main").len()), ("done".to_owned(), 1));
    drop(landing);
    town.cycle().ok();
    assert_eq!(town.landed("main").len(), 2);
}

#[test]
fn a_bead_starts_while_an_origin_thinks_about_work_that_was_on_its_way() {
    let town = town_with_project(STAYS);
    let dead = cut_off(&town, "pre-receive", "exit 1");
    dead.kill_all();
    let waits = "touch \"$stage/asked\"; while [ ! -e \"$stage/go\" ]; do sleep 0.02; done";
    town.origin_hook("pre-receive", waits);

    town.bead("we-b", &[]);
    town.gt(["scheduler", "pause"]).ok();
    town.gt(["sling", "we-b"]).ok();
    town.gt(["scheduler", "resume"]).ok();
    let cycle = town.start_gt(&["scheduler", "run"]).start();
    wait_until("the origin is asked", || town.stage("asked").exists());
    town.wait_for_agent("we-b#1");
    assert_eq!(town.landed("main").len(), 2);

    town.allow("go");
    cycle.wait().ok();
    assert_eq!((dead.state(), town.landed("main").len()), ("done".to_owned(), 3));
    town.allow("end-we-b");
    town.assert_quiet();
}

#[test]
fn a_bead_that_waits_for_a_landing_starts_in_the_pass_that_confirms_it() {
    let town = town_with_project(STAYS);
    let dead = cut_off(&town, "post-receive", "");
    dead.kill_all();
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.bead("we-b", &["--deps", "we-a"]);
    town.gt(["sling", "we-b"]).ok();
    assert_eq!(town.show("we-a")["status"], "in_progress");

    town.cycle().ok();

    assert_eq!(town.show("we-a")["status"], "closed");
    town.wait_for_agent("we-b#1");
    town.allow("end-we-b");
    town.assert_quiet();
}

#[test]
fn a_daemon_that_finds_another_process_landing_looks_again_by_itself() {
    let town = town_with_project("echo tea > tea");
    let landing = town.make_dir("web").join(".repo.git.landing.lock");
    let landing = File::options().append(true).create(true).open(landing).unwrap();
    landing.lock().unwrap();
    town.gt(["up"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    let request = || town.gt_json(&["mq", "list"])[0]["state"].clone();
    wait_until("it is queued", || request() == "queued");

    // A full scan looks at all queues, so only rounds without one count.
    let looks = || {
        let report = status(&town);
        let rounds = report["reconcilers"]["merge-queue"]["rounds"].as_u64().unwrap();
        rounds - report["scans"].as_u64().unwrap()
    };
    let before = looks();
    wait_until("it looks again and again", || looks() > before + 3);

    drop(landing);
    wait_until("it has landed", || town.show("we-a")["status"] == "closed");
    town.assert_quiet();
}

#[test]
fn a_landing_goes_on_when_the_agent_that_asked_for_it_has_ended() {
    let town = town_with_project(
        "echo tea > tea; git add tea; git commit -qm Tea; gt done & echo $! > $stage/caller; wait_for pushing; exit 0",
    );
    let waits = "echo pushed >> \"$stage/pushes\"; touch \"$stage/pushing\"; \
                 while [ ! -e \"$stage/go\" ]; do sleep 0.02; done";
    town.origin_hook("pre-receive", waits);
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("it pushes", || town.stage("pushing").exists());
    let caller = std::fs::read_to_string(town.stage("caller")).unwrap();
    // All that is left of the agent is ended at one time.
    wait_until("the rest of the agent is ended", || !is_alive(caller.trim()));

    town.allow("go");

    wait_until("it is closed", || town.show("we-a")["status"] == "closed");
    wait_until("it has ended", || town.run_of("we-a#1")["alive"] == false);
    assert_eq!(town.landed("main"), ["First commit", "Tea"]);
    assert_eq!(std::fs::read_to_string(town.stage("pushes")).unwrap(), "pushed\n");
}
