//! The work queue over HTTP.

use std::time::Instant;

use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::serving::{Served, assert_problem, descriptions, field, text};
use crate::support::{Steps as _, nowhere};

#[test]
fn a_dispatcher_and_an_agent_work_as_in_the_seed() {
    let server = Served::new();
    let project = server
        .post("/projects", &json!({"name": "Shopping List API", "external_ref": "todoist:123"}));
    let project = project.is(201);
    let project_id = text(&project.json()["id"]);
    assert_eq!(project.header("location"), Some(format!("/projects/{project_id}").as_str()));

    // The dispatcher submits; the item is queued, also with an agent.
    let item = server
        .post(
            "/work",
            &json!({
                "project_id": project_id, "type": "code_review", "description": "Review PR #3 in shopping-list-api",
                "payload": {"pr": 3, "repo": "shopping-list-api"}, "priority": 2, "assigned_agent": "steve-w",
            }),
        )
        .is(201)
        .json();
    assert_eq!(item["status"], "queued");
    assert_eq!(item["payload"], json!({"pr": 3, "repo": "shopping-list-api"}));
    assert_eq!((&item["priority"], &item["created_by"]), (&json!(2), &json!("api")));
    let path = format!("/work/{}", text(&item["id"]));
    assert_eq!(
        server.patch(&path, &json!({"status": "dispatched"})).is(200).json()["status"],
        "dispatched"
    );

    // The agent polls, begins, and reports.
    let queue = server.get("/work?agent=steve-w&status=dispatched").is(200).json();
    assert_eq!(queue[0]["id"], item["id"]);
    server.patch(&path, &json!({"status": "in_progress"})).is(200);
    let done = json!({"status": "completed", "outcome": "success", "notes": "Reviewed and approved, merged to main"});
    let done = server.patch(&path, &done).is(200).json();
    assert_eq!((&done["status"], &done["outcome"]), (&json!("completed"), &json!("success")));
    assert!(done["completed_at"].is_string());

    let found = server.get(&path).is(200).json();
    let log = &found["dispatch_log"];
    assert_eq!(log.as_array().unwrap().len(), 1);
    assert_eq!((&log[0]["agent"], &log[0]["outcome"]), (&json!("steve-w"), &json!("success")));
    assert_eq!(log[0]["work_item_id"], item["id"]);
    assert!(log[0]["dispatched_at"].is_string() && log[0]["completed_at"].is_string());
    let since = text(&item["created_at"]);
    let news = server.get(&format!("/work?status=completed&since={since}")).is(200).json();
    assert_eq!(news[0]["id"], item["id"]);
    // It is a bead like any other.
    assert_eq!(server.town.show(&text(&item["bead"]))["status"], "closed");
    server.stop();
}

#[test]
fn a_server_needs_no_town_and_keeps_its_work_in_the_database_it_is_told() {
    let place = nowhere();
    let start = |place: Sandbox| {
        let running = place
            .start_gt(&["serve", "--json", "--bind", "127.0.0.1:0"])
            .env("DATABASE_URL", "data/work_queue.db")
            .start();
        Served::once_it_listens(place, running)
    };
    let server = start(place);
    let id = server.submit("Water the plants");
    let place = server.stop();

    let server = start(place);
    assert_eq!(
        server.get(&format!("/work/{id}")).is(200).json()["description"],
        "Water the plants"
    );
    let health = server.get("/health").is(200).json();
    assert_eq!(health["status"], "ok");
    server.stop();

    // Commands that look after its work need no town either.
    let place = nowhere();
    let noted = place.root().join("noted");
    let notify = place.write_script("notify", &format!("cat >> '{}'", noted.display()));
    let server = start(place);
    let run = |program: &str, arguments: &[&str]| {
        let path = server.town.gt_path().with_file_name(program);
        server.town.command(path).env("DATABASE_URL", "data/work_queue.db").args(arguments).run()
    };
    run("gt", &["config", "set", "notify.command", &notify.display().to_string()]).ok();
    run("gt", &["config", "set", "work.stale_after", "1s"]).ok();
    assert_eq!(run("gt", &["config", "get", "work.stale_after"]).ok().line(), "1s");
    let silent = server.submit("Say nothing");
    server.begin(&silent, "ann");
    wait_until("people are told that ann says nothing", || {
        server.post("/work/stale-check", &json!({})).is(200);
        std::fs::read_to_string(&noted).is_ok_and(|told| told.contains("ann"))
    });
    let path = format!("/work/{}", server.submit("Water the plants"));
    let bead = text(&server.get(&path).is(200).json()["bead"]);
    let end = |status: &str, outcome: &str| {
        server.patch(&path, &json!({"status": "dispatched", "assigned_agent": "bob"})).is(200);
        server.patch(&path, &json!({"status": "in_progress"})).is(200);
        server.patch(&path, &json!({"status": status, "outcome": outcome})).is(200);
    };
    end("completed", "success");
    run("bd", &["reopen", &bead]).ok();
    assert_eq!(server.get(&path).is(200).json()["status"], "queued");
    end("failed", "failed");
    // It was never scheduled, so that opening it is all there is to do.
    let told = run("gt", &["scheduler", "retry", &bead]).ok();
    assert_eq!(told.line(), format!("✓ {bead} is open again, for agents that pull it"));
    assert_eq!(told.stderr, "");
    assert_eq!(server.get(&path).is(200).json()["status"], "queued");
    let told = run("gt", &["scheduler", "retry", &bead]).fails(1).stderr;
    assert!(told.contains("it is open, and waits for an agent that pulls it"), "{told}");
    // A command that needs a town says how to make one.
    let refused = run("gt", &["rig", "list"]).fails(1);
    assert!(refused.stderr.contains("gt install <dir>"), "{}", refused.stderr);
    server.stop();

    // Without either, the way out is said.
    let ran = nowhere().gt(["serve"]).fails(1);
    assert!(ran.stderr.contains("no town found"), "{}", ran.stderr);
}

#[test]
fn projects_are_made_listed_read_and_renamed() {
    let server = Served::new();
    let made =
        |name: &str| text(&server.post("/projects", &json!({"name": name})).is(201).json()["id"]);
    let (first, second) = (made("Board"), made("Board"));
    assert_ne!(first, second);
    let path = format!("/projects/{first}");
    let renamed =
        server.patch(&path, &json!({"name": "Café ☕", "external_ref": "gh:x"})).is(200).json();
    assert_eq!((&renamed["name"], &renamed["external_ref"]), (&json!("Café ☕"), &json!("gh:x")));
    let renamed = server.patch(&path, &json!({"external_ref": null})).is(200).json();
    assert_eq!(renamed["external_ref"], Value::Null);
    assert_eq!(server.get(&path).is(200).json(), renamed);
    let names: Vec<String> = server
        .get("/projects")
        .is(200)
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["name"]))
        .collect();
    assert!(
        names.contains(&"Café ☕".to_owned()) && names.contains(&"Board".to_owned()),
        "{names:?}"
    );

    assert_eq!(
        field(&assert_problem(&server.post("/projects", &json!({})), 422, "invalid")),
        "name"
    );
    let wrong = server.post("/projects", &json!({"name": "x", "colour": "red"}));
    assert_eq!(field(&assert_problem(&wrong, 422, "invalid")), "colour");
    assert_problem(&server.get("/projects/00000000-0000-7000-8000-000000000000"), 404, "not-found");
    assert_problem(&server.get("/projects/%20"), 400, "malformed");
    assert_problem(&server.patch("/projects/absent", &json!({"name": "x"})), 404, "not-found");
    server.stop();
}

#[test]
fn lists_are_filtered_sorted_and_paged() {
    let server = Served::new();
    let project = text(&server.post("/projects", &json!({"name": "P"})).is(201).json()["id"]);
    let mut items = Vec::new();
    for (at, priority) in [3, 1, 5, 1, 2].into_iter().enumerate() {
        items.push(json!({
            "type": if at % 2 == 0 { "even" } else { "odd" }, "description": format!("number {at}"), "priority": priority,
            "assigned_agent": if at < 2 { "ann" } else { "bob" }, "created_by": format!("maker{at}"),
            "project_id": if at == 4 { json!(project) } else { Value::Null },
        }));
    }
    for item in &items {
        server.post("/work", item).is(201);
    }

    for (query, expected) in [
        ("", vec![1, 3, 4, 0, 2]),
        ("?status=queued", vec![1, 3, 4, 0, 2]),
        ("?status=queued,blocked&agent=ann", vec![1, 0]),
        ("?type=even", vec![4, 0, 2]),
        ("?created_by=maker3", vec![3]),
        ("?q=number%202", vec![2]),
        ("?executor=pull", vec![1, 3, 4, 0, 2]),
        ("?executor=tmux", vec![]),
        ("?status=failed", vec![]),
        ("?since=2001-01-01T00:00:00Z", vec![0, 1, 2, 3, 4]),
        ("?since=2101-01-01T00:00:00Z", vec![]),
    ] {
        let found = descriptions(&server.get(&format!("/work{query}")).is(200).json());
        let expected: Vec<String> = expected.iter().map(|at| format!("number {at}")).collect();
        assert_eq!(found, expected, "{query}");
    }
    let of_project = server.get(&format!("/work?project_id={project}")).is(200).json();
    assert_eq!(descriptions(&of_project), ["number 4"]);

    // Pages follow each other, and together they are the list.
    let mut path = "/work?status=queued&limit=2".to_owned();
    let mut found = Vec::new();
    let mut pages = 0;
    loop {
        let page = server.get(&path).is(200);
        found.extend(descriptions(&page.json()));
        pages += 1;
        let Some(link) = page.header("link") else { break };
        path = link.split(['<', '>']).nth(1).unwrap().to_owned();
        assert!(link.ends_with("rel=\"next\""));
    }
    assert_eq!(
        (pages, found),
        (3, ["1", "3", "4", "0", "2"].map(|at| format!("number {at}")).to_vec())
    );

    for (query, name) in [
        ("?status=asleep", "status"),
        ("?since=yesterday-ish", "since"),
        ("?executor=magic", "executor"),
        ("?limit=0", "limit"),
        ("?limit=x", "limit"),
        ("?cursor=abc", "cursor"),
        ("?colour=red", "colour"),
        ("?agent=a&agent=b", "agent"),
        ("?project_id=%20", "project_id"),
    ] {
        let problem = assert_problem(&server.get(&format!("/work{query}")), 400, "malformed");
        assert_eq!(field(&problem), name, "{query}");
    }
    server.stop();
}

#[test]
fn a_list_without_a_limit_is_all_of_it() {
    let server = Served::new();
    let many: Vec<Value> =
        (0..700).map(|at| json!({"type": "task", "description": format!("item {at}")})).collect();
    server.post("/work", &json!(many)).is(201);
    let all = server.get("/work").is(200);
    assert_eq!(all.json().as_array().unwrap().len(), 700);
    // Those who can have it smaller get it smaller.
    let packed = server.ask("GET", "/work", &[("accept-encoding", "gzip")], "").is(200);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() * 4 < all.body.len());
    let too_many: Vec<&Value> = many.iter().cycle().take(1001).collect();
    assert_problem(&server.post("/work", &json!(too_many)), 422, "invalid");
    server.stop();
}

#[test]
fn a_batch_of_items_is_submitted_as_a_whole_or_not_at_all() {
    let server = Served::new();
    let first = server.submit("Dig the hole");
    let wrong = json!([
        {"type": "task", "description": "Plant the tree", "depends_on": [first]},
        {"type": "epic", "description": "A garden", "priority": 9, "colour": "green"},
    ]);
    let problem = assert_problem(&server.post("/work", &wrong), 422, "invalid");
    let named: Vec<&str> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    assert!(named.contains(&"1.priority") && named.contains(&"1.colour"), "{named:?}");
    // Also what only the store or a rule about texts can tell.
    for (wrong, named) in [
        (
            json!([{"type": "task", "description": "Plant"}, {"type": "task", "description": " "}]),
            "1.description",
        ),
        (
            json!([{"type": "task", "description": "Plant", "depends_on": ["wq-none"]}]),
            "0.depends_on",
        ),
    ] {
        let problem = assert_problem(&server.post("/work", &wrong), 422, "invalid");
        assert_eq!(field(&problem), named, "{problem}");
    }
    assert_eq!(server.get("/work").json().as_array().unwrap().len(), 1);

    // An item cannot begin before the items it depends on are done.
    let tree = server
        .post("/work", &json!({"type": "task", "description": "Plant", "depends_on": [first]}));
    let tree = text(&tree.is(201).json()["id"]);
    let path = format!("/work/{tree}");
    assert_eq!(server.get(&path).json()["depends_on"], json!([first]));
    let early = server.patch(&path, &json!({"status": "dispatched", "assigned_agent": "ann"}));
    assert_problem(&early, 409, "blocked-by");
    let why = server.get(&format!("{path}/why")).is(200).json();
    assert!(!why["reasons"].as_array().unwrap().is_empty(), "{why}");
    server.begin(&first, "bob");
    server
        .patch(&format!("/work/{first}"), &json!({"status": "completed", "outcome": "success"}))
        .is(200);
    server.patch(&path, &json!({"status": "dispatched", "assigned_agent": "ann"})).is(200);

    let missing = json!({"type": "task", "description": "x", "project_id": "00000000-0000-7000-8000-000000000000"});
    assert_eq!(
        field(&assert_problem(&server.post("/work", &missing), 422, "invalid")),
        "project_id"
    );
    server.stop();
}

#[test]
fn a_refused_change_names_the_allowed_ones() {
    let server = Served::new();
    let id = server.submit("One");
    let path = format!("/work/{id}");
    let problem =
        assert_problem(&server.patch(&path, &json!({"status": "in_progress"})), 409, "not-allowed");
    assert_eq!(problem["allowed"], json!(["dispatched", "cancelled"]));
    // An agent has one thing in progress, and the answer names it.
    server.begin(&id, "ann");
    let other = server.submit("Two");
    let second = format!("/work/{other}");
    server.patch(&second, &json!({"status": "dispatched", "assigned_agent": "ann"})).is(200);
    let busy = assert_problem(
        &server.patch(&second, &json!({"status": "in_progress"})),
        409,
        "agent-busy",
    );
    assert_eq!(busy["item"], json!(id));
    // An item in progress cannot be cancelled; one that has not begun can.
    assert_problem(&server.ask("DELETE", &path, &[], ""), 409, "not-allowed");
    let gone = server.ask("DELETE", &second, &[], "").is(204);
    assert!(gone.body.is_empty());
    assert_eq!(server.get(&second).json()["status"], "cancelled");

    for (body, name) in [
        (json!({"status": "asleep"}), "status"),
        (json!({"priority": 0}), "priority"),
        (json!({"priority": "high"}), "priority"),
        (json!({"state": "done"}), "state"),
        (json!({"status": "completed"}), "outcome"),
        (json!({"run_id": "?"}), "run_id"),
        (json!([]), "body"),
    ] {
        assert_eq!(
            field(&assert_problem(&server.patch(&path, &body), 422, "invalid")),
            name,
            "{body}"
        );
    }
    assert_problem(&server.get("/work/00000000-0000-7000-8000-000000000000"), 404, "not-found");
    assert_problem(&server.get("/work/no%20id"), 400, "malformed");
    assert_problem(&server.ask("PUT", &path, &[], ""), 405, "method-not-allowed");
    assert_problem(&server.get("/nothing/here"), 404, "not-found");
    let json_type = [("content-type", "application/json")];
    assert_problem(&server.ask("POST", "/work", &json_type, "{\"type\":"), 400, "malformed");
    assert_problem(&server.ask("POST", "/work", &json_type, ""), 400, "malformed");
    assert_problem(
        &server.ask("POST", "/work", &[("content-type", "text/plain")], "{}"),
        415,
        "not-json",
    );
    server.stop();
}

#[test]
fn a_version_that_is_not_current_is_refused() {
    let server = Served::new();
    let path = format!("/work/{}", server.submit("One"));
    let read = server.get(&path).is(200);
    let etag = read.header("etag").unwrap().to_owned();
    let known = server.ask("GET", &path, &[("if-none-match", &etag)], "").is(304);
    assert!(known.body.is_empty());

    let with = |etag: &str, body: &Value| {
        let headers = [("content-type", "application/json"), ("if-match", etag)];
        server.ask("PATCH", &path, &headers, &body.to_string())
    };
    with(&etag, &json!({"notes": "mine"})).is(200);
    let late = assert_problem(&with(&etag, &json!({"notes": "yours"})), 409, "stale-version");
    assert!(late["version"].is_string());
    assert_eq!(server.get(&path).json()["notes"], "mine");
    with("*", &json!({"notes": "anyway"})).is(200);
    assert_eq!(
        field(&assert_problem(&with("oops", &json!({"notes": "x"})), 400, "malformed")),
        "If-Match"
    );
    server.stop();
}

#[test]
fn a_request_with_a_key_is_done_once() {
    let server = Served::new();
    let submit = |key: &str| {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        server.ask("POST", "/work", &headers, r#"{"type": "task", "description": "Once"}"#)
    };
    let first = submit("deploy-17").is(201);
    let again = submit("deploy-17").is(201);
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert_eq!(
        (first.header("idempotent-replayed"), again.header("idempotent-replayed")),
        (None, Some("true"))
    );
    assert_ne!(submit("deploy-18").is(201).json()["id"], first.json()["id"]);
    let headers = [("content-type", "application/json"), ("idempotency-key", "deploy-17")];
    let other =
        server.ask("POST", "/work", &headers, r#"{"type": "task", "description": "Another"}"#);
    assert_eq!(field(&assert_problem(&other, 422, "invalid")), "Idempotency-Key");
    assert_eq!(server.get("/work").json().as_array().unwrap().len(), 2);
    assert_problem(&submit(&"x".repeat(300)), 400, "malformed");
    server.stop();
}

#[test]
fn an_agent_pulls_its_work_and_speaks_for_it() {
    let server = Served::new();
    let next = |body: Value| server.post("/work/next", &body);
    let nothing = next(json!({"agent": "ann"})).is(200).json();
    assert_eq!((&nothing["item"], &nothing["code"]), (&Value::Null, &json!("empty")));
    assert!(nothing["reason"].is_string());

    let urgent = json!({"type": "deploy", "description": "Urgent", "priority": 1});
    server.submit("Sometime");
    let urgent = text(&server.post("/work", &urgent).is(201).json()["id"]);
    let taken = next(json!({"agent": "ann", "lease_s": 60})).is(200).json();
    assert_eq!(
        (&taken["item"]["id"], &taken["item"]["status"]),
        (&json!(urgent), &json!("in_progress"))
    );
    assert_problem(&next(json!({"agent": "ann"})), 409, "agent-busy");
    let none = next(json!({"agent": "bob", "types": ["deploy"]})).is(200).json();
    assert_eq!(none["item"], Value::Null);

    let beat = |run: &Value| {
        server.post(&format!("/work/{urgent}/heartbeat"), &json!({"run_id": run, "lease_s": 120}))
    };
    let until = beat(&taken["run_id"]).is(200).json();
    assert!(text(&until["lease_expires_at"]) > text(&taken["lease_expires_at"]));
    let log = server.get(&format!("/work/{urgent}")).json()["dispatch_log"].clone();
    beat(&log[0]["run"]).is(200);
    assert_problem(&beat(&json!("wq-zzz#9")), 409, "stale-run");
    let done = json!({"status": "completed", "outcome": "success", "run_id": taken["run_id"]});
    server.patch(&format!("/work/{urgent}"), &done).is(200);
    assert_problem(&beat(&taken["run_id"]), 409, "stale-run");

    for (body, name) in [
        (json!({}), "agent"),
        (json!({"agent": "x", "wait_s": 61}), "wait_s"),
        (json!({"agent": "x", "lease_s": 5}), "lease_s"),
        (json!({"agent": "x", "types": "deploy"}), "types"),
        (json!({"agent": "x", "patience": 5}), "patience"),
    ] {
        assert_eq!(field(&assert_problem(&next(body.clone()), 422, "invalid")), name, "{body}");
    }
    server.stop();
}

#[test]
fn an_agent_that_waits_is_woken_by_work_from_anywhere() {
    let server = Served::new();
    let waits = |agent: &'static str, wait_s: u32| {
        let (address, body) =
            (server.address.clone(), json!({"agent": agent, "wait_s": wait_s}).to_string());
        std::thread::spawn(move || {
            let headers = [("content-type", "application/json")];
            gt_testkit::http::ask(&address, "POST", "/work/next", &headers, &body).is(200).json()
        })
    };
    let is_waiting = |count: u32| {
        gt_testkit::wait_until("an agent waits", || {
            let metrics = server.get("/metrics").is(200).text();
            metrics.lines().any(|line| line == format!("gt_http_waiting_for_work {count}"))
        });
    };
    // From another client of the same server.
    let (began, waiting) = (Instant::now(), waits("ann", 60));
    is_waiting(1);
    let id = server.submit("For ann");
    assert_eq!(waiting.join().unwrap()["item"]["id"], json!(id));
    // From a command beside it.
    let waiting = waits("bob", 60);
    is_waiting(1);
    server.town.gt(["bd", "create", "For bob", "--rig", "inbox"]).ok();
    assert_eq!(waiting.join().unwrap()["item"]["description"], "For bob");
    assert!(began.elapsed().as_secs() < 55, "no agent waited until its timeout");
    // And a server that stops answers all waiting requests.
    let waiting = waits("cid", 60);
    is_waiting(1);
    server.stop();
    assert_eq!(waiting.join().unwrap()["item"], Value::Null);
}
