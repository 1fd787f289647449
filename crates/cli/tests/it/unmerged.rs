//! Work that is pushed under its own name, and that people merge: `--no-merge`.

use gt_testkit::wait_until;
use serde_json::json;

use crate::agents::Stage as _;
use crate::merge_queue::{NOT_BROKEN, state, town_with_check};
use crate::projects::{Origin as _, Worker};
use crate::support::{Steps as _, assert_says};

#[test]
fn work_that_is_to_land_after_all_lands_when_it_is_repaired() {
    let town = town_with_check(NOT_BROKEN);
    let worker = Worker::begin(&town, "we-a", &["--no-merge"]);
    worker.commit("broken", "oops\n", "Break it");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    assert_eq!(state(&town, "we-a"), "held: unmerged");
    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(state(&town, "we-a"), "failed");

    town.cycle().ok();
    let repair = Worker::of_next(&town, "we-a", 1);
    repair.git(&["rm", "--quiet", "broken"]).ok();
    repair.commit("tea", "tea\n", "Mend it");

    assert_says(&repair.gt(&["done"]).ok().stdout, &["landed on main"]);
}

#[test]
fn work_that_others_have_merged_is_found_in_the_target() {
    let town = town_with_check("");
    let worker = Worker::begin(&town, "we-a", &["--no-merge"]);
    worker.commit("tea", "tea\n", "Add tea");
    assert_says(&worker.gt(&["done"]).ok().stdout, &["pushed as", &worker.branch]);
    assert_eq!(state(&town, "we-a@1"), "held: unmerged");
    worker.wait_until_gone();
    town.origin_git(&["branch", "--force", "main", &worker.branch]).ok();

    // Any look at the target finds it.
    let other = crate::merge_queue::worker(&town, "we-b", "milk", "milk\n");
    other.gt(&["done"]).ok();

    assert_eq!(
        (state(&town, "we-a@1"), town.show("we-a")["status"].clone()),
        ("landed".into(), json!("closed"))
    );
    assert_eq!(town.origin_references(), ["refs/heads/main"], "its branch is not needed any more");
    other.wait_until_gone();
}

#[test]
fn work_that_others_have_merged_is_found_without_other_work() {
    let town = town_with_check("");
    let pushed = |bead: &str| {
        let worker = Worker::begin(&town, bead, &["--no-merge"]);
        worker.commit(bead, "x\n", bead);
        worker.gt(&["done"]).ok();
        worker.wait_until_gone();
        assert_eq!(state(&town, &format!("{bead}@1")), "held: unmerged");
        worker.branch.clone()
    };
    let merge = |branch: String| town.origin_git(&["branch", "--force", "main", &branch]).ok();
    merge(pushed("we-a"));
    assert_says(&town.gt(["mq", "sync"]).ok().stdout, &["✓ we-a@1 landed on main"]);
    assert_eq!(town.show("we-a")["status"], "closed");
    assert_says(&town.gt(["mq", "sync"]).ok().stdout, &["No news"]);

    // A pass asks the origin, and not again before that is due.
    town.gt(["config", "set", "pr.poll", "1h"]).ok();
    let branch = pushed("we-b");
    assert_says(&town.gt(["mq", "run"]).ok().stdout, &["Nothing to land now"]);
    merge(branch);
    assert_says(&town.gt(["mq", "run"]).ok().stdout, &["Nothing to land now"]);
    // The start of a run fetches the target.
    Worker::begin(&town, "we-c", &[]);
    assert_says(&town.gt(["mq", "run"]).ok().stdout, &["✓ we-b@1 landed on main"]);
    town.allow("end-we-c");
}

#[test]
fn the_daemon_looks_for_work_that_people_merge() {
    let town = town_with_check("");
    town.gt(["config", "set", "pr.poll", "1s"]).ok();
    town.gt(["up"]).ok();
    let worker = Worker::begin(&town, "we-a", &["--no-merge"]);
    worker.commit("tea", "tea\n", "Add tea");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    let pushed = format!("refs/heads/{}", worker.branch);
    wait_until("its branch is at the origin", || town.origin_references().contains(&pushed));

    town.origin_git(&["branch", "--force", "main", &worker.branch]).ok();

    wait_until("it is found", || state(&town, "we-a") == "landed");
    wait_until("its branch is deleted", || town.origin_references() == ["refs/heads/main"]);
}

#[test]
fn a_pushed_branch_is_deleted_when_its_work_lands_after_all() {
    let town = town_with_check(NOT_BROKEN);
    let worker = Worker::begin(&town, "we-a", &["--no-merge"]);
    worker.commit("tea", "tea\n", "Add tea");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    // What others have landed meanwhile makes another commit of it.
    town.person_lands("milk", "milk\n");

    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(state(&town, "we-a"), "landed");
    assert_eq!(town.origin_references(), ["refs/heads/main"]);
}

#[test]
fn a_merged_branch_to_which_others_have_added_stays_at_the_origin() {
    let town = town_with_check("");
    let worker = Worker::begin(&town, "we-a", &["--no-merge"]);
    worker.commit("tea", "tea\n", "Add tea");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    let branch = format!("refs/heads/{}", worker.branch);
    town.origin_git(&["branch", "--force", "main", &worker.branch]).ok();
    let add = ["commit-tree", "-m", "More", "-p", &branch, &format!("{branch}^{{tree}}")];
    let more = town.origin_git(&add).ok().line().to_owned();
    town.origin_git(&["update-ref", &branch, &more]).ok();

    let other = crate::merge_queue::worker(&town, "we-b", "milk", "milk\n");
    other.gt(&["done"]).ok();

    assert_eq!(state(&town, "we-a@1"), "landed");
    assert_eq!(town.origin_references(), ["refs/heads/main", &branch]);
    other.wait_until_gone();
}
