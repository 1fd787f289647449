//! A process may die at any moment: never two agents of one bead, never more than the cap, nothing lost.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use gt_testkit::{Sandbox, wait_until};
use serde_json::json;

use crate::agents::{Stage as _, is_alive, peak, set_agent, town_with_agent};
use crate::concurrency::assert_gapless;
use crate::support::{Steps as _, assert_says, is_on_server, refusal};

/// Beads `we-1` to `we-<count>`, all of them slung.
fn sling_many(town: &Sandbox, count: usize) -> Vec<String> {
    let ids: Vec<String> = (1..=count).map(|number| format!("we-{number}")).collect();
    let line = |id: &String| format!(r#"{{"id":"{id}","title":"{id}"}}"#);
    town.import(&ids.iter().map(line).collect::<Vec<_>>().join("\n"));
    let words: Vec<&str> = ["sling"].into_iter().chain(ids.iter().map(String::as_str)).collect();
    town.start_gt(&words).run().ok();
    ids
}

/// How many beads are not closed.
fn open(town: &Sandbox) -> usize {
    town.ids(&["list", "--type", "task", "-n", "0"]).len()
}

/// Expects that every bead has exactly one run that is done, and every agent began once and ended once.
#[track_caller]
fn assert_each_done_once(town: &Sandbox, ids: &[String]) {
    let mut begun: BTreeMap<String, usize> = BTreeMap::new();
    for line in town.story().iter().filter_map(|line| line.strip_prefix("+ ")) {
        let bead = line.split('#').next().unwrap();
        *begun.entry(bead.to_owned()).or_default() += 1;
    }
    for id in ids {
        assert_eq!(begun.get(id), Some(&1), "agents of {id}: {:?}", town.states(id));
        let states = town.states(id);
        assert_eq!(states.iter().filter(|state| *state == "done").count(), 1, "{id}: {states:?}");
    }
}

/// Another moment each time; where it falls is up to the machine.
fn some_moment(round: u64) {
    thread::sleep(Duration::from_millis(round * 13 % 47));
}

#[test]
fn cycles_that_are_killed_at_any_moment_lose_nothing_and_start_nothing_twice() {
    let town = town_with_agent("sleep 0.05");
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).ok();
    let ids = sling_many(&town, 24);

    let mut round = 0;
    wait_until("everything is done", || {
        let cycle = town.start_gt(&["scheduler", "run"]).start();
        some_moment(round);
        cycle.kill();
        round += 1;
        // The next cycle takes up what was cut off, and most of those cycles are killed too.
        if round.is_multiple_of(5) {
            town.cycle().ok();
        }
        open(&town) == 0
    });

    assert!(peak(&town.story()) <= 3, "{:?}", town.story());
    assert_each_done_once(&town, &ids);
    town.assert_quiet();
    assert_gapless(&town);
    town.gt(["doctor"]).ok();
}

#[test]
fn many_cycles_at_once_keep_to_the_cap_and_start_everything_once() {
    let town = town_with_agent("sleep 0.02");
    town.gt(["config", "set", "scheduler.max_polecats", "3"]).ok();
    let ids = sling_many(&town, 30);
    let script = "while [ ! -e \"$1/stop\" ]; do GT_DAEMON=1 \"$0\" scheduler run || exit 1; done";
    let stage = town.stage("");
    let daemon = town.command("/bin/sh").args(["-c", script]).arg(town.gt_path()).arg(&stage);
    let daemon = daemon.start();

    wait_until("everything is done", || {
        let cycles = [0, 1].map(|_| town.start_gt(&["scheduler", "run"]).start());
        for cycle in cycles {
            cycle.wait().ok();
        }
        open(&town) == 0
    });

    town.allow("stop");
    daemon.wait().ok();
    let story = town.story();
    assert!(peak(&story) <= 3, "{story:?}");
    assert_eq!(story.len(), 60, "{story:?}");
    assert_each_done_once(&town, &ids);
    town.assert_quiet();
    assert_gapless(&town);
}

#[test]
fn an_agent_whose_supervisor_was_killed_is_never_joined_by_another() {
    let town = town_with_agent("wait_for $run.go");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");

    town.signal("KILL", &town.supervisor_of("we-a#1"));
    for _ in 0..3 {
        town.cycle().ok();
    }

    // The agent has no supervisor, but it is there.
    assert_eq!(town.states("we-a"), ["running"]);
    assert_eq!(town.run_of("we-a")["alive"], true);
    assert_eq!(town.show("we-a")["status"], "in_progress");

    town.allow("we-a#1.go");
    let agent = town.agent_of("we-a");
    wait_until("the agent has ended", || !is_alive(&agent));
    // Its exit code is unknown: it is lost, and done again.
    town.cycle().ok();
    assert_eq!(town.states("we-a")[1..], ["lost"]);
    town.wait_for_agent("we-a#2");
    assert_eq!(town.run_of("we-a#2")["attempt"], 2);
    town.allow("we-a#2.go");
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");
    town.assert_quiet();
}

#[test]
fn a_run_whose_supervisor_dies_while_it_is_cancelled_is_cancelled() {
    let town = town_with_agent("trap '' TERM; wait_for never");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let supervisor = town.supervisor_of("we-a#1");
    town.signal("STOP", &supervisor);
    let cancelling = town.start_gt(&["run", "cancel", "we-a", "--actor", "ann"]).start();
    wait_until("it is being cancelled", || town.run_of("we-a")["ended_by"] == "ann");

    town.signal("KILL", &supervisor);

    cancelling.wait().ok();
    assert!(!is_alive(&town.agent_of("we-a")));
    assert_eq!(town.reasons("we-a"), ["run-cancelled"]);
    town.assert_quiet();
}

#[test]
fn an_agent_that_puts_a_pipe_in_the_place_of_its_log_holds_up_nothing() {
    let town = town_with_agent(
        "cd \"$GT_TOWN_ROOT/.gt/runs\"; rm \"$GT_RUN.log\"; mkfifo \"$GT_RUN.log\"; exit 1",
    );
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    wait_until("the run has failed", || town.states("we-a").contains(&"failed".to_owned()));

    let shown = town.gt(["run", "log", "we-a#1"]);
    assert_ne!(shown.code, 0, "{shown}");
    assert_says(&shown.stderr, &["not a file"]);
}

#[test]
fn a_run_without_supervisor_can_be_cancelled() {
    let town = town_with_agent("trap '' TERM; wait_for never");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    town.signal("KILL", &town.supervisor_of("we-a#1"));

    town.gt(["run", "cancel", "we-a", "--actor", "ann"]).ok();

    assert!(!is_alive(&town.agent_of("we-a")));
    assert_eq!(town.run_of("we-a")["ended_by"], "ann");
    assert_eq!(town.reasons("we-a"), ["run-cancelled"]);
    town.assert_quiet();
}

#[test]
fn supervisors_that_are_killed_as_soon_as_they_are_there_start_at_most_one_agent() {
    let town = town_with_agent("sleep 0.05");
    // However often starts and runs are cut off, it is tried again at once.
    town.gt(["config", "set", "recovery.max_attempts", "100"]).ok();
    town.gt(["config", "set", "recovery.cooldown", "0s"]).ok();
    let ids: Vec<String> = (0..12).map(|number| format!("we-{number}")).collect();
    for id in &ids {
        town.bead(id, &[]);
    }

    for (round, id) in ids.iter().enumerate() {
        // So many runs that come to nothing at once would keep the next from starting.
        town.gt(["deacon", "resume", "runtime", "web/command"]).ok();
        let sling = town.start_gt(&["sling", id]).start();
        let root = town.cwd().display().to_string();
        // Those of this town alone.
        let mut killed = false;
        wait_until("its supervisor is there, or was", || {
            if let Some(supervisor) = supervisor(&root, id) {
                if round % 2 == 1 {
                    some_moment(round as u64);
                }
                town.signal("KILL", &supervisor);
                killed = true;
            }
            killed || !town.states(id).is_empty() && town.states(id)[0] != "starting"
        });
        // It ends in time, with any result.
        let _ = sling.wait();
    }

    wait_until("everything is over, or was given up", || {
        town.gt(["deacon", "resume", "runtime", "web/command"]).ok();
        town.cycle().ok();
        ids.iter().all(|id| {
            let why = town.why(id);
            let code = why["reasons"][0]["code"].as_str().unwrap_or_default();
            why["state"] == "over" || ["backoff", "circuit-broken"].contains(&code)
        })
    });
    for id in &ids {
        let done = town.states(id).iter().filter(|state| *state == "done").count();
        assert!(done <= 1, "{id}: {:?}", town.states(id));
        town.gt(["unsling", id]).ok();
    }
    town.assert_quiet();
    assert_gapless(&town);
}

/// The process that supervises a run of this bead in the town at `root`.
fn supervisor(root: &str, bead: &str) -> Option<String> {
    let entries = fs::read_dir("/proc").ok()?;
    let begins = format!("-C\0{root}\0");
    let names = format!("worker\0exec\0{bead}#");
    entries.flatten().find_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let is_it = line.contains(&begins) && line.contains(&names);
        is_it.then(|| entry.file_name().to_string_lossy().into_owned())
    })
}

#[test]
fn an_agent_that_is_killed_is_tried_again_until_a_person_is_asked() {
    let town = town_with_agent("wait_for never");
    town.gt(["config", "set", "recovery.cooldown", "0s"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    for epoch in 1..=3 {
        let run = format!("we-a#{epoch}");
        town.wait_for_agent(&run);
        let agent = town.agent_of("we-a");
        town.signal("KILL", &agent);
        wait_until("the run is lost", || town.run_of(&run)["state"] == "lost");
        assert_eq!(town.run_of(&run)["exit_signal"], 9);
        assert_eq!(town.show("we-a")["status"], "open");
        town.cycle().ok();
    }

    assert_eq!(town.states("we-a"), ["lost", "lost", "lost"]);
    let why = town.why("we-a");
    assert_eq!(why["reasons"][0]["text"], "attempts used up (3)");
    assert_eq!(why["reasons"][0]["remedy"], "gt scheduler retry we-a");
    let escalated = town.json(&["activity", "--type", "escalated"]);
    assert_eq!(escalated[0]["issue_id"], "we-a");

    // A person gives it another chance.
    set_agent(&town, "");
    town.gt(["scheduler", "retry", "we-a"]).ok();
    town.cycle().ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");
    town.assert_quiet();
}

#[test]
fn the_second_redispatch_waits_for_the_cooldown() {
    let town = town_with_agent("wait_for never");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();

    for run in ["we-a#1", "we-a#2"] {
        town.wait_for_agent(run);
        town.signal("KILL", &town.agent_of("we-a"));
        wait_until("the run is lost", || town.run_of(run)["state"] == "lost");
        town.cycle().ok();
    }

    assert_eq!(town.states("we-a"), ["lost", "lost"]);
    assert_eq!(town.reasons("we-a"), ["backoff"]);
    assert_eq!(town.why("we-a")["attempts"], 2);
    town.assert_quiet();
}

#[test]
fn a_command_that_cannot_be_started_is_given_up_with_the_true_reason() {
    let town = town_with_agent("");
    let good = town.gt(["config", "get", "rig.web.command"]).ok().line().to_owned();
    town.gt(["config", "set", "rig.web.command", "no-such-program {bead}"]).ok();
    town.bead("we-a", &[]);

    let said = town.gt(["sling", "we-a"]).fails(1);
    assert_says(&said.stderr, &["no-such-program"]);
    assert_eq!(town.reasons("we-a"), ["backoff"]);
    town.cycle().ok();
    assert_eq!(town.states("we-a").len(), 1, "before its time nothing happens");
    let mut minutes = 0;
    wait_until("it was tried three times", || {
        minutes += 1;
        let _ = town.start_gt_later(&["scheduler", "run"], minutes * 60).run();
        town.states("we-a").len() == 3
    });

    let why = town.why("we-a");
    assert_eq!(
        (&why["state"], &why["reasons"][0]["code"]),
        (&json!("idle"), &json!("circuit-broken"))
    );
    assert_says(why["reasons"][0]["text"].as_str().unwrap(), &["cannot start no-such-program"]);
    let broken = town.json(&["activity", "--type", "circuit_broken"]);
    assert_eq!(broken[0]["issue_id"], "we-a");
    let labels = town.show("we-a")["labels"].clone();
    assert_eq!(labels, json!(["gt:dispatch-failed"]));

    town.gt(["config", "set", "rig.web.command", &good]).ok();
    town.gt(["scheduler", "retry", "we-a"]).ok();
    town.cycle().ok();
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");
    town.assert_quiet();
}

#[test]
fn running_work_finishes_under_a_lower_cap_and_in_a_parked_rig() {
    let town = town_with_agent("wait_for $bead.go");
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    for id in ["we-a", "we-b", "we-c"] {
        town.bead(id, &[]);
    }
    town.gt(["sling", "we-a", "we-b", "we-c"]).ok();
    town.cycle().ok();
    town.wait_for_agent("we-a#1");
    town.wait_for_agent("we-b#1");

    // The cap goes below what runs, the rig is parked: nothing is killed, nothing starts.
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.allow("we-a.go");
    wait_until("the first is done", || town.show("we-a")["status"] == "closed");
    town.cycle().ok();
    assert_eq!(town.reasons("we-c"), ["no-slot"]);
    town.gt(["rig", "park", "web"]).ok();
    town.allow("we-b.go");
    wait_until("the second is done", || town.show("we-b")["status"] == "closed");
    town.cycle().ok();
    assert_eq!(town.reasons("we-c"), ["rig-parked"]);

    town.gt(["rig", "unpark", "web"]).ok();
    town.allow("we-c.go");
    town.cycle().ok();
    wait_until("the third is done", || town.show("we-c")["status"] == "closed");
    assert_eq!(town.story().len(), 6);
    town.assert_quiet();
}

#[test]
fn a_bead_that_is_closed_by_force_takes_its_run_with_it() {
    let town = town_with_agent("wait_for never");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");

    town.bd(["close", "we-a", "--force", "--reason", "not needed"]).ok();

    let agent = town.agent_of("we-a");
    wait_until("the agent has ended", || !is_alive(&agent));
    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["cancelled"]);
    let bead = town.show("we-a");
    assert_eq!((&bead["status"], &bead["close_reason"]), (&json!("closed"), &json!("not needed")));
    town.assert_quiet();
}

#[test]
fn an_agent_that_survived_its_cancellation_is_ended_before_the_next_one_begins() {
    let town = town_with_agent("[ $run != we-a#1 ] || wait_for never");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let agent = town.agent_of("we-a");

    // The forced close dies after its commit and before it ends the agent. Meanwhile the supervisor
    // cannot be reached, so that the close looks for the agent.
    let control = town.cwd().join(".gt/runs/we-a#1.control");
    let away = town.stage("control");
    fs::rename(&control, &away).unwrap();
    let close = town.start_bd(&["close", "we-a", "--force"]).start();
    wait_until("the store knows", || town.states("we-a") == ["cancelled"]);
    close.kill();
    fs::rename(&away, &control).unwrap();
    assert!(is_alive(&agent));
    assert_eq!(town.run_of("we-a#1")["alive"], true);

    town.bd(["reopen", "we-a"]).ok();
    let _ = town.gt(["sling", "we-a"]);
    wait_until("the bead is closed", || {
        let _ = town.cycle();
        town.show("we-a")["status"] == "closed"
    });

    assert!(!is_alive(&agent));
    town.assert_quiet();
}

#[test]
fn a_requested_cancellation_outlives_its_command() {
    let town = town_with_agent("trap '' TERM; wait_for never");
    // Long enough that the wish is cut off before it is granted.
    town.gt(["config", "set", "worker.kill_grace", "1h"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let supervisor = town.supervisor_of("we-a#1");

    let cancel = town.start_gt(&["run", "cancel", "we-a", "--actor", "ann"]).start();
    wait_until("the wish is written down", || town.run_of("we-a")["ended_by"] == "ann");
    cancel.kill();
    town.signal("KILL", &supervisor);
    town.signal("KILL", &town.agent_of("we-a"));

    // It is not taken for lost, and so not begun again.
    wait_until("it is over", || {
        town.cycle().ok();
        town.states("we-a") == ["cancelled"]
    });
    assert_eq!(town.reasons("we-a"), ["run-cancelled"]);
    town.assert_quiet();
}

#[test]
fn a_run_whose_files_were_removed_is_not_taken_for_lost() {
    let town = town_with_agent("wait_for go");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");

    let (runs, away) = (town.cwd().join(".gt/runs"), town.stage("runs"));
    fs::rename(&runs, &away).unwrap();
    town.cycle().ok();

    // Its agent cannot be seen, but it is there.
    let run = town.run_of("we-a");
    assert_eq!((&run["state"], &run["alive"]), (&json!("running"), &json!(null)));
    assert_says(&town.gt(["run", "show", "we-a"]).ok().stdout, &["it is unknown whether"]);
    let error = refusal(&town.gt(["run", "cancel", "we-a"]));
    assert_says(&error, &["we-a#1.lock is missing", "GT_RUN=we-a#1", "cancel we-a#1 --force"]);
    assert_eq!((town.run_of("we-a"), town.story()), (run, vec!["+ we-a#1".to_owned()]));

    fs::rename(&away, &runs).unwrap();
    town.allow("go");
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");
    assert_eq!(town.states("we-a"), ["done"]);
    town.assert_quiet();
}

#[test]
fn a_run_of_another_directory_is_left_alone_without_force() {
    let town = town_with_agent("wait_for go");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let whole = town.run_of("we-a")["host"].as_str().unwrap().to_owned();
    let (name, identity) = whole.rsplit_once('/').unwrap();
    let shown = town.gt(["run", "show", "we-a"]).ok().stdout;
    assert!(shown.contains(name) && !shown.contains(identity), "{shown}");

    // Another directory has another identity, also on the same machine, and no such run.
    let file = town.cwd().join(".gt/host");
    assert!(fs::read_to_string(&file).unwrap().starts_with(&format!("{identity}\n")));
    fs::write(&file, "0123456789abcdef\n").unwrap();
    let (runs, away) = (town.cwd().join(".gt/runs"), town.stage("runs"));
    fs::rename(&runs, &away).unwrap();
    town.cycle().ok();

    assert_eq!(town.states("we-a"), ["running"]);
    let shown = town.gt(["run", "show", "we-a"]).ok();
    assert_says(&shown.stdout, &["its processes are not on this machine"]);
    // A shared store brings the output of its hosts; without one it is where the run is.
    let log = town.gt(["run", "log", "we-a"]);
    if is_on_server() {
        assert_says(&log.ok().stderr, &["nothing that we-a#1 has printed has arrived here"]);
    } else {
        assert_says(&refusal(&log), &[name, "ask there"]);
    }
    let error = refusal(&town.gt(["run", "cancel", "we-a"]));
    assert_says(&error, &[name, "cancel it there", "gt run cancel we-a#1 --force"]);

    // A person says that it is gone for good.
    let said = town.gt(["run", "cancel", "we-a", "--force", "--actor", "ann"]).ok();
    assert_says(
        &said.stdout,
        &["in the store alone", "we-a is open", "fenced off, not ended", name],
    );
    let run = town.run_of("we-a");
    assert_eq!((&run["state"], &run["ended_by"]), (&json!("cancelled"), &json!("ann")));
    assert_eq!(town.show("we-a")["status"], "open");

    // It was not, and what it has to say comes too late.
    fs::rename(&away, &runs).unwrap();
    let agent = town.agent_of("we-a");
    assert!(is_alive(&agent));
    let supervisor = town.supervisor_of("we-a#1");
    town.allow("go");
    wait_until("everything has ended", || !is_alive(&agent) && !is_alive(&supervisor));
    assert_eq!(town.states("we-a"), ["cancelled"]);
    assert_eq!(town.show("we-a")["status"], "open");
    town.assert_quiet();
}

#[test]
fn force_ends_what_can_be_reached_like_any_other() {
    let town = town_with_agent("wait_for never");
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");

    let said = town.gt(["run", "cancel", "we-a", "--force"]).ok();

    assert_eq!(said.line(), "✓ Cancelled we-a#1; we-a is open");
    assert!(!is_alive(&town.agent_of("we-a")));
    town.assert_quiet();
}

#[test]
fn work_that_is_done_is_not_done_again_though_its_supervisor_could_not_say_so() {
    let town = town_with_agent(
        "sh -c 'trap \"\" TERM; echo $$ > \"$0/new\"; mv \"$0/new\" \"$0/left\"; \
            while [ -d \"$0\" ]; do sleep 0.05; done' \"$stage\" > /dev/null 2>&1 &
        wait_for left; wait_for go",
    );
    // The supervisor waits for what the agent left, and the store does not know of the end meanwhile.
    town.gt(["config", "set", "worker.kill_grace", "1h"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    let supervisor = town.supervisor_of("we-a#1");
    town.allow("go");
    let lock = town.cwd().join(".gt/runs/we-a#1.lock");
    let ended = || fs::read_to_string(&lock).is_ok_and(|text| text.ends_with("exited 0\n"));
    wait_until("the end of the agent was seen", ended);
    assert_eq!(town.states("we-a"), ["running"]);

    town.signal("KILL", &supervisor);
    town.cycle().ok();
    assert_eq!(town.states("we-a"), ["running"], "something of it is left");
    town.signal("KILL", fs::read_to_string(town.stage("left")).unwrap().trim());
    let mut said = String::new();
    wait_until("nothing of it is left", || {
        said += &town.cycle().ok().stdout;
        town.states("we-a") == ["done"]
    });

    assert_says(&said, &["we-a#1 had ended"]);
    let bead = town.show("we-a");
    assert_eq!(
        (&bead["status"], &bead["close_reason"]),
        (&json!("closed"), &json!("done by we-a#1"))
    );
    assert_eq!(town.run_of("we-a")["exit_code"], 0);
    assert_eq!(town.story(), ["+ we-a#1", "- we-a#1"]);
    town.assert_quiet();
}

#[test]
fn an_agent_without_supervisor_may_end_by_itself_when_its_bead_is_closed() {
    let town = town_with_agent("trap 'echo asked > \"$stage/asked\"; exit 0' TERM; wait_for never");
    town.gt(["config", "set", "worker.kill_grace", "1m"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    town.signal("KILL", &town.supervisor_of("we-a#1"));

    town.bd(["close", "we-a", "--force"]).ok();

    assert!(!is_alive(&town.agent_of("we-a")));
    assert!(town.stage("asked").exists());
    assert_eq!(town.states("we-a"), ["cancelled"]);
    town.assert_quiet();
}
