//! The skill for coding agents: every command of it is run as it stands there.

use gt_testkit::FinishedProgram;
use serde_json::Value;

use crate::agents::Stage as _;
use crate::serving::{Served, text};
use crate::support::town;

const SKILL: &str = include_str!("../../../../integrations/work-queue/SKILL.md");

/// The blocks of commands under a heading, in order.
#[track_caller]
fn blocks(heading: &str) -> Vec<&'static str> {
    let begin = SKILL.find(&format!("\n{heading}")).unwrap_or_else(|| panic!("no {heading}"));
    let section = &SKILL[begin + 1..];
    // Up to the next heading that is not below this one.
    let mut marks = heading.split(' ').next().unwrap();
    let mut end = section.len();
    while !marks.is_empty() {
        end = end.min(section.find(&format!("\n{marks} ")).unwrap_or(end));
        marks = &marks[1..];
    }
    section[..end].split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// An agent with a shell, and nothing else.
struct Agent<'a> {
    server: &'a Served,
    token: &'a str,
    id: String,
    run: String,
}

impl Agent<'_> {
    fn run(&self, commands: &str) -> FinishedProgram {
        let shell = self.server.town.command("/bin/sh").args(["-euc", commands]);
        let shell = shell.env("WORK_QUEUE_URL", format!("http://{}", self.server.address));
        let shell = shell.env("WORK_QUEUE_TOKEN", self.token).env("AGENT", "steve-w");
        shell.env("ID", &self.id).env("RUN", &self.run).run()
    }

    /// The answer to the last command of a block.
    #[track_caller]
    fn does(&self, commands: &str) -> Value {
        self.run(commands).ok().json()
    }

    fn item(&self) -> Value {
        self.server.get(&format!("/work/{}", self.id)).is(200).json()
    }
}

#[track_caller]
fn only<'a>(blocks: &[&'a str]) -> &'a str {
    let [block] = blocks else { panic!("not one block but {blocks:?}") };
    block
}

#[test]
fn a_dispatcher_with_nothing_but_curl_submits_dispatches_and_follows_work() {
    let server = Served::new();
    let mut agent = Agent { server: &server, token: "", id: String::new(), run: String::new() };
    let add = blocks("### work_add");

    let item = agent.does(only(&add));
    assert_eq!(item["status"], "queued");
    agent.id = text(&item["id"]);
    assert_eq!(agent.does(only(&add))["id"], item["id"], "a repeated request is the same item");

    let dispatch = blocks("### work_dispatch");
    assert_eq!(agent.does(dispatch[0])["status"], "dispatched");
    assert_eq!(agent.does(dispatch[1])["status"], "in_progress");
    let working = agent.does(only(&blocks("### work_stale_check")));
    assert_eq!(working[0]["id"], item["id"]);

    let update = blocks("### work_update");
    assert_eq!(agent.does(update[0])["status"], "blocked");
    let lines: Vec<&str> = only(&blocks("### work_list")).split_inclusive("\ncurl").collect();
    assert_eq!(lines.len(), 4, "four questions: {lines:?}");
    agent.run(only(&blocks("### work_list"))).ok();
    agent.run(update[1]).ok();
    assert_eq!(agent.item()["status"], "cancelled");

    // A refused request ends with an error and the reason.
    let refused = agent.run(update[0]);
    assert_eq!(refused.code, 22);
    assert_eq!(refused.json()["status"], 409);
    server.stop();
}

#[test]
fn a_worker_with_nothing_but_curl_takes_work_keeps_it_and_reports() {
    let server = Served::new();
    let mut agent = Agent { server: &server, token: "", id: String::new(), run: String::new() };
    let submitted = server.submit("Water the plants");
    let [next, heartbeat, report, poll, begin] = blocks("## For workers")[..] else {
        panic!("the loop has three steps, and the other one two")
    };

    let taken = agent.does(next);
    (agent.id, agent.run) = (text(&taken["item"]["id"]), text(&taken["run_id"]));
    assert_eq!(agent.id, submitted);
    assert!(agent.does(heartbeat)["lease_expires_at"].is_string());
    assert_eq!(agent.does(report)["status"], "completed");

    // The other way: a dispatcher decides, and the worker looks for what it was given.
    agent.id = server.submit("Water the garden");
    agent.does(blocks("### work_dispatch")[0]);
    assert_eq!(agent.does(poll)[0]["id"], agent.id.as_str());
    assert_eq!(agent.does(begin)["status"], "in_progress");
    server.stop();
}

#[test]
fn a_token_is_sent_when_there_is_one() {
    let town = town();
    let made = town.start_gt(&["token", "create", "steve-w", "--scope", "submit,work", "--json"]);
    let secret = text(&made.run().ok().json()["token"]);
    let server = Served::of(town, &["--require-token"]);
    let mut agent = Agent { server: &server, token: "", id: String::new(), run: String::new() };
    let add = blocks("### work_add");

    let refused = agent.run(only(&add));
    assert_eq!((refused.code, &refused.json()["status"]), (22, &401.into()));
    agent.token = &secret;
    assert_eq!(agent.does(only(&add))["created_by"], "steve-w");
    server.stop();
}

#[test]
fn the_skill_says_when_to_use_it() {
    let (head, _) = SKILL.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let head: Value = serde_yaml_ng::from_str(head).unwrap();
    assert_eq!(head["name"], "work-queue");
    let description = text(&head["description"]);
    assert!((50..1024).contains(&description.len()), "{}", description.len());
}
