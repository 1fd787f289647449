//! All dispatchers schedule the same work at once: the races and questions of `docs/questions.md`, with the real program.

use gt_testkit::{FinishedProgram, RunningProgram, Sandbox, wait_until};
use serde_json::Value;

use crate::agents::{Stage as _, town_with_agent};
use crate::daemon::{process, status, town_with_daemon};
use crate::support::{Steps as _, assert_says, texts, wait_for_status};

/// Ten beads.
const TEN: [&str; 10] =
    ["we-0", "we-1", "we-2", "we-3", "we-4", "we-5", "we-6", "we-7", "we-8", "we-9"];

/// A town with room for twenty agents, which are this script.
fn town_with_room(script: &str) -> Sandbox {
    let town = town_with_agent(script);
    town.gt(["config", "set", "scheduler.max_polecats", "20"]).ok();
    town
}

/// Imports a convoy that is under way, with beads that are not scheduled.
fn strand(town: &Sandbox, convoy: &str, beads: &[&str]) {
    let times = "\"created_at\":\"2026-01-01T00:00:00Z\",\"updated_at\":\"2026-01-01T00:00:00Z\"";
    let edge = |bead: &&str| {
        format!("{{\"issue_id\":\"{convoy}\",\"depends_on_id\":\"{bead}\",\"type\":\"tracks\"}}")
    };
    let edges: Vec<String> = beads.iter().map(edge).collect();
    let mut lines = vec![format!(
        "{{\"id\":\"{convoy}\",\"title\":\"{convoy}\",\"issue_type\":\"convoy\",\"status\":\"open\",{times},\
         \"dependencies\":[{}]}}",
        edges.join(",")
    )];
    lines.extend(beads.iter().map(|bead| {
        format!("{{\"id\":\"{bead}\",\"title\":\"{bead}\",\"status\":\"open\",{times}}}")
    }));
    town.import(&lines.join("\n"));
}

/// Starts all these commands of `gt` so many times before it waits for the first.
fn all_at_once(town: &Sandbox, times: usize, commands: &[&[&str]]) -> Vec<FinishedProgram> {
    let again = commands.iter().cycle().take(times * commands.len());
    let running: Vec<RunningProgram> =
        again.map(|command| town.start_gt(command).start()).collect();
    running.into_iter().map(RunningProgram::wait).collect()
}

/// Expects that a command that came too late says so, and that nothing broke.
#[track_caller]
fn assert_polite(ran: &[FinishedProgram]) {
    for ran in ran {
        assert!((0..=3).contains(&ran.code), "{ran}");
        for word in ["locked", "panicked", "UNIQUE", "unique"] {
            assert!(!ran.stderr.contains(word), "{ran}");
        }
    }
}

/// How often a bead was scheduled.
fn times_scheduled(town: &Sandbox, bead: &str) -> usize {
    let of_bead = |event: &&Value| event["event_type"] == "scheduled" && event["issue_id"] == bead;
    town.events().iter().filter(of_bead).count()
}

/// Expects that these beads were scheduled once each, were done by one run each, and are closed.
#[track_caller]
fn assert_done_once(town: &Sandbox, beads: &[&str]) {
    for bead in beads {
        wait_for_status(town, bead, "closed");
        assert_eq!(town.states(bead), ["done"], "{bead}");
        assert_eq!(times_scheduled(town, bead), 1, "{bead}");
    }
    town.assert_quiet();
    assert_eq!(town.story().len(), 2 * beads.len());
}

/// The beads with an open context, each as often as it has one.
fn queued(town: &Sandbox) -> Vec<String> {
    let mut beads = texts(&town.gt_json(&["scheduler", "list"]), "id");
    beads.sort();
    beads
}

const FEED: &[&str] = &["deacon", "feed-stranded", "--cooldown", "0s", "--max-feeds", "9"];
const RUN: &[&str] = &["scheduler", "run"];

#[test]
fn race_1_two_who_feed_one_convoy_schedule_and_start_each_bead_once() {
    let town = town_with_room("wait_for go");
    let beads = &TEN[..6];
    strand(&town, "hq-cv-old01", beads);

    let ran = all_at_once(&town, 3, &[FEED, RUN]);

    assert_polite(&ran);
    town.cycle().ok();
    for bead in beads {
        town.wait_for_agent(&format!("{bead}#1"));
    }
    town.allow("go");
    assert_done_once(&town, beads);
    let landed = town.gt_json(&["convoy", "status", "hq-cv-old01"]);
    assert_eq!((&landed["close_reason"], &landed["landings"]), (&"landed".into(), &1.into()));
}

#[test]
fn race_1_in_direct_mode_each_fed_bead_starts_once() {
    let town = town_with_agent("wait_for go");
    let beads = &TEN[..4];
    strand(&town, "hq-cv-old01", beads);

    let ran = all_at_once(&town, 3, &[FEED, &["convoy", "check"], RUN]);

    assert_polite(&ran);
    for bead in beads {
        town.wait_for_agent(&format!("{bead}#1"));
    }
    town.allow("go");
    assert_done_once(&town, beads);
}

#[test]
fn race_2_a_recovered_bead_is_dispatched_once() {
    // Given a worker that is killed with its supervisor while a daemon watches,
    let town = town_with_daemon(5, "case $run in *#1) wait_for never;; *) wait_for go;; esac");
    town.bead("we-a", &[]);
    town.gt(["convoy", "create", "C", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let victims = format!("{} {}", town.supervisor_of("we-a#1"), town.agent_of("we-a"));
    town.signal("KILL", &victims);

    // when all commands that recover run at once,
    let redispatch: &[&str] = &["deacon", "redispatch", "we-a", "--cooldown", "0s"];
    let ran = all_at_once(&town, 3, &[redispatch, FEED, RUN, &["sling", "we-a"]]);

    // then there is one other run, and no run was cancelled for it.
    assert_polite(&ran);
    town.wait_for_agent("we-a#2");
    assert_eq!(town.states("we-a"), ["running", "lost"]);
    let late = town.start_gt(redispatch).run();
    assert_eq!(late.code, 3, "{late}");
    town.allow("go");
    wait_for_status(&town, "we-a", "closed");
    assert_eq!(town.states("we-a"), ["done", "lost"]);
    town.assert_quiet();
    assert_eq!(town.story(), ["+ we-a#1", "+ we-a#2", "- we-a#2"]);
    assert_eq!(times_scheduled(&town, "we-a"), 2);
}

#[test]
fn race_3_no_bead_has_two_contexts_however_many_schedule_it() {
    let town = town_with_room("true");
    town.gt(["scheduler", "pause"]).ok();
    let beads = &TEN[..4];
    strand(&town, "hq-cv-old01", &beads[..2]);
    for bead in &beads[2..] {
        town.bead(bead, &[]);
    }
    let sling = [&["sling"], beads, &["web"]].concat();
    let add = [&["convoy", "add", "hq-cv-old01"], beads].concat();
    let redispatch: &[&str] = &["deacon", "redispatch", "we-0", "--cooldown", "0s"];

    let ran = all_at_once(&town, 3, &[&sling, &add, FEED, RUN, redispatch]);

    assert_polite(&ran);
    assert_eq!(queued(&town), beads);
    for bead in beads {
        assert_eq!(times_scheduled(&town, bead), 1, "{bead}");
    }
    town.gt(["scheduler", "resume"]).ok();
    all_at_once(&town, 4, &[RUN]);
    assert_done_once(&town, beads);
}

#[test]
fn questions_1_and_2_one_close_lets_ten_start_in_one_run() {
    let town = town_with_room("wait_for go");
    town.bead("we-first", &[]);
    for bead in TEN {
        town.bead(bead, &["--deps", "we-first"]);
    }
    town.gt([&["convoy", "create", "C"], &TEN[..]].concat()).ok();
    assert_says(&town.cycle().ok().stdout, &["Dispatched: 0"]);
    town.bd(["close", "we-first"]).ok();

    let cycle = town.cycle().ok();

    assert_says(&cycle.stdout, &["Dispatched: 10"]);
    town.allow("go");
    assert_done_once(&town, &TEN);
}

#[test]
fn questions_3_and_4_one_feed_schedules_all_of_a_convoy_and_one_run_starts_them() {
    let town = town_with_room("wait_for go");
    strand(&town, "hq-cv-old01", &TEN);

    let fed = town.start_gt(FEED).arg("--json").run().ok().json();

    assert_eq!((&fed["fed"], &fed["errors"]), (&1.into(), &0.into()), "{fed}");
    assert_eq!(queued(&town), TEN);
    assert_eq!(town.gt(["config", "get", "scheduler.batch_size"]).ok().line(), "0");
    assert_says(&town.cycle().ok().stdout, &["Dispatched: 10"]);
    town.allow("go");
    assert_done_once(&town, &TEN);
}

#[test]
fn questions_5_and_6_a_chain_goes_on_without_a_full_scan() {
    let town = town_with_daemon(2, "true");
    town.gt(["scheduler", "pause"]).ok();
    let chain = &TEN[..5];
    for (at, bead) in chain.iter().enumerate() {
        town.bead(bead, &[]);
        if at > 0 {
            town.bd(["dep", "add", bead, chain[at - 1]]).ok();
        }
    }
    let made = town.gt_json(&[&["convoy", "create", "C"], chain].concat());
    let convoy = made["convoy"].as_str().expect("it was made");

    town.gt(["scheduler", "resume"]).ok();

    assert_done_once(&town, chain);
    wait_until("it has landed", || town.show(convoy)["close_reason"] == "landed");
    let said = status(&town);
    assert_eq!((&said["scans"], &said["scan_findings"]), (&0.into(), &0.into()));
}

#[test]
fn question_7_all_scheduled_beads_share_one_queue_and_one_kind_of_context() {
    let town = town_with_room("true");
    town.gt(["scheduler", "pause"]).ok();
    for bead in ["we-a", "we-b", "we-c"] {
        town.bead(bead, &[]);
    }
    strand(&town, "hq-cv-old01", &["we-d"]);
    town.gt(["sling", "we-a"]).ok();
    town.gt(["convoy", "create", "C", "we-b"]).ok();
    town.gt(["deacon", "redispatch", "we-c"]).ok();
    town.start_gt(FEED).run().ok();

    assert_eq!(queued(&town), ["we-a", "we-b", "we-c", "we-d"]);
    for bead in ["we-a", "we-b", "we-c", "we-d"] {
        assert_eq!(town.reasons(bead), ["paused"]);
        assert_eq!(times_scheduled(&town, bead), 1);
    }
    town.gt(["scheduler", "resume"]).ok();
    assert_says(&town.cycle().ok().stdout, &["Dispatched: 4"]);
    assert_done_once(&town, &["we-a", "we-b", "we-c", "we-d"]);
}

#[test]
fn questions_8_and_11_a_scan_does_not_schedule_scheduled_beads_again() {
    // Given a convoy of which something runs, something is queued and something is blocked,
    let town = town_with_daemon(1, "wait_for go");
    for bead in ["we-a", "we-b", "we-c"] {
        town.bead(bead, &[]);
    }
    town.bd(["dep", "add", "we-c", "we-b"]).ok();
    town.gt(["convoy", "create", "C", "we-a", "we-b", "we-c"]).ok();
    town.wait_for_agent("we-a#1");

    // when the daemon and the commands scan all the time,
    town.gt(["config", "set", "daemon.scan_every", "100ms"]).ok();
    town.gt(["down"]).ok();
    town.gt(["up"]).ok();
    let ran = all_at_once(&town, 3, &[FEED, &["convoy", "stranded"]]);
    wait_until("several full scans were made", || status(&town)["scans"].as_u64() > Some(3));

    // then nothing is scheduled that was.
    for ran in ran {
        assert_says(&ran.ok().stdout, &["is stranded"]);
    }
    assert_eq!(status(&town)["scan_findings"], 0);
    for bead in ["we-a", "we-b", "we-c"] {
        assert_eq!(times_scheduled(&town, bead), 1);
    }
    town.allow("go");
    assert_done_once(&town, &["we-a", "we-b", "we-c"]);
}

#[test]
fn question_10_contexts_outlive_a_daemon_and_the_first_pass_of_the_next_starts_them() {
    let town = town_with_daemon(20, "wait_for go");
    town.gt(["scheduler", "pause"]).ok();
    strand(&town, "hq-cv-old01", &TEN[..3]);
    for bead in &TEN[3..6] {
        town.bead(bead, &[]);
        town.gt(["sling", bead]).ok();
    }
    town.signal("KILL", &process(&town));
    wait_until("it is gone", || town.gt(["daemon", "status"]).code == 1);
    town.gt(["scheduler", "resume"]).ok();
    assert_eq!(town.story(), [""; 0]);

    town.gt(["up"]).ok();

    for bead in &TEN[..6] {
        town.wait_for_agent(&format!("{bead}#1"));
    }
    assert_eq!(status(&town)["scans"], 0, "no full scan was needed");
    town.allow("go");
    assert_done_once(&town, &TEN[..6]);
}

#[test]
fn question_12_a_redispatch_takes_no_bead_from_its_holder() {
    let town = town_with_room("wait_for go");
    for bead in ["we-mine", "we-runs"] {
        town.bead(bead, &[]);
    }
    town.gt(["convoy", "create", "C", "we-mine", "we-runs"]).ok();
    town.bd(["update", "we-mine", "--claim"]).ok();
    town.cycle().ok();
    town.wait_for_agent("we-runs#1");
    let before = town.show("we-mine");

    for bead in ["we-mine", "we-runs"] {
        let ran = town.gt(["deacon", "redispatch", bead, "--cooldown", "0s"]);
        assert_eq!(ran.code, 3, "{ran}");
        assert_says(&ran.stdout, &["is left alone"]);
        town.gt(["deacon", "redispatch", bead, "--force"]).fails(2);
    }

    assert_eq!(town.show("we-mine"), before);
    assert_eq!(town.states("we-runs"), ["running"]);
    town.allow("go");
    wait_for_status(&town, "we-runs", "closed");
    town.assert_quiet();
}

#[test]
fn question_13_convoys_that_share_beads_are_fed_by_many_at_once_without_a_lock() {
    let town = town_with_room("true");
    strand(&town, "hq-cv-old01", &TEN[..6]);
    strand(&town, "hq-cv-old02", &TEN[3..]);

    let ran = all_at_once(&town, 8, &[FEED]);

    assert_polite(&ran);
    assert_eq!(queued(&town), TEN);
    town.cycle().ok();
    assert_done_once(&town, &TEN);
    for convoy in ["hq-cv-old01", "hq-cv-old02"] {
        assert_eq!(town.gt_json(&["convoy", "status", convoy])["landings"], 1);
    }
}
