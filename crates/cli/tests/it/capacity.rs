//! The limits on starts besides slots: usage limits, budgets, memory, and the caps of runtimes and accounts.

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::daemon::town_with_daemon;
use crate::projects::{Worker, town_with_project};
use crate::support::{
    Steps as _, assert_says, gastown_that_takes_time, gastown_with, let_work_end, wait_for_status,
};

/// Says what a program prints that has no time left, or has used something.
pub(crate) fn understand_output(town: &Sandbox) {
    let file = "[usage]\ntokens = 'tokens used: (\\d+)'\ncost = 'cost: (\\S+)'\n\n\
                [[limit]]\npattern = 'try again in (?<after>\\d)'\n";
    town.write(".gt/runtimes/custom.toml", file);
}

/// Schedules these beads without starting them.
fn scheduled(town: &Sandbox, beads: &[&str]) {
    town.gt(["config", "set", "scheduler.max_polecats", "9"]).ok();
    for bead in beads {
        town.bead(bead, &[]);
        town.gt(["sling", bead]).ok();
    }
}

fn states_end(town: &Sandbox, bead: &str, state: &str) {
    wait_until(&format!("the last run of {bead} is {state}"), || {
        town.states(bead).iter().any(|found| found == state)
    });
}

#[test]
fn a_usage_limit_is_a_schedule_and_not_a_failure() {
    // Given an account whose limit is reached,
    let town = gastown_with(
        "if [ -e \"$GT_TOWN_ROOT/limited\" ]; then echo 'try again in 1s'; exit 1; fi",
    );
    understand_output(&town);
    town.gt(["config", "account", "add", "work"]).ok();
    town.gt(["config", "account", "add", "lab"]).ok();
    town.gt(["config", "account", "default", "work"]).ok();
    town.write("limited", "");
    scheduled(&town, &["gt-a"]);
    town.cycle().ok();
    states_end(&town, "gt-a", "lost");

    // its work waits for the reset, has used no attempt, and stays with the account,
    town.gt(["config", "account", "default", "lab"]).ok();
    let why = town.why("gt-a");
    assert_eq!(why["reasons"][0]["code"], "account-limited");
    assert!(why["reasons"][0]["until"].is_string(), "{why}");
    assert_eq!(why["attempts"], 0);

    // while what is on another account goes on,
    std::fs::remove_file(town.cwd().join("limited")).unwrap();
    town.bead("gt-b", &[]);
    town.gt(["sling", "gt-b", "--account", "lab"]).ok();
    town.cycle().ok();
    wait_for_status(&town, "gt-b", "closed");

    // and resumes by itself when the time has come.
    wait_until("gt-a is closed", || {
        town.cycle().ok();
        town.show("gt-a")["status"] == "closed"
    });
    assert_eq!(town.run_of("gt-a#2")["account"], "work");
    // The number of runs ramps up after a limit, instead of starting all at once.
    let status = town.gt_json(&["scheduler", "status"]);
    assert_eq!(status["parked"][0]["max_runs"], 2, "{status}");
}

#[test]
fn an_agent_that_waits_in_a_limit_is_ended_and_its_account_parked() {
    let town = gastown_with("echo 'try again in 2h'; while :; do sleep 0.1; done");
    understand_output(&town);
    town.gt(["config", "account", "add", "work"]).ok();
    town.gt(["config", "account", "default", "work"]).ok();
    town.gt(["config", "set", "worker.limit_patience", "1s"]).ok();
    town.gt(["config", "set", "worker.kill_grace", "300ms"]).ok();
    scheduled(&town, &["gt-a"]);

    town.cycle().ok();

    states_end(&town, "gt-a", "lost");
    let why = town.why("gt-a");
    assert_eq!(why["reasons"][0]["code"], "account-limited", "{why}");
    assert_eq!(why["attempts"], 0);
}

#[test]
fn a_budget_of_runs_queues_what_is_beyond_it_and_says_until_when() {
    let town = gastown_with("exit 0");
    town.gt(["config", "set", "budget.runs_per_hour", "2"]).ok();
    scheduled(&town, &["gt-a", "gt-b", "gt-c"]);

    let rehearsed = town.gt_json(&["scheduler", "run", "--dry-run"]);
    town.cycle().ok();
    for bead in ["gt-a", "gt-b"] {
        wait_for_status(&town, bead, "closed");
    }
    town.cycle().ok();

    assert_eq!(rehearsed["dispatched"].as_array().map(Vec::len), Some(2), "{rehearsed}");
    assert_eq!(town.reasons("gt-c"), ["budget"]);
    let list = town.gt_json(&["scheduler", "list"]);
    assert!(list[0]["reasons"][0]["until"].is_string(), "{list}");
    let budget = &town.gt_json(&["scheduler", "status"])["budgets"][0];
    assert_eq!((&budget["used"], &budget["limit"]), (&json!(2), &json!(2)));
    assert_says(&town.gt(["why", "gt-c"]).ok().stdout, &["budget until", "budget.runs_per_hour"]);

    town.gt(["config", "set", "budget.runs_per_hour", "0"]).ok();
    town.cycle().ok();
    wait_for_status(&town, "gt-c", "closed");
}

#[test]
fn the_reported_usage_of_an_agent_is_kept_and_counts() {
    let town = gastown_with("echo 'tokens used: 600'; echo 'cost: 0.25'");
    understand_output(&town);
    town.gt(["config", "set", "budget.tokens_per_day", "500"]).ok();
    town.gt(["config", "set", "budget.cost_per_day", "1.5"]).ok();
    scheduled(&town, &["gt-a"]);
    town.cycle().ok();
    wait_for_status(&town, "gt-a", "closed");

    let run = town.run_of("gt-a#1");
    assert_eq!((&run["tokens"], &run["cost"]), (&json!(600), &json!("0.25")));
    assert_says(&town.gt(["run", "show", "gt-a#1"]).ok().stdout, &["600 tokens, $0.25"]);
    scheduled(&town, &["gt-b"]);
    town.cycle().ok();
    assert_eq!(town.reasons("gt-b"), ["budget"]);
    let said = town.gt(["status"]).ok().stdout;
    assert_says(&said, &["used 600 of 500 tokens in a day", "spent 0.25 of 1.50 in a day"]);
}

#[test]
fn live_runs_hold_the_share_of_a_budget_that_they_may_need() {
    // Given a budget for two runs of a dollar and a half of one,
    let town = gastown_that_takes_time();
    town.gt(["config", "set", "budget.cost_per_day", "2.5"]).ok();
    scheduled(&town, &["gt-a", "gt-b", "gt-c"]);

    // two start, because nothing is known of them but that they are runs,
    town.cycle().ok();
    assert_eq!(
        (town.states("gt-a"), town.states("gt-b")),
        (vec!["running".into()], vec!["running".into()])
    );
    assert_eq!(town.reasons("gt-c"), ["budget"]);
    let budget = &town.gt_json(&["scheduler", "status"])["budgets"][0];
    assert_eq!((&budget["used"], &budget["held"]), (&json!("0.00"), &json!("2.00")));
    assert_says(
        &town.gt(["why", "gt-c"]).ok().stdout,
        &[
            "budget until a live run ends",
            "live runs hold 2.00",
            "gt config set budget.cost_per_day",
        ],
    );

    // and the next one when they have ended, without any cost.
    let_work_end(&town);
    for bead in ["gt-a", "gt-b"] {
        wait_for_status(&town, bead, "closed");
    }
    town.cycle().ok();
    wait_for_status(&town, "gt-c", "closed");
}

#[test]
fn a_run_that_is_done_holds_its_share_until_its_agent_has_reported_what_it_used() {
    // Given a budget for one run, and an agent that reports its cost after gt done,
    let town = town_with_project(
        "echo tea > tea; gt done > $stage/said; wait_for report-$bead; echo 'cost: 1.20'",
    );
    understand_output(&town);
    town.gt(["config", "set", "worker.kill_grace", "10m"]).ok();
    town.gt(["config", "set", "budget.cost_per_day", "1.5"]).ok();
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    for bead in ["we-a", "we-b"] {
        town.bead(bead, &[]);
        town.gt(["sling", bead]).ok();
    }
    town.cycle().ok();

    // when it is done, it holds what it may have used,
    wait_for_status(&town, "we-a", "closed");
    town.cycle().ok();
    assert_eq!(town.reasons("we-b"), ["budget"]);
    let budget = &town.gt_json(&["scheduler", "status"])["budgets"][0];
    assert_eq!((&budget["used"], &budget["held"]), (&json!("0.00"), &json!("1.00")));

    // and then what it has used counts.
    town.allow("report-we-a");
    wait_until("its cost is known", || town.run_of("we-a#1")["cost"] == "1.20");
    town.cycle().ok();
    assert_eq!(town.reasons("we-b"), ["budget"]);
    let budget = &town.gt_json(&["scheduler", "status"])["budgets"][0];
    assert_eq!((&budget["used"], &budget["held"]), (&json!("1.20"), &json!("0.00")));
}

#[test]
fn a_share_that_a_killed_supervisor_left_is_given_back() {
    let town = town_with_project(
        "says_where; echo tea > tea; gt done > $stage/said; echo 'cost: 0.30'; true > $stage/told; wait_for never",
    );
    understand_output(&town);
    town.gt(["config", "set", "worker.kill_grace", "10m"]).ok();
    town.gt(["config", "set", "budget.cost_per_day", "1.5"]).ok();
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.cycle().ok();
    wait_for_status(&town, "we-a", "closed");
    wait_until("it has told what it used", || town.stage("told").exists());
    Worker::of(&town, "we-a#1").kill_all();

    town.cycle().ok();

    let budget = &town.gt_json(&["scheduler", "status"])["budgets"][0];
    assert_eq!((&budget["used"], &budget["held"]), (&json!("0.30"), &json!("0.00")));
}

#[test]
fn a_run_reserves_what_runs_like_it_have_cost() {
    // Given a run that cost a quarter, and room for two more like it,
    let script = r#"echo 'cost: 0.25'; [ $GT_RUN = gt-a#1 ] && exit 0
while [ ! -e "$GT_TOWN_ROOT/go" ] && [ -d "$GT_TOWN_ROOT" ]; do sleep 0.02; done"#;
    let town = gastown_with(script);
    understand_output(&town);
    scheduled(&town, &["gt-a"]);
    town.cycle().ok();
    wait_for_status(&town, "gt-a", "closed");
    wait_until("its cost is known", || town.run_of("gt-a#1")["cost"] == "0.25");
    town.gt(["config", "set", "rig.gastown.budget.cost_per_day", "0.8"]).ok();
    town.gt(["config", "set", "budget.account_cost_per_day", "0.1"]).ok();

    scheduled(&town, &["gt-b", "gt-c", "gt-d"]);
    town.cycle().ok();

    // two start, and no third.
    assert_eq!(town.reasons("gt-d"), ["budget"]);
    let said = town.gt(["scheduler", "status"]).ok().stdout;
    assert_says(
        &said,
        &["the rig gastown has spent 0.25 of 0.80 in a day, and live runs hold 0.50"],
    );
    assert_says(&town.gt(["why", "gt-d"]).ok().stdout, &["rig.gastown.budget.cost_per_day"]);
    let_work_end(&town);
}

#[test]
fn people_are_told_once_that_a_budget_is_nearly_spent() {
    let town = gastown_with("echo 'cost: 0.25'");
    understand_output(&town);
    // A notice that does not arrive stays in the list.
    town.gt(["config", "set", "notify.command", "false"]).ok();
    town.gt(["config", "set", "budget.cost_per_day", "0.6"]).ok();
    for bead in ["gt-a", "gt-b"] {
        scheduled(&town, &[bead]);
        town.cycle().ok();
        wait_for_status(&town, bead, "closed");
        wait_until("its cost is known", || town.run_of(bead)["cost"] == "0.25");
    }
    let notices = || -> Vec<String> {
        let notices = town.gt_json(&["outbox", "list"]);
        let keys = notices.as_array().unwrap().iter().map(|notice| notice["key"].to_string());
        keys.filter(|key| key.contains("budget")).collect()
    };
    assert_eq!(notices().len(), 1, "{:?}", notices());
    assert_says(&notices()[0], &["budget:budget.cost_per_day:20"]);

    // More of it is no news on the same day.
    town.gt(["config", "set", "budget.cost_per_day", "0.75"]).ok();
    scheduled(&town, &["gt-c"]);
    town.cycle().ok();
    wait_for_status(&town, "gt-c", "closed");
    wait_until("its cost is known", || town.run_of("gt-c")["cost"] == "0.25");
    assert_eq!(notices().len(), 1, "{:?}", notices());
}

#[test]
fn a_bead_that_has_used_its_budget_waits_until_that_is_raised() {
    // Given a bead that failed and has used more than a bead may,
    let town = gastown_with("echo 'cost: 0.25'; [ $GT_RUN != gt-a#1 ]");
    understand_output(&town);
    town.gt(["config", "set", "notify.command", "false"]).ok();
    town.gt(["config", "set", "budget.bead_cost", "0.2"]).ok();
    scheduled(&town, &["gt-a"]);
    town.cycle().ok();
    wait_until("its cost is known", || town.run_of("gt-a#1")["cost"] == "0.25");
    wait_for_status(&town, "gt-a", "closed");
    let notices = town.gt_json(&["outbox", "list"]).to_string();
    assert_says(&notices, &["budget:budget.bead_cost/gt-a:200000"]);

    // it does not start again, and others do.
    town.gt(["scheduler", "retry", "gt-a"]).ok();
    scheduled(&town, &["gt-b"]);
    town.cycle().ok();
    wait_for_status(&town, "gt-b", "closed");
    assert_eq!(town.reasons("gt-a"), ["budget"]);
    assert_says(
        &town.gt(["why", "gt-a"]).ok().stdout,
        &[
            "budget until it is raised: the bead gt-a has spent 0.25 of 0.20",
            "gt config set budget.bead_cost <n>",
        ],
    );
    let listed = &town.gt_json(&["scheduler", "list"])[0]["reasons"][0];
    assert_eq!(listed.get("until"), None);
    let budget = &town.gt_json(&["scheduler", "status"])["budgets"][0];
    assert_eq!((&budget["setting"], &budget["bead"]), (&json!("budget.bead_cost"), &json!("gt-a")));
    let inbox = town.gt_json(&["inbox"]).to_string();
    assert_says(&inbox, &["budget:budget.bead_cost/gt-a", "it waits until it is raised"]);

    town.gt(["config", "set", "budget.bead_cost", "0.3"]).ok();
    town.cycle().ok();
    wait_for_status(&town, "gt-a", "closed");
    assert_eq!(town.states("gt-a"), ["done", "failed"]);
}

#[test]
fn a_sling_that_starts_at_once_counts_the_budget_of_its_bead() {
    // Given a town without a cap, and a bead that has cost more than a bead may,
    let town = gastown_with("echo 'cost: 0.25'");
    understand_output(&town);
    town.gt(["config", "set", "budget.bead_cost", "0.2"]).ok();
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a"]).ok();
    wait_for_status(&town, "gt-a", "closed");
    wait_until("its cost is known", || town.run_of("gt-a#1")["cost"] == "0.25");
    town.bd(["reopen", "gt-a"]).ok();

    // it does not start again.
    let said = town.gt(["sling", "gt-a"]).ok().stdout;
    assert_says(&said, &["waiting: budget until it is raised", "has spent 0.25 of 0.20"]);
    assert_eq!(town.reasons("gt-a"), ["budget"]);
    assert_eq!(town.states("gt-a"), ["done"]);
}

#[test]
fn a_convoy_that_has_used_its_budget_starts_none_of_its_beads() {
    let town = gastown_that_takes_time();
    town.gt(["config", "set", "scheduler.max_polecats", "9"]).ok();
    town.gt(["config", "set", "budget.convoy_cost", "1.5"]).ok();
    for bead in ["gt-a", "gt-b", "gt-c"] {
        town.bead(bead, &[]);
    }
    town.gt(["convoy", "create", "Tea", "gt-a", "gt-b"]).ok();
    for bead in ["gt-a", "gt-b", "gt-c"] {
        town.gt(["sling", bead]).ok();
    }

    // Two runs of a dollar each do not fit; the bead beside the convoy starts.
    town.cycle().ok();
    let (running, waiting) = (town.states("gt-a"), town.reasons("gt-b"));
    assert_eq!((running, waiting), (vec!["running".to_owned()], vec!["budget".to_owned()]));
    assert_eq!(town.states("gt-c"), ["running"]);
    assert_says(
        &town.gt(["why", "gt-b"]).ok().stdout,
        &["budget until a live run ends: the convoy", "and live runs hold 1.00"],
    );

    // The first one has cost nothing, so the second one starts.
    let_work_end(&town);
    wait_for_status(&town, "gt-a", "closed");
    town.cycle().ok();
    wait_for_status(&town, "gt-b", "closed");
}

#[test]
fn a_month_is_a_budget_until_the_next_one() {
    let town = gastown_with("echo 'cost: 0.25'");
    understand_output(&town);
    scheduled(&town, &["gt-a"]);
    town.cycle().ok();
    wait_until("its cost is known", || town.run_of("gt-a#1")["cost"] == "0.25");
    town.gt(["config", "set", "budget.cost_per_month", "0.4"]).ok();
    scheduled(&town, &["gt-b"]);
    town.cycle().ok();
    assert_eq!(town.reasons("gt-b"), ["budget"]);
    let until = town.gt_json(&["scheduler", "list"])[0]["reasons"][0]["until"].clone();
    assert_says(until.as_str().unwrap(), &["-01T00:00:00Z"]);
    assert_says(&town.gt(["why", "gt-b"]).ok().stdout, &["spent 0.25 of 0.40 this month"]);
}

#[test]
fn nothing_starts_while_the_disk_is_short_and_old_logs_go_first() {
    let town = gastown_with("echo working");
    scheduled(&town, &["gt-a"]);
    town.cycle().ok();
    wait_for_status(&town, "gt-a", "closed");
    let log = town.cwd().join(".gt/runs/gt-a#1.log");
    town.cycle().ok();
    assert!(log.exists(), "there is room");

    // No disk has so much room.
    town.gt(["config", "set", "guard.disk_min_mb", "100000000"]).ok();
    scheduled(&town, &["gt-b"]);
    town.cycle().ok();
    assert_eq!(town.reasons("gt-b"), ["disk"]);
    assert!(!log.exists(), "the oldest logs of ended runs are removed");
    let why = town.gt(["why", "gt-b"]).ok().stdout;
    assert_says(&why, &["MB free of the 100000000 MB", "gt doctor", "guard.disk_min_mb"]);
    assert_says(&town.gt(["scheduler", "status"]).ok().stdout, &["100000000 MB"]);
    let needs = town.gt_json(&["inbox"]);
    let row = needs.as_array().unwrap().iter().find(|row| row["code"] == "disk-full");
    let row = row.unwrap_or_else(|| panic!("a person is told: {needs}"));
    assert_says(row["what"].as_str().unwrap(), &["MB free of the 100000000 MB", "nothing starts"]);
    let examined = town.gt(["doctor"]).fails(1).stdout;
    assert_says(&examined, &["room", "trees take", "logs of runs", "logs of checks"]);

    town.gt(["config", "set", "guard.disk_min_mb", "0"]).ok();
    assert!(!town.gt_json(&["inbox"]).to_string().contains("disk-full"), "there is room again");
    town.cycle().ok();
    wait_for_status(&town, "gt-b", "closed");
}

#[test]
fn nothing_starts_while_memory_is_short_unless_nothing_runs() {
    // Given a machine with 100 MB left of 10,000 MB,
    let town = gastown_that_takes_time();
    let remains = |mb: u32| {
        let kilobytes = mb * 1024;
        let text = format!("MemTotal: 10240000 kB\nMemAvailable: {kilobytes} kB\n");
        let directory = town.root().join("machine/proc");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("meminfo"), text).unwrap();
    };
    remains(100);
    scheduled(&town, &["gt-a", "gt-b"]);

    // one starts, because nothing runs, and no other,
    town.cycle().ok();
    assert_eq!(town.states("gt-a"), ["running"]);
    assert_eq!(town.reasons("gt-b"), ["memory"]);
    assert_says(&town.gt(["scheduler", "status"]).ok().stdout, &["100 MB left of the 750 MB"]);
    town.cycle().ok();

    // nor when it is only just enough again,
    remains(600);
    town.cycle().ok();
    assert_eq!(town.reasons("gt-b"), ["memory"]);

    // but when there is clearly more, or the check is switched off.
    remains(800);
    town.cycle().ok();
    assert_eq!(town.states("gt-b"), ["running"]);
    remains(100);
    scheduled(&town, &["gt-c"]);
    town.cycle().ok();
    assert_eq!(town.reasons("gt-c"), ["memory"]);
    town.gt(["config", "set", "guard.memory", "off"]).ok();
    town.cycle().ok();
    assert_eq!(town.states("gt-c"), ["running"]);
    let_work_end(&town);
    for bead in ["gt-a", "gt-b", "gt-c"] {
        wait_for_status(&town, bead, "closed");
    }
}

#[test]
fn a_runtime_has_a_cap_of_its_own() {
    let town = gastown_with("exit 0");
    town.gt(["config", "agent", "set", "scripted", "max_runs", "1"]).ok();
    assert_eq!(town.gt_json(&["config", "agent", "show", "scripted"])["max_runs"], 1);
    town.gt(["config", "set", "scheduler.max_polecats", "9"]).ok();
    let go = town.cwd().join("go");
    let script = format!("```gt-script\nwait-for {}\n```", go.display());
    for bead in ["gt-a", "gt-b"] {
        town.bead(bead, &["--description", &script]);
        town.gt(["sling", bead, "--agent", "scripted"]).ok();
    }
    // Another runtime is not concerned.
    scheduled(&town, &["gt-c"]);

    town.cycle().ok();

    wait_for_status(&town, "gt-c", "closed");
    assert_eq!(town.states("gt-a"), ["running"]);
    let why = town.why("gt-b");
    let text = why["reasons"][0]["text"].as_str().unwrap_or_default();
    assert_says(text, &["no slot: the cap of 1 of the runtime scripted"]);
    let_work_end(&town);
    wait_for_status(&town, "gt-a", "closed");
    town.cycle().ok();
    wait_for_status(&town, "gt-b", "closed");
}

#[test]
fn work_that_names_no_account_gets_another_one_if_they_are_spread() {
    let town = gastown_that_takes_time();
    for handle in ["lab", "work"] {
        town.gt(["config", "account", "add", handle, "--max-runs", "1"]).ok();
    }
    town.gt(["config", "account", "default", "work"]).ok();
    scheduled(&town, &["gt-a", "gt-b", "gt-c"]);
    town.cycle().ok();
    assert_eq!(
        town.reasons("gt-b"),
        ["no-slot"],
        "only the default account, unless accounts.spread is on"
    );

    town.gt(["config", "set", "accounts.spread", "on"]).ok();
    town.cycle().ok();

    assert_eq!(town.run_of("gt-a#1")["account"], "work");
    assert_eq!(town.run_of("gt-b#1")["account"], "lab");
    assert_eq!(town.reasons("gt-c"), ["no-slot", "no-slot"]);
    let_work_end(&town);
    for bead in ["gt-a", "gt-b"] {
        wait_for_status(&town, bead, "closed");
    }
    town.cycle().ok();
    wait_for_status(&town, "gt-c", "closed");
}

#[test]
fn drain_waits_for_what_runs_and_keeps_what_waits_and_what_is_slung() {
    let town = gastown_that_takes_time();
    town.bead("gt-a", &[]);
    town.gt(["sling", "gt-a"]).ok();
    let refused = town.gt(["scheduler", "drain", "--timeout", "1s"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    // A direct sling is scheduled and waits.
    town.bead("gt-b", &[]);
    town.gt(["sling", "gt-b"]).ok();
    assert_eq!(town.reasons("gt-b"), ["paused"]);
    let_work_end(&town);
    town.gt(["scheduler", "drain", "--timeout", "30s"]).ok();
    assert_eq!(town.show("gt-a")["status"], "closed");
    assert_eq!(town.reasons("gt-b"), ["paused"]);
    town.gt(["scheduler", "resume"]).ok();
    town.cycle().ok();
    wait_for_status(&town, "gt-b", "closed");
}

#[test]
fn nothing_is_estimated_while_the_scheduler_is_paused() {
    let town = town_with_daemon(1, "wait_for end-$bead");
    for id in ["we-a", "we-b", "we-c", "we-d"] {
        town.bead(id, &[]);
    }
    town.allow("end-we-a");
    town.gt(["sling", "we-a"]).ok();
    wait_for_status(&town, "we-a", "closed");
    town.gt(["sling", "we-d"]).ok();
    town.wait_for_agent("we-d#1");
    let made = town.gt_json(&["convoy", "create", "Two", "we-b", "we-c"]);
    let convoy = made["convoy_id"].as_str().or(made["convoy"].as_str()).unwrap();
    let estimates = || {
        let overview = town.gt_json(&["status"])["convoys"][0].clone();
        [town.gt_json(&["convoy", "status", convoy])["eta"].clone(), overview["eta"].clone()]
    };
    assert!(estimates().iter().all(Value::is_string), "{:?}", estimates());

    town.gt(["scheduler", "pause"]).ok();

    assert!(estimates().iter().all(Value::is_null), "{:?}", estimates());
    town.gt(["run", "cancel", "we-d"]).ok();
}
