//! Convoys whose work comes together on a branch of their own, and their members in the merge queue.

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::projects::{Origin as _, STAYS, Worker, town_with_project};
use crate::support::{Steps as _, assert_says, refusal, texts};

/// A town whose rig lands through the queue.
fn town_with_queue() -> Sandbox {
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "rig.web.merge", "mr"]).ok();
    town
}

/// Makes a convoy of new beads with these flags, and starts it; its id.
#[track_caller]
fn convoy(town: &Sandbox, beads: &[&str], flags: &[&str]) -> String {
    for bead in beads {
        town.bead(bead, &[]);
    }
    let create = town.start_gt(&["convoy", "create", "Breakfast"]).args(beads).args(flags);
    let said = create.run().ok().stdout;
    let id = said.split_whitespace().find(|word| word.starts_with("hq-cv-")).unwrap();
    id.trim_end_matches(':').to_owned()
}

/// Ends the work of a run: one file; the words of `gt done`.
#[track_caller]
fn finish(town: &Sandbox, run: &str, file: &str, contents: &str) -> String {
    let worker = Worker::of(town, run);
    worker.commit(file, contents, &format!("Add {file}"));
    let said = worker.gt(&["done"]).ok().stdout;
    worker.wait_until_gone();
    said
}

fn status(town: &Sandbox, convoy: &str) -> Value {
    town.gt_json(&["convoy", "status", convoy])
}

#[test]
fn members_land_on_the_branch_of_their_convoy_and_then_all_at_once_on_the_base() {
    let town = town_with_queue();
    town.gt(["rig", "check", "add", "web", "both", "test -e milk || test ! -e tea"]).ok();
    town.bead("we-out", &[]);
    let convoy = convoy(&town, &["we-milk", "we-tea"], &["--integration"]);
    town.bd(["dep", "add", "we-out", "we-milk"]).ok();
    town.bead("we-late", &[]);
    let branch = format!("integration/{convoy}");

    assert_says(&finish(&town, "we-milk#1", "milk", "milk\n"), &["landed on", &branch]);

    assert_eq!(town.landed(&branch), ["First commit", "Add milk"]);
    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(town.show("we-milk")["status"], "closed");
    // Its base does not have the milk yet.
    town.gt(["sling", "we-out"]).ok();
    assert_says(&town.gt(["why", "we-out"]).ok().stdout, &["blocked by", &convoy]);
    // Also for a bead that is made to wait for it now, although it is closed.
    town.bd(["dep", "add", "we-late", "we-milk"]).ok();
    town.gt(["sling", "we-late"]).ok();
    assert_says(&town.gt(["why", "we-late"]).ok().stdout, &["blocked by", &convoy]);

    finish(&town, "we-tea#1", "tea", "tea\n");

    assert_eq!(town.landed("main"), ["First commit", "Add milk", "Add tea"]);
    let shown = status(&town, &convoy);
    assert_eq!((&shown["status"], &shown["integration"]), (&json!("closed"), &json!(true)));
    assert_eq!(shown["close_reason"], "landed");
    let request = town.gt_json(&["mq", "show", &convoy]);
    assert_eq!(request["id"], json!(format!("{convoy}@1")));
    assert_eq!((&request["purpose"], &request["state"]), (&json!("integration"), &json!("landed")));
    assert_eq!((request.get("run"), &request["target"]), (None, &json!("main")));
    assert_eq!(request["candidate"]["checks"][0]["name"], "both");
    // The tip is also what a member landed, and the commit before it is what another has.
    for commit in ["main", "main~1"] {
        let commit = town.origin_git(&["rev-parse", commit]).ok().line().to_owned();
        assert_eq!(town.gt_json(&["mq", "show", &commit])["id"], request["id"]);
    }
    let references = town.origin_references();
    assert!(!references.contains(&format!("refs/heads/{branch}")), "{references:?}");
    town.cycle().ok();
    for bead in ["we-out", "we-late"] {
        Worker::of(&town, &format!("{bead}#1"));
        town.allow(&format!("end-{bead}"));
    }
    town.assert_quiet();
}

#[test]
fn a_branch_that_conflicts_with_its_base_is_repaired_by_a_task_of_the_convoy() {
    let town = town_with_queue();
    let convoy = convoy(&town, &["we-tea"], &["--integration"]);
    let branch = format!("integration/{convoy}");
    let worker = Worker::of(&town, "we-tea#1");
    // A convoy under way waits for its beads, and so does what waits for it.
    town.bead("we-after", &[]);
    town.bd(["dep", "add", "we-after", &convoy]).ok();
    assert_eq!(town.reasons(&convoy), ["members-open"]);
    for bead in [convoy.as_str(), "we-after"] {
        let said = town.gt(["why", bead]).ok().stdout;
        assert_says(&said, &["Root cause", "we-tea", "running as we-tea#1", "gt run log we-tea#1"]);
        assert!(!said.contains(&format!("gt sling {convoy}")), "{said}");
    }
    worker.commit("tea", "green\n", "Add tea");
    town.person_lands("tea", "black\n");

    worker.gt(&["done"]).ok();

    worker.wait_until_gone();
    assert_eq!(town.landed(&branch), ["First commit", "Add tea"]);
    assert_eq!(town.landed("main"), ["First commit", "A person changes tea"]);
    assert_eq!(town.gt_json(&["mq", "show", &convoy])["state"], "conflict");
    let shown = status(&town, &convoy);
    assert_eq!((&shown["status"], &shown["total"]), (&json!("open"), &json!(2)));
    assert_eq!(shown["merge_request"], json!(format!("{convoy}@1")));
    let tracked = texts(&shown["tracked"], "id");
    let task = tracked.iter().find(|id| *id != "we-tea").unwrap();
    let next = format!("a repair is scheduled; gt why {task} says what it waits for");
    assert_eq!(town.gt_json(&["mq", "show", &convoy])["next"], json!(next));
    assert_eq!(town.why(&convoy)["reasons"][0]["remedy"], json!(next));
    assert_eq!(town.why("we-after")["causes"][0]["remedy"], json!(next));
    assert_says(
        &town.gt(["convoy", "status", &convoy]).ok().stdout,
        &["conflict", &branch, "Merge main into"],
    );

    town.cycle().ok();
    let repair = Worker::of(&town, &format!("{task}#1"));
    assert_says(&repair.gt(&["prime"]).ok().stdout, &["git merge origin/main", "tea"]);
    repair.git(&["merge", "--no-edit", "origin/main"]);
    repair.write("tea", "green and black\n");
    repair.git(&["add", "--all"]).ok();
    repair.git(&["commit", "--quiet", "--message", "Merge main"]).ok();
    repair.gt(&["done"]).ok();
    repair.wait_until_gone();

    assert_eq!(town.landed_file("tea").as_deref(), Some("green and black\n"));
    assert_eq!(town.gt_json(&["mq", "show", &format!("{convoy}@1")])["state"], "superseded");
    assert_eq!(town.gt_json(&["mq", "show", &format!("{convoy}@2")])["state"], "landed");
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

/// A convoy with one member whose branch conflicts with its base: a repair of it is scheduled. Its id, and that of the task.
#[track_caller]
fn convoy_in_conflict(town: &Sandbox) -> (String, String) {
    let convoy = convoy(town, &["we-tea"], &["--integration"]);
    let worker = Worker::of(town, "we-tea#1");
    worker.commit("tea", "green\n", "Add tea");
    town.person_lands("tea", "black\n");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    let tracked = texts(&status(town, &convoy)["tracked"], "id");
    let task = tracked.into_iter().find(|id| id != "we-tea").unwrap();
    (convoy, task)
}

#[test]
fn a_branch_that_a_person_mends_needs_no_repair_any_more() {
    let town = town_with_queue();
    let (convoy, task) = convoy_in_conflict(&town);
    let branch = format!("integration/{convoy}");
    // Its repair waits for a worker, not for a person.
    let rows = town.gt_json(&["inbox"]).to_string();
    assert!(!rows.contains(&format!("{convoy}@1")), "{rows}");
    let shown = town.gt(["mq", "show", &convoy]).ok().stdout;
    assert_says(&shown, &["a repair is scheduled", &task]);

    let place = town.root().join("person");
    let git = |arguments: &[&str]| town.command("git").args(arguments).dir(&place).run();
    git(&["fetch", "--quiet"]).ok();
    git(&["checkout", "--quiet", &branch]).ok();
    git(&["merge", "--quiet", "origin/main"]).fails(1);
    std::fs::write(place.join("tea"), "green and black\n").unwrap();
    git(&["commit", "--quiet", "--all", "--message", "Merge main"]).ok();
    git(&["push", "--quiet", "origin", &format!("HEAD:{branch}")]).ok();
    town.gt(["mq", "retry", &convoy]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(town.landed_file("tea").as_deref(), Some("green and black\n"));
    let states = [1, 2].map(|number| {
        let request = town.gt_json(&["mq", "show", &format!("{convoy}@{number}")]);
        request["state"].as_str().unwrap().to_owned()
    });
    assert_eq!(states, ["superseded", "landed"]);
    let shown = status(&town, &convoy);
    assert_eq!((&shown["close_reason"], &shown["total"]), (&json!("landed"), &json!(2)));
    assert_eq!(town.show(&task)["outcome"], "cancelled");
}

#[test]
fn a_repair_of_a_branch_that_runs_is_waited_for_and_ends_with_its_request() {
    let town = town_with_queue();
    let (convoy, task) = convoy_in_conflict(&town);
    town.cycle().ok();
    let repair = Worker::of(&town, &format!("{task}#1"));

    let refused = refusal(&town.gt(["mq", "retry", &convoy]));

    assert_says(&refused, &[&format!("{task}#1 mends integration/{convoy}"), "gt run cancel"]);
    town.gt(["mq", "cancel", &convoy]).ok();
    repair.wait_until_gone();
    assert_eq!(town.states(&task), ["cancelled"]);
    assert_eq!(town.show(&task)["outcome"], "cancelled");
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.gt_json(&["mq", "show", &convoy])["id"], json!(format!("{convoy}@1")));
    assert_eq!(status(&town, &convoy)["status"], "open");
}

#[test]
fn work_that_a_convoy_has_brought_is_undone_bead_by_bead() {
    let town = town_with_queue();
    let convoy = convoy(&town, &["we-milk", "we-tea"], &["--integration"]);
    finish(&town, "we-milk#1", "milk", "milk\n");
    finish(&town, "we-tea#1", "tea", "tea\n");
    assert_eq!(town.landed("main"), ["First commit", "Add milk", "Add tea"]);

    for whole in [convoy.clone(), format!("{convoy}@1")] {
        let refused = refusal(&town.gt(["mq", "revert", &whole, "-m", "no"]));
        let commands = "gt mq revert we-tea -m <why>, then gt mq revert we-milk -m <why>";
        assert_says(&refused, &["each bead of it is undone by itself", commands]);
    }
    let milk = town.origin_git(&["rev-parse", "main~1"]).ok().line().to_owned();
    let said = town.gt(["mq", "revert", &milk, "-m", "sour"]).ok().stdout;

    assert_says(&said, &["✓ Reverted we-milk on main as"]);
    assert_eq!((town.landed_file("milk"), town.landed_file("tea")), (None, Some("tea\n".into())));
    assert_ne!(town.show("we-milk")["status"], "closed");
    assert_says(&town.bd(["comments", "we-milk"]).ok().stdout, &["we-milk@1", "sour"]);
    assert_eq!(town.gt_json(&["mq", "show", "we-milk@1"])["undone_by"], "we-milk@2");
    assert_eq!(town.show("we-tea")["status"], "closed");
    let next = town.gt_json(&["mq", "show", "we-tea"])["next"].to_string();
    assert_says(&next, &["gt mq revert we-tea@1"]);
    town.gt(["mq", "revert", "we-tea", "-m", "cold"]).ok();
    assert_eq!(town.landed_file("tea"), None);
}

#[test]
fn an_integration_branch_with_commits_of_others_is_kept() {
    let town = town_with_queue();
    let convoy = convoy(&town, &["we-tea"], &["--integration"]);
    let branch = format!("integration/{convoy}");
    town.gt(["mq", "pause", "web"]).ok();
    finish(&town, "we-tea#1", "tea", "tea\n");
    let tree = format!("{branch}^{{tree}}");
    let ada = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    let commit = ["commit-tree", &tree, "-p", &branch, "-m", "Of a person"];
    let made = town.origin_git(&[&ada[..], &commit[..]].concat()).ok();
    town.origin_git(&["update-ref", &format!("refs/heads/{branch}"), made.line()]).ok();

    town.gt(["mq", "resume", "web"]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
    assert_eq!(town.landed(&branch), ["First commit", "Add tea", "Of a person"]);
}

#[test]
fn work_on_a_branch_that_is_gone_is_not_lost_in_silence() {
    let town = town_with_queue();
    let convoy = convoy(&town, &["we-milk", "we-tea"], &["--integration"]);
    let branch = format!("integration/{convoy}");
    finish(&town, "we-milk#1", "milk", "milk\n");
    Worker::of(&town, "we-tea#1");
    town.origin_git(&["branch", "-D", &branch]).ok();
    town.gt(["run", "cancel", "we-tea"]).ok();
    town.bd(["close", "we-tea"]).ok();

    town.gt(["mq", "run"]).ok();

    assert_eq!(status(&town, &convoy)["status"], "open");
    let request = town.gt_json(&["mq", "show", &convoy]);
    assert_eq!((&request["state"], &request["held"]), (&json!("held"), &json!("work_missing")));
    let inbox = town.gt(["inbox"]).ok().stdout;
    assert_says(&inbox, &["work-missing", &branch, "we-milk", &format!("gt mq retry {convoy}@1")]);
    // It waits for a person, however often it is looked at.
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.gt_json(&["mq", "show", &convoy])["id"], json!(format!("{convoy}@1")));
    assert_eq!(town.landed("main"), ["First commit"]);

    town.gt(["mq", "retry", &convoy]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Add milk"]);
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

#[test]
fn a_branch_that_was_made_anew_does_not_land_without_what_was_on_it() {
    let town = town_with_queue();
    let convoy = convoy(&town, &["we-milk", "we-tea"], &["--integration"]);
    let branch = format!("integration/{convoy}");
    finish(&town, "we-milk#1", "milk", "milk\n");
    let milk = town.origin_git(&["rev-parse", &branch]).ok().line().to_owned();
    town.origin_git(&["branch", "-f", &branch, "main"]).ok();
    finish(&town, "we-tea#1", "tea", "tea\n");

    assert_eq!(town.gt_json(&["mq", "show", &convoy])["held"], "work_missing");
    assert_eq!(town.landed("main"), ["First commit"]);

    // A person puts it back.
    let reference = format!("refs/heads/{branch}");
    let tea = town.origin_git(&["rev-parse", &branch]).ok().line().to_owned();
    let tree = town.origin_git(&["merge-tree", "--write-tree", &milk, &tea]).ok().line().to_owned();
    let ada = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    let commit = ["commit-tree", &tree, "-p", &milk, "-p", &tea, "-m", "Both"];
    let both = town.origin_git(&[&ada[..], &commit[..]].concat()).ok().line().to_owned();
    town.origin_git(&["update-ref", &reference, &both]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(town.landed_file("milk").as_deref(), Some("milk\n"));
    assert_eq!(town.landed_file("tea").as_deref(), Some("tea\n"));
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

#[test]
fn work_of_a_bead_that_left_its_convoy_arrives_with_the_branch_of_its_rig() {
    let town = town_with_queue();
    let other = town.root().join("other.git");
    let clone = ["clone", "--quiet", "--bare", "origin.git", "other.git"];
    town.command("git").args(clone).dir(town.root()).run().ok();
    let other = other.to_str().unwrap();
    town.gt(["rig", "add", "api", other, "--executor", "process", "--prefix", "ap"]).ok();
    let agent = town.gt(["config", "get", "rig.web.command"]).ok().line().to_owned();
    town.gt(["config", "set", "rig.api.command", &agent]).ok();
    town.gt(["config", "set", "rig.api.merge", "mr"]).ok();
    let convoy = convoy(&town, &["we-milk", "ap-tea"], &["--integration"]);
    finish(&town, "we-milk#1", "milk", "milk\n");
    town.gt(["convoy", "remove", &convoy, "we-milk"]).ok();
    finish(&town, "ap-tea#1", "tea", "tea\n");

    assert_eq!(town.landed("main"), ["First commit", "Add milk"]);
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

#[test]
fn the_last_request_of_a_convoy_says_why_it_cannot_be_built() {
    let town = town_with_queue();
    town.origin_git(&["branch", "release", "main"]).ok();
    let flags = ["--integration", "--base-branch", "release"];
    let convoy = convoy(&town, &["we-milk", "we-tea"], &flags);
    finish(&town, "we-milk#1", "milk", "milk\n");
    Worker::of(&town, "we-tea#1");
    town.origin_git(&["branch", "-D", "release"]).ok();
    town.gt(["run", "cancel", "we-tea"]).ok();
    town.bd(["close", "we-tea"]).ok();
    // No process makes the last request now.
    let inbox = town.gt(["inbox"]).ok().stdout;
    assert_says(&inbox, &["daemon-away", "1 convoy waits to land", "gt mq run"]);

    town.gt(["mq", "run"]).ok();

    let held = || town.gt_json(&["mq", "show", &convoy])["held"].clone();
    assert_eq!(held(), "target_gone");
    assert_says(&town.gt(["inbox"]).ok().stdout, &["target-gone", "release"]);
    town.origin_is_there(false);
    town.gt(["mq", "retry", &convoy]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(held(), "origin_unreachable");
    town.origin_is_there(true);
    town.origin_git(&["branch", "release", "main"]).ok();
    town.gt(["mq", "retry", &convoy]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(town.landed("release"), ["First commit", "Add milk"]);
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

#[test]
fn the_last_request_of_a_convoy_waits_for_a_review_and_can_be_given_up() {
    let town = town_with_queue();
    let convoy = convoy(&town, &["we-tea"], &["--integration", "--base-branch", "main"]);
    let worker = Worker::of(&town, "we-tea#1");
    town.gt(["convoy", "review", &convoy, "required"]).ok();
    worker.commit("tea", "tea\n", "Add tea");
    assert_says(&worker.gt(&["done"]).ok().stdout, &["review"]);
    worker.wait_until_gone();
    let shown = status(&town, &convoy);
    assert_eq!(shown["tracked"][0]["merge_request"], "we-tea@1");
    assert_eq!(shown["tracked"][0]["merge_state"], "review");
    assert_says(&town.gt(["convoy", "status", &convoy]).ok().stdout, &["in review"]);

    town.gt(["review", "approve", "we-tea"]).ok();
    town.gt(["mq", "run"]).ok();

    assert_eq!(town.show("we-tea")["status"], "closed");
    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(town.reasons(&convoy), ["review"]);
    assert_says(&refusal(&town.gt(["convoy", "close", &convoy])), &["on its way", "--force"]);
    assert_says(&town.gt(["review", "diff", &convoy]).ok().stdout, &["+tea"]);
    town.gt(["review", "approve", &convoy]).ok();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

#[test]
fn the_repair_of_a_rejected_branch_reads_what_people_said() {
    let town = town_with_queue();
    let convoy = convoy(&town, &["we-tea"], &["--integration"]);
    let worker = Worker::of(&town, "we-tea#1");
    worker.commit("tea", "tea\n", "Add tea");
    town.gt(["convoy", "review", &convoy, "required"]).ok();
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    town.gt(["review", "approve", "we-tea"]).ok();
    town.gt(["mq", "run"]).ok();
    let comment = ["review", "comment", &convoy, "--file", "tea", "--line", "1", "-m", "black?"];
    town.gt(comment).ok();

    town.gt(["review", "reject", &convoy, "-m", "too weak"]).ok();

    let tracked = texts(&status(&town, &convoy)["tracked"], "id");
    let task = tracked.iter().find(|id| *id != "we-tea").unwrap();
    town.cycle().ok();
    let repair = Worker::of(&town, &format!("{task}#1"));
    let briefing = repair.gt(&["prime"]).ok().stdout;
    let branch = format!("integration/{convoy} has the work of a convoy");
    assert_says(&briefing, &["What is to be repaired", &branch, "too weak", "tea:1", "black?"]);
    town.allow(&format!("end-{task}"));
    town.assert_quiet();
}

#[test]
fn a_member_with_a_base_branch_of_its_own_lands_on_it() {
    let town = town_with_queue();
    town.origin_git(&["branch", "release", "main"]).ok();
    let convoy = convoy(&town, &["we-tea"], &["--base-branch", "release"]);

    assert_says(&finish(&town, "we-tea#1", "tea", "tea\n"), &["landed on release"]);

    assert_eq!(town.landed("main"), ["First commit"]);
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

#[test]
fn a_convoy_that_has_open_work_again_does_not_land() {
    let town = town_with_queue();
    let convoy = convoy(&town, &["we-tea", "we-milk"], &["--integration", "--review"]);
    let approve = |name: &str| town.gt(["review", "approve", name]).ok().stdout;
    for bead in ["tea", "milk"] {
        finish(&town, &format!("we-{bead}#1"), bead, "x\n");
        approve(&format!("we-{bead}"));
    }
    town.gt(["mq", "run"]).ok();
    town.gt(["mq", "revert", "we-tea", "-m", "too cold"]).ok();
    approve("we-tea");

    // What was undone on the branch does not reach the base.
    town.gt(["mq", "run"]).ok();
    let first = format!("{convoy}@1");
    assert_eq!(town.gt_json(&["mq", "show", &first])["state"], "superseded");
    assert_says(&refusal(&town.gt(["review", "approve", &first])), &["superseded"]);
    assert_eq!(town.landed("main"), ["First commit"]);

    town.gt(["sling", "we-tea"]).ok();
    finish(&town, "we-tea#2", "tea", "hot\n");
    approve("we-tea");
    town.gt(["mq", "run"]).ok();
    // A member that is added now is waited for, also after the approval.
    town.bead("we-sugar", &[]);
    town.gt(["convoy", "add", &convoy, "we-sugar"]).ok();
    let sugar = Worker::of(&town, "we-sugar#1");
    approve(&convoy);
    assert_eq!(town.landed("main"), ["First commit"]);
    sugar.commit("sugar", "x\n", "Add sugar");
    sugar.gt(&["done"]).ok();
    sugar.wait_until_gone();
    approve("we-sugar");
    town.gt(["mq", "run"]).ok();
    assert_says(&approve(&convoy), &["landed on main"]);
    assert_eq!(town.landed_file("tea").as_deref(), Some("hot\n"));
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

#[test]
fn a_branch_of_which_the_base_has_a_part_is_reviewed_once_more_and_lands() {
    let town = town_with_queue();
    let convoy = convoy(&town, &["we-tea", "we-milk"], &["--integration", "--review"]);
    for bead in ["tea", "milk"] {
        finish(&town, &format!("we-{bead}#1"), bead, "x\n");
        town.gt(["review", "approve", &format!("we-{bead}")]).ok();
    }
    town.gt(["mq", "run"]).ok();
    town.person_lands("tea", "x\n");
    let again = town.gt(["review", "approve", &convoy]).ok().stdout;
    assert_says(&again, &["it is not the change that was approved"]);
    let diff = town.gt(["review", "diff", &convoy, "--stat"]).ok().stdout;
    assert_says(&diff, &["milk", "2 files +2 -0"]);

    assert_says(&town.gt(["review", "approve", &convoy]).ok().stdout, &["landed on main"]);

    assert_eq!(town.landed_file("milk").as_deref(), Some("x\n"));
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
}

#[test]
fn a_member_that_is_slung_by_hand_lands_where_its_convoy_wants_it() {
    let town = town_with_queue();
    town.origin_git(&["branch", "release", "main"]).ok();
    let convoy = convoy(&town, &["we-tea", "we-milk"], &["--integration"]);
    let branch = format!("integration/{convoy}");
    assert_says(&finish(&town, "we-tea#1", "tea", "tea\n"), &["landed on", &branch]);

    // Its work is undone there, and done again.
    town.gt(["mq", "revert", "we-tea", "-m", "too cold"]).ok();
    town.gt(["sling", "we-tea"]).ok();
    assert_says(&finish(&town, "we-tea#2", "tea", "hot\n"), &["landed on", &branch]);
    assert_eq!(town.landed("main"), ["First commit"]);
    finish(&town, "we-milk#1", "milk", "milk\n");
    assert_eq!(status(&town, &convoy)["close_reason"], "landed");
    assert_eq!(town.landed_file("tea").as_deref(), Some("hot\n"));

    // What the sling says counts before the convoy.
    let flags = ["--base-branch", "release", "--merge", "local"];
    self::convoy(&town, &["we-a", "we-b"], &flags);
    for bead in ["we-a", "we-b"] {
        Worker::of(&town, &format!("{bead}#1"));
        town.gt(["unsling", bead]).ok();
    }
    town.gt(["sling", "we-a"]).ok();
    assert_says(&finish(&town, "we-a#2", "a", "a\n"), &["kept on"]);
    town.gt(["sling", "we-b", "--merge", "mr", "--base-branch", "main"]).ok();
    assert_says(&finish(&town, "we-b#2", "b", "b\n"), &["landed on main"]);
}

#[test]
fn a_failed_member_is_shown_as_repairing_and_a_daemon_lands_the_convoy() {
    let town = town_with_queue();
    town.gt(["rig", "check", "add", "web", "test", "test ! -e broken"]).ok();
    town.gt(["up"]).ok();
    let convoy = convoy(&town, &["we-a"], &["--integration"]);
    let first = Worker::of(&town, "we-a#1");
    first.commit("broken", "x\n", "Break it");

    first.gt(&["done"]).ok();

    let repair = Worker::of_next(&town, "we-a", 1);
    assert_eq!(status(&town, &convoy)["tracked"][0]["merge_state"], "repairing");
    assert_says(&town.gt(["convoy", "status", &convoy]).ok().stdout, &["repairs we-a@1"]);
    repair.git(&["rm", "--quiet", "broken"]).ok();
    repair.commit("tea", "tea\n", "Mend it");
    repair.gt(&["done"]).ok();
    wait_until("the convoy has landed", || status(&town, &convoy)["close_reason"] == "landed");
    assert_eq!(town.landed("main"), ["First commit", "Break it", "Mend it"]);
}
