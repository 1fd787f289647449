//! `gt polecat`: looking at trees and sessions, taking trees away and bringing them back.

use std::fs;

use gt_testkit::wait_until;
use serde_json::json;

use crate::agents::Stage as _;
use crate::support::{Steps as _, assert_says, files_in, keys, refusal, texts};
use crate::trees::{Trees as _, WAIT, git, town_with_trees};

#[test]
fn without_polecats_the_list_says_how_to_get_one() {
    let town = town_with_trees("process");
    assert_says(&town.gt(["polecat", "list"]).ok().stdout, &["No polecats", "gt sling"]);
    assert_eq!(town.polecats().as_array().unwrap().len(), 0);
    let message = refusal(&town.gt(["polecat", "status", "web/nux"]));
    assert_says(&message, &["web has no polecat \"nux\"", "none yet"]);
    let message = refusal(&town.gt(["polecat", "status", "nux"]));
    assert_says(&message, &["no polecat \"nux\"", "gt polecat list"]);
    assert_says(&refusal(&town.gt(["polecat", "status", "a/b/c"])), &["<rig>/<name>"]);
    assert_says(&refusal(&town.gt(["polecat", "list", "--rig", "nope"])), &["nope"]);
    town.gt(["rig", "add", "plain"]).ok();
    assert_says(&refusal(&town.gt(["polecat", "nuke", "plain/nux"])), &["plain has no trees"]);
}

#[test]
fn a_polecat_is_shown_while_it_works_and_afterwards() {
    let town = town_with_trees("tmux");
    town.script("we-1", &format!("echo hello from the worker; echo x > x.txt{WAIT}"));
    town.begin("we-1");
    let one = town.gt_json(&["polecat", "status", "web/furiosa"]);
    assert_eq!(one["state"], "working");
    assert_eq!((&one["run"], &one["bead"]), (&"we-1#1".into(), &"we-1".into()));
    assert_eq!((&one["session"], &one["session_alive"]), (&"we-furiosa".into(), &true.into()));
    assert_eq!(one["uncommitted"], serde_json::json!(["begun", "x.txt"]));
    assert!(one["branch"].as_str().unwrap().starts_with("polecat/furiosa/we-1@"), "{one}");
    let quick = &town.polecats()[0];
    assert!(!keys(quick).contains(&"uncommitted"), "git is asked only with --dirty: {quick}");
    let listed = town.gt(["polecat", "list", "--dirty"]).ok().stdout;
    assert_says(&listed, &["web/furiosa", "working", "we-1#1", "we-furiosa", "2 files"]);

    // Its worker has no terminal, so that its session shows nothing, and its log does.
    let peeked = town.gt(["polecat", "peek", "web/furiosa", "-n", "5"]).ok().stdout;
    assert_says(&peeked, &["hello from the worker"]);
    // A test has no terminal.
    let message = refusal(&town.gt(["polecat", "attach", "we-1"]));
    assert_says(&message, &["terminal", "gt polecat peek we-1"]);
    let message = refusal(&town.gt(["polecat", "nuke", "web/furiosa"]));
    assert_says(&message, &["works on we-1#1", "gt run cancel we-1#1"]);

    town.write("go", "");
    wait_until("we-1 is done", || town.run_of("we-1")["state"] == "done");
    wait_until("its session is gone", || town.polecats()[0]["session_alive"] == false);
    assert_eq!(town.polecats()[0]["state"], "idle");
    let peeked = town.gt_json(&["polecat", "peek", "we-1"]);
    assert_eq!(peeked["source"], "log");
    assert_says(peeked["output"].as_str().unwrap(), &["hello from the worker"]);
    assert_says(
        &town.gt(["polecat", "log", "web/furiosa"]).ok().stdout,
        &["hello from the worker"],
    );
}

#[test]
fn a_process_that_has_ended_cannot_be_attached_to() {
    let town = town_with_trees("process");
    town.script("we-1", "echo one; echo two; echo three");
    town.work("we-1", &[]);
    let message = refusal(&town.gt(["polecat", "attach", "web/furiosa"]));
    assert_says(&message, &["we-1#1 is done", "gt polecat log web/furiosa"]);
    assert_says(&refusal(&town.gt(["attach", "furiosa"])), &["we-1#1 is done"]);
    for polecat in ["web/furiosa", "web/polecats/furiosa", "furiosa", "we-1"] {
        for peek in [["polecat", "peek", polecat, "-n2"].as_slice(), &["peek", polecat, "-n2"]] {
            assert_eq!(town.gt(peek).ok().stdout, "two\nthree\n", "{peek:?}");
        }
    }
    assert_eq!(town.gt_json(&["polecat", "status", "furiosa"])["run"], "we-1#1");
}

#[test]
fn a_tree_that_was_nuked_comes_back_as_it_was() {
    let town = town_with_trees("process");
    town.script(
        "we-1",
        "echo new > new.txt; echo ignored > build.log; git add new.txt; mkfifo pipe; exit 1",
    );
    town.work("we-1", &[]);
    let tree = town.tree("furiosa");
    let status = git(&town, &tree, &["status", "--short", "--ignored"]);
    let would = town.gt(["polecat", "nuke", "web/furiosa", "--dry-run"]).ok().stdout;
    assert_says(&would, &["web/furiosa would be taken away"]);
    assert!(tree.exists());

    let nuked = town.gt(["polecat", "nuke", "web/furiosa"]).ok().stdout;
    assert_says(
        &nuked,
        &["web/furiosa is gone", "web/.trash/1-furiosa", "gt polecat undelete '#1'"],
    );
    assert!(!nuked.contains("Z. gt polecat"), "the time is the one of the reader: {nuked}");
    assert!(!tree.exists());
    assert_eq!(town.polecats().as_array().unwrap().len(), 0);
    let undeleted = town.gt(["polecat", "undelete", "furiosa"]).ok().stdout;
    assert_says(&undeleted, &["web/furiosa has its tree back"]);
    assert_eq!(git(&town, &tree, &["status", "--short", "--ignored"]), status);
    assert_eq!(fs::read_to_string(tree.join("build.log")).unwrap(), "ignored\n");
    assert_eq!(town.polecats()[0]["state"], "idle");
    assert_eq!(town.trash().as_array().unwrap().len(), 0);
    let message = refusal(&town.gt(["polecat", "undelete", "web/furiosa"]));
    assert_says(&message, &["nothing in the trash", "gt polecat list --trash"]);
}

#[test]
fn one_failed_nuke_does_not_stop_the_others() {
    let town = town_with_trees("process");
    town.script("we-1", "");
    town.work("we-1", &[]);
    let ran = town.gt(["polecat", "nuke", "web/absent", "web/furiosa"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert_says(&ran.stderr, &["web has no polecat \"absent\""]);
    assert_eq!(texts(&town.trash(), "name"), ["furiosa"]);
}

#[test]
fn a_tree_does_not_come_back_over_another_one() {
    let town = town_with_trees("process");
    for bead in ["we-1", "we-2"] {
        town.script(bead, "");
    }
    town.work("we-1", &[]);
    town.gt(["polecat", "nuke", "web/furiosa"]).ok();
    town.work("we-2", &[]);
    let message = refusal(&town.gt(["polecat", "undelete", "1"]));
    assert_says(&message, &["has another tree now", "gt polecat nuke web/furiosa"]);
    town.gt(["polecat", "nuke", "web/furiosa"]).ok();
    town.gt(["polecat", "undelete", "1"]).ok();
    assert_eq!(town.polecats()[0]["run"], "we-1#1");
    assert_eq!(texts(&town.trash(), "run"), ["we-2#1"]);
}

#[test]
fn trash_is_purged_at_its_time_and_announced_before() {
    let town = town_with_trees("process");
    for (bead, keep) in [("we-1", "30d"), ("we-2", "2d"), ("we-3", "0s")] {
        // Caches of build tools are often read-only.
        town.script(bead, "mkdir -p a/b; echo x > a/b/x.log; chmod -R a-w a; exit 1");
        town.gt(["config", "set", "trash.keep", keep]).ok();
        town.work(bead, &[]);
        town.gt(["polecat", "nuke", "web/furiosa"]).ok();
    }
    let listed = town.gt(["polecat", "list", "--trash"]).ok();
    assert_says(&listed.stdout, &["with the next purge", "in 29 days", "nuked"]);
    assert_says(&listed.stderr, &["2 trees will be deleted within 3 days", "gt polecat undelete"]);
    let doctor = town.gt(["doctor"]).ok().stdout;
    assert_says(&doctor, &["deleted within 3 days: #3 web/furiosa, #2 web/furiosa"]);

    assert_says(
        &town.gt(["polecat", "purge", "--dry-run"]).ok().stdout,
        &["#3 web/furiosa", "1 tree would"],
    );
    assert_eq!(town.trash().as_array().unwrap().len(), 3);
    assert_says(&town.gt(["polecat", "purge"]).ok().stdout, &["#3 web/furiosa is deleted"]);
    let kept: Vec<u64> = town
        .trash()
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["number"].as_u64().unwrap())
        .collect();
    assert_eq!(kept, [2, 1]);
    assert_eq!(files_in(town.cwd().join("web/.trash")), [".lock", "1-furiosa", "2-furiosa"]);
    assert_says(&town.gt(["polecat", "purge"]).ok().stdout, &["0 trees deleted"]);
    assert_says(&refusal(&town.gt(["polecat", "undelete", "#3"])), &["nothing in the trash"]);
}

#[test]
fn a_tree_that_goes_soon_is_told_of_by_the_next_pass_and_only_once() {
    let town = town_with_trees("process");
    town.gt(["config", "set", "notify.command", "true"]).ok();
    for (bead, keep) in [("we-1", "30d"), ("we-2", "0s")] {
        town.script(bead, "exit 1");
        town.gt(["config", "set", "trash.keep", keep]).ok();
        town.work(bead, &[]);
        town.gt(["polecat", "nuke", "web/furiosa"]).ok();
    }
    let told = || {
        let mut events = town.events();
        events.retain(|event| event["event_type"] == "tree_due");
        events
    };
    assert_eq!(told(), [] as [serde_json::Value; 0]);

    town.cycle().ok();
    wait_until("it is told", || !told().is_empty());
    town.cycle().ok();

    assert_eq!(
        texts(&json!(told().iter().map(|one| &one["payload"]).collect::<Vec<_>>()), "number"),
        ["2"]
    );
    // A due tree is announced and still there: people can act on the notice.
    assert_eq!(files_in(town.cwd().join("web/.trash")), [".lock", "1-furiosa", "2-furiosa"]);
}
