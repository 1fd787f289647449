//! Tokens: whom they are for, and that revoking one ends everything that it opened.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gt_core::work::{Scopes, TokenId};
use gt_scheduling::Consequences;
use gt_server::{Bind, ServerConfig, ServerLimits};
use gt_testkit::http::{self, EventListener, HttpAnswer};
use gt_testkit::wait_until;
use gt_town::{Actor, SystemClock, Town, settings};
use gt_workqueue::tokens::{self, NewToken};
use serde_json::json;

use crate::support::Served;

/// A town and a server of it that wants tokens.
struct Guarded {
    town: Town,
    server: Served,
}

/// A token and what its holder shows.
struct Key {
    id: TokenId,
    bearer: String,
}

impl Guarded {
    fn with(limits: ServerLimits) -> Self {
        let actor = Actor { name: "api".to_owned(), owner: String::new() };
        let town = Town::in_memory(actor, Arc::new(SystemClock), Arc::new(Consequences)).unwrap();
        Self::of(town, limits)
    }

    fn of(town: Town, limits: ServerLimits) -> Self {
        // A server that wants tokens starts only if there is one.
        key(&town, "first", "admin", None);
        let serving = ServerConfig {
            limits,
            require_token: true,
            ..ServerConfig::on(vec![Bind::loopback(0)])
        };
        Self { server: Served::of(town.clone(), serving), town }
    }

    fn key(&self, name: &str, scopes: &str) -> Key {
        key(&self.town, name, scopes, None)
    }

    fn ask(&self, key: &Key, method: &str, path: &str, body: &str) -> HttpAnswer {
        ask(&self.server.address, key, method, path, body)
    }
}

fn key(town: &Town, name: &str, scopes: &str, lasts: Option<Duration>) -> Key {
    let new = NewToken {
        name: name.to_owned(),
        scopes: Scopes::parse(scopes).unwrap(),
        agent: None,
        expires_at: lasts.map(|lasts| town.now().plus(lasts)),
    };
    let (token, secret) = tokens::create(town, new).unwrap();
    Key { id: token.id, bearer: format!("Bearer {}", secret.reveal()) }
}

fn ask(address: &str, key: &Key, method: &str, path: &str, body: &str) -> HttpAnswer {
    let headers = [("authorization", key.bearer.as_str()), ("content-type", "application/json")];
    http::ask(address, method, path, &headers, body)
}

const ITEM: &str = r#"{"type": "task", "description": "x"}"#;

#[test]
fn revoking_a_token_ends_its_streams_its_waiting_requests_and_its_requests() {
    let guarded = Guarded::with(ServerLimits::default());
    let (worker, other) = (guarded.key("ann", "work"), guarded.key("marcus", "submit"));
    let address = guarded.server.address.clone();
    let listen = |key: &Key| {
        EventListener::to(&address, "/events", &[("authorization", key.bearer.as_str())])
    };
    let (mut hers, mut others) = (listen(&worker), listen(&other));
    let waiting = {
        let (address, bearer) = (address.clone(), worker.bearer.clone());
        std::thread::spawn(move || {
            let headers =
                [("authorization", bearer.as_str()), ("content-type", "application/json")];
            let body = r#"{"agent": "ann", "wait_s": 60}"#;
            http::ask(&address, "POST", "/work/next", &headers, body)
        })
    };
    wait_until("ann waits", || {
        let metrics = guarded.ask(&other, "GET", "/metrics", "");
        metrics.text().contains("gt_http_waiting_for_work 1")
    });

    tokens::revoke(&guarded.town, &worker.id).unwrap();

    assert_eq!(guarded.ask(&worker, "GET", "/work", "").status, 401);
    guarded.ask(&other, "POST", "/work", ITEM).is(201);
    let refused = waiting.join().unwrap().is(401).json();
    assert_eq!(refused["code"], "unauthorized");
    // Its own end may be the last that the stream tells, and nothing that came after it.
    let heard: Vec<String> = hers.by_ref().map(|heard| heard.event).collect();
    assert!(heard.iter().all(|event| event == "token_changed"), "{heard:?}");
    assert!(others.any(|heard| heard.event == "created"), "another stream goes on");
}

#[test]
fn an_expired_token_ends_its_stream() {
    let guarded = Guarded::with(ServerLimits::default());
    let short = key(&guarded.town, "ann", "read", Some(Duration::from_secs(1)));
    let address = &guarded.server.address;
    let listener =
        EventListener::to(address, "/events", &[("authorization", short.bearer.as_str())]);
    assert_eq!(listener.count(), 0, "nothing happens, and then it is over");
}

#[test]
fn a_body_that_arrives_after_its_token_is_revoked_does_nothing() {
    let guarded = Guarded::with(ServerLimits::default());
    let submitter = guarded.key("marcus", "submit");
    let mut stream = http::connect(&guarded.server.address).unwrap();
    let head = format!(
        "POST /work HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        submitter.bearer,
        ITEM.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let watcher = guarded.key("watcher", "read");
    wait_until("the server waits for the body", || {
        let metrics = guarded.ask(&watcher, "GET", "/metrics", "");
        metrics.text().contains("gt_http_requests_in_flight 2\n")
    });
    tokens::revoke(&guarded.town, &submitter.id).unwrap();
    stream.write_all(ITEM.as_bytes()).unwrap();
    assert_eq!(http::read_answer(stream).unwrap().status, 401);
    assert_eq!(guarded.ask(&watcher, "GET", "/work", "").is(200).json(), json!([]));
}

#[test]
fn no_request_passes_after_its_token_was_revoked() {
    let guarded = Guarded::with(ServerLimits::default());
    for round in 0..10 {
        let submitter = guarded.key("marcus", "submit");
        let (over, address) = (AtomicBool::new(false), guarded.server.address.as_str());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        // Read first: what begins afterwards must be refused.
                        let is_over = over.load(Ordering::SeqCst);
                        let status = ask(address, &submitter, "POST", "/work", ITEM).status;
                        assert!(status == 401 || (status == 201 && !is_over), "{round}: {status}");
                        if is_over {
                            return;
                        }
                    }
                });
            }
            tokens::revoke(&guarded.town, &submitter.id).unwrap();
            over.store(true, Ordering::SeqCst);
        });
    }
}

#[test]
fn a_token_for_work_acts_for_its_own_agent() {
    let guarded = Guarded::with(ServerLimits::default());
    let (ann, marcus) = (guarded.key("ann", "work"), guarded.key("marcus", "submit"));
    let submit = || guarded.ask(&marcus, "POST", "/work", ITEM).is(201).json();
    let (item, free) = (submit(), submit());
    let path = |item: &serde_json::Value| format!("/work/{}", item["id"].as_str().unwrap());
    let give = |agent: &str| json!({"status": "dispatched", "assigned_agent": agent}).to_string();

    let refused = guarded.ask(&ann, "POST", "/work/next", r#"{"agent": "bob"}"#).is(403);
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    assert_eq!(refused.json()["code"], "forbidden");
    guarded.ask(&ann, "PATCH", &path(&item), &give("bob")).is(403);
    guarded.ask(&marcus, "PATCH", &path(&item), &give("bob")).is(200);
    guarded.ask(&ann, "PATCH", &path(&item), r#"{"status": "in_progress"}"#).is(403);
    guarded.ask(&ann, "PATCH", &path(&item), r#"{"notes": "mine"}"#).is(403);
    guarded.ask(&marcus, "PATCH", &path(&item), &give("ann")).is(200);
    let limited = "/work/next?dispatched=true";
    let taken = guarded.ask(&ann, "POST", limited, r#"{"agent": "ann"}"#).is(200).json();
    assert_eq!(taken["item"]["id"], item["id"]);
    let done = r#"{"status": "completed", "outcome": "success", "notes": "done"}"#;
    guarded.ask(&ann, "PATCH", &path(&item), done).is(200);
    guarded.ask(&ann, "PATCH", &path(&item), done).is(200);
    let nothing = guarded.ask(&ann, "POST", limited, r#"{"agent": "ann"}"#).is(200).json();
    assert_eq!((&nothing["item"], &nothing["code"]), (&json!(null), &json!("not-dispatched")));
    guarded.ask(&ann, "POST", "/work/next?dispatched=perhaps", r#"{"agent": "ann"}"#).is(400);
    assert_eq!(guarded.ask(&marcus, "DELETE", &path(&free), "").status, 204);
    assert_eq!(guarded.ask(&marcus, "DELETE", &path(&free), "").status, 204);
}

#[test]
fn connections_without_a_token_keep_no_client_out() {
    let guarded = Guarded::with(ServerLimits { connections: 16, ..ServerLimits::default() });
    let reader = guarded.key("ann", "read");
    let address = &guarded.server.address;
    let mut listener =
        EventListener::to(address, "/events", &[("authorization", reader.bearer.as_str())]);
    let mut held: Vec<_> = (0..100).map(|_| http::connect(address).unwrap()).collect();
    // Some of them ask, and are told that they may not.
    for stream in held.iter_mut().skip(90) {
        let _ = stream.write_all(b"GET /work HTTP/1.1\r\nhost: localhost\r\n\r\n");
    }
    for _ in 0..20 {
        guarded.server.get("/health").is(200);
        guarded.ask(&reader, "GET", "/work", "").is(200);
    }
    let closed =
        |stream: &mut std::net::TcpStream| matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_));
    assert!(closed(&mut held[0]), "the oldest had to go");
    // A connection that has shown a token stays.
    guarded.ask(&guarded.key("marcus", "submit"), "POST", "/work", ITEM).is(201);
    assert!(listener.any(|heard| heard.event == "created"));
}

#[test]
fn only_a_trusted_proxy_names_the_client() {
    let town = || {
        let actor = Actor { name: "api".to_owned(), owner: String::new() };
        Town::in_memory(actor, Arc::new(SystemClock), Arc::new(Consequences)).unwrap()
    };
    let serve = |town: Town| Served::of(town, ServerConfig::on(vec![Bind::loopback(0)]));
    let behind = |server: &Served, client: &str| {
        http::ask(&server.address, "GET", "/work", &[("x-forwarded-for", client)], "").status
    };
    let plain = serve(town());
    assert_eq!(behind(&plain, "203.0.113.9"), 200, "the header is only a claim");

    let trusting = town();
    settings::set(
        &trusting,
        "server.trusted_proxies",
        "127.0.0.0/8, ::1",
        gt_scheduling::runtimes::check_name,
    )
    .unwrap();
    let trusting = serve(trusting);
    // A request that comes from elsewhere is not one of this machine, with any header.
    assert_eq!(behind(&trusting, "203.0.113.9"), 401);
    assert_eq!(behind(&trusting, "127.0.0.1, 203.0.113.9"), 401);
    assert_eq!(behind(&trusting, "unknown"), 401);
    assert_eq!(behind(&trusting, "127.0.0.1"), 200);
    trusting.get("/work").is(200);
}
