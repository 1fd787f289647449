//! `gt mq revert`: landed work is undone by a commit that passes the same checks.

use gt_testkit::Sandbox;
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::projects::{Origin as _, STAYS, Worker, town_with_project};
use crate::support::{Steps as _, assert_says, refusal};

/// A town whose rig lands through the queue.
fn town_with_queue() -> Sandbox {
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "rig.web.merge", "mr"]).ok();
    town
}

/// Lands the work of a new bead: one file.
#[track_caller]
fn land(town: &Sandbox, bead: &str, file: &str, contents: &str) {
    let worker = Worker::begin(town, bead, &[]);
    worker.commit(file, contents, &format!("Add {file}"));
    assert_says(&worker.gt(&["done"]).ok().stdout, &["landed on main"]);
    worker.wait_until_gone();
}

fn request(town: &Sandbox, name: &str) -> Value {
    town.gt_json(&["mq", "show", name])
}

#[test]
fn landed_work_is_undone_and_its_bead_is_open_again_with_the_reason() {
    let town = town_with_queue();
    land(&town, "we-a", "tea", "tea\n");
    land(&town, "we-b", "milk", "milk\n");
    let landed = request(&town, "we-a")["landed"].as_str().unwrap().to_owned();

    let said = town.gt(["mq", "revert", &landed[..10], "-m", "nobody drinks it"]).ok().stdout;

    assert_says(&said, &["✓ Reverted we-a on main as", "open again"]);
    assert_eq!(town.landed("main"), ["First commit", "Add tea", "Add milk", "Revert \"we-a\""]);
    assert_eq!((town.landed_file("tea"), town.landed_file("milk")), (None, Some("milk\n".into())));
    let message = town.origin_git(&["log", "-1", "--format=%B", "main"]).ok().stdout;
    assert_says(&message, &["This undoes we-a@1", &landed, "nobody drinks it", "Bead: we-a"]);
    let bead = town.show("we-a");
    assert_eq!((&bead["status"], &bead["assignee"]), (&json!("open"), &Value::Null));
    let comments = town.bd(["comments", "we-a"]).ok().stdout;
    assert_says(&comments, &["we-a@1", "nobody drinks it"]);
    let revert = request(&town, "we-a@2");
    assert_eq!((&revert["purpose"], &revert["state"]), (&json!("revert"), &json!("landed")));
    assert_eq!(request(&town, "we-a@1")["state"], "landed");

    // Nothing is left to undo, and the work can be done again from the target.
    let commit_of_revert = revert["landed"].as_str().unwrap();
    for undone in ["we-a", "we-a@1", &landed] {
        let again = refusal(&town.gt(["mq", "revert", undone, "-m", "again"]));
        assert_says(&again, &["we-a@1 was undone by we-a@2"]);
    }
    for revert in ["we-a@2", commit_of_revert] {
        let again = refusal(&town.gt(["mq", "revert", revert, "-m", "no"]));
        assert_says(&again, &["we-a@2 has undone work itself", "gt sling we-a"]);
    }
    let story = request(&town, "we-a@1");
    assert_eq!(
        (&story["undone_by"], &story["next"]),
        (&json!("we-a@2"), &json!("nothing; we-a@2 has undone it"))
    );
    let shown = town.gt(["mq", "show", "we-a@1"]).ok().stdout;
    assert_says(&shown, &["we-a@2 has undone it"]);
    town.gt(["sling", "we-a"]).ok();
    let second = Worker::of_next(&town, "we-a", 1);
    second.commit("tea", "tea\n", "Add tea again");
    second.commit("cup", "cup\n", "Add a cup");
    second.gt(&["done"]).ok();
    second.wait_until_gone();
    assert_eq!(town.show("we-a")["status"], "closed");

    // The first work is gone, whatever the later one has brought again.
    let again = refusal(&town.gt(["mq", "revert", "we-a@1", "-m", "again"]));
    assert_says(&again, &["we-a@1 was undone by we-a@2"]);
    assert_eq!(town.landed_file("tea").as_deref(), Some("tea\n"));
    town.gt(["mq", "revert", "we-a", "-m", "again"]).ok();
    assert_eq!((town.landed_file("tea"), town.landed_file("cup")), (None, None));
    assert_eq!(request(&town, "we-a@3")["undone_by"], "we-a@4");
}

#[test]
fn the_last_work_of_a_bead_is_undone_first() {
    let town = town_with_queue();
    land(&town, "we-a", "tea", "tea\n");
    town.bd(["reopen", "we-a"]).ok();
    town.gt(["sling", "we-a"]).ok();
    let second = Worker::of_next(&town, "we-a", 1);
    second.commit("cup", "cup\n", "Add a cup");
    second.gt(&["done"]).ok();
    second.wait_until_gone();

    let said = refusal(&town.gt(["mq", "revert", "we-a@1", "-m", "no"]));

    assert_says(&said, &["we-a@2 has landed after we-a@1", "gt mq revert we-a@2 -m <why>"]);
    town.gt(["mq", "revert", "we-a", "-m", "no"]).ok();
    assert_eq!((town.landed_file("tea"), town.landed_file("cup")), (Some("tea\n".into()), None));
    town.gt(["mq", "revert", "we-a", "-m", "no"]).ok();
    assert_eq!(town.landed_file("tea"), None);
}

#[test]
fn a_revert_waits_for_its_turn_its_checks_and_a_review() {
    let town = town_with_queue();
    land(&town, "we-a", "tea", "tea\n");
    town.gt(["rig", "check", "add", "web", "tea", "test -e tea"]).ok();
    town.gt(["config", "set", "rig.web.review", "required"]).ok();

    let said = town.gt(["mq", "revert", "we-a", "-m", "no"]).ok().stdout;

    // A check fails without the work: a person decides, and no run repairs it.
    assert_says(&said, &["check failed: we-a@2 (revert)"]);
    assert_eq!(town.show("we-a")["status"], "blocked");
    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["done"]);
    assert_says(&refusal(&town.gt(["mq", "revert", "we-a", "-m", "no"])), &["we-a@2", "not over"]);
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);

    town.gt(["rig", "check", "remove", "web", "tea"]).ok();
    town.gt(["mq", "retry", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.reasons("we-a"), ["review"]);
    assert_says(&town.gt(["review", "diff", "we-a"]).ok().stdout, &["-tea"]);
    assert_eq!(town.show("we-a")["status"], "in_progress");
    town.gt(["review", "approve", "we-a"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed_file("tea"), None);
    assert_eq!(town.show("we-a")["status"], "open");
}

#[test]
fn a_revert_that_is_cancelled_leaves_the_work_where_it_is() {
    let town = town_with_queue();
    land(&town, "we-a", "tea", "tea\n");
    town.gt(["mq", "pause", "web"]).ok();
    let said = town.gt(["mq", "revert", "we-a", "-m", "no"]).ok().stdout;
    assert_says(&said, &["we-a@2 (revert) waits: the merge queue of main of web is paused by"]);
    assert_eq!(town.show("we-a")["status"], "in_progress");
    assert_says(&refusal(&town.gt(["sling", "we-a"])), &["we-a@2"]);

    let said = town.gt(["mq", "cancel", "we-a"]).ok().stdout;

    assert_says(&said, &["we-a@2 is cancelled", "closed again"]);
    assert_eq!(town.show("we-a")["status"], "closed");
    town.gt(["mq", "resume", "web"]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
}

#[test]
fn of_work_that_a_person_has_undone_in_part_the_rest_is_undone() {
    let town = town_with_queue();
    let worker = Worker::begin(&town, "we-a", &[]);
    worker.write("milk", "milk\n");
    worker.commit("tea", "tea\n", "Add tea and milk");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    assert_eq!(town.landed_file("milk").as_deref(), Some("milk\n"));
    town.person_lands("x", "x\n");
    let place = town.root().join("person");
    let git = |arguments: &[&str]| town.command("git").args(arguments).dir(&place).run().ok();
    git(&["rm", "--quiet", "milk"]);
    git(&["commit", "--quiet", "--message", "Without milk"]);
    git(&["push", "--quiet", "origin", "HEAD:main"]);

    assert_says(
        &town.gt(["mq", "revert", "we-a", "-m", "no"]).ok().stdout,
        &["✓ Reverted we-a on main as"],
    );
    assert_eq!((town.landed_file("milk"), town.landed_file("tea")), (None, None));

    // Undone as a whole by a person: there is nothing to do but to open the bead.
    land(&town, "we-b", "cup", "cup\n");
    git(&["pull", "--quiet", "--rebase"]);
    git(&["rm", "--quiet", "cup"]);
    git(&["commit", "--quiet", "--message", "Without the cup"]);
    git(&["push", "--quiet", "origin", "HEAD:main"]);
    let said = refusal(&town.gt(["mq", "revert", "we-b", "-m", "no"]));
    assert_says(&said, &["main has nothing of we-b@1 any more", "bd reopen we-b opens it again"]);
}

#[test]
fn work_that_others_built_upon_is_not_undone_blindly() {
    let town = town_with_queue();
    land(&town, "we-a", "tea", "tea\n");
    town.person_lands("tea", "tea and milk\n");

    let said = refusal(&town.gt(["mq", "revert", "we-a", "-m", "no"]));

    assert_says(&said, &["we-a@1 cannot be undone by itself", "tea"]);
    assert_eq!(town.show("we-a")["status"], "closed");
    assert_says(&refusal(&town.gt(["mq", "revert", "we-zzz", "-m", "no"])), &["no issue found"]);
}

#[test]
fn a_revert_says_what_it_undoes_however_the_rig_lands() {
    for (land, last) in [("squash", "main"), ("merge", "main^2")] {
        let town = town_with_queue();
        town.gt(["config", "set", "rig.web.land", land]).ok();
        self::land(&town, "we-a", "tea", "tea\n");

        town.gt(["mq", "revert", "we-a", "-m", "too cold"]).ok();

        let message = town.origin_git(&["log", "-1", "--format=%B", last]).ok().stdout;
        assert!(message.starts_with("Revert \"we-a\"\n"), "{land}: {message}");
        assert_says(&message, &["This undoes we-a@1", "too cold", "Bead: we-a"]);
    }
}
