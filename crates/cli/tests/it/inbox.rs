//! `gt inbox`: what needs a person, from a town that needs one in several ways.

use gt_testkit::{Sandbox, wait_until};
use serde_json::json;

use crate::projects::{Origin as _, STAYS, Worker, town_with_project};
use crate::support::{Steps as _, assert_says, refusal, texts};

/// A town whose rig lands through the queue, with a check that fails with a file `broken`.
fn town_with_queue() -> Sandbox {
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "rig.web.merge", "mr"]).ok();
    town.gt(["config", "set", "mq.repairs", "0"]).ok();
    town.gt(["rig", "check", "add", "web", "test", "test ! -e broken"]).ok();
    town
}

#[test]
fn a_bead_that_failed_in_a_run_is_listed_until_it_is_closed_again() {
    let town = town_with_project("exit 1");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("it has failed", || town.show("we-a")["status"] == "closed");

    let rows = town.gt_json(&["inbox"]);
    assert_eq!(texts(&rows, "key"), ["failed:we-a"]);
    assert_says(&town.gt(["inbox"]).ok().stdout, &["we-a failed", "gt scheduler retry we-a"]);
    assert!(!rows[0]["what"].as_str().unwrap().contains("others wait"), "{rows}");

    town.bd(["close", "we-a"]).ok();
    assert_eq!(town.gt_json(&["inbox"]), json!([]));
}

#[test]
fn one_list_has_everything_that_needs_a_person() {
    let town = town_with_queue();
    assert_eq!(town.gt(["inbox"]).ok().stdout, "Nothing needs you.\n");
    assert_eq!(town.gt_json(&["inbox"]), json!([]));
    let reviewed = Worker::begin(&town, "we-tea", &["--review-only"]);
    reviewed.commit("tea", "tea\n", "Add tea");
    reviewed.gt(&["done"]).ok();
    reviewed.wait_until_gone();
    let broken = Worker::begin(&town, "we-broken", &[]);
    broken.commit("broken", "x\n", "Break it");
    broken.gt(&["done"]).ok();
    broken.wait_until_gone();
    town.gt(["escalate", "Which port?", "--severity", "low"]).ok();

    let rows = town.gt_json(&["inbox"]);

    assert_eq!(
        texts(&rows, "key"),
        ["help-wanted:msg-2", "review:we-tea@1", "check-failed:we-broken@1"]
    );
    assert_eq!(rows[0]["severity"], "low");
    assert_eq!(rows[1]["change"], json!({"files": 1, "insertions": 1, "deletions": 0}));
    assert_eq!(rows[1]["commands"][2], "gt review approve we-tea@1");
    assert_eq!((&rows[2]["check"], &rows[2]["rig"]), (&json!("test"), &json!("web")));
    let text = town.gt(["inbox"]).ok().stdout;
    assert_says(&text, &["review  we-tea@1", "1 file +1 -0", "gt review approve we-tea@1"]);
    assert_says(&text, &["check-failed  we-broken@1", "gt mq log we-broken@1", "Which port?"]);
    // The status shows the same rows in the same order.
    let status = town.gt_json(&["status"]);
    assert_eq!(texts(&status["needs_you"], "key"), texts(&rows, "key"));
    assert_says(&town.gt(["status"]).ok().stdout, &["Needs you", "we-tea@1", "gt mail read msg-2"]);

    // One rig alone, and the end of each.
    let of_rig = town.gt_json(&["inbox", "--rig", "web"]);
    assert_eq!(texts(&of_rig, "code"), ["review", "check-failed"]);
    assert_says(&refusal(&town.gt(["inbox", "--rig", "none"])), &["none"]);
    town.gt(["mail", "read", "msg-2"]).ok();
    town.gt(["mq", "cancel", "we-broken"]).ok();
    town.gt(["mail", "read", "msg-1"]).ok();
    // No daemon would land it, so the command does.
    let approved = town.gt(["review", "approve", "we-tea"]).ok().stdout;
    assert_says(&approved, &["we-tea@1 is approved and has landed on main"]);
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    assert_eq!(town.gt(["inbox"]).ok().stdout, "Nothing needs you.\n");
}

#[test]
fn a_red_target_is_one_row_and_goes_when_it_is_mended() {
    let town = town_with_queue();
    town.gt(["rig", "check", "add", "web", "strict", "test -e green"]).ok();
    for bead in ["we-a", "we-b"] {
        let worker = Worker::begin(&town, bead, &[]);
        worker.commit(bead, "x\n", "Work");
        worker.gt(&["done"]).ok();
        worker.wait_until_gone();
    }

    let rows = town.gt_json(&["inbox"]);

    assert_eq!(texts(&rows, "key"), ["target-red:web/main"], "{rows}");
    assert_eq!((&rows[0]["check"], &rows[0]["object"]), (&json!("strict"), &json!("queue")));
    assert_says(&town.gt(["inbox"]).ok().stdout, &["2 merge requests wait", "--fix"]);
    let mender = Worker::begin(&town, "we-green", &[]);
    mender.commit("green", "x\n", "Mend it");
    mender.gt(&["done"]).ok();
    town.gt(["mq", "top", "we-green", "--fix"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(texts(&town.gt_json(&["inbox"]), "code"), Vec::<String>::new());
}
