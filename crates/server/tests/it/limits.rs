//! A request over a limit gets an answer that says so, and takes nothing from others.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use gt_server::ServerLimits;
use gt_testkit::http::{self, EventListener};
use gt_testkit::wait_until;

use crate::support::Served;

const SHORT: Duration = Duration::from_millis(200);

/// The bytes that the server sends until it closes the connection.
fn to_the_end(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    // A connection that is cut is at its end, too.
    let _ = stream.read_to_end(&mut said);
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn a_client_that_does_not_ask_in_time_is_disconnected() {
    let server = Served::with(ServerLimits { head: SHORT, ..ServerLimits::default() });
    let silent = http::connect(&server.address).unwrap();
    let mut slow = http::connect(&server.address).unwrap();
    slow.write_all(b"GET /health HT").unwrap();
    assert!(!to_the_end(silent).contains("200 OK"));
    assert!(!to_the_end(slow).contains("200 OK"));
    server.get("/health").is(200);
}

#[test]
fn a_body_that_does_not_arrive_is_not_waited_for() {
    let server = Served::with(ServerLimits { body: SHORT, ..ServerLimits::default() });
    let mut stream = http::connect(&server.address).unwrap();
    let head = "POST /work HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{\"ty";
    stream.write_all(head.as_bytes()).unwrap();
    let answer = http::read_answer(stream).unwrap();
    assert_eq!((answer.status, answer.json()["code"].as_str()), (408, Some("too-slow")));
    assert_eq!(answer.header("connection"), Some("close"));
}

#[test]
fn a_body_that_is_too_large_is_not_read() {
    let server = Served::with(ServerLimits { body_bytes: 100, ..ServerLimits::default() });
    let body = format!("{{\"type\": \"task\", \"description\": \"{}\"}}", "x".repeat(100));
    assert_eq!(server.post("/work", &body).status, 413);
    server.post("/work", "{\"type\": \"task\", \"description\": \"short\"}").is(201);
}

#[test]
fn a_client_that_keeps_sending_gets_its_413() {
    let server = Served::with(ServerLimits { body_bytes: 100, ..ServerLimits::default() });
    let head = "POST /work HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let part = "x".repeat(64 * 1024);
    let announced = format!("content-length: {}\r\n\r\n", 160 * part.len());
    let chunk = format!("{:x}\r\n{part}\r\n", part.len());
    for (framing, part) in
        [(announced.as_str(), part.as_str()), ("transfer-encoding: chunked\r\n\r\n", &chunk)]
    {
        let mut stream = http::connect(&server.address).unwrap();
        stream.write_all(format!("{head}{framing}").as_bytes()).unwrap();
        // Ten megabytes, before it reads a byte of the answer.
        for _ in 0..160 {
            stream.write_all(part.as_bytes()).unwrap();
        }
        let answer = http::read_answer(stream).unwrap();
        assert_eq!((answer.status, answer.json()["code"].as_str()), (413, Some("too-large")));
    }
}

#[test]
fn more_listeners_and_waiting_agents_than_there_is_room_for_are_told_so() {
    let server = Served::with(ServerLimits { listeners: 1, waiting: 1, ..ServerLimits::default() });
    let listener = EventListener::to(&server.address, "/events", &[]);
    let refused = server.get("/events");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    drop(listener);
    let address = server.address.clone();
    let waiting = std::thread::spawn(move || {
        let headers = [("content-type", "application/json")];
        http::ask(&address, "POST", "/work/next", &headers, "{\"agent\": \"a\", \"wait_s\": 60}")
    });
    wait_until("a request waits", || {
        server.get("/metrics").text().contains("gt_http_waiting_for_work 1")
    });
    assert_eq!(server.post("/work/next", "{\"agent\": \"b\"}").status, 503);
    // A request that waits takes no place from those that work.
    server.post("/work", "{\"type\": \"task\", \"description\": \"for a\"}").is(201);
    assert_eq!(waiting.join().unwrap().is(200).json()["item"]["assigned_agent"], "a");
}

#[test]
fn more_requests_than_there_is_room_for_are_told_so() {
    let server = Served::with(ServerLimits { requests: 1, ..ServerLimits::default() });
    // It is at work on a request whose body has not arrived.
    let mut stream = http::connect(&server.address).unwrap();
    let body = "{\"type\": \"task\", \"description\": \"x\"}";
    let head = format!(
        "POST /work HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    wait_until("it is at work on that", || {
        // That and the question itself.
        server.get("/metrics").is(200).text().contains("gt_http_requests_in_flight 2\n")
    });
    assert_eq!(server.get("/work").status, 503);
    // A monitor is answered all the same.
    server.get("/health").is(200);
    stream.write_all(body.as_bytes()).unwrap();
    assert_eq!(http::read_answer(stream).unwrap().status, 201);
    wait_until("there is room again", || server.get("/work").status == 200);
}

#[test]
fn more_connections_than_there_is_room_for_are_turned_away_with_an_answer() {
    let server = Served::with(ServerLimits { connections: 2, ..ServerLimits::default() });
    // Connections over which a client has asked for something, and may ask again.
    let ask = || {
        let mut stream = http::connect(&server.address).unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        stream
    };
    let held: Vec<TcpStream> = (0..2).map(|_| ask()).collect();
    wait_until("a connection is refused", || {
        http::connect(&server.address).is_ok_and(|stream| {
            let said = to_the_end(stream);
            said.starts_with("HTTP/1.1 503") && said.contains("too many connections")
        })
    });
    drop(held);
    wait_until("there is room again", || {
        http::try_to_ask(&server.address, "GET", "/health", &[], "")
            .is_ok_and(|answer| answer.status == 200)
    });
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let server = Served::with(ServerLimits { stall: SHORT, ..ServerLimits::default() });
    for _ in 0..20 {
        let items: Vec<String> = (0..500)
            .map(|_| format!("{{\"type\": \"task\", \"description\": \"{}\"}}", "x".repeat(2000)))
            .collect();
        server.post("/work", &format!("[{}]", items.join(","))).is(201);
    }
    // More than a connection holds, asked for by a client that does not read.
    let mut stream = http::connect(&server.address).unwrap();
    stream.write_all(b"GET /work HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    wait_until("the server has let go of it", || {
        server.get("/metrics").text().contains("gt_http_connections 1\n")
    });
    assert!(!to_the_end(stream).ends_with("0\r\n\r\n"), "the list has no end");
}

#[test]
fn a_listener_that_falls_behind_reads_what_it_missed() {
    let server = Served::with(ServerLimits::default());
    let mut listener = EventListener::to(&server.address, "/events?since=0", &[]);
    // Far more than is kept for listeners that are behind, while this one does not read.
    let items: Vec<String> =
        (0..1000).map(|at| format!("{{\"type\": \"task\", \"description\": \"{at}\"}}")).collect();
    for _ in 0..5 {
        server.post("/work", &format!("[{}]", items.join(","))).is(201);
    }
    let mut last = 0;
    let mut created = 0;
    while created < 5000 {
        let heard = listener.next().unwrap();
        assert_eq!(heard.id, Some(last + 1));
        last += 1;
        created += u32::from(heard.event == "created");
    }
}

#[test]
fn a_silent_stream_is_kept_alive() {
    let server = Served::with(ServerLimits {
        keep_alive: Duration::from_millis(20),
        ..ServerLimits::default()
    });
    let mut stream = http::connect(&server.address).unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut said = String::new();
    let mut bytes = [0; 4096];
    wait_until("it says that it is there", || {
        let length = stream.read(&mut bytes).unwrap();
        said.push_str(&String::from_utf8_lossy(&bytes[..length]));
        said.matches(": still here").count() >= 3
    });
}
