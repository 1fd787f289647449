//! Beads that a run has, with real workers.

use std::sync::Arc;

use gt_beads::deletion::delete;
use gt_scheduling::Consequences;
use gt_testkit::{FinishedProgram, Sandbox, wait_until};
use gt_town::{Actor, Environment, StoreOptions, SystemClock, Town};

use crate::agents::{Stage as _, has_supervisor, is_alive};
use crate::projects::{STAYS, Worker, town_with_project};
use crate::support::{
    Steps, assert_says, everything, gastown, gastown_that_takes_time, gastown_with, let_work_end,
    wait_for_status,
};

const MAX: &str = "gastown/crew/max";

fn bd_in_run(town: &Sandbox, run: &str, arguments: &[&str]) -> FinishedProgram {
    let worker = town.command(town.bd_path()).env("GT_RUN", run).env("BD_ACTOR", "gastown/process");
    worker.env("GT_RUN_TOKEN", token_of(town, run)).args(arguments).run()
}

/// The token of a run of [`gastown_that_takes_time`].
fn token_of(town: &Sandbox, run: &str) -> String {
    let path = town.cwd().join(format!("token-{run}"));
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    wait_until("the worker has its token", || read().ends_with('\n'));
    read().trim().to_owned()
}

#[test]
fn a_crew_member_claims_and_closes_what_was_slung_to_them() {
    let town = gastown();
    town.bead("gt-abc", &[]);
    town.gt(["sling", "gt-abc", MAX]).ok();
    assert_eq!(town.show("gt-abc")["status"], "hooked");
    assert_eq!(town.show("gt-abc")["assignee"], MAX);

    let said = town.bd(["update", "gt-abc", "--claim", "--actor", "you"]).fails(1);
    assert_says(&said.stderr, &["already claimed by gastown/crew/max", "gt run cancel gt-abc#1"]);
    town.bd(["update", "gt-abc", "--claim", "--actor", MAX]).ok();
    assert_eq!(town.show("gt-abc")["status"], "in_progress");
    town.bd(["close", "gt-abc", "--reason", "merged", "--actor", MAX]).ok();

    let bead = town.show("gt-abc");
    assert_eq!((&bead["status"], &bead["outcome"]), (&"closed".into(), &"success".into()));
    let told = town.bd(["activity", "--bead", "gt-abc", "--json"]).ok().stdout;
    assert_says(&told, &["run_starting", "dispatched", "run_done"]);
}

#[test]
fn a_worker_that_closes_its_bead_is_told_how_to_finish() {
    let town = gastown();
    let script = format!(
        "'{}' close \"$1\" > \"$GT_TOWN_ROOT/told\" 2>&1; exit 0",
        town.bd_path().display()
    );
    let program = town.write_script("work.sh", &script);
    let command = format!("{} {{bead}}", program.display());
    town.gt(["config", "set", "rig.gastown.command", &command]).ok();
    town.bead("gt-abc", &[]);

    town.gt(["sling", "gt-abc"]).ok();

    wait_for_status(&town, "gt-abc", "closed");
    let told = std::fs::read_to_string(town.cwd().join("told")).unwrap();
    assert_says(
        &told,
        &["cannot close gt-abc: you are its worker in the run gt-abc#1; finish with gt done"],
    );
    assert_eq!(town.show("gt-abc")["outcome"], "success");
}

#[test]
fn only_the_worker_of_a_run_may_change_its_bead() {
    let town = gastown_that_takes_time();
    town.bead("gt-abc", &[]);
    town.gt(["sling", "gt-abc"]).ok();

    for arguments in [
        &["close", "gt-abc"][..],
        &["reopen", "gt-abc"],
        &["defer", "gt-abc"],
        &["update", "gt-abc", "--status", "open"],
        &["update", "gt-abc", "--assignee", "me"],
    ] {
        let said = town.bd(arguments).fails(1);
        assert_says(&said.stderr, &["gt-abc#1", "gt run cancel gt-abc#1"]);
    }
    town.bd(["update", "gt-abc", "--append-notes", "look here"]).ok();
    let close = town.command(town.bd_path()).args(["close", "gt-abc", "--force"]);
    let said = close.env("GT_RUN", "gt-abc#7").run().fails(1);
    assert_says(&said.stderr, &["the worker of gt-abc#7", "no such run"]);
    bd_in_run(&town, "gt-abc#1", &["update", "gt-abc", "--claim"]).ok();

    let_work_end(&town);
    wait_for_status(&town, "gt-abc", "closed");
}

#[test]
fn a_worker_whose_run_is_over_changes_nothing_of_its_bead() {
    let town = gastown_that_takes_time();
    town.bead("gt-abc", &[]);
    town.bead("gt-other", &[]);
    town.gt(["sling", "gt-abc"]).ok();
    bd_in_run(&town, "gt-abc#1", &["update", "gt-abc", "--notes", "half way"]).ok();
    town.bd(["close", "gt-abc", "--force"]).ok();
    town.bd(["reopen", "gt-abc"]).ok();
    let before = everything(&town);

    for arguments in [
        &["close", "gt-abc"][..],
        &["close", "gt-abc", "--force"],
        &["update", "gt-abc", "--claim"],
        &["update", "gt-abc", "--status", "blocked"],
        &["update", "gt-abc", "--notes", "all done"],
        &["defer", "gt-abc"],
        &["reopen", "gt-abc"],
        &["label", "add", "gt-abc", "ready"],
        &["comments", "add", "gt-abc", "all done"],
        &["dep", "add", "gt-abc", "gt-other"],
        &["create", "more", "--deps", "blocks:gt-abc"],
        &["delete", "gt-abc", "--force"],
        &["create", "a test is flaky"],
        &["update", "gt-other", "--notes", "seen"],
    ] {
        let said = bd_in_run(&town, "gt-abc#1", arguments).fails(1);
        assert_says(&said.stderr, &["gt-abc#1 was cancelled", "end your session"]);
    }
    assert_eq!(everything(&town), before);

    // No other worker is taken its work by it.
    town.gt(["sling", "gt-abc"]).ok();
    let gt = |arguments: &[&str]| {
        let gt = town.command(town.gt_path()).env("GT_RUN", "gt-abc#1");
        gt.env("GT_RUN_TOKEN", token_of(&town, "gt-abc#1")).args(arguments).run().fails(1)
    };
    for arguments in [&["unsling", "gt-abc"][..], &["run", "cancel", "gt-abc"]] {
        assert_says(&gt(arguments).stderr, &["gt-abc#1"]);
    }
    assert_eq!(town.show("gt-abc")["status"], "in_progress");
    let_work_end(&town);
    wait_for_status(&town, "gt-abc", "closed");
}

#[test]
fn a_forced_close_ends_the_worker() {
    let town = gastown_with(
        "trap 'echo > \"$GT_TOWN_ROOT/ended\"; exit 1' TERM\n\
         echo > \"$GT_TOWN_ROOT/begun\"\n\
         while [ -e \"$GT_TOWN_ROOT/.gt\" ]; do sleep 0.05; done",
    );
    for (id, verb) in [("gt-abc", "close"), ("gt-def", "delete")] {
        town.bead(id, &[]);
        town.gt(["sling", id, "--no-convoy"]).ok();
        wait_until("it has begun", || town.cwd().join("begun").exists());

        let said = town.bd([verb, id, "--force"]).ok();

        assert_says(&said.stdout, &[&format!("✓ Cancelled {id}#1 of gastown/process")]);
        wait_until("it has ended", || town.cwd().join("ended").exists());
        for file in ["begun", "ended"] {
            std::fs::remove_file(town.cwd().join(file)).unwrap();
        }
    }
    assert_eq!(town.show("gt-abc")["status"], "closed");
    assert_eq!(town.show("gt-abc")["outcome"], serde_json::Value::Null);
}

#[test]
fn the_worker_of_a_deleted_bead_is_ended_although_the_command_died() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-a", &[]);
    let agent = town.agent_of("we-a");

    // The store says that the bead is gone, and the command died before it could end the processes.
    let actor = Actor { name: "ann".to_owned(), owner: String::new() };
    let (clock, options) = (Arc::new(SystemClock), StoreOptions::default());
    let (root, environment) = (town.cwd(), Environment::default());
    let opened =
        Town::open(root, root, &environment, actor, clock, options, Arc::new(Consequences));
    delete(&opened.unwrap(), &["we-a".to_owned()], false).unwrap();
    assert!(is_alive(&agent));

    town.cycle().ok();

    wait_until("the agent is gone", || !is_alive(&agent));
    wait_until("its supervisor has ended", || !has_supervisor(&town, &worker.run));
}
