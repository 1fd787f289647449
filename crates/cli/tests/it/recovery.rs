//! `gt deacon`, and what is done about runs that come to nothing.

use std::fs;

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, set_agent, town_with_agent};
use crate::support::{Steps as _, assert_says, strings, texts};

/// A town with room for one agent, which is this script.
fn town_with_room_for_one(script: &str) -> Sandbox {
    let town = town_with_agent(script);
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town
}

/// Beads `we-1` to `we-<count>`, slung in this order.
fn sling_some(town: &Sandbox, count: usize) {
    for number in 1..=count {
        let id = format!("we-{number}");
        town.bead(&id, &[]);
        town.gt(["sling", &id]).ok();
    }
}

/// Has everything that people are told written into a file; those notices.
fn listen(town: &Sandbox) -> impl Fn() -> Vec<Value> {
    let heard = town.cwd().join("heard");
    let program = town.write_script("tell", &format!("cat >> '{}'", heard.display()));
    town.gt(["config", "set", "notify.command", &program.display().to_string()]).ok();
    move || {
        let text = fs::read_to_string(&heard).unwrap_or_default();
        let notices = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        notices.map(|notice| notice.unwrap()).collect()
    }
}

fn until_done(town: &Sandbox) -> gt_testkit::FinishedProgram {
    town.gt(["scheduler", "run", "--until-done"])
}

#[test]
fn a_command_that_always_fails_burns_three_beads_and_says_so_once() {
    let town = town_with_room_for_one("exit 1");
    let heard = listen(&town);
    sling_some(&town, 5);

    until_done(&town);

    for id in ["we-1", "we-2", "we-3"] {
        assert_eq!(town.states(id), ["failed"]);
        assert_eq!(town.show(id)["status"], "closed");
    }
    for id in ["we-4", "we-5"] {
        assert_eq!(town.reasons(id), ["runtime-parked"]);
    }
    assert_says(&town.gt(["why", "we-4"]).ok().stdout, &["gt deacon resume runtime web/command"]);
    let status = town.gt_json(&["scheduler", "status"]);
    assert_eq!(status["parked"][0]["name"], "web/command");
    assert_eq!(status["parked"][0]["limit"], false);
    assert_says(&town.gt(["scheduler"]).ok().stdout, &["Parked: runtime web/command until"]);
    let needs = town.gt_json(&["status"])["needs_you"].clone();
    assert_eq!(texts(&needs, "code"), ["failed", "failed", "failed", "parked", "daemon-away"]);
    assert_says(&town.gt(["status"]).ok().stdout, &["Needs you", "exit status 1"]);
    let parked = || heard().iter().filter(|notice| notice["kind"] == "parked").count();
    wait_until("people are told", || parked() == 1);

    // A person repairs the runtime.
    set_agent(&town, "exit 0");
    let resumed = town.gt(["config", "agent", "resume", "web/command"]).ok();
    assert_says(&resumed.stdout, &["Work starts again with the runtime web/command"]);
    until_done(&town).ok();
    assert_eq!(town.states("we-5"), ["done"]);
    assert_eq!(parked(), 1);
    town.assert_quiet();
}

#[test]
fn agents_that_are_killed_at_once_cost_their_beads_nothing() {
    let town = town_with_room_for_one("kill -9 $$");
    town.gt(["config", "set", "recovery.cooldown", "1h"]).ok();
    sling_some(&town, 4);

    until_done(&town);

    for id in ["we-1", "we-2", "we-3", "we-4"] {
        assert_eq!(town.reasons(id).last().map(String::as_str), Some("runtime-parked"), "{id}");
        assert_eq!(town.why(id)["attempts"], 0, "{id}");
        assert_eq!(town.show(id)["status"], "open");
    }
}

#[test]
fn resuming_an_account_or_runtime_that_is_not_parked_does_nothing() {
    let town = town_with_agent("exit 0");
    for words in [&["deacon", "resume", "runtime"][..], &["config", "agent", "resume"]] {
        let said = town.start_gt(words).arg("claude").run().ok();
        assert_says(&said.stdout, &["runtime claude is not parked; nothing to do"]);
    }
    town.gt(["config", "account", "add", "work"]).ok();
    let said = town.gt_json(&["config", "account", "resume", "work"]);
    assert_eq!((&said["changed"], &said["kind"]), (&json!(false), &json!("account")));
    assert_eq!(town.gt(["deacon", "resume", "robot", "x"]).code, 2);
}

#[test]
fn an_account_whose_runs_fail_delays_no_other_account() {
    let town = town_with_room_for_one("[ \"$KEY\" = good ]");
    town.gt(["config", "account", "add", "work", "--env", "KEY=revoked"]).ok();
    town.gt(["config", "account", "add", "lab", "--env", "KEY=good"]).ok();
    for (id, account) in
        [("we-1", "work"), ("we-2", "work"), ("we-3", "work"), ("we-4", "work"), ("we-5", "lab")]
    {
        town.bead(id, &[]);
        town.gt(["sling", id, "--account", account]).ok();
    }
    // One that fails ends with exit code 1, and so does its shell.
    set_agent(&town, "[ \"$KEY\" = good ] || exit 1");

    until_done(&town);

    assert_eq!(town.states("we-5"), ["done"]);
    assert_eq!(town.reasons("we-4"), ["account-limited"]);
    let resumed = town.gt(["config", "account", "resume", "work"]).ok();
    assert_says(&resumed.stdout, &["Work starts again with the account work"]);
    assert_eq!(town.gt_json(&["scheduler", "status"])["parked"], json!([]));
}

#[test]
fn an_open_bead_is_redispatched_and_the_exit_code_says_what_came_of_it() {
    let town = town_with_room_for_one("exit 0");
    for id in ["we-a", "we-b", "we-c"] {
        town.bead(id, &[]);
    }
    // 0: it is scheduled, once.
    let done = town.gt(["deacon", "redispatch", "we-a"]);
    assert_eq!(done.code, 0, "{done}");
    assert_says(&done.stdout, &["we-a is scheduled again"]);
    let again = town.gt(["deacon", "redispatch", "we-a"]);
    assert_eq!(again.code, 0, "{again}");
    assert_says(&again.stdout, &["scheduled already"]);

    // 3: it is not open, or people have to decide.
    until_done(&town).ok();
    let closed = town.gt(["deacon", "redispatch", "we-a", "--json"]);
    assert_eq!((closed.code, &closed.json()["action"]), (3, &json!("skipped")), "{closed}");
    town.gt(["sling", "we-b"]).ok();
    town.gt(["scheduler", "clear", "--bead", "we-b"]).ok();
    let cleared = town.gt(["deacon", "redispatch", "we-b"]);
    assert_eq!(cleared.code, 3, "{cleared}");
    assert_says(&cleared.stdout, &["cleared from the queue", "only a person lifts that"]);

    // 1: it cannot be done.
    assert_eq!(town.gt(["deacon", "redispatch", "we-nothing"]).code, 1);
    let nowhere = town.gt(["deacon", "redispatch", "we-c", "--rig", "mars"]);
    assert_eq!(nowhere.code, 1, "{nowhere}");
    assert_says(&nowhere.stderr, &["no rig \"mars\"", "known rigs: web"]);
    // 2 from the parser would mean a cooldown to scripts that are not careful; it has no output.
    assert_eq!(town.gt(["deacon", "redispatch"]).stdout, "");
}

#[test]
fn redispatches_keep_their_distance_and_end() {
    let town = town_with_room_for_one("kill -9 $$");
    town.gt(["config", "set", "recovery.cooldown", "1h"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    // The first comes at once, the second waits.
    until_done(&town);
    assert_eq!(town.states("we-a"), ["lost", "lost"]);
    let cooling = town.gt(["deacon", "redispatch", "we-a", "--json"]);
    assert_eq!((cooling.code, &cooling.json()["action"]), (2, &json!("cooldown")), "{cooling}");

    // Then it has had its attempts.
    town.gt(["scheduler", "clear", "--bead", "we-a"]).ok();
    town.gt(["config", "set", "recovery.max_attempts", "1"]).ok();
    town.gt(["scheduler", "retry", "we-a"]).ok();
    until_done(&town);
    assert_eq!(town.reasons("we-a"), ["attempts-used-up"]);
    let needs = town.gt_json(&["status"])["needs_you"].clone();
    assert_eq!(texts(&needs, "code"), ["attempts-used-up"]);
    let used_up = town.gt(["deacon", "redispatch", "we-a"]);
    assert_eq!(used_up.code, 1, "{used_up}");
    assert_says(&used_up.stdout, &["used up its attempts", "gt scheduler retry we-a"]);
    // Unless a person allows more.
    let more = town.gt(["deacon", "redispatch", "we-a", "--max-attempts", "5"]);
    assert_eq!(more.code, 0, "{more}");
}

#[test]
fn in_direct_mode_a_redispatch_starts_at_once_and_workers_do_not_redispatch() {
    let town = town_with_agent("exit 0");
    town.bead("we-a", &[]);
    let refused =
        town.start_gt(&["deacon", "redispatch", "we-a"]).env("GT_ROLE", "web/polecats/nux");
    assert_says(&refused.run().stderr, &["polecats do not sling"]);
    let done = town.gt(["deacon", "redispatch", "we-a", "--json"]).ok();
    assert_eq!(done.json()["action"], "started");
    town.assert_quiet();
    assert_eq!(town.states("we-a"), ["done"]);
}

#[test]
fn stale_hooks_are_released_in_all_rigs() {
    let town = town_with_agent("wait_for go");
    town.gt(["rig", "add", "api", "--prefix", "ap"]).ok();
    for id in ["we-claimed", "ap-claimed", "we-running", "we-crew"] {
        town.bead(id, &[]);
    }
    for id in ["we-claimed", "ap-claimed"] {
        town.bd(["update", id, "--claim", "--actor", "ann"]).ok();
    }
    town.gt(["sling", "we-running"]).ok();
    town.wait_for_agent("we-running#1");
    town.gt(["sling", "we-crew", "web/crew/joe"]).ok();

    // Young ones stay; a rehearsal changes nothing.
    let young = town.gt_json(&["deacon", "stale-hooks"]);
    assert_eq!(young["released"], json!([]));
    assert_eq!(texts(&young["kept"], "code").iter().filter(|code| *code == "young").count(), 3);
    let before = town.last_event();
    let rehearsed = town.gt_json(&["deacon", "stale-hooks", "--max-age", "0s", "--dry-run"]);
    assert_eq!((texts(&rehearsed["released"], "id").len(), town.last_event()), (3, before));

    let said = town.gt(["deacon", "stale-hooks", "--max-age", "0s"]).ok();

    assert_says(
        &said.stdout,
        &[
            "Released we-claimed",
            "Released ap-claimed",
            "Released we-crew",
            "Left we-running alone: running as we-running#1",
            "3 stale hooks released",
        ],
    );
    for id in ["we-claimed", "ap-claimed", "we-crew"] {
        let bead = town.show(id);
        assert_eq!((&bead["status"], bead.get("assignee")), (&json!("open"), None), "{id}");
    }
    assert_eq!(town.show("we-running")["status"], "in_progress");
    let events = town.events();
    let released = events.iter().filter(|event| event["event_type"] == "hook_released").count();
    assert_eq!(released, 2, "the crew's was a run that was cancelled");
    let nothing = town.gt(["deacon", "stale-hooks", "--max-age", "0s"]).ok();
    assert_says(&nothing.stdout, &["No stale hooks"]);
    town.allow("go");
    town.assert_quiet();
}

#[test]
fn a_process_left_by_a_dead_run_needs_a_person() {
    // Given an agent that has started something which runs away,
    let script =
        "setsid sleep 1000 < /dev/null > /dev/null 2>&1 &\necho $! > \"$stage/left\"\nwait_for go";
    let town = town_with_agent(script);
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    wait_until("it has run away", || town.stage("left").exists());
    let left = fs::read_to_string(town.stage("left")).unwrap().trim().to_owned();
    let (supervisor, agent) = (town.supervisor_of("we-a#1"), town.agent_of("we-a"));
    assert_eq!(town.gt_json(&["status"])["needs_you"], json!([]));

    // when its supervisor and the agent are killed,
    town.signal("KILL", &supervisor);
    town.signal("KILL", &agent);

    // then nothing is started beside what is left, and a person is told.
    let needs = || town.gt_json(&["status"])["needs_you"].clone();
    wait_until("it is noticed", || texts(&needs(), "code") == ["headless"]);
    assert_says(needs()[0]["what"].as_str().unwrap(), &["we-a#1", &left]);
    assert_says(needs()[0]["remedy"].as_str().unwrap(), &["gt run cancel we-a#1"]);
    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["running"]);

    town.gt(["run", "cancel", "we-a#1"]).ok();
    assert_eq!(needs(), json!([]));
    assert_eq!(town.states("we-a"), ["cancelled"]);
}

#[test]
fn an_agent_whose_supervisor_was_killed_is_told_at_once_and_settled_when_it_ends() {
    // Given an agent at work,
    let town = town_with_agent("wait_for go");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let (supervisor, agent) = (town.supervisor_of("we-a#1"), town.agent_of("we-a"));
    assert_eq!(town.run_of("we-a#1")["needs_you"], json!([]));

    // when only its supervisor is killed,
    town.signal("KILL", &supervisor);

    // then status, why and run show tell it, and no second agent is started.
    let needs = || town.gt_json(&["status"])["needs_you"].clone();
    wait_until("it is noticed", || texts(&needs(), "code") == ["unsupervised"]);
    assert_says(needs()[0]["what"].as_str().unwrap(), &["we-a#1", &agent]);
    assert_says(needs()[0]["remedy"].as_str().unwrap(), &["gt run cancel we-a#1"]);
    for arguments in [&["why", "we-a"] as &[&str], &["run", "show", "we-a"]] {
        let told = town.gt(arguments).ok().stdout;
        assert_says(&told, &["Needs you", "we-a#1 has lost its supervisor"]);
    }
    assert_eq!(texts(&town.why("we-a")["needs_you"], "code"), ["unsupervised"]);
    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["running"]);

    // And when it has ended, that is found out.
    town.allow("go");
    wait_until("it has ended", || town.run_of("we-a#1")["alive"] == false);
    town.cycle().ok();
    assert_eq!(town.states("we-a")[1..], ["lost"]);
    assert_eq!(needs(), json!([]));
}

#[test]
fn a_worker_that_says_nothing_is_told_once_each_time_and_left_alone() {
    // Given a worker that says nothing,
    let town = town_with_agent("echo thinking; wait_for speak; echo hello; wait_for go");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let needs = || town.gt_json(&["status"])["needs_you"].clone();
    town.cycle().ok();
    assert_eq!(needs(), json!([]));

    // when that lasts too long,
    town.gt(["config", "set", "worker.stall_after", "1s"]).ok();
    wait_until("it is told", || {
        town.cycle().ok();
        texts(&needs(), "code") == ["stalled"]
    });

    // then status and why tell it, once, and the worker goes on.
    let told = town.gt(["status"]).ok().stdout;
    assert_says(&told, &["Needs you", "we-a#1 has said nothing since", "gt peek we-a"]);
    assert!(told.find("Needs you") < told.find("Scheduler:"), "{told}");
    assert_says(&town.gt(["inbox"]).ok().stdout, &["last words", "thinking"]);
    assert_eq!(town.gt_json(&["inbox"])[0]["detail"], "thinking");
    assert_says(
        &town.gt(["why", "we-a"]).ok().stdout,
        &["has said nothing since", "gt nudge we-a"],
    );
    town.cycle().ok();
    let events = |kind: &str| town.events().iter().filter(|e| e["event_type"] == kind).count();
    assert_eq!((events("run_silent"), events("run_goes_on")), (1, 0));
    assert_eq!(town.states("we-a"), ["running"]);

    // And when it says something, that is told too.
    town.gt(["config", "set", "worker.stall_after", "1h"]).ok();
    town.allow("speak");
    wait_until("it goes on", || {
        town.cycle().ok();
        events("run_goes_on") == 1
    });
    assert_eq!(needs(), json!([]));
    town.allow("go");
    town.assert_quiet();
}

#[test]
fn stale_hooks_as_json_has_known_fields() {
    let town = town_with_agent("exit 0");
    let hooks = town.gt_json(&["deacon", "stale-hooks"]);
    assert_eq!(crate::support::keys(&hooks), ["dry_run", "kept", "released", "schema_version"]);
    assert_eq!(strings(&hooks["kept"]), [] as [&str; 0]);
}
