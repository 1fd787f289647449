//! The rights of the clients of a server, and the faults it survives.

use std::io::{Read as _, Write as _};

use gt_testkit::http::{self, try_to_ask};
use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, town_with_agent};
use crate::serving::{Served, assert_problem, field, text};
use crate::support::{Steps as _, assert_says, town};

fn token(town: &Sandbox, name: &str, scopes: &str) -> String {
    text(&town.gt_json(&["token", "create", name, "--scope", scopes])["token"])
}

#[test]
fn a_worker_changes_nothing_through_a_server_without_tokens() {
    // An agent that asks the server by itself: as a worker, and as a process that has forgotten that it is one.
    let town = town_with_agent(
        r#"
wait_for address
ask='exec 3<>"/dev/tcp/127.0.0.1/$1"
printf "%s /work/we-b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" "$2" >&3
cat <&3'
bash -c "$ask" - "$(cat "$stage/port")" GET > "$stage/read"
bash -c "$ask" - "$(cat "$stage/port")" DELETE > "$stage/deleted"
env -i "PATH=$PATH" bash -c "$ask" - "$(cat "$stage/port")" DELETE > "$stage/deleted-bare"
touch "$stage/asked"
wait_for end"#,
    );
    town.bead("we-b", &[]);
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let server = Served::of(town, &[]);
    let town = &server.town;
    let (_, port) = server.address.split_once(':').unwrap();
    std::fs::write(town.stage("port"), port).unwrap();

    town.allow("address");
    wait_until("the agent has asked", || town.stage("asked").exists());

    let read = |name: &str| std::fs::read_to_string(town.stage(name)).unwrap();
    assert_says(&read("read"), &["HTTP/1.1 200"]);
    for name in ["deleted", "deleted-bare"] {
        assert_says(&read(name), &["HTTP/1.1 403", "the run we-a#1", "gt token create"]);
    }
    assert_eq!(town.show("we-b")["status"], "open");
    server.ask("DELETE", "/work/we-b", &[], "").is(204);
    town.allow("end");
    wait_until("the agent is gone", || town.story().len() == 2);
}

#[test]
fn a_token_opens_what_its_scopes_say() {
    let town = town();
    let tokens: Vec<(&str, String)> = ["read", "submit", "work", "admin"]
        .map(|scope| (scope, token(&town, &format!("{scope}er"), scope)))
        .to_vec();
    let server = Served::of(town, &["--require-token"]);
    let item = json!({"type": "task", "description": "x"}).to_string();
    let next = json!({"agent": "worker"}).to_string();
    let ask = |secret: &str, method: &str, path: &str, body: &str| {
        let bearer = format!("Bearer {secret}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        server.ask(method, path, &headers, body)
    };
    let table = [
        ("GET", "/work", "", [true, true, true, true]),
        ("GET", "/metrics", "", [true, true, true, true]),
        ("POST", "/work", item.as_str(), [false, true, false, true]),
        ("POST", "/projects", r#"{"name": "P"}"#, [false, true, false, true]),
        ("POST", "/work/next", next.as_str(), [false, false, true, true]),
    ];
    for (method, path, body, allowed) in table {
        for ((scope, secret), allowed) in tokens.iter().zip(allowed) {
            let answer = ask(secret, method, path, body);
            assert_eq!(
                answer.status != 403,
                allowed,
                "{method} {path} with {scope}: {}",
                answer.text()
            );
            if !allowed {
                assert_problem(&answer, 403, "forbidden");
            }
        }
    }
    // The token names the client that submitted.
    let made = ask(&tokens[1].1, "POST", "/work", &item).is(201).json();
    assert_eq!(made["created_by"], "submiter");

    let without = server.get("/work");
    assert_problem(&without, 401, "unauthorized");
    assert_eq!(without.header("www-authenticate"), Some("Bearer"));
    let unknown = format!("gtw_{}", "0".repeat(64));
    let refused = ask(&unknown, "GET", "/work", "");
    assert_problem(&refused, 401, "unauthorized");
    assert!(!refused.text().contains(&unknown));
    for public in ["/health", "/openapi.json", "/docs"] {
        server.get(public).is(200);
    }

    // A token that is revoked opens nothing any more.
    let list = server.town.gt_json(&["token", "list"]);
    let id = list.as_array().unwrap().iter().find(|token| token["name"] == "reader").unwrap();
    server.town.gt(["token", "revoke", &text(&id["id"])]).ok();
    assert_problem(&ask(&tokens[0].1, "GET", "/work", ""), 401, "unauthorized");
    let log = server.running.stderr();
    assert!(
        log.contains("\"caller\":\"admin")
            && tokens.iter().all(|(_, secret)| !log.contains(secret)),
        "{log}"
    );
    server.stop();
}

#[test]
fn others_are_served_only_with_tokens_or_on_purpose() {
    let town = town();
    let refused = town.gt(["serve", "--bind", "0.0.0.0:0"]).fails(1);
    assert_says(&refused.stderr, &["gt token create"]);
    let running =
        town.start_gt(&["serve", "--bind", "0.0.0.0:0", "--json"]).env("GT_INSECURE", "1").start();
    let server = Served::once_it_listens(town, running);
    let port = server.address.rsplit(':').next().unwrap();
    let address = format!("127.0.0.1:{port}");
    http::ask(&address, "GET", "/work", &[("host", "queue.example")], "").is(200);
    assert_eq!(server.running.stderr().matches("warning:").count(), 1);
    let town = server.stop();

    let secret = token(&town, "ci", "read");
    let running = town.start_gt(&["serve", "--bind", "0.0.0.0:0", "--json"]).start();
    let server = Served::once_it_listens(town, running);
    let address = format!("127.0.0.1:{}", server.address.rsplit(':').next().unwrap());
    assert_problem(&http::ask(&address, "GET", "/work", &[], ""), 401, "unauthorized");
    let bearer = format!("Bearer {secret}");
    http::ask(&address, "GET", "/work", &[("authorization", &bearer)], "").is(200);
    server.stop();
}

#[test]
fn a_page_of_others_gets_nothing_unless_it_may() {
    let server = Served::new();
    let origin = [("origin", "https://evil.example")];
    assert_eq!(
        server.ask("GET", "/work", &origin, "").is(200).header("access-control-allow-origin"),
        None
    );
    let preflight = [
        ("origin", "https://board.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];
    assert_problem(&server.ask("OPTIONS", "/work", &preflight, ""), 405, "method-not-allowed");
    // Nor if it has its own name point here.
    assert_problem(&server.ask("GET", "/work", &[("host", "evil.example")], ""), 403, "wrong-host");
    server.ask("GET", "/work", &[("host", "localhost:1234")], "").is(200);
    let town = server.stop();

    let server = Served::of(town, &["--cors", "https://board.example"]);
    let allowed = server.ask("OPTIONS", "/work", &preflight, "").is(200);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://board.example"));
    assert_eq!(server.ask("GET", "/work", &origin, "").header("access-control-allow-origin"), None);
    server.stop();
}

#[test]
fn garbage_does_not_keep_the_server_from_answering() {
    let server = Served::new();
    let long_line = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(200_000));
    let many_headers = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5_000));
    for garbage in [
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "hello\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "POST /work HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        "POST /work HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        "POST /work HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nZZZ\r\n",
        "GET /\u{0} HTTP/1.1\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}",
        long_line.as_str(),
        many_headers.as_str(),
    ] {
        let mut stream = http::connect(&server.address).unwrap();
        let _ = stream.write_all(garbage.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{garbage:.40}: {said}");
    }
    let mut stream = http::connect(&server.address).unwrap();
    stream.write_all(b"GET /work HTTP/1.1\r\n\r\n").unwrap();
    let without_host = http::read_answer(stream).unwrap();
    assert_eq!(field(&assert_problem(&without_host, 400, "malformed")), "Host");
    let no_text = server.get("/work?q=%ff");
    assert_eq!(field(&assert_problem(&no_text, 400, "malformed")), "q");
    server.get("/work?q=%EF%BF%BD").is(200);
    let headers = [("content-type", "application/json"), ("content-length", "99999999999")];
    assert_problem(&server.ask("POST", "/work", &headers, ""), 413, "too-large");
    // A body without a content-length.
    let mut stream = http::connect(&server.address).unwrap();
    let head = "POST /work HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..80 {
        // It may have said no already.
        let _ = stream.write_all(chunk.as_bytes());
    }
    if let Ok(answer) = http::read_answer(stream) {
        assert_problem(&answer, 413, "too-large");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let answer = server.ask("POST", "/work", &[("content-type", "application/json")], &deep);
    assert!([400, 422].contains(&answer.status), "{}", answer.status);
    server.submit("All is well");
    server.stop();
}

#[test]
fn acknowledged_items_survive_a_kill() {
    let server = Served::of(town(), &["--log", "off"]);
    let address = server.address.clone();
    let clients: Vec<_> = (0..8)
        .map(|client| {
            let address = address.clone();
            std::thread::spawn(move || {
                let mut acknowledged = Vec::new();
                for at in 0.. {
                    let body = json!({"type": "task", "description": format!("{client}-{at}")})
                        .to_string();
                    let headers = [("content-type", "application/json")];
                    match try_to_ask(&address, "POST", "/work", &headers, &body) {
                        Ok(answer) if answer.status == 201 => {
                            acknowledged.push(text(&answer.json()["id"]));
                        }
                        _ => break,
                    }
                }
                acknowledged
            })
        })
        .collect();
    wait_until("some of it is written", || {
        server.get("/work?limit=100").json().as_array().is_some_and(|list| list.len() >= 100)
    });
    let Served { town, running, .. } = server;
    running.kill();
    let acknowledged: Vec<String> =
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    assert!(acknowledged.len() >= 50);

    let server = Served::of(town, &[]);
    let list = server.get("/work").is(200).json();
    let there: std::collections::HashSet<&str> =
        list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    let lost: Vec<&String> =
        acknowledged.iter().filter(|id| !there.contains(id.as_str())).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let town = server.stop();
    town.gt(["doctor"]).ok();
}

#[test]
fn a_server_that_stops_answers_what_it_is_at_and_says_so() {
    let server = Served::of(town(), &["--log", "json"]);
    server.submit("One");
    let idle = http::connect(&server.address).unwrap();
    let mut listener = server.listen("/events", &[]);
    server.town.signal("TERM", &server.running.id().to_string());
    assert_eq!(listener.next(), None);
    let ran = server.running.wait().ok();
    drop(idle);
    let lines: Vec<Value> = ran
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!((&lines[0]["method"], &lines[0]["path"]), (&json!("POST"), &json!("/work")));
    assert_eq!(lines[0]["status"], 201);
}

#[test]
fn idle_connections_leave_room_where_a_process_may_open_few_files() {
    let town = town();
    let serve = "ulimit -n 96; exec \"$0\" serve --bind 127.0.0.1:0 --json";
    let running = town.command("sh").args(["-c", serve]).arg(town.gt_path()).start();
    let server = Served::once_it_listens(town, running);

    let idle: Vec<_> = (0..160).map(|_| http::connect(&server.address).unwrap()).collect();

    server.get("/health").is(200);
    server.submit("One");
    drop(idle);
}

#[test]
fn the_command_line_is_checked_before_anything_listens() {
    let town = town();
    for (flags, says) in
        [(["--bind", "nowhere at all"], "no address"), (["--cors", "board.example"], "no origin")]
    {
        let ran = town.gt(["serve"].iter().chain(&flags)).fails(1);
        assert_says(&ran.stderr, &[says]);
    }
    let ran = town.start_gt(&["serve"]).env("PORT", "many").run().fails(1);
    assert_says(&ran.stderr, &["PORT"]);
    town.gt(["serve", "--log", "loud"]).fails(2);
    let server = Served::of(town, &[]);
    let taken = server.town.gt(["serve", "--bind", &server.address]).fails(1);
    assert_says(&taken.stderr, &["cannot listen on"]);
    server.stop();
}

#[test]
fn a_daemon_serves_where_the_setting_says() {
    let town = town();
    town.gt(["up"]).ok();
    let is_there = |address: &str| {
        try_to_ask(address, "GET", "/health", &[], "").is_ok_and(|answer| answer.status == 200)
    };
    let free = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let (first, second) = (free(), free());
    town.gt(["config", "set", "serve.bind", &first]).ok();
    wait_until("it serves", || is_there(&first));
    town.gt(["config", "set", "serve.bind", &second]).ok();
    wait_until("it serves elsewhere", || is_there(&second) && !is_there(&first));
    town.gt(["config", "unset", "serve.bind"]).ok();
    wait_until("it does not serve any more", || !is_there(&second));
    town.gt(["config", "set", "serve.bind", &second]).ok();
    wait_until("it serves again", || is_there(&second));
    town.gt(["down"]).ok();
    assert!(!is_there(&second));
}

#[test]
fn the_page_to_try_it_needs_nothing_from_elsewhere() {
    let server = Served::new();
    let page = server.get("/docs").is(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let text = page.text();
    assert!(
        text.contains("openapi.json") && !text.contains("http://") && !text.contains("https://")
    );
    let description = server.get("/openapi.json").is(200).json();
    for path in [
        "/projects",
        "/projects/{id}",
        "/work",
        "/work/{id}",
        "/work/next",
        "/work/{id}/heartbeat",
        "/work/{id}/why",
        "/events",
    ] {
        assert!(description["paths"][path].is_object(), "{path}");
    }
    server.stop();
}
