//! `gt work` against a server: the same output, exit codes and errors as in the town itself.

use gt_testkit::{FinishedProgram, RunningProgram, Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::serving::{Served, text};
use crate::support::{Steps as _, assert_says, json_refusal, nowhere, refusal, texts, town};

/// A client on another machine: no town, only the address of a server.
struct Elsewhere {
    sandbox: Sandbox,
    url: String,
}

impl Elsewhere {
    fn of(server: &Served) -> Self {
        Self { sandbox: nowhere(), url: format!("http://{}", server.address) }
    }

    #[track_caller]
    fn gt(&self, arguments: &[&str]) -> FinishedProgram {
        self.sandbox.start_gt(arguments).env("GT_WORK_URL", &self.url).run()
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        self.gt(&[arguments, &["--json"]].concat()).ok().json()
    }

    fn start(&self, arguments: &[&str]) -> RunningProgram {
        self.sandbox.start_gt(arguments).env("GT_WORK_URL", &self.url).start()
    }
}

#[test]
fn dispatchers_and_agents_can_work_over_the_network() {
    // The methods of the skill for agents.
    let server = Served::new();
    let away = Elsewhere::of(&server);
    let flags = ["--priority", "2", "--payload", r#"{"pr":3}"#, "--notes", "soon"];
    let item = away.json(&[&["work", "add", "code_review", "Review PR #3"], &flags[..]].concat());
    assert_eq!((&item["status"], &item["payload"]), (&json!("queued"), &json!({"pr": 3})));
    assert_eq!(item["created_by"], "Test Person", "a client without a token names itself");
    let bead = text(&item["bead"]);

    away.gt(&["work", "dispatch", &bead, "steve-w"]).ok();
    let shown = away.json(&["work", "show", &bead]);
    assert_eq!(
        (&shown["status"], &shown["assigned_agent"]),
        (&json!("in_progress"), &json!("steve-w"))
    );
    let run = text(&shown["run_id"]);
    let beat = ["work", "heartbeat", &bead, "--run-id", &run, "--lease", "10m"];
    assert!(away.json(&beat)["lease_expires_at"].is_string());
    let done = ["--status", "completed", "--notes", "merged", "--run-id", &run];
    let done = away.json(&[&["work", "update", &bead], &done[..]].concat());
    assert_eq!((&done["status"], &done["outcome"]), (&json!("completed"), &json!("success")));
    assert_eq!(server.town.show(&bead)["status"], "closed");

    let second = text(&away.json(&["work", "add", "task", "Another"])["bead"]);
    assert_says(
        &away.gt(&["work", "next", "--agent", "ann"]).ok().stdout,
        &[&second, "ann's as", "#1"],
    );
    assert_says(&away.gt(&["work", "stale-check"]).ok().stdout, &["Nothing is stale"]);
    let none = away.json(&["work", "next", "--agent", "bob", "--wait", "1s"]);
    assert_eq!((&none["item"], &none["code"]), (&Value::Null, &json!("empty")));
}

#[test]
fn commands_have_the_same_output_with_a_server_as_in_a_town() {
    let server = Served::new();
    let away = Elsewhere::of(&server);
    server.town.gt(["rig", "add", "web", "--executor", "pull"]).ok();
    let first =
        server.town.gt_json(&["work", "add", "task", "First\nline two", "--project", "web"]);
    let first = text(&first["bead"]);
    let waits = ["work", "add", "task", "Second", "--depends-on", &first];
    let waits = text(&server.town.gt_json(&waits)["bead"]);
    server.town.gt(["work", "dispatch", &first, "ann"]).ok();
    // Queries and refusals are the same in the town and over the network.
    for arguments in [
        &["work", "list", "--json"][..],
        &["work", "list", "--status", "queued,in_progress", "--limit", "1", "--json"],
        &["work", "list", "--project", "web", "--type", "task", "--search", "FIRST", "--json"],
        &["work", "list", "--executor", "pull"],
        &["work", "list", "--agent", "absent"],
        &["work", "list", "--project", "nothing"],
        &["work", "list", "--status", "lost"],
        &["work", "list", "--since", "2020-01-01", "--json"],
        &["work", "show", &first, "--json"],
        &["work", "show", &waits],
        &["work", "show", "wq-none"],
        &["work", "show", "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", "--json"],
        &["work", "add", "epic", "x", "--json"],
        &["work", "add", "task", " "],
        &["work", "add", "task", "x", "--project", "nothing"],
        &["work", "add", "task", "x", "--depends-on", "wq-none1"],
        &["work", "dispatch", &waits, "ann"],
        &["work", "dispatch", &first, "bob"],
        &["work", "update", &first, "--status", "queued"],
        &["work", "update", &first, "--status", "completed", "--outcome", "failed"],
        &["work", "update", &first, "--status", "completed", "--run-id", "wq-none#1", "--json"],
        &["work", "update", &first, "--notes", "x", "--if-match", "0000000000000000"],
        &["work", "heartbeat", &first, "--run-id", "wq-none#1"],
        &["work", "next", "--agent", "ann"],
        &["work", "next", "--agent", " "],
        &["work", "next", "--agent", "bob", "--project", "nothing"],
        &["work", "next", "--agent", "bob", "--lease", "1s"],
    ] {
        let here = server.town.gt(arguments);
        let there = away.gt(arguments);
        let outcome = |ran: &FinishedProgram| (ran.code, ran.stdout.clone(), ran.stderr.clone());
        assert_eq!(outcome(&there), outcome(&here), "{arguments:?}");
    }
}

#[test]
fn long_lists_come_page_by_page() {
    let server = Served::new();
    let away = Elsewhere::of(&server);
    let items: Vec<Value> =
        (0..600).map(|n| json!({"type": "task", "description": format!("Item {n}")})).collect();
    server.post("/work", &json!(items)).is(201);
    let all = texts(&away.json(&["work", "list"]), "description");
    assert_eq!(all, texts(&server.town.gt_json(&["work", "list"]), "description"));
    assert_eq!(all.len(), 600);
    let some = away.gt(&["work", "list", "--limit", "550"]).ok();
    assert_eq!(some.stdout.lines().count(), 551);
    let cursor = some.stderr.split("--cursor ").nth(1).unwrap().trim();
    let rest = away.json(&["work", "list", "--limit", "100", "--cursor", cursor]);
    assert_eq!(texts(&rest, "description"), all[550..]);
}

#[test]
fn a_request_with_a_name_can_be_repeated_from_elsewhere() {
    let server = Served::new();
    let away = Elsewhere::of(&server);
    let add = ["work", "add", "task", "Once", "--idempotency-key", "k-1"];
    assert_says(&away.gt(&add).ok().stdout, &["is queued as"]);
    assert_says(&away.gt(&add).ok().stdout, &["was submitted before as"]);
    let other = ["work", "add", "task", "Other", "--idempotency-key", "k-1"];
    assert_says(&refusal(&away.gt(&other)), &["k-1", "another name"]);
}

#[test]
fn a_token_is_shown_and_never_printed() {
    let town = town();
    let create = |name: &str, scope: &str| {
        text(&town.gt_json(&["token", "create", name, "--scope", scope])["token"])
    };
    let (submits, works) = (create("gitea", "submit"), create("steve", "work"));
    let server = Served::of(town, &["--require-token"]);
    let away = Elsewhere::of(&server);
    let add = ["work", "add", "task", "x", "--json"];
    assert_says(&json_refusal(&away.gt(&add)), &["or a token", "gt token create"]);
    let flag = away.gt(&[&add[..], &["--token", &submits]].concat()).ok().json();
    assert_eq!(flag["created_by"], "gitea", "the token says who it is");
    away.sandbox.write("token", format!("{submits}\n"));
    away.gt(&[&add[..], &["--token-file", "token"]].concat()).ok();
    let with = |secret: &str, arguments: &[&str]| {
        let asked = away.sandbox.start_gt(arguments).env("GT_WORK_URL", &away.url);
        asked.env("GT_WORK_TOKEN", secret).run()
    };
    with(&submits, &add).ok();
    let refused = with(&works, &add);
    assert_says(&json_refusal(&refused), &["steve", "needs the scope submit"]);
    let broken = with("gtw_123", &add);
    assert_says(&json_refusal(&broken), &["GT_WORK_TOKEN has no token in it"]);
    let unneeded = server.town.gt(["work", "list", "--token", &submits]);
    assert_says(&refusal(&unneeded), &["say which one with --url"]);
    for ran in [refused, broken, unneeded] {
        for secret in [&submits, &works, &"gtw_123".to_owned()] {
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(secret.as_str()), "{ran}");
        }
    }
}

#[test]
fn a_server_that_is_away_or_none_is_told_apart() {
    let server = Served::new();
    let away = Elsewhere::of(&server);
    let url = away.url.clone();
    let list = |url: &str| away.sandbox.gt(["work", "list", "--url", url]);
    assert_says(&refusal(&list(&format!("{url}/elsewhere"))), &["there is nothing here"]);
    assert_eq!(list("ftp://x").code, 2);
    server.stop();
    assert_says(&refusal(&list(&url)), &["cannot reach", &url]);
    assert_says(
        &refusal(&list("http://no-such-host.invalid/")),
        &["no-such-host.invalid is not known"],
    );
    let named = away.sandbox.start_gt(&["work", "list"]).env("GT_WORK_URL", "nonsense").run();
    assert_says(&refusal(&named), &["GT_WORK_URL cannot be used"]);
}

#[test]
fn a_remote_watch_continues_after_the_connection_broke() {
    let server = Served::new();
    let away = Elsewhere::of(&server);
    let watching = away.start(&["work", "watch", "--type", "task", "--json"]);
    wait_until("it watches", || watching.stderr().contains("watching"));
    let seen = |watching: &RunningProgram| -> Vec<String> {
        let lines = watching.stdout();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .map(|item| format!("{} {}", text(&item["description"]), text(&item["status"])))
            .collect()
    };
    server.submit("One");
    wait_until("the first is seen", || seen(&watching) == ["One queued"]);

    // The server is killed; events of the meantime are not lost.
    let (address, town) = (server.address.clone(), server.town.clone());
    server.running.kill();
    wait_until("it is told", || watching.stderr().contains("waiting for it"));
    town.gt(["work", "add", "task", "Two"]).ok();
    town.gt(["work", "add", "other", "Not wanted"]).ok();
    let again = town.start_gt(&["serve", "--bind", &address, "--json"]).start();
    let server = Served::once_it_listens(town, again);
    server.submit("Three");
    let all = ["One queued", "Two queued", "Three queued"];
    wait_until("everything is seen, once", || seen(&watching) == all);
    let told = watching.stderr().matches("waiting for it").count();
    assert_eq!(told, 1, "{}", watching.stderr());
    watching.kill();
}
