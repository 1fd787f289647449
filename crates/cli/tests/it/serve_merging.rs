//! Merge requests, reviews and the inbox over HTTP: who may, who has decided, and what becomes of it.

use gt_testkit::Sandbox;
use gt_testkit::http::HttpAnswer;
use serde_json::{Value, json};

use crate::projects::{Origin as _, STAYS, Worker, town_with_project};
use crate::serving::Served;
use crate::support::{Steps as _, assert_says, texts};

/// A town with finished work of `we-tea` that waits for a review.
fn town_with_review() -> Sandbox {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-tea", &["--review-only"]);
    worker.commit("tea", "tea\n", "Add tea");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    town
}

/// A client with a token of these scopes.
struct Client<'s> {
    served: &'s Served,
    token: String,
}

impl<'s> Client<'s> {
    fn new(served: &'s Served, name: &str, scopes: &str) -> Self {
        let made = served.town.gt_json(&["token", "create", name, "--scope", scopes]);
        Self { served, token: format!("Bearer {}", made["token"].as_str().unwrap()) }
    }

    #[track_caller]
    fn get(&self, path: &str) -> HttpAnswer {
        self.served.ask("GET", path, &[("authorization", &self.token)], "")
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> HttpAnswer {
        let headers =
            [("authorization", self.token.as_str()), ("content-type", "application/json")];
        self.served.ask("POST", path, &headers, &body.to_string())
    }
}

#[test]
fn an_approval_over_http_lands_the_work_in_the_name_of_the_token() {
    let served = Served::of(town_with_review(), &[]);
    let ann = Client::new(&served, "ann", "review");

    let inbox = ann.get("/api/v1/inbox").is(200).json();
    assert_eq!(inbox, served.town.gt_json(&["inbox"]));
    assert_eq!(texts(&inbox, "key"), ["review:we-tea@1"]);
    assert_eq!(texts(&ann.get("/api/v1/reviews").is(200).json(), "id"), ["we-tea@1"]);
    let diff = ann.get("/api/v1/merge-requests/we-tea@1/diff").is(200).json();
    assert_says(diff["diff"].as_str().unwrap(), &["+tea"]);
    assert_eq!((&diff["files"], &diff["truncated"]), (&json!(1), &json!(false)));
    let comment = json!({"message": "Which leaves?", "file": "tea", "line": 1});
    let made = ann.post("/api/v1/reviews/we-tea@1/comment", &comment).is(201).json();
    assert_eq!((&made["actor"], &made["line"]), (&json!("ann"), &json!(1)));
    let approved = ann.post("/api/v1/reviews/we-tea@1/approve", &json!({})).is(200).json();
    assert_eq!(approved["state"], "queued");
    assert_says(approved["daemon_absence"]["text"].as_str().unwrap(), &["gt up", "gt mq run"]);
    ann.post("/api/v1/reviews/we-tea@1/approve", &json!({})).is(409);

    served.town.gt(["mq", "run"]).ok();

    assert_eq!(served.town.landed("main"), ["First commit", "Add tea"]);
    let landed = served.town.origin_git(&["rev-parse", "main"]).ok().line().to_owned();
    let story = ann.get("/api/v1/merge-requests/we-tea@1").is(200).json();
    assert_eq!((&story["state"], &story["landed"]), (&json!("landed"), &json!(landed)));
    assert_eq!(texts(&story["reviews"], "decision"), ["comment", "approved"]);
    assert_eq!(texts(&story["reviews"], "actor"), ["ann", "ann"]);
    // Everything that shows the bead names the commit.
    assert_eq!(served.town.show("we-tea")["landed_commit"], json!(landed));
    assert_eq!(served.town.gt_json(&["why", "we-tea"])["landed_commit"], json!(landed));
    let shown: [&[&str]; 3] = [&["bd", "show", "we-tea"], &["why", "we-tea"], &["feed"]];
    for arguments in shown {
        assert_says(&served.town.gt(arguments).ok().stdout, &[&landed[..10]]);
    }
    assert_says(&served.town.gt(["bd", "show", "we-tea"]).ok().stdout, &["landed on main as"]);
    served.stop();
}

#[test]
fn every_route_of_a_town_needs_a_token_with_its_scope() {
    let served = Served::of(town_with_review(), &[]);
    let viewer = Client::new(&served, "viewer", "view");
    let operator = Client::new(&served, "operator", "operate");
    let reviewer = Client::new(&served, "reviewer", "review");
    let old = Client::new(&served, "old", "read,submit,work");
    let admin = Client::new(&served, "admin", "admin");
    let views = [
        "/api/v1/inbox",
        "/api/v1/reviews",
        "/api/v1/queues",
        "/api/v1/merge-requests",
        "/api/v1/merge-requests/we-tea@1",
        "/api/v1/merge-requests/we-tea@1/diff",
        "/api/v1/runs/we-tea/transcript",
    ];
    for path in views {
        // Also for a user of this machine, who needs none for work items.
        assert_says(&served.get(path).is(401).json()["detail"].to_string(), &["gt token create"]);
        old.get(path).is(403);
        for client in [&viewer, &operator, &reviewer, &admin] {
            client.get(path).is(200);
        }
    }
    served.get("/work").is(200);
    viewer.get("/work").is(403);
    let retry = "/api/v1/merge-requests/we-tea@1/retry";
    for client in [&viewer, &reviewer, &old] {
        client.post(retry, &json!({})).is(403);
        client.post("/api/v1/queues/web/pause", &json!({})).is(403);
    }
    for client in [&viewer, &operator, &old] {
        client.post("/api/v1/reviews/we-tea@1/approve", &json!({})).is(403);
    }
    let paused = operator.post("/api/v1/queues/web/pause", &json!({})).is(200).json();
    assert_eq!((&paused["paused"], &paused["target"]), (&json!(true), &json!("main")));
    assert_eq!(viewer.get("/api/v1/queues").is(200).json()[0]["paused_by"], "operator");
    operator.post("/api/v1/queues/web/resume", &json!({})).is(200);
    reviewer.post("/api/v1/reviews/we-tea@1/reject", &json!({})).is(422);
    let cancelled = admin.post("/api/v1/merge-requests/we-tea@1/cancel", &json!({})).is(200).json();
    assert_eq!(cancelled["state"], "cancelled");
    admin.get("/api/v1/merge-requests/we-tea@7").is(404);
    admin.get("/api/v1/merge-requests/nonsense").is(400);
    served.stop();
}

#[test]
fn merge_requests_are_listed_by_rig_state_and_page() {
    let town = town_with_project(STAYS);
    for bead in ["we-a", "we-b", "we-c"] {
        let worker = Worker::begin(&town, bead, &["--review-only"]);
        worker.commit(bead, "x\n", "Work");
        worker.gt(&["done"]).ok();
        worker.wait_until_gone();
    }
    town.gt(["mq", "cancel", "we-a"]).ok();
    let served = Served::of(town, &[]);
    let viewer = Client::new(&served, "viewer", "view");
    let list = |query: &str| viewer.get(&format!("/api/v1/merge-requests{query}"));
    let ids = |query: &str| texts(&list(query).is(200).json(), "id");

    assert_eq!(ids(""), ["we-c@1", "we-b@1", "we-a@1"]);
    assert_eq!(ids("?state=open&rig=web"), ["we-c@1", "we-b@1"]);
    assert_eq!(ids("?state=cancelled"), ["we-a@1"]);
    let first = list("?limit=2").is(200);
    assert_eq!(texts(&first.json(), "id"), ["we-c@1", "we-b@1"]);
    let link = first.header("link").unwrap().to_owned();
    let next = link.trim_start_matches('<').split('>').next().unwrap().to_owned();
    assert_eq!(texts(&viewer.get(&next).is(200).json(), "id"), ["we-a@1"]);
    list("?state=late").is(400);
    list("?limit=0").is(400);
    list("?colour=red").is(400);
    list("?rig=none").is(404);
    served.stop();
}

#[test]
fn an_open_server_and_one_without_a_town_have_no_routes_of_a_town() {
    let served = Served::of(town_with_project(STAYS), &["--insecure"]);
    let admin = Client::new(&served, "admin", "admin");
    admin.get("/api/v1/inbox").is(404);
    let paths = served.get("/openapi.json").is(200).json()["paths"].clone();
    assert!(paths["/work"].is_object() && paths["/api/v1/inbox"].is_null());
    served.stop();
}
