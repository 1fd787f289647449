//! Which work a person has to approve, how many reviews may wait, and which processes may not review.

use gt_testkit::{Sandbox, wait_until};
use serde_json::json;

use crate::agents::{Stage as _, has_supervisor};
use crate::projects::{Origin as _, STAYS, Worker, project_agent, town_with_project};
use crate::support::{Steps as _, assert_says, refusal};

/// A town whose rig lands through the queue.
fn town_with_queue() -> Sandbox {
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "rig.web.merge", "mr"]).ok();
    town
}

/// Ends the work of a bead that has begun; the state of its merge request.
#[track_caller]
fn finish(town: &Sandbox, bead: &str) -> String {
    let worker = Worker::of(town, &format!("{bead}#1"));
    worker.commit(bead, "x\n", &format!("Add {bead}"));
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    let request = town.gt_json(&["mq", "show", bead]);
    request["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_review_that_is_required_anywhere_is_required() {
    let town = town_with_queue();

    // By nothing.
    Worker::begin(&town, "we-none", &[]);
    assert_eq!(finish(&town, "we-none"), "landed");

    // By the sling, also where work would land at once.
    Worker::begin(&town, "we-sling", &["--review", "--merge", "direct"]);
    assert_eq!(finish(&town, "we-sling"), "review");

    // By the bead, and its worker cannot change that.
    town.bead("we-bead", &["--metadata", r#"{"review": "required"}"#]);
    town.gt(["sling", "we-bead"]).ok();
    let worker = Worker::of(&town, "we-bead#1");
    let unset = worker.command(town.gt_path());
    let unset = unset.args(["bd", "update", "we-bead", "--unset-metadata", "review"]).run();
    assert_says(&refusal(&unset), &["a review of we-bead is required"]);
    assert_eq!(finish(&town, "we-bead"), "review");

    // By the convoy, also when its work has begun.
    town.bead("we-convoy", &[]);
    town.gt(["convoy", "create", "Reviewed", "we-convoy", "--review"]).ok();
    assert_eq!(finish(&town, "we-convoy"), "review");
    town.bead("we-later", &[]);
    let made = town.gt(["convoy", "create", "Later", "we-later"]).ok().stdout;
    let convoy = made.split_whitespace().find(|word| word.starts_with("hq-cv-")).unwrap();
    let convoy = convoy.trim_end_matches(':');
    town.gt(["convoy", "review", convoy, "required"]).ok();
    let again = town.gt(["convoy", "review", convoy, "required"]).ok().stdout;
    assert_says(&again, &["requires a review already"]);
    assert_eq!(town.gt_json(&["convoy", "status", convoy])["review"], true);
    assert_eq!(finish(&town, "we-later"), "review");
}

#[test]
fn a_review_names_the_rule_that_asks_for_it() {
    let town = town_with_queue();
    let reason = |bead: &str| town.gt(["review", "show", bead]).ok().stdout;
    Worker::begin(&town, "we-sling", &["--review"]);
    finish(&town, "we-sling");
    assert_says(&reason("we-sling"), &["its sling asks for it"]);
    town.bead("we-bead", &["--metadata", r#"{"review": "required"}"#]);
    town.gt(["sling", "we-bead"]).ok();
    finish(&town, "we-bead");
    assert_says(&reason("we-bead"), &["we-bead asks for it: review=required"]);
    town.gt(["config", "set", "rig.web.review", "required"]).ok();
    Worker::begin(&town, "we-rig", &[]);
    finish(&town, "we-rig");
    assert_says(&reason("we-rig"), &["rig.web.review is required"]);

    town.gt(["config", "set", "rig.web.review", "optional"]).ok();

    assert_says(&reason("we-rig"), &["a rule that has been changed since asked for it"]);
}

#[test]
fn no_new_work_starts_while_too_many_reviews_wait() {
    let town = town_with_queue();
    town.gt(["config", "set", "rig.web.review", "required"]).ok();
    town.gt(["config", "set", "review.max", "1"]).ok();
    Worker::begin(&town, "we-a", &[]);
    assert_eq!(finish(&town, "we-a"), "review");

    town.bead("we-b", &[]);
    town.gt(["sling", "we-b"]).ok();

    town.cycle().ok();
    assert_eq!(town.reasons("we-b"), ["reviews-waiting"]);
    let why = town.gt(["why", "we-b"]).ok().stdout;
    assert_says(&why, &["reviews waiting: 1, and review.max is 1", "gt review lists what waits"]);
    let status = town.gt(["status"]).ok().stdout;
    assert!(!status.contains("No daemon is running"), "a daemon would start nothing: {status}");

    // The repair of what was rejected is not new work.
    town.gt(["review", "reject", "we-a", "-m", "no"]).ok();
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.cycle().ok();
    let repair = Worker::of_next(&town, "we-a", 1);
    repair.commit("we-a", "y\n", "Mend it");
    repair.gt(&["done"]).ok();
    repair.wait_until_gone();
    town.cycle().ok();
    assert_eq!(town.reasons("we-b"), ["reviews-waiting"]);

    town.gt(["review", "approve", "we-a"]).ok();
    town.cycle().ok();
    Worker::of(&town, "we-b#1");
    town.allow("end-we-b");
    town.assert_quiet();
}

#[test]
fn a_daemon_starts_what_waited_when_a_review_is_decided() {
    let town = town_with_queue();
    town.gt(["config", "set", "rig.web.review", "required"]).ok();
    town.gt(["config", "set", "review.max", "1"]).ok();
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town.gt(["up"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    let worker = Worker::of(&town, "we-a#1");
    worker.commit("tea", "tea\n", "Add tea");
    worker.gt(&["done"]).ok();
    wait_until("it waits for a review", || {
        town.gt_json(&["mq", "show", "we-a"])["state"] == "review"
    });
    town.bead("we-b", &[]);
    town.gt(["sling", "we-b"]).ok();
    wait_until("the other one waits", || town.reasons("we-b") == ["reviews-waiting"]);

    town.gt(["review", "approve", "we-a"]).ok();

    Worker::of_next(&town, "we-b", 0);
    town.allow("end-we-b");
}

/// An agent that forgets that it is one, and approves the request of another bead.
const DISGUISED: &str = r#"
wait_for go
env -u GT_RUN -u GT_SOCKET -u BD_ACTOR gt review approve we-a > "$stage/said" 2>&1
setsid env -i PATH="$PATH" HOME="$HOME" gt -C "$GT_TOWN_ROOT" review approve we-a >> "$stage/said" 2>&1
true > "$stage/asked"
"#;

#[test]
fn a_process_of_a_run_reviews_nothing_under_another_name() {
    let town = town_with_queue();
    Worker::begin(&town, "we-a", &["--review"]);
    assert_eq!(finish(&town, "we-a"), "review");
    project_agent(&town, DISGUISED);
    town.bead("we-b", &[]);
    town.gt(["sling", "we-b"]).ok();

    town.allow("go");

    wait_until("the agent has tried", || town.stage("asked").exists());
    let said = std::fs::read_to_string(town.stage("said")).unwrap();
    let refused = said.matches("this command comes from we-b#1").count();
    assert_eq!(refused, 2, "{said}");
    assert_eq!(town.gt_json(&["mq", "show", "we-a"])["state"], "review");

    // A person at a terminal stays a person, also in the tree of a worker.
    wait_until("the agent has left its tree", || !has_supervisor(&town, "we-b#1"));
    project_agent(&town, STAYS);
    town.bead("we-c", &[]);
    town.gt(["sling", "we-c"]).ok();
    let other = Worker::of(&town, "we-c#1");
    let line = format!("'{}' review approve we-a", town.gt_path().display());
    let at_terminal = town.command("script").args(["-qec", &line, "/dev/null"]);
    at_terminal.dir(&other.tree).run().ok();
    assert_eq!(town.gt_json(&["mq", "show", "we-a"])["state"], "landed");
    town.allow("end-we-c");
}

#[test]
fn a_check_reviews_nothing() {
    let town = town_with_queue();
    Worker::begin(&town, "we-a", &["--review"]);
    assert_eq!(finish(&town, "we-a"), "review");
    let said = town.stage("said");
    let command = format!(
        "exec env -i PATH=\"$PATH\" HOME=\"$HOME\" gt -C \"$GT_TOWN_ROOT\" review approve we-a > '{}' 2>&1",
        said.display()
    );
    town.gt(["rig", "check", "add", "web", "sly", &command]).ok();

    town.gt(["rig", "check", "run", "main", "--rig", "web"]).fails(1);

    let said = std::fs::read_to_string(said).unwrap();
    assert_says(&said, &["comes from the check web/sly"]);
    assert_eq!(town.gt_json(&["mq", "show", "we-a"])["state"], "review");
}

#[test]
fn a_change_is_shown_in_a_pager_on_a_terminal_only() {
    let town = town_with_queue();
    Worker::begin(&town, "we-a", &["--review"]);
    assert_eq!(finish(&town, "we-a"), "review");
    let pager = town.write_script("pager", "sed 's/^/paged: /'");
    let line = format!("'{}' review diff we-a", town.gt_path().display());
    let on_terminal = town.command("script").args(["-qec", &line, "/dev/null"]);

    let paged = on_terminal.env("PAGER", &pager).run().ok().stdout;

    assert_says(&paged, &["paged: +x"]);
    let plain = town.start_gt(&["review", "diff", "we-a"]).env("PAGER", &pager).run().ok().stdout;
    assert!(plain.contains("\n+x") && !plain.contains("paged"), "{plain}");
    let missing = town.command("script").args(["-qec", &line, "/dev/null"]);
    let printed = missing.env("PAGER", "/nowhere/pager").run().ok().stdout;
    assert_says(&printed, &["+x"]);
    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(town.show("we-a")["status"], json!("in_progress"));
}

#[test]
fn commits_of_others_that_work_is_put_on_are_no_part_of_it() {
    for combine in [["rebase", "FETCH_HEAD"], ["merge", "FETCH_HEAD"]] {
        let town = town_with_queue();
        town.gt(["config", "set", "rig.web.protect", "pipeline"]).ok();
        let worker = Worker::begin(&town, "we-a", &["--no-merge"]);
        let other = Worker::begin(&town, "we-b", &["--review"]);
        for (worker, file) in [(&worker, "tea"), (&other, "milk")] {
            worker.commit(file, "x\n", &format!("Add {file}"));
        }
        town.person_lands("pipeline", "x\n");
        for worker in [&worker, &other] {
            worker.git(&["fetch", "--refmap=", "--no-tags", "origin", "main"]).ok();
            worker.git(&combine).ok();
            worker.gt(&["done"]).ok();
            worker.wait_until_gone();
        }

        // A person looks at the work alone.
        let diff = town.gt(["review", "diff", "we-b", "--stat"]).ok().stdout;
        assert_says(&diff, &["milk", "1 file +1 -0"]);
        let shown = town.gt(["review", "show", "we-b"]).ok().stdout;
        assert_says(&shown, &["its sling asks for it"]);
        assert!(!shown.contains("pipeline"), "{shown}");

        // The other one changes no protected path, and undoing it undoes nothing of others.
        assert_eq!(town.gt_json(&["mq", "show", "we-a"])["review"], false);
        let branch = town.gt_json(&["mq", "show", "we-a"])["branch"].as_str().unwrap().to_owned();
        town.origin_git(&["update-ref", "refs/heads/main", &branch]).ok();
        town.gt(["mq", "sync"]).ok();
        assert_says(&town.gt(["mq", "revert", "we-a", "-m", "no"]).ok().stdout, &["Reverted we-a"]);
        assert_eq!(
            (town.landed_file("tea"), town.landed_file("pipeline")),
            (None, Some("x\n".into()))
        );
    }
}

#[test]
fn a_review_of_work_that_stays_on_its_branch_is_refused() {
    let town = town_with_queue();
    town.bead("we-a", &[]);

    let refused = refusal(&town.gt(["sling", "we-a", "--merge", "local", "--review"]));

    assert_says(&refused, &["--merge local", "--review"]);
    let convoy = ["convoy", "create", "Kept", "we-a", "--merge", "local", "--review"];
    assert_says(&refusal(&town.gt(convoy)), &["--merge local", "--review"]);
    assert!(town.states("we-a").is_empty());
}

#[test]
fn work_that_was_to_stay_on_its_branch_waits_for_a_review_that_its_rig_requires() {
    let town = town_with_queue();
    town.gt(["config", "set", "rig.web.review", "required"]).ok();
    town.bead("we-a", &[]);
    town.gt(["convoy", "create", "Kept", "we-a", "--merge", "local"]).ok();

    assert_eq!(finish(&town, "we-a"), "review");

    assert_eq!(town.show("we-a")["status"], "in_progress");
    assert_eq!(town.landed("main"), ["First commit"]);
}

#[test]
fn protected_paths_are_reviewed_also_if_the_work_was_to_stay_on_its_branch() {
    let town = town_with_queue();
    town.gt(["config", "set", "rig.web.protect", "we-a"]).ok();
    for bead in ["we-a", "we-b"] {
        Worker::begin(&town, bead, &["--merge", "local"]);
    }

    assert_eq!(finish(&town, "we-a"), "review");
    assert_eq!(town.show("we-a")["status"], "in_progress");

    let other = Worker::of(&town, "we-b#1");
    other.commit("we-b", "x\n", "Add we-b");
    other.gt(&["done"]).ok();
    other.wait_until_gone();
    assert_eq!(town.show("we-b")["status"], "closed");
}
