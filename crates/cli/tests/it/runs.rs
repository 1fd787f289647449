//! Runs: their work, their output, and their end.

use std::fs;

use gt_testkit::wait_until;
use serde_json::json;

use crate::agents::{Stage as _, is_alive, set_agent, town_with_agent};
use crate::support::{Steps as _, assert_says, files_in, json_refusal, keys, refusal, texts};

#[test]
fn a_successful_run_closes_its_bead_without_a_cycle() {
    let town = town_with_agent("echo working on $bead");
    town.bead("we-a", &[]);

    town.gt(["sling", "we-a"]).ok();

    // No daemon, no command: the process around the agent writes the end.
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");
    let run = town.run_of("we-a");
    assert_eq!(
        (&run["id"], &run["state"], &run["exit_code"], &run["agent"]),
        (&json!("we-a#1"), &json!("done"), &json!(0), &json!("web/process"))
    );
    assert_eq!(
        (&run["alive"], &run["title"], &run["attempt"]),
        (&json!(false), &json!("we-a"), &json!(1))
    );
    assert!(run["running_at"].as_str() < run["ended_at"].as_str(), "{run}");
    assert_eq!(run["context"]["id"], "hq-ctx-00001");
    assert!(run["steps"]["steps"].is_array(), "{run}");
    let bead = town.show("we-a");
    assert_eq!(bead["close_reason"], "done by we-a#1");
    let events = town.json(&["activity", "--bead", "we-a"]);
    let by = |kind: &str| {
        let events = events.as_array().unwrap();
        events.iter().find(|event| event["event_type"] == kind).unwrap()["actor"].clone()
    };
    assert_eq!((by("run_starting"), by("run_done")), (json!("Test Person"), json!("web/process")));
    assert_eq!(town.gt(["run", "log", "we-a"]).ok().stdout, "working on we-a\n");
    let shown = town.gt(["run", "show", "we-a"]).ok();
    assert_says(
        &shown.stdout,
        &["we-a#1  we-a", "done", "exit status", "Steps", ".gt/runs/we-a#1.log"],
    );
    let scheduled = shown.stdout.lines().find(|line| line.starts_with("scheduled")).unwrap();
    assert!(!scheduled.contains('Z'), "a time for people is local: {scheduled}");
    town.assert_quiet();
}

#[test]
fn a_run_that_ends_badly_closes_its_bead_as_failed() {
    let town = town_with_agent("exit 3");
    town.bead("we-a", &[]);
    town.bead("we-b", &["--deps", "we-a"]);

    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    let run = town.run_of("we-a#1");
    assert_eq!((&run["state"], &run["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!(run["reason"], "it ended with exit status 3");
    assert!(town.reasons("we-b").contains(&"blocker-failed".to_owned()));
    assert_eq!(town.why("we-a")["state"], "over");
    town.assert_quiet();
}

#[test]
fn failed_runs_are_tried_again_as_often_as_was_said() {
    let town = town_with_agent("exit 1");
    town.bead("we-a", &[]);

    town.gt(["sling", "we-a", "--retries", "1"]).ok();
    wait_until("the first has ended", || town.states("we-a") == ["failed"]);
    assert_eq!(town.show("we-a")["status"], "open");
    town.cycle().ok();
    wait_until("the second has ended", || town.states("we-a") == ["failed", "failed"]);

    assert_eq!(town.show("we-a")["status"], "closed");
    town.assert_quiet();
}

#[test]
fn an_agent_knows_who_it_is_and_what_is_to_be_done() {
    let town = town_with_agent("cat > $stage/prompt; env > $stage/env; bd_is=$BD_ACTOR");
    town.create("Boil water", &["--id", "we-a", "--force", "-d", "Until it bubbles"]);

    // The name of the dispatcher must not become the name of the agent.
    town.start_gt(&["sling", "we-a"]).env("BEADS_ACTOR", "ann").run().ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    let prompt = fs::read_to_string(town.stage("prompt")).unwrap();
    assert_says(
        &prompt,
        &["we-a: Boil water", "Until it bubbles", "Steps:", "This is the run we-a#1."],
    );
    let env = fs::read_to_string(town.stage("env")).unwrap();
    let root = format!("GT_TOWN_ROOT={}", town.cwd().display());
    assert_says(&env, &["GT_RUN=we-a#1\n", "GT_RIG=web\n", "BD_ACTOR=web/process\n", &root]);
    assert_says(&env, &["BEADS_ACTOR=web/process\n"]);
    assert!(env.contains(&format!("PWD={}", town.cwd().join("web").display())), "{env}");
    town.assert_quiet();
}

#[test]
fn runs_are_listed_and_narrowed_down() {
    let town = town_with_agent("case $bead in we-a) exit 1;; we-c) wait_for go;; esac");
    for id in ["we-a", "we-b", "we-c"] {
        town.bead(id, &[]);
    }
    assert_says(&town.gt(["run", "list"]).ok().stdout, &["Nothing is running"]);
    for id in ["we-a", "we-b", "we-c"] {
        town.gt(["sling", id]).ok();
    }
    wait_until("two have ended", || town.gt_json(&["run", "list"]).as_array().unwrap().len() == 1);

    for (flags, expected) in [
        (&[][..], &["we-c#1"][..]),
        (&["--all"], &["we-c#1", "we-b#1", "we-a#1"]),
        (&["--all", "--limit", "2"], &["we-c#1", "we-b#1"]),
        (&["--all", "-n", "0", "--rig", "web"], &["we-c#1", "we-b#1", "we-a#1"]),
        (&["--state", "failed"], &["we-a#1"]),
        (&["--state", "done", "--rig", "web"], &["we-b#1"]),
        (&["--bead", "we-b"], &["we-b#1"]),
        (&["we-a"], &["we-a#1"]),
    ] {
        let listed = town.start_gt(&["run", "list", "--json"]).args(flags).run().ok().json();
        assert_eq!(texts(&listed, "id"), expected, "{flags:?}");
    }
    assert_says(&town.gt(["run", "list"]).ok().stdout, &["we-c#1", "running", "web/process"]);
    assert_says(&refusal(&town.gt(["run", "list", "--state", "bored"])), &["bored", "cancelled"]);
    assert_says(&refusal(&town.gt(["run", "list", "--rig", "nope"])), &["known rigs: web"]);
    let listed = town.gt_json(&["run", "list"]);
    assert_eq!(
        keys(&listed[0]),
        [
            "agent",
            "bead",
            "created_at",
            "created_by",
            "epoch",
            "executor",
            "formula",
            "host",
            "id",
            "progress",
            "rig",
            "running_at",
            "state",
            "title",
            "uid"
        ]
    );
    town.allow("go");
    town.assert_quiet();
}

#[test]
fn the_output_of_a_worker_is_kept_to_the_byte() {
    let town = town_with_agent(r"printf 'a\000\377\033[31mred\r\nno end'");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    town.write("expected", b"a\x00\xff\x1b[31mred\r\nno end");
    let script = "\"$0\" run log we-a | cmp - expected && \"$0\" run log we-a -f | cmp - expected";
    town.command("bash").args(["-c", script]).args([town.gt_path()]).run().ok();
    let log = town.gt_json(&["run", "log", "we-a", "--raw"]);
    assert_eq!(
        (&log["bytes"], &log["is_text"], &log["state"]),
        (&json!(19), &json!(false), &json!("done"))
    );
    assert_eq!(log["path"], town.run_of("we-a")["log"]);
    town.assert_quiet();
}

#[test]
fn the_last_lines_are_enough_for_some() {
    let town = town_with_agent("seq 1 1000");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    let tail =
        |flags: &[&str]| town.start_gt(&["run", "log", "we-a"]).args(flags).run().ok().stdout;
    assert_eq!(tail(&["--tail", "2"]), "999\n1000\n");
    assert_eq!(tail(&["-n", "0"]), "");
    assert_eq!(tail(&["-n", "5000"]).lines().count(), 1000);
    assert_eq!(tail(&[]).lines().count(), 1000);
    town.assert_quiet();
}

#[test]
fn a_follower_sees_everything_and_ends_with_the_run() {
    let town = town_with_agent("echo one; wait_for go; echo two");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    let follower = town.start_gt(&["run", "log", "we-a", "-f"]).start();
    let lines = town.start_gt(&["run", "log", "we-a", "-f", "--json", "--raw"]).start();
    let events = town.start_gt(&["run", "log", "we-a", "-f", "--json"]).start();
    wait_until("the first line is shown", || follower.stdout() == "one\n");
    wait_until("to all", || lines.stdout().contains("one") && events.stdout().contains("one"));

    town.allow("go");

    assert_eq!(follower.wait().ok().stdout, "one\ntwo\n");
    let lines = lines.wait().ok().json_lines();
    assert_eq!(json!(lines), json!([{"line": "one"}, {"line": "two"}, {"state": "done"}]));
    let text = |text| json!({"kind": "text", "text": text});
    let expected = json!([text("one"), text("two"), {"state": "done"}]);
    assert_eq!(json!(events.wait().ok().json_lines()), expected);
    town.assert_quiet();
}

#[test]
fn a_follower_ends_when_its_output_is_closed() {
    let town = town_with_agent("echo one; wait_for go");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");

    let script = "\"$0\" run log we-a -f | head -1; exit ${PIPESTATUS[0]}";
    let ran = town.command("bash").args(["-c", script]).args([town.gt_path()]).run();

    assert_eq!((ran.code, ran.stdout.as_str()), (0, "one\n"), "{ran}");
    town.allow("go");
    town.assert_quiet();
}

#[test]
fn runs_that_are_not_there_are_named() {
    let town = town_with_agent("");
    town.bead("we-a", &[]);
    for verb in ["show", "log", "cancel"] {
        let error = refusal(&town.gt(["run", verb, "we-a"]));
        assert_eq!(error, "we-a has no run; gt why we-a says what it waits for");
        assert_says(
            &refusal(&town.gt(["run", verb, "we-a#7"])),
            &["we-a has no run 7", "gt run list we-a"],
        );
        for (wrong, right) in [("we-a#03", "we-a#3"), ("we-a#+3", "we-a#3"), ("a#007", "a#7")] {
            let error = refusal(&town.gt(["run", verb, wrong]));
            assert_says(&error, &[&format!("{wrong} is not a run"), right]);
        }
        assert_says(&json_refusal(&town.gt(["run", verb, "we-x", "--json"])), &["we-x"]);
    }
}

#[test]
fn cancelling_ends_everything_that_a_worker_started() {
    let town = town_with_agent(
        "trap '' TERM
        (trap '' TERM; echo $$ > /dev/null; sh -c 'trap \"\" TERM; echo $$ > \"$0/child\"; \
            while [ -d \"$0\" ]; do sleep 0.05; done' \"$stage\") &
        wait_for child
        wait_for never",
    );
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    wait_until("the grandchild is there", || town.stage("child").exists());
    let child = || fs::read_to_string(town.stage("child")).unwrap().trim().to_owned();
    wait_until("it says who it is", || !child().is_empty());
    let (agent, child) = (town.agent_of("we-a"), child());

    let said = town.gt(["run", "cancel", "we-a", "--actor", "ann"]).ok();

    assert_eq!(said.line(), "✓ Cancelled we-a#1; we-a is open");
    assert!(!is_alive(&agent) && !is_alive(&child));
    let run = town.run_of("we-a");
    assert_eq!((&run["state"], &run["ended_by"]), (&json!("cancelled"), &json!("ann")));
    assert_eq!(town.show("we-a")["status"], "open");
    let why = town.why("we-a");
    assert_eq!(why["reasons"][0]["text"], "run cancelled by ann");
    // It is over, and stays so.
    let said = town.gt(["run", "cancel", "we-a#1"]).ok();
    assert_says(&said.stdout, &["has ended already (cancelled)"]);
    let again = town.gt_json(&["run", "cancel", "we-a#1"]);
    assert_eq!(
        again,
        json!([{"already_ended": true, "bead": "we-a", "id": "we-a#1", "state": "cancelled"}])
    );
    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["cancelled"]);
    town.assert_quiet();
}

#[test]
fn processes_that_a_worker_leaves_end_with_it() {
    let town = town_with_agent(
        "setsid sh -c 'echo $$ > \"$0/new\"; mv \"$0/new\" \"$0/left\"; \
            while [ -d \"$0\" ]; do sleep 0.05; done' \"$stage\" > /dev/null 2>&1 &
        wait_for left",
    );
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    let left = fs::read_to_string(town.stage("left")).unwrap().trim().to_owned();
    assert!(!is_alive(&left), "{left} is alive");
    assert_eq!(town.run_of("we-a")["state"], "done");
    town.assert_quiet();
}

#[test]
fn work_is_taken_back_wherever_it_is() {
    let town = town_with_agent("wait_for go");
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    for id in ["we-a", "we-b", "we-c", "we-d"] {
        town.bead(id, &[]);
    }
    town.gt(["sling", "we-a", "we-b"]).ok();
    town.cycle().ok();
    town.wait_for_agent("we-a#1");
    town.bd(["update", "we-d", "--claim", "--actor", "ann"]).ok();

    let said = town.gt(["unsling", "we-a", "we-b", "we-c", "--actor", "bob"]).ok();

    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "✓ Cancelled we-a#1; we-a is open",
            "✓ we-b is not scheduled any more",
            "we-c is neither scheduled nor running; nothing to do"
        ]
    );
    assert_eq!(town.why("we-a")["reasons"][0]["text"], "run cancelled by bob");
    assert_eq!(town.why("we-b")["reasons"][0]["text"], "cleared from the queue by bob");
    let error = refusal(&town.gt(["unsling", "we-d"]));
    assert_says(&error, &["claimed by ann by hand", "bd update we-d --status open"]);
    let nothing = town.gt_json(&["unsling", "we-b"]);
    assert_eq!(nothing, json!([{"bead": "we-b", "was": "idle"}]));
    let some = town.gt(["unsling", "we-c", "we-x"]).fails(1);
    assert_says(&some.stderr, &["we-x"]);
    town.assert_quiet();
}

#[test]
fn a_worker_may_give_its_own_work_back() {
    let town = town_with_agent("");
    let gt = town.gt_path().display().to_string();
    set_agent(&town, &format!("'{gt}' -C \"$GT_TOWN_ROOT\" unsling $bead; wait_for never"));
    town.bead("we-a", &[]);

    town.gt(["sling", "we-a"]).ok();

    wait_until("it is given back", || town.states("we-a") == ["cancelled"]);
    assert_eq!(town.run_of("we-a")["ended_by"], "web/process");
    assert_eq!(town.show("we-a")["status"], "open");
    town.assert_quiet();
}

#[test]
fn a_worker_cannot_end_the_run_of_another() {
    let town = town_with_agent("wait_for end");
    for id in ["we-a", "we-b"] {
        town.bead(id, &[]);
        town.gt(["sling", id]).ok();
        town.wait_for_agent(&format!("{id}#1"));
    }
    let as_worker = |run: &str, arguments: &[&str]| {
        let gt = town.command(town.gt_path()).env("GT_RUN", run);
        refusal(&gt.env("GT_RUN_TOKEN", town.token_of(run)).args(arguments).run())
    };

    for arguments in [&["unsling", "we-b"][..], &["run", "cancel", "we-b#1"]] {
        let error = as_worker("we-a#1", arguments);
        assert_says(&error, &["the worker of we-a#1", "its own work only", "gt nudge we-b"]);
    }

    // Least of all when its own is over.
    town.gt(["unsling", "we-a"]).ok();
    for arguments in [&["unsling", "we-b"][..], &["run", "cancel", "we-b#1", "--force"]] {
        assert_says(&as_worker("we-a#1", arguments), &["we-a#1 was cancelled", "stop working"]);
    }
    assert_eq!(town.states("we-b"), ["running"]);
    town.gt(["unsling", "we-b"]).ok();
}

#[test]
fn a_supervisor_takes_only_what_is_starting() {
    let town = town_with_agent("");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");
    let before = (town.run_of("we-a"), town.last_event());

    let said = town.gt(["worker", "exec", "we-a#1"]).ok();
    assert_eq!(said.stdout, "{\"answer\":\"failed\",\"why\":\"we-a#1 is done\"}\n");
    let said = town.gt(["worker", "exec", "we-a#2"]).ok();
    assert_eq!(said.stdout, "{\"answer\":\"failed\",\"why\":\"there is no run we-a#2\"}\n");
    let said = town.gt(["worker", "exec", "we-a"]).fails(1);
    assert_says(&said.stdout, &["\"failed\"", "is not a run"]);

    assert_eq!((town.run_of("we-a"), town.last_event()), before);
    assert_eq!(town.story(), ["+ we-a#1", "- we-a#1"]);
    assert_says(&town.gt(["worker", "--help"]).ok().stdout, &["exec"]);
    assert!(!town.gt(["--help"]).ok().stdout.contains("\n  worker"));
}

#[test]
fn files_of_runs_that_are_over_are_removed_when_they_are_old() {
    let town = town_with_agent("[ \"$bead\" = we-done ] || wait_for go");
    for bead in ["we-done", "we-open", "we-live"] {
        town.bead(bead, &[]);
        town.gt(["sling", bead]).ok();
    }
    wait_until("the bead is closed", || town.show("we-done")["status"] == "closed");
    town.wait_for_agent("we-open#1");
    town.gt(["run", "cancel", "we-open"]).ok();
    town.gt(["sling", "we-open"]).ok();
    town.wait_for_agent("we-open#2");
    town.gt(["run", "cancel", "we-open"]).ok();
    town.wait_for_agent("we-live#1");
    let has_files = |run: &str| {
        let names = files_in(town.cwd().join(".gt/runs"));
        names.iter().any(|name| name.starts_with(&format!("{run}.")))
    };
    let all = ["we-done#1", "we-open#1", "we-open#2", "we-live#1"];
    assert!(all.iter().all(|run| has_files(run)));

    let root = town.cwd().display().to_string();
    town.gt(["__keep-house", &root]).ok();
    assert!(all.iter().all(|run| has_files(run)), "none of them is old");

    town.gt(["config", "set", "logs.keep", "0s"]).ok();
    town.gt(["__keep-house", &root]).ok();
    assert_eq!(all.map(has_files), [false, false, true, true]);
    let told = town.gt(["run", "log", "we-done"]).ok().stderr;
    assert!(told.contains("the output of we-done#1 is not kept any more: logs.keep"), "{told}");
    town.allow("go");
    wait_until("the live one goes on", || town.show("we-live")["status"] == "closed");
    town.assert_quiet();
}

#[test]
fn commands_with_several_names_do_nothing_if_one_is_unknown() {
    let town = town_with_agent("wait_for \"end-$bead\"");
    for bead in ["we-a", "we-b"] {
        town.bead(bead, &[]);
    }
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    town.gt(["scheduler", "pause"]).ok();
    town.gt(["sling", "we-b"]).ok();

    for command in [
        &["unsling", "we-a", "we-b", "wbe"][..],
        &["run", "cancel", "we-a", "wbe"],
        &["scheduler", "clear", "--bead", "we-b", "--bead", "wbe"],
        &["scheduler", "retry", "we-b", "wbe"],
        &["wait", "we-a", "wbe"],
    ] {
        let ran = town.gt(command).fails(1);
        assert!(ran.stderr.contains("wbe"), "{ran}");
        assert!(!ran.stdout.contains('✓'), "{ran}");
    }

    assert_eq!(town.states("we-a"), ["running"]);
    assert_eq!(town.gt_json(&["scheduler", "list"])[0]["id"], "we-b");
    town.allow("end-we-a");
}
