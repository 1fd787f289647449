//! A town directory that is copied, moved or restored: which runs it judges.

use std::fs;
use std::path::PathBuf;

use gt_testkit::{Sandbox, wait_until};

use crate::agents::{Stage as _, town_with_agent};
use crate::support::{Steps as _, assert_says, refusal};

/// Copies the town as a person would.
fn copy_of(town: &Sandbox) -> PathBuf {
    let copy = town.root().join("copy");
    town.command("cp").arg("-a").arg(town.cwd()).arg(&copy).run().ok();
    copy
}

fn gt_in(
    town: &Sandbox,
    directory: &std::path::Path,
    arguments: &[&str],
) -> gt_testkit::FinishedProgram {
    town.command(town.gt_path()).arg("-C").arg(directory).args(arguments).run()
}

#[test]
fn copied_town_declares_nothing_lost_and_starts_no_second_agent() {
    let town = town_with_agent("wait_for end");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let copy = copy_of(&town);

    let first = gt_in(&town, &copy, &["scheduler", "run"]).ok();
    assert_says(&first.stderr, &["this directory is a copy of", "a host of its own"]);
    let second = gt_in(&town, &copy, &["scheduler", "run"]).ok();
    assert!(!second.stderr.contains("copy of"), "{second}");

    assert_eq!(town.states("we-a"), ["running"]);
    assert_eq!(town.story(), ["+ we-a#1"]);
    let told = gt_in(&town, &copy, &["doctor"]);
    assert_eq!(told.code, 1, "{told}");
    assert_says(&told.stdout, &["this directory is a copy of"]);
    let refused = refusal(&gt_in(&town, &copy, &["host", "adopt"]));
    assert_says(&refused, &["still exists", "gt host adopt --force"]);
    // The original is the host that it was.
    let shown = town.gt(["host", "show"]).ok().stdout;
    assert!(!shown.contains("come from"), "{shown}");
    town.allow("end");
    town.assert_quiet();
    assert_eq!(town.states("we-a"), ["done"]);
}

#[test]
fn restored_town_adopts_the_runs_of_the_one_that_is_gone() {
    let town = town_with_agent("wait_for end");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let copy = copy_of(&town);
    town.signal("KILL", &town.supervisor_of("we-a#1"));
    town.signal("KILL", &town.agent_of("we-a"));
    fs::rename(town.cwd().join(".gt"), town.root().join("gone")).unwrap();
    fs::remove_dir_all(town.root().join("gone")).unwrap();

    let first = gt_in(&town, &copy, &["scheduler", "run"]).ok();
    assert_says(&first.stderr, &["which is gone", "gt host adopt"]);
    let state = |run: &str| {
        let shown = gt_in(&town, &copy, &["run", "show", run, "--json"]).ok().json();
        shown["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state("we-a#1"), "running");
    let refused = refusal(&gt_in(&town, &copy, &["run", "cancel", "we-a#1"]));
    assert_says(&refused, &["gt host adopt"]);

    let adopted = gt_in(&town, &copy, &["host", "adopt", "--force"]).ok();
    assert_says(&adopted.stdout, &["✓ Adopted the host", "1 live runs"]);

    town.allow("end");
    gt_in(&town, &copy, &["scheduler", "run"]).ok();
    wait_until("the run is judged", || state("we-a#1") != "running");
    let again = refusal(&gt_in(&town, &copy, &["host", "adopt"]));
    assert_says(&again, &["the host that it always was"]);
}

#[test]
fn renamed_town_is_the_same_host() {
    let town = town_with_agent("");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.assert_quiet();
    let host = town.gt(["host", "show"]).ok().stdout;
    let renamed = town.root().join("renamed");
    fs::rename(town.cwd(), &renamed).unwrap();
    let gt = town.command(town.gt_path()).dir(town.root()).arg("-C").arg(&renamed);
    let shown = gt.args(["host", "show"]).run();
    fs::rename(&renamed, town.cwd()).unwrap();
    let shown = shown.ok();
    assert_eq!((shown.stdout, shown.stderr.as_str()), (host, ""));
}

#[test]
fn identity_given_from_outside_belongs_to_one_host_at_a_time() {
    let town = town_with_agent("");
    let run = |directory: &std::path::Path| {
        let gt = town.command(town.gt_path()).arg("-C").arg(directory);
        gt.args(["scheduler", "run"]).env("GT_HOST_ID", "worker-1").run()
    };
    run(town.cwd()).ok();
    run(town.cwd()).ok();
    let copy = copy_of(&town);
    // A copy of a file has a copy of the row; on a server it is the same.
    let refused = refusal(&run(&copy));
    assert_says(&refused, &["GT_HOST_ID is worker-1", "at work", "an identity of its own"]);
    let wrong = town.command(town.gt_path()).args(["status"]).env("GT_HOST_ID", "a b").run();
    assert_says(&refusal(&wrong), &["GT_HOST_ID", "letters, digits"]);
}
