//! Runs of agents that print events: what people and programs see of them.

use std::thread;

use gt_testkit::{RunningProgram, Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, town_with_agent};
use crate::serving::Served;
use crate::support::{Steps as _, assert_says, texts};

/// The output of an agent whose requests were refused in the end.
const EVENTS: &str = include_str!("../../../transcripts/tests/fixtures/codex_fail.jsonl");

/// The last words in it.
const LAST_WORDS: &str =
    "We’re currently experiencing high demand, which may cause temporary errors.";

/// A town whose agent prints the events except for the last, goes on when it may, prints the last and fails.
fn town_with_events() -> Sandbox {
    let town = town_with_agent(
        "head -n -1 \"$stage/events\"; wait_for go; tail -n 1 \"$stage/events\"; exit 3",
    );
    std::fs::write(town.stage("events"), EVENTS).unwrap();
    town.gt(["config", "agent", "set", "custom", "transcript", "codex"]).ok();
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    wait_until("it has printed", || town.raw_log().lines().count() == EVENTS.lines().count() - 1);
    town
}

trait RawLog {
    fn raw_log(&self) -> String;
}

impl RawLog for Sandbox {
    fn raw_log(&self) -> String {
        self.gt(["run", "log", "we-a", "--raw"]).ok().stdout
    }
}

#[test]
fn events_are_lines_for_people_objects_for_programs_and_bytes_for_both() {
    let town = town_with_events();
    let follower = town.start_gt(&["run", "log", "we-a", "-f"]).start();
    let peeker = town.start_gt(&["peek", "we-a", "-n", "2", "-f"]).start();
    wait_until("it is shown", || follower.stdout().contains("* shell: false"));
    wait_until("its end is shown", || peeker.stdout().contains("high demand"));
    let peeked = town.gt_json(&["peek", "we-a", "-n", "3"]);
    assert_eq!(texts(&peeked["events"], "kind"), ["error", "error", "error"]);
    assert_eq!(town.gt(["peek", "we-a", "--raw", "-n", "1"]).ok().stdout.lines().count(), 1);
    let peeked = town.gt(["peek", "we-a", "-n", "2"]).ok().stdout;
    assert_eq!(
        peeked,
        "error: We’re currently experiencing high demand, which may cause temporary\nerrors.\n"
    );

    town.allow("go");
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    let shown = town.gt(["run", "log", "we-a"]).ok().stdout;
    assert_eq!(follower.wait().ok().stdout, shown);
    assert_says(
        &shown,
        &["\nI begin.\n* shell: false\n  ! (no output)\nerror: Reconnecting... 1/5"],
    );
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(!shown.contains('{') && !shown.contains('\u{1b}'), "{shown}");
    assert!(shown.ends_with(
        "failed: We’re currently experiencing high demand, which may cause temporary\nerrors.\n"
    ));
    assert_eq!(town.gt(["run", "log", "we-a", "-n", "1"]).ok().stdout, "errors.\n");
    assert_says(&peeker.wait().ok().stdout, &["failed: We’re"]);
    assert_eq!(town.raw_log(), EVENTS);
    let events = town.gt(["run", "log", "we-a", "--json"]).ok().json_lines();
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[..5], ["session", "error", "text", "tool_call", "tool_result"]);
    let last = json!({"kind": "result", "is_error": true, "text": LAST_WORDS});
    assert_eq!(events.last(), Some(&last));
    town.assert_quiet();
}

#[test]
fn a_failure_carries_the_last_words_of_the_agent() {
    let town = town_with_events();
    town.bead("we-b", &["--deps", "we-a"]);

    town.allow("go");
    wait_until("the bead is closed", || town.show("we-a")["status"] == "closed");

    // Reasons have plain quotation marks, so that patterns of limits fit.
    let words = LAST_WORDS.replace('’', "'");
    let failed = format!("it ended with exit status 3; last output: {words}");
    assert_eq!(town.show("we-a")["close_reason"], json!(failed));
    assert_says(&town.gt(["why", "we-b"]).ok().stdout, &[&failed]);
    let inbox = town.gt_json(&["inbox"]);
    assert_says(&inbox.to_string(), &[&words]);
    town.assert_quiet();
}

#[test]
fn a_transcript_over_http_follows_the_run_to_its_end() {
    let served = Served::of(town_with_events(), &[]);
    let made = served.town.gt_json(&["token", "create", "ann", "--scope", "view"]);
    let token = format!("Bearer {}", made["token"].as_str().unwrap());
    let get = |path: &str| served.ask("GET", path, &[("authorization", &token)], "");
    let lines = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let path = "/api/v1/runs/we-a%231/transcript";
    let before = lines(&get(path).is(200).text());
    get("/api/v1/runs/we-zzz/transcript").is(404);
    get("/api/v1/runs/we-a/transcript?follow=perhaps").is(400);

    let followed = thread::scope(|scope| {
        let follower = scope.spawn(|| get(&format!("{path}?follow=true")).is(200).text());
        served.town.allow("go");
        lines(&follower.join().unwrap())
    });

    assert_eq!(followed[..before.len()], before);
    assert_eq!(followed.last().unwrap()["text"], LAST_WORDS);
    let printed = served.town.gt(["run", "log", "we-a", "--json"]).ok().json_lines();
    assert_eq!(followed, printed);
    served.stop();
}

/// `gt attach` at a terminal, where these keys are typed once the file `type` is on the stage.
fn attach_and_type(town: &Sandbox, keys: &str) -> RunningProgram {
    let line = format!("'{}' attach we-a", town.gt_path().display());
    let script = format!(
        "(until [ -e \"$0\" ]; do sleep 0.05; done; printf '{keys}') | script -qec \"$1\" /dev/null"
    );
    town.command("bash").args(["-c", &script]).arg(town.stage("type")).arg(line).start()
}

#[test]
fn a_person_watches_a_worker_without_a_screen_and_types_to_it() {
    let town = town_with_events();

    // The end of what is typed is Ctrl-D.
    let attached = attach_and_type(&town, r"Hov\177w f\344\270\255ar?\r");
    wait_until("its events and the line are shown", || {
        let shown = attached.stdout();
        shown.contains("goes to its worker") && shown.contains("temporary\r\nerrors.\r\n> ")
    });
    town.allow("type");

    let shown = attached.wait().ok().stdout;
    assert_says(&shown, &["> How f中ar?", "is queued for we-a", "Left we-a#1; its worker goes on"]);
    assert_eq!(town.run_of("we-a")["state"], "running");
    let mail = town.gt_json(&["mail", "inbox", "we-a"]);
    assert_says(&mail.to_string(), &["How f中ar?"]);

    std::fs::remove_file(town.stage("type")).unwrap();
    let attached = attach_and_type(&town, "");
    wait_until("it is shown", || attached.stdout().contains("* shell: false"));
    town.allow("go");
    wait_until("its end is shown", || attached.stdout().contains("we-a#1 is failed"));
    town.allow("type");
    assert_says(&attached.wait().ok().stdout, &["failed: We’re"]);
    town.assert_quiet();
}
