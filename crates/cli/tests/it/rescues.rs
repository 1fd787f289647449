//! `gt rescue`: the saved work of runs that did not end well.

use gt_testkit::wait_until;

use crate::agents::Stage as _;
use crate::projects::{Worker, town_with_project};
use crate::support::{Steps as _, assert_says, refusal, texts};
use crate::trees::{Trees as _, git, town_with_trees};

#[test]
fn rescued_work_is_listed_shown_and_restored() {
    let town = town_with_trees("process");
    assert_says(&town.gt(["rescue", "list"]).ok().stdout, &["Nothing had to be saved"]);
    town.script("we-1", "echo one > one.txt; git add -A; git commit -qm one; echo two > two.txt; mkfifo pipe; exit 1");
    town.script("we-2", "");
    assert_eq!(town.work("we-1", &[]), "failed");
    assert_eq!(town.work("we-2", &[]), "done");

    let list = town.gt_json(&["rescue", "list"]);
    assert_eq!(texts(&list, "run"), ["we-1#1"]);
    let rescue = town.gt_json(&["rescue", "show", "we-1"]);
    assert_eq!(rescue["reference"], "refs/gt/rescue/we-1/1");
    assert_eq!(rescue["left_out"], serde_json::json!(["pipe: a pipe"]));
    let shown = town.gt(["rescue", "show", "we-1#1"]).ok().stdout;
    let look = format!("git -C {} show refs/gt/rescue/we-1/1", town.shared().display());
    assert_says(&shown, &[&look, "pipe: a pipe", "gt rescue restore we-1#1"]);

    let restored = town.gt_json(&["rescue", "restore", "we-1", "--branch", "second-try"]);
    assert_eq!(restored["commit"], rescue["commit"]);
    let files = git(&town, &town.shared(), &["ls-tree", "--name-only", "second-try"]);
    assert_says(&files, &["one.txt", "two.txt"]);
    // The same again is no mistake; another one of that name is.
    town.gt(["rescue", "restore", "we-1", "--branch", "second-try"]).ok();
    town.gt(["rescue", "restore", "we-1"]).ok();
    git(&town, &town.shared(), &["rev-parse", "--verify", "rescue/we-1/1"]);
    git(&town, &town.shared(), &["update-ref", "refs/heads/taken", "refs/remotes/origin/main"]);
    let message = refusal(&town.gt(["rescue", "restore", "we-1", "--branch", "taken"]));
    assert_says(&message, &["the branch taken exists already", "--branch"]);
    let message = refusal(&town.gt(["rescue", "restore", "we-1", "--branch", "not a branch"]));
    assert_says(&message, &["not a branch"]);
}

#[test]
fn work_that_is_restored_while_a_worker_is_at_work_is_not_told_as_its_doing() {
    let town = town_with_project(
        "[ \"$bead\" = we-b ] && { echo one > one; exit 1; }\nsays_where; wait_for end-we-a",
    );
    let worker = Worker::begin(&town, "we-a", &[]);
    town.bead("we-b", &[]);
    town.gt(["sling", "we-b"]).ok();
    wait_until("its work is saved", || town.gt_json(&["rescue", "list"])[0]["run"] == "we-b#1");
    town.gt(["unsling", "we-b"]).ok();

    town.gt(["rescue", "restore", "we-b#1", "--branch", "second-try"]).ok();

    worker.commit("tea", "tea\n", "Tea");
    worker.gt(&["done"]).ok();
    town.allow("end-we-a");
    wait_until("it has ended", || town.run_of("we-a#1")["alive"] == false);
    let needs = town.gt_json(&["status"])["needs_you"].to_string();
    assert!(!needs.contains("second-try"), "{needs}");
    worker.git(&["rev-parse", "--verify", "second-try"]).ok();
}

#[test]
fn the_next_worker_is_told_of_saved_work_and_takes_it_over() {
    let town = town_with_trees("process");
    town.script("we-1", "echo two > two.txt; exit 1");
    assert_eq!(town.work("we-1", &[]), "failed");
    let takes_over = "gt prime > \"$GT_TOWN_ROOT/told\"; git merge --quiet --squash refs/gt/rescue/we-1/1; \
                      cp two.txt \"$GT_TOWN_ROOT/two\"; git reset --quiet --hard";
    town.write("steps/we-1.sh", takes_over);
    town.bd(["reopen", "we-1"]).ok();

    assert_eq!(town.work("we-1", &[]), "done");

    let told = std::fs::read_to_string(town.cwd().join("told")).unwrap();
    let how = "git merge --squash refs/gt/rescue/we-1/1";
    assert_says(&told, &["What we-1#1 left in its tree is saved", how, "gt rescue show we-1#1"]);
    assert_eq!(std::fs::read_to_string(town.cwd().join("two")).unwrap(), "two\n");
}

#[test]
fn of_a_run_that_left_nothing_nothing_is_saved() {
    let town = town_with_trees("process");
    town.script("we-1", "exit 1");
    assert_eq!(town.work("we-1", &[]), "failed");
    let message = refusal(&town.gt(["rescue", "show", "we-1"]));
    assert_says(&message, &["nothing was saved of we-1", "gt rescue list"]);
    assert_says(&refusal(&town.gt(["rescue", "show", "we-9"])), &["we-9"]);
}

#[test]
fn a_file_too_large_to_rescue_is_named_and_stays_in_the_tree() {
    let town = town_with_trees("process");
    town.gt(["config", "set", "rescue.max", "1MiB"]).ok();
    town.script("we-1", "head -c 3000000 /dev/zero > large.bin; echo small > small.txt; exit 1");
    town.script("we-2", "");
    assert_eq!(town.work("we-1", &[]), "failed");
    let rescue = town.gt_json(&["rescue", "show", "we-1"]);
    assert_says(rescue["left_out"][0].as_str().unwrap(), &["large.bin: too large (3000000 bytes)"]);
    assert_eq!(town.rescued("we-1", "small.txt"), "small");
    assert_eq!(town.work("we-2", &[]), "done");
    let kept = town.cwd().join(town.trash()[0]["path"].as_str().unwrap()).join("tree/large.bin");
    assert_eq!(kept.metadata().unwrap().len(), 3_000_000);
}
