//! The merge queue: finished work is checked on the tree that the target is moved to, and lands or goes back.

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::projects::{Origin as _, STAYS, Worker, town_with_project};
use crate::support::{Steps as _, assert_says, refusal};

/// Passes unless the tree has a file `broken`.
pub(crate) const NOT_BROKEN: &str = "test ! -e broken || { echo broken is here; exit 1; }";

/// A town whose rig lands through the queue, with this check.
pub(crate) fn town_with_check(check: &str) -> Sandbox {
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "rig.web.merge", "mr"]).ok();
    if !check.is_empty() {
        town.gt(["rig", "check", "add", "web", "test", check]).ok();
    }
    town
}

/// Work of a new bead: one file, committed.
pub(crate) fn worker<'t>(town: &'t Sandbox, bead: &str, file: &str, contents: &str) -> Worker<'t> {
    let worker = Worker::begin(town, bead, &[]);
    worker.commit(file, contents, &format!("Add {file}"));
    worker
}

fn request(town: &Sandbox, name: &str) -> Value {
    town.gt_json(&["mq", "show", name])
}

pub(crate) fn state(town: &Sandbox, name: &str) -> String {
    let request = request(town, name);
    match request["held"].as_str() {
        Some(held) => format!("held: {held}"),
        None => request["state"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn work_lands_checked_and_its_bead_closes_with_it() {
    let town = town_with_check(NOT_BROKEN);
    let worker = worker(&town, "we-a", "tea", "tea\n");

    let done = worker.gt(&["done"]).ok().stdout;

    assert_says(&done, &["✓ we-a#1 is done: landed on main as"]);
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    assert_eq!(town.show("we-a")["status"], "closed");
    let landed = town.origin_git(&["rev-parse", "main"]).ok().line().to_owned();
    let story = request(&town, &landed[..12]);
    assert_eq!((&story["id"], &story["state"]), (&json!("we-a@1"), &json!("landed")));
    assert_eq!(story["landed"], json!(landed));
    assert_eq!(story["candidate"]["checks"][0]["name"], "test");
    assert_eq!(story["candidate"]["requests"][0]["request"], "we-a@1");
    let trailers = town.origin_git(&["log", "-1", "--format=%(trailers)", "main"]).ok().stdout;
    assert_says(&trailers, &["Bead: we-a", "Run: we-a#1"]);
    assert_eq!(town.run_of("we-a#1")["landed_commit"], json!(landed));
}

#[test]
fn each_commit_of_a_request_tells_how_it_landed() {
    let town = town_with_check("");
    let worker = worker(&town, "we-a", "tea", "tea\n");
    worker.commit("milk", "milk\n", "Add milk");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    town.person_lands("sugar", "sugar\n");
    let commit = |name: &str| town.origin_git(&["rev-parse", name]).ok().line().to_owned();
    let (person, last, inner, first) =
        (commit("main"), commit("main~1"), commit("main~2"), commit("main~3"));

    for landed in [&last, &inner, &inner[..7], &last[..5]] {
        assert_eq!(request(&town, landed)["id"], "we-a@1", "{landed}");
    }
    for other in [&person, &first, "abcd"] {
        let said = refusal(&town.gt(["mq", "show", other]));
        assert_says(&said, &["no merge request has brought a commit that begins with", other]);
    }
    town.gt(["mq", "revert", &inner, "-m", "no"]).ok();
    assert_eq!((town.landed_file("tea"), town.landed_file("milk")), (None, None));
}

#[test]
fn direct_work_is_told_as_unchecked() {
    let town = town_with_check("false");
    let worker = Worker::begin(&town, "we-a", &["--merge", "direct"]);
    worker.commit("tea", "tea\n", "Add tea");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();

    let shown = town.gt(["mq", "show", "we-a"]).ok().stdout;

    assert_says(&shown, &["landed", "no: direct work lands unchecked"]);
    assert!(!shown.contains("checked as"), "{shown}");
}

#[test]
fn a_check_that_passes_on_its_second_try_is_told_as_flaky() {
    let flaky =
        "echo try >> \"$GT_TOWN_ROOT/tries\"; test $(wc -l < \"$GT_TOWN_ROOT/tries\") -ge 2";
    let town = town_with_check("");
    town.gt(["rig", "check", "add", "web", "test", flaky, "--retry", "1"]).ok();
    let worker = worker(&town, "we-a", "tea", "tea\n");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();

    let shown = town.gt(["mq", "show", "we-a"]).ok().stdout;

    assert_says(&shown, &["test: passed, flaky: it passed on try 2"]);
    let check = request(&town, "we-a")["candidate"]["checks"][0].clone();
    assert_eq!((&check["flaky"], &check["attempt"]), (&json!(true), &json!(2)));
    assert_eq!(check["exit_code"], 0);
    assert!(check["duration_ms"].is_u64(), "{check}");
}

#[test]
fn the_output_of_a_check_that_does_not_end_is_kept() {
    let town = town_with_check("");
    let hangs = "echo it hangs; sleep 60";
    town.gt(["rig", "check", "add", "web", "test", hangs, "--timeout", "1s"]).ok();
    let worker = worker(&town, "we-a", "tea", "tea\n");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    assert_eq!(state(&town, "we-a"), "held: check_error");

    assert_says(&town.gt(["mq", "log", "we-a"]).ok().stdout, &["it hangs"]);

    assert_says(&town.gt(["why", "we-a"]).ok().stdout, &["gt mq log we-a@1"]);
    assert_says(&town.gt(["inbox"]).ok().stdout, &["check-error", "gt mq log we-a@1"]);
}

#[test]
fn commits_that_git_cannot_sign_land_and_their_request_says_so() {
    let commit = "git commit --quiet --message 'Add tea'";
    let town = town_with_project(&format!("echo tea > tea; git add tea; {commit}"));
    let sign = town.write_script("../sign", "echo it asks for a passphrase >&2; exit 1");
    let program = sign.display().to_string();
    for (key, value) in
        [("commit.gpgSign", "true"), ("user.signingKey", "ann"), ("gpg.program", program.as_str())]
    {
        town.command("git").args(["config", "--global", key, value]).run().ok();
    }
    town.bead("we-a", &[]);

    town.gt(["sling", "we-a"]).ok();
    wait_until("it has landed", || town.show("we-a")["status"] == "closed");

    // The worker was not asked for the passphrase either.
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    let shown = town.gt(["mq", "show", "we-a"]).ok().stdout;
    assert_says(&shown, &["its commits are not signed", "sign a commit"]);
}

#[test]
fn a_request_tells_the_cost_of_its_runs() {
    let town = town_with_project(
        "echo tea > tea; git add tea; git commit --quiet -m tea; echo 'cost: 0.25'; echo 'tokens: 90'; gt done",
    );
    town.write(
        ".gt/runtimes/custom.toml",
        "[usage]\ncost = 'cost: (\\S+)'\ntokens = 'tokens: (\\d+)'\n",
    );
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    wait_until("the cost is known", || town.run_of("we-a#1")["cost"] == "0.25");

    let story = request(&town, "we-a");
    assert_eq!((&story["cost"], &story["tokens"]), (&json!("0.25"), &json!(90)));
    assert_says(&town.gt(["mq", "show", "we-a"]).ok().stdout, &["cost", "$0.25 for 90 tokens"]);
}

#[test]
fn work_that_breaks_a_check_goes_back_and_lands_when_it_is_mended() {
    let town = town_with_check(NOT_BROKEN);
    let first = worker(&town, "we-a", "broken", "oops\n");

    let done = first.gt(&["done"]).ok().stdout;

    assert_says(&done, &["we-a@1", "check failed", "broken is here"]);
    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(town.gt_json(&["mq", "log", "we-a"])["exit_code"], 1);
    assert_says(&town.gt(["mq", "log", "we-a"]).ok().stdout, &["broken is here"]);
    first.wait_until_gone();

    let scheduled = town.gt_json(&["why", "we-a"])["context"]["enqueued_by"].clone();
    assert_eq!(scheduled, "web/refinery", "the worker has not asked for it");
    // The repair goes on where the work stopped: on the same branch, in the same tree.
    town.cycle().ok();
    let repair = Worker::of(&town, "we-a#2");
    assert_eq!((&repair.branch, &repair.tree), (&first.branch, &first.tree));
    let briefing = repair.gt(&["prime"]).ok().stdout;
    assert_says(&briefing, &["What is to be repaired", "we-a@1", "gt mq log"]);
    assert_says(
        &briefing,
        &[NOT_BROKEN, "gt rig check run", ".gt/checks/web/test-", "broken is here"],
    );
    assert_says(&town.gt(["mq", "show", "we-a"]).ok().stdout, &["we-a#2 repairs it"]);
    let unchanged = refusal(&repair.gt(&["done"]));
    assert_says(&unchanged, &["we-a#2 changed nothing", "was sent back", "gt done --no-changes"]);
    repair.git(&["rm", "--quiet", "broken"]).ok();
    repair.commit("tea", "tea\n", "Mend it");

    assert_says(&repair.gt(&["done"]).ok().stdout, &["landed on main"]);

    assert_eq!(town.landed("main"), ["First commit", "Add broken", "Mend it"]);
    assert_eq!(town.show("we-a")["status"], "closed");
    assert_eq!(
        (state(&town, "we-a@1"), state(&town, "we-a@2")),
        ("superseded".into(), "landed".into())
    );
    assert_says(&town.gt(["mq", "log", "we-a"]).ok().stdout, &["broken is here"]);
}

#[test]
fn a_repair_may_take_all_of_its_work_back_if_it_says_why() {
    let town = town_with_check(NOT_BROKEN);
    let first = worker(&town, "we-a", "broken", "oops\n");
    first.gt(&["done"]).ok();
    first.wait_until_gone();
    town.cycle().ok();
    let repair = Worker::of(&town, "we-a#2");
    repair.git(&["reset", "--hard", "--quiet", "HEAD~1"]).ok();

    assert_says(&refusal(&repair.gt(&["done"])), &["changed nothing", "gt done --no-changes -m"]);
    repair.gt(&["done", "--no-changes", "-m", "The check is right and the work was not"]).ok();

    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(town.show("we-a")["status"], "closed");
    assert_eq!(state(&town, "we-a@1"), "cancelled");
}

#[test]
fn keys_of_accounts_are_masked_in_the_output_of_checks() {
    const KEY: &str = "sk-test-0123456789";
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "rig.web.merge", "mr"]).ok();
    town.write("key.txt", KEY);
    let key = town.cwd().join("key.txt");
    let check =
        format!("test ! -e tea || {{ echo \"the key is $(cat '{}')\"; exit 1; }}", key.display());
    town.gt(["rig", "check", "add", "web", "test", &check]).ok();
    town.gt(["config", "account", "add", "work", "--env", &format!("API_KEY={KEY}")]).ok();
    let first = worker(&town, "we-a", "tea", "tea\n");

    let done = first.gt(&["done"]).ok().stdout;

    first.wait_until_gone();
    let kept = request(&town, "we-a");
    town.cycle().ok();
    let briefing = Worker::of(&town, "we-a#2").gt(&["prime"]).ok().stdout;
    let shown = [
        done,
        town.gt(["mq", "log", "we-a"]).ok().stdout,
        town.gt_json(&["mq", "log", "we-a"]).to_string(),
        briefing,
    ];
    for text in &shown {
        assert_says(text, &["the key is [masked]"]);
    }
    let directory = town.cwd().join(".gt/checks/web");
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let files: Vec<String> = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert!(files.iter().any(|file| file == "the key is [masked]\n"), "{files:?}");
    assert!(!files.iter().any(|file| file.contains(KEY)), "{files:?}");
    let others = ["inbox", "feed", "status"].map(|word| town.gt([word, "--json"]).ok().stdout);
    for text in shown.iter().chain(&others).chain([&kept.to_string()]) {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[test]
fn a_person_is_asked_when_the_repairs_are_used_up() {
    let town = town_with_check(NOT_BROKEN);
    town.gt(["config", "set", "mq.repairs", "0"]).ok();
    let worker = worker(&town, "we-a", "broken", "oops\n");

    worker.gt(&["done"]).ok();

    assert_eq!(town.show("we-a")["status"], "blocked");
    assert_eq!(town.reasons("we-a"), ["check-failed"]);
    assert_says(&town.gt(["status"]).ok().stdout, &["we-a"]);
    worker.wait_until_gone();
    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["done"], "nothing repairs it by itself");
    let retry = refusal(&town.gt(["scheduler", "retry", "we-a"]));
    assert_says(&retry, &["check failed: we-a@1", "gt mq retry we-a@1"]);
    assert_says(&refusal(&town.bd(["close", "we-a"])), &["we-a@1", "gt mq cancel"]);

    // The check was wrong: the same commit lands.
    town.gt(["rig", "check", "remove", "web", "test"]).ok();
    town.gt(["mq", "retry", "we-a"]).ok();
    assert_says(&town.gt(["mq", "run"]).ok().stdout, &["✓ we-a@1 landed on main"]);
    assert_eq!(town.show("we-a")["status"], "closed");
}

#[test]
fn the_culprit_of_a_batch_is_found_and_the_others_land() {
    let town = town_with_check(NOT_BROKEN);
    let paused = "✓ main of web is paused; gt mq resume web lets work land again";
    assert_eq!(town.gt(["mq", "pause", "web"]).ok().line(), paused);
    let refused = town.gt(["mq", "pause", "web", "--branch", "a b"]).fails(2).stderr;
    assert_says(&refused, &["\"a b\" is not the name of a branch"]);
    for bead in ["we-a", "we-b", "we-c", "we-d"] {
        let file = if bead == "we-c" { "broken" } else { bead };
        let worker = worker(&town, bead, file, "x\n");
        let paused = "the merge queue of main of web is paused by";
        assert_says(&worker.gt(&["done"]).ok().stdout, &[paused]);
        worker.wait_until_gone();
    }
    assert_eq!(town.landed("main"), ["First commit"]);
    let resume = "gt mq resume web --branch main";
    assert_says(&town.gt(["why", "we-a"]).ok().stdout, &["is paused by", resume]);
    assert_says(&town.gt(["mq", "show", "we-a"]).ok().stdout, &["paused by", resume]);
    let list = town.gt_json(&["mq", "list"]);
    let line: Vec<(&str, u64)> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["id"].as_str().unwrap(), entry["position"].as_u64().unwrap()))
        .collect();
    assert_eq!(line, [("we-a@1", 1), ("we-b@1", 2), ("we-c@1", 3), ("we-d@1", 4)]);
    assert_says(&town.gt(["mq", "list"]).ok().stdout, &["main of web is paused by"]);

    town.gt(["work", "add", "task", "A thing for the inbox"]).ok();
    let refused = town.gt(["mq", "pause", "inbox"]).fails(1).stderr;
    assert_says(&refused, &["the rig inbox has no repository, so it has no merge queue"]);
    let warning = "No daemon is running and 4 merge requests wait to land";
    assert_says(&town.gt(["mq", "resume", "web"]).ok().stderr, &[warning, "gt mq run"]);
    town.gt(["mq", "run"]).ok();

    assert_eq!(town.landed("main"), ["First commit", "Add we-a", "Add we-b", "Add we-d"]);
    assert_eq!(state(&town, "we-c@1"), "failed");
}

#[test]
fn a_target_that_is_red_itself_stops_the_queue_and_blames_nobody() {
    let town = town_with_check(NOT_BROKEN);
    let first = worker(&town, "we-a", "tea", "tea\n");
    town.person_lands("broken", "by a person\n");

    first.gt(&["done"]).ok();

    assert_eq!(
        (state(&town, "we-a@1"), request(&town, "we-a@1")["tries"].clone()),
        ("queued".into(), json!(0))
    );
    assert_says(&town.gt(["mq", "list"]).ok().stdout, &["main of web is red: test fails"]);
    assert_says(&town.gt(["mq", "log", "we-a"]).ok().stdout, &["broken is here"]);
    assert_says(&town.gt(["mq", "show", "we-a"]).ok().stdout, &["gt mq log we-a@1"]);
    assert_eq!(town.landed("main"), ["First commit", "A person changes broken"]);
    first.wait_until_gone();

    // The one that mends it may land.
    let mend = Worker::begin(&town, "we-b", &[]);
    mend.git(&["rm", "--quiet", "broken"]).ok();
    mend.git(&["commit", "--quiet", "--message", "Mend main"]).ok();
    mend.gt(&["done"]).ok();
    assert_eq!(state(&town, "we-b@1"), "queued");
    town.gt(["mq", "top", "we-b", "--fix"]).ok();
    town.gt(["mq", "run"]).ok();
    let landed = town.landed("main");
    assert_eq!(&landed[1..], ["A person changes broken", "Mend main", "Add tea"]);
    mend.wait_until_gone();
}

#[test]
fn a_target_that_was_red_by_chance_is_checked_again_on_request() {
    let town = town_with_project(STAYS);
    let works = town.stage("the-network-works");
    town.gt(["rig", "check", "add", "web", "test", &format!("test -e {}", works.display())]).ok();
    let worker = worker(&town, "we-a", "tea", "tea\n");
    worker.gt(&["done"]).ok();
    assert_says(&town.gt(["mq", "list"]).ok().stdout, &["main of web is red: test fails"]);
    town.allow("the-network-works");
    town.gt(["mq", "run"]).ok();
    assert_eq!(state(&town, "we-a@1"), "queued", "nothing has changed that gt can see");

    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    worker.wait_until_gone();
}

#[test]
fn work_for_review_is_checked_and_lands_when_a_person_approves_it() {
    let town = town_with_check(NOT_BROKEN);
    let worker = Worker::begin(&town, "we-a", &["--review-only"]);
    worker.commit("tea", "tea\n", "Add tea");

    assert_says(&worker.gt(&["done"]).ok().stdout, &["we-a@1", "waits for a person's review"]);

    assert_eq!(
        (town.show("we-a")["status"].clone(), town.reasons("we-a")),
        (json!("in_progress"), vec!["review".to_owned()])
    );
    assert_eq!(town.landed("main"), ["First commit"]);
    assert_says(&town.gt(["review"]).ok().stdout, &["we-a@1", "1 file +1 -0"]);
    assert_says(&town.gt(["review", "diff", "we-a"]).ok().stdout, &["+tea"]);
    assert_says(&refusal(&worker.gt(&["review", "approve", "we-a"])), &["we-a"]);
    assert_eq!(state(&town, "we-a@1"), "review");
    worker.wait_until_gone();

    town.gt(["review", "approve", "we-a", "-m", "fine"]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    assert_eq!(town.show("we-a")["status"], "closed");
    assert_eq!(request(&town, "we-a")["reviews"][0]["decision"], "approved");
}

#[test]
fn a_rejection_goes_back_to_a_worker_with_every_comment() {
    let town = town_with_check("");
    town.gt(["config", "set", "rig.web.review", "required"]).ok();
    let first = worker(&town, "we-a", "tea", "te\n");
    first.gt(&["done"]).ok();
    first.wait_until_gone();

    town.gt([
        "review",
        "comment",
        "we-a",
        "--file",
        "tea",
        "--line",
        "1",
        "-m",
        "a letter is missing",
    ])
    .ok();
    town.gt(["review", "reject", "we-a", "-m", "spell it"]).ok();
    town.cycle().ok();

    let repair = Worker::of_next(&town, "we-a", 1);
    let briefing = repair.gt(&["prime"]).ok().stdout;
    assert_says(&briefing, &["rejected by", "spell it", "tea:1", "a letter is missing"]);
    repair.commit("tea", "tea\n", "Spell it");
    assert_says(&repair.gt(&["done"]).ok().stdout, &["we-a@2", "review"]);
    repair.wait_until_gone();
    assert_eq!(town.landed("main"), ["First commit"]);
    town.gt(["review", "approve", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Add tea", "Spell it"]);
}

#[test]
fn a_rejection_without_a_repair_says_so() {
    let town = town_with_check("");
    town.gt(["config", "set", "rig.web.review", "required"]).ok();
    town.gt(["config", "set", "mq.repairs", "0"]).ok();
    let worker = worker(&town, "we-a", "tea", "te\n");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    let beyond = ["review", "comment", "we-a", "--file", "tea", "--line", "99", "-m", "here"];
    assert_says(&refusal(&town.gt(beyond)), &["no line 99 in tea, which has 1"]);

    let said = town.gt(["review", "reject", "we-a", "-m", "spell it"]).ok().stdout;

    assert_says(&said, &["we-a@1 is rejected, and no repair is scheduled", "gt mq retry we-a@1"]);
    assert_eq!(town.show("we-a")["status"], "blocked");
}

#[test]
fn review_only_work_that_was_given_up_waits_for_no_review() {
    let town = town_with_check("");
    let worker = Worker::begin(&town, "we-a", &["--review-only"]);
    worker.commit("tea", "tea\n", "Add tea");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    assert_eq!(town.reasons("we-a"), ["review"]);

    town.gt(["mq", "cancel", "we-a"]).ok();

    assert_eq!(
        (town.show("we-a")["status"].clone(), town.reasons("we-a")),
        (json!("open"), vec!["not-scheduled".to_owned()])
    );
    let inbox = town.gt(["inbox"]).ok().stdout;
    assert!(!inbox.contains("review"), "{inbox}");
    let said = refusal(&town.gt(["mq", "close", "we-a", "-m", "no"]));
    assert!(said.trim_end().ends_with("can be closed so"), "{said}");
}

#[test]
fn a_bead_that_is_to_be_deleted_names_its_merge_request() {
    let town = town_with_check("");
    town.gt(["mq", "pause", "web"]).ok();
    let worker = worker(&town, "we-a", "tea", "tea\n");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();

    let said = town.bd(["delete", "we-a"]).ok().stdout;

    assert_says(&said, &["Would cancel the merge request we-a@1", "Would delete we-a"]);
    assert_eq!(town.json(&["delete", "we-a"])["would_cancel_merge_requests"], json!(["we-a@1"]));
    assert_eq!(state(&town, "we-a"), "queued");
    let said = town.bd(["delete", "we-a", "--force"]).ok().stdout;
    assert_says(&said, &["✓ Cancelled the merge request we-a@1"]);
}

#[test]
fn an_approval_does_not_hold_for_a_later_commit() {
    let town = town_with_check("");
    let worker = Worker::begin(&town, "we-a", &["--review-only"]);
    worker.commit("tea", "tea\n", "Add tea");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    town.gt(["mq", "pause", "web"]).ok();
    town.gt(["review", "approve", "we-a"]).ok();
    town.person_lands("milk", "milk\n");
    town.gt(["mq", "resume", "web"]).ok();

    // The same change on top of another commit is still what was approved.
    town.gt(["mq", "run"]).ok();
    let landed = town.landed("main");
    assert_eq!(landed, ["First commit", "A person changes milk", "Add tea"]);
}

/// Work that waits for a review: it changes `tea` and `milk`, each in a commit.
fn work_for_review(town: &Sandbox) {
    let worker = Worker::begin(town, "we-a", &["--review"]);
    worker.commit("tea", "tea\n", "Add tea");
    worker.commit("milk", "milk\n", "Add milk");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    assert_eq!(state(town, "we-a"), "review");
}

#[test]
fn work_that_the_target_has_in_part_is_reviewed_once_more_and_lands() {
    for land in ["rebase", "squash", "merge"] {
        let town = town_with_check("");
        town.gt(["config", "set", "rig.web.land", land]).ok();
        work_for_review(&town);
        town.person_lands("tea", "tea\n");

        let approved = town.gt(["review", "approve", "we-a"]).ok().stdout;

        assert_says(&approved, &["it is not the change that was approved"]);
        assert_eq!(town.landed_file("milk"), None);
        // People see what it is on the target now, and another push does not change that.
        let diff = town.gt(["review", "diff", "we-a"]).ok().stdout;
        assert_says(&diff, &["+milk"]);
        assert!(!diff.contains("+tea"), "{land}: {diff}");
        town.person_lands("sugar", "sugar\n");
        assert_says(&town.gt(["review", "approve", "we-a"]).ok().stdout, &["landed on main"]);
        assert_eq!(town.landed_file("milk").as_deref(), Some("milk\n"), "{land}");
        assert_eq!(town.show("we-a")["status"], "closed");
    }
}

#[test]
fn work_that_was_reviewed_once_more_is_repaired_from_what_it_became() {
    let town = town_with_check("");
    work_for_review(&town);
    town.gt(["mq", "pause", "web"]).ok();
    let other = worker(&town, "we-b", "sugar", "sugar\n");
    other.gt(&["done"]).ok();
    other.wait_until_gone();
    town.person_lands("tea", "tea\n");
    town.gt(["review", "approve", "we-a"]).ok();
    town.gt(["mq", "top", "we-b"]).ok();
    town.gt(["mq", "resume", "web"]).ok();

    // What lands with it is not held up, and is no part of what is reviewed.
    town.gt(["mq", "run"]).ok();

    assert_eq!((state(&town, "we-a"), state(&town, "we-b")), ("review".into(), "landed".into()));
    let diff = town.gt(["review", "diff", "we-a", "--stat"]).ok().stdout;
    assert_says(&diff, &["milk", "1 file +1 -0"]);
    town.gt(["review", "reject", "we-a", "-m", "more milk"]).ok();
    town.cycle().ok();
    let repair = Worker::of_next(&town, "we-a", 1);
    assert_says(&refusal(&repair.gt(&["done"])), &["changed nothing", "more milk"]);
    repair.commit("milk", "milk\nmilk\n", "Add more milk");
    repair.gt(&["done"]).ok();
    repair.wait_until_gone();
    assert_says(&town.gt(["review", "approve", "we-a"]).ok().stdout, &["landed on main"]);
    let landed = town.landed("main");
    assert_eq!(landed.iter().filter(|commit| *commit == "Add tea").count(), 0, "{landed:?}");
    assert_eq!(town.landed_file("milk").as_deref(), Some("milk\nmilk\n"));
}

#[test]
fn a_changed_check_lets_go_on_what_could_not_be_checked() {
    let town = town_with_check("no-such-program");
    let worker = worker(&town, "we-a", "tea", "tea\n");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    assert_eq!(state(&town, "we-a"), "held: check_error");

    town.gt(["rig", "check", "remove", "web", "test"]).ok();

    assert_says(&town.gt(["mq", "run"]).ok().stdout, &["✓ we-a@1 landed on main"]);
}

#[test]
fn conflicting_work_goes_back_with_its_files() {
    let town = town_with_check("");
    town.gt(["mq", "pause", "web"]).ok();
    let first = worker(&town, "we-a", "tea", "green\n");
    first.gt(&["done"]).ok();
    first.wait_until_gone();
    let second = worker(&town, "we-b", "tea", "black\n");
    second.gt(&["done"]).ok();
    second.wait_until_gone();
    town.gt(["mq", "resume", "web"]).ok();

    town.gt(["mq", "run"]).ok();

    assert_eq!(town.landed_file("tea").as_deref(), Some("green\n"));
    assert_eq!(state(&town, "we-b@1"), "conflict");
    town.cycle().ok();
    let repair = Worker::of_next(&town, "we-b", 1);
    assert_says(
        &repair.gt(&["prime"]).ok().stdout,
        &["does not apply", "tea", "git rebase origin/main"],
    );
    assert_says(&refusal(&repair.gt(&["done"])), &["others have changed tea", "git rebase"]);
    repair.git(&["rebase", "origin/main"]);
    repair.write("tea", "green and black\n");
    repair.git(&["add", "--all"]).ok();
    repair.command("git").args(["rebase", "--continue"]).env("GIT_EDITOR", "true").run().ok();
    assert_says(&repair.gt(&["done"]).ok().stdout, &["landed on main"]);
    assert_eq!(town.landed_file("tea").as_deref(), Some("green and black\n"));
}

#[test]
fn a_request_that_is_cancelled_leaves_its_bead_open_and_its_branch() {
    let town = town_with_check("");
    town.gt(["mq", "pause", "web"]).ok();
    let worker = worker(&town, "we-a", "tea", "tea\n");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    assert_says(
        &refusal(&town.bd(["update", "we-a", "--status", "open"])),
        &["we-a@1", "gt mq cancel"],
    );
    assert_says(&refusal(&town.gt(["sling", "we-a"])), &["we-a@1", "--force"]);

    let cancelled = town.gt_json(&["mq", "cancel", "we-a"]);

    assert_eq!(cancelled["changed_at"], request(&town, "we-a@1")["changed_at"]);
    assert_eq!(
        (state(&town, "we-a@1"), town.show("we-a")["status"].clone()),
        ("cancelled".into(), json!("open"))
    );
    town.gt(["mq", "resume", "web"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit"]);
}

#[test]
fn an_origin_that_refuses_holds_the_request_with_its_words() {
    let town = town_with_check("");
    town.origin_hook("pre-receive", "echo 'GH006: Protected branch update failed' >&2; exit 1");
    let worker = worker(&town, "we-a", "tea", "tea\n");

    assert_says(&worker.gt(&["done"]).ok().stdout, &["held", "origin refused", "Protected branch"]);

    assert_eq!(state(&town, "we-a@1"), "held: origin_refused");
    let advice = "gt rig set web merge pr";
    assert_eq!(request(&town, "we-a@1")["next"], format!("{advice}, then gt mq retry we-a@1"));
    assert_says(&town.gt(["inbox"]).ok().stdout, &[advice]);
    assert_eq!(town.reasons("we-a"), ["held"]);
    town.origin_hook("pre-receive", "exit 0");
    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    worker.wait_until_gone();
}

#[test]
fn an_origin_that_is_away_holds_the_request_until_it_is_back() {
    let town = town_with_check("");
    let worker = worker(&town, "we-a", "tea", "tea\n");
    town.origin_is_there(false);

    assert_says(&worker.gt(&["done"]).ok().stdout, &["held", "origin unreachable"]);

    assert_eq!(worker.state(), "done");
    town.origin_is_there(true);
    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    worker.wait_until_gone();
}

#[test]
fn the_daemon_lands_what_is_done() {
    let town = town_with_check(NOT_BROKEN);
    town.gt(["up"]).ok();
    let worker = worker(&town, "we-a", "tea", "tea\n");

    assert_says(&worker.gt(&["done"]).ok().stdout, &["we-a@1"]);

    wait_until("it has landed", || town.show("we-a")["status"] == "closed");
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    assert!(town.stage("we-a").exists());
}

#[test]
fn a_rig_is_removed_with_its_requests_only_by_force_and_their_work_is_saved() {
    let town = town_with_check("");
    town.gt(["mq", "pause", "web"]).ok();
    for bead in ["we-a", "we-b"] {
        let worker = worker(&town, bead, bead, "x\n");
        worker.gt(&["done"]).ok();
        worker.wait_until_gone();
    }
    let accepted = request(&town, "we-a")["accepted"].as_str().unwrap().to_owned();

    let refused = refusal(&town.gt(["rig", "remove", "web"]));
    assert_says(&refused, &["we-a@1, we-b@1", "gt mq list --rig web", "gt rig remove web --force"]);
    let other = town.create("Not begun", &["--rig", "web"]);
    assert_says(&refusal(&town.gt(["rig", "remove", "web", "--force"])), &["1 bead that is not"]);
    assert_eq!(state(&town, "we-a"), "queued", "nothing is cancelled if the rig stays");
    town.bd(["close", &other]).ok();

    let removed = town.gt(["rig", "remove", "web", "--force"]).ok().stdout;

    assert_says(
        &removed,
        &["gt rescue show we-a#1", "gt rescue show we-b#1", "Removed the rig web"],
    );
    assert_eq!(state(&town, "we-a"), "cancelled");
    assert_eq!(town.show("we-a")["status"], "open");
    assert_eq!(town.gt_json(&["rescue", "show", "we-a"])["commit"], json!(accepted));
    let restored = town.gt_json(&["rescue", "restore", "we-a"]);
    assert_eq!(restored["commit"], json!(accepted));
}

#[test]
fn a_rig_whose_request_is_being_pushed_stays_also_by_force() {
    let town = town_with_check("");
    // The origin takes the push, and the answer never comes back.
    town.origin_hook("post-receive", "kill -9 $(cat \"$stage/builder\")");
    town.gt(["mq", "pause", "web"]).ok();
    let worker = worker(&town, "we-a", "tea", "tea\n");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    town.gt(["mq", "resume", "web"]).ok();
    let builder = town.write_script(
        "build",
        &format!(
            "echo $$ > {}/builder; exec {} mq run",
            town.stage("").display(),
            town.gt_path().display()
        ),
    );
    let _killed = town.command(builder).run();
    assert_eq!(state(&town, "we-a"), "landing");

    let refused = refusal(&town.gt(["rig", "remove", "web", "--force"]));

    assert_says(&refused, &["we-a@1", "being pushed", "gt mq run"]);
    assert_eq!(town.gt_json(&["rig", "list"])[0]["name"], "web");
}

#[test]
fn finished_work_that_no_process_lands_is_the_first_line() {
    let town = town_with_check("");
    town.gt(["mq", "pause", "web"]).ok();
    let worker = worker(&town, "we-a", "tea", "tea\n");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    assert_eq!(town.gt_json(&["status"]).get("daemon_absence"), None, "a person has paused it");
    town.gt(["mq", "resume", "web"]).ok();

    let first = "No daemon is running and 1 merge request waits to land";
    for command in [
        &["status"][..],
        &["scheduler", "status"],
        &["scheduler", "list"],
        &["why", "we-a"],
        &["mq", "list"],
        &["mq", "show", "we-a"],
    ] {
        let said = town.start_gt(command).run().ok().stdout;
        assert!(said.starts_with(first), "{command:?}: {said}");
    }
    for command in
        [&["status"][..], &["scheduler", "status"], &["why", "we-a"], &["mq", "show", "we-a"]]
    {
        let absence = town.gt_json(command)["daemon_absence"].clone();
        assert_eq!((&absence["merge_requests"], &absence["ready"]), (&json!(1), &json!(0)));
    }
    assert_eq!(town.gt_json(&["mq", "list"])[0]["daemon_absence"]["merge_requests"], 1);
    assert_eq!(town.gt_json(&["inbox"])[0]["code"], "daemon-away");
    assert_says(&town.gt(["doctor"]).stdout, &[first]);
    let waited = town.gt(["wait", "--all", "--timeout", "50ms", "--json"]).fails(1).json();
    assert_eq!(
        (&waited["timed_out"], &waited["beads"][0]["result"]),
        (&json!(true), &json!("going"))
    );

    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    assert_eq!(town.gt_json(&["inbox"]), json!([]));
    town.gt(["wait", "--all"]).ok();
}
