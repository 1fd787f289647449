//! A rig whose origin is the ordinary clone of its user, with the target branch checked out in it.

use std::fs;
use std::path::{Path, PathBuf};

use gt_testkit::{Sandbox, wait_until};
use serde_json::json;

use crate::agents::Stage as _;
use crate::fence_bypass::{TELLS, as_worker};
use crate::projects::{Worker, project_agent};
use crate::support::{Steps as _, assert_says, town};
use crate::trees::git;

/// A town with the rig `web`, whose origin is the clone that is returned with it.
fn town_with_own_checkout(script: &str) -> (Sandbox, PathBuf) {
    let town = town();
    let checkout = town.git_repository("my web");
    fs::write(checkout.join("notes.txt"), "first\n").unwrap();
    git(&town, &checkout, &["add", "--all"]);
    git(&town, &checkout, &["commit", "--quiet", "--message", "Notes"]);
    let added = town.gt(["rig", "add", "web", "../my web", "--executor", "process"]).ok();
    assert_says(&added.stdout, &["Work lands in your checkout", "my web", "git merge --ff-only"]);
    project_agent(&town, script);
    (town, checkout)
}

fn status(town: &Sandbox, checkout: &Path) -> String {
    git(town, checkout, &["status", "--porcelain"])
}

#[test]
fn bead_lands_in_an_ordinary_clone_with_uncommitted_changes() {
    let (town, checkout) = town_with_own_checkout("echo tea > tea; rm README.md");
    fs::write(checkout.join("notes.txt"), "edited\n").unwrap();
    fs::write(checkout.join("draft.txt"), "draft\n").unwrap();
    town.create("Boil water", &["--id", "we-a", "--force"]);

    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    let log = git(&town, &checkout, &["log", "-1", "--format=%s"]);
    assert_eq!(log.trim(), "Boil water");
    assert_eq!(fs::read_to_string(checkout.join("tea")).unwrap(), "tea\n");
    assert!(!checkout.join("README.md").exists());
    assert_eq!(status(&town, &checkout).trim(), "M notes.txt\n?? draft.txt");
    assert_eq!(fs::read_to_string(checkout.join("notes.txt")).unwrap(), "edited\n");
    wait_until("the candidate is deleted", || {
        git(&town, &checkout, &["for-each-ref", "refs/gt"]).is_empty()
    });
}

#[test]
fn work_that_a_checkout_holds_says_so_and_lands_later() {
    let (town, checkout) = town_with_own_checkout("echo worker > notes.txt");
    fs::write(checkout.join("notes.txt"), "mine\n").unwrap();
    town.create("Write notes", &["--id", "we-a", "--force"]);

    town.gt(["sling", "we-a"]).ok();
    wait_until("it is held", || town.reasons("we-a") == ["held"]);

    let said = ["checkout in the way", "notes.txt", "stash push --all -- notes.txt", "gt mq retry"];
    assert_says(&town.gt(["why", "we-a"]).ok().stdout, &said);
    assert_says(&town.gt(["status"]).ok().stdout, &["Needs you", "we-a@1", said[0]]);
    assert_eq!(town.gt_json(&["mq", "show", "we-a"])["held"], "checkout_in_the_way");
    assert_eq!(town.states("we-a"), ["done"], "no attempt is used up");
    assert_eq!(fs::read_to_string(checkout.join("notes.txt")).unwrap(), "mine\n");

    git(&town, &checkout, &["stash", "--quiet"]);
    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(town.show("we-a")["outcome"], json!("success"));
    assert_eq!(fs::read_to_string(checkout.join("notes.txt")).unwrap(), "worker\n");
    assert_eq!(status(&town, &checkout), "");
}

#[test]
fn a_worker_changes_nothing_in_the_checkout_that_its_work_lands_in() {
    let (town, checkout) = town_with_own_checkout(TELLS);
    git(&town, &checkout, &["branch", "other"]);
    fs::write(checkout.join("notes.txt"), "edited\n").unwrap();
    fs::write(checkout.join("draft.txt"), "draft\n").unwrap();
    let linked = town.root().join("linked");
    git(&town, &checkout, &["worktree", "add", "--quiet", linked.to_str().unwrap(), "other"]);
    town.create("Boil water", &["--id", "we-a", "--force"]);
    town.gt(["sling", "we-a"]).ok();
    let worker = Worker::of(&town, "we-a#1");
    let settings = fs::read(checkout.join(".git/config")).unwrap();
    let here = checkout.display();

    for change in [
        format!("git -C '{here}' reset --hard"),
        format!("cd '{here}' && git checkout -- notes.txt"),
        format!("cd '{here}/.git' && git --work-tree=.. restore notes.txt"),
        format!("git -C '{here}' clean -fdx"),
        format!("git -C '{here}' stash"),
        format!("git -C '{here}' switch --detach"),
        format!("git --git-dir='{here}/.git' symbolic-ref HEAD refs/heads/elsewhere"),
        format!("GIT_DIR='{here}/.git' git config core.fsmonitor /bin/false"),
        format!("git -C '{}' switch -c elsewhere", linked.display()),
        format!("git -C '{here}' worktree add ../more"),
    ] {
        let refused = as_worker(&town, &worker, &change);
        assert_eq!(refused.code, 1, "{change}: {refused}");
        assert_says(&refused.stderr, &["work lands in", "gt done"]);
    }
    let looked = format!("git -C '{here}' log -1 --format=%s && git -C '{here}' status --short");
    assert_says(&as_worker(&town, &worker, &looked).ok().stdout, &["Notes", "draft.txt"]);

    assert_eq!(status(&town, &checkout).trim(), "M notes.txt\n?? draft.txt");
    assert_eq!(git(&town, &checkout, &["symbolic-ref", "--short", "HEAD"]).trim(), "main");
    assert_eq!(fs::read(checkout.join(".git/config")).unwrap(), settings);
    town.allow("end-we-a");
    wait_until("the bead is over", || town.states("we-a") != ["running"]);
}
