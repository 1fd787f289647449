//! Events as they happen: `GET /events`.

use gt_testkit::http::ServerSentEvent;
use serde_json::Value;

use crate::serving::{Served, assert_problem};
use crate::support::Steps as _;

fn number(heard: &ServerSentEvent) -> u64 {
    heard.id.expect("every event of the log has a number")
}

#[test]
fn a_listener_hears_everything_once_and_in_order() {
    let server = Served::new();
    let mut listener = server.listen("/events", &[]);
    for at in 0..20 {
        server.submit(&format!("item {at}"));
    }
    // The stream has events of other commands, too.
    server.town.gt(["bd", "create", "From elsewhere", "--rig", "inbox"]).ok();
    let mut created = 0;
    let mut last = None;
    while created < 21 {
        let heard = listener.next().expect("the stream goes on");
        let number = number(&heard);
        assert!(last.is_none_or(|last| number == last + 1), "{last:?} then {number}");
        last = Some(number);
        let event: Value = serde_json::from_str(&heard.data).unwrap();
        assert_eq!(
            (event["number"].as_u64(), event["event_type"].as_str()),
            (Some(number), Some(heard.event.as_str()))
        );
        created += u64::from(heard.event == "created");
    }
    server.stop();
    assert_eq!(listener.next(), None);
}

#[test]
fn a_reconnecting_listener_continues_after_its_last_event() {
    let server = Served::new();
    for at in 0..30 {
        server.submit(&format!("item {at}"));
    }
    let last = server.town.last_event();
    let mut listener = server.listen("/events?since=0", &[]);
    let all: Vec<ServerSentEvent> = (0..last).map(|_| listener.next().unwrap()).collect();
    assert_eq!(all.iter().map(number).collect::<Vec<_>>(), (1..=last).collect::<Vec<_>>());

    // After a restart of the server, with the header that browsers send.
    let town = server.stop();
    let server = Served::of(town, &[]);
    let id = server.submit("Later");
    let mut listener = server.listen("/events", &[("Last-Event-ID", &(last - 3).to_string())]);
    let rest: Vec<ServerSentEvent> = (0..4).map(|_| listener.next().unwrap()).collect();
    assert_eq!(rest[..3], all[all.len() - 3..]);
    assert!(number(&rest[3]) == last + 1 && !id.is_empty());

    // A listener that is ahead of the store learns that it is another store.
    let mut listener = server.listen("/events?since=1000000", &[]);
    let told = listener.next().unwrap();
    assert_eq!((told.id, told.event.as_str()), (None, "truncated"));
    server.submit("And on");
    assert!(number(&listener.next().unwrap()) > last);

    assert_problem(&server.get("/events?since=x"), 400, "malformed");
    assert_problem(&server.ask("GET", "/events", &[("last-event-id", "x")], ""), 400, "malformed");
    server.stop();
}

#[test]
fn a_listener_that_returns_too_late_is_told_what_it_missed() {
    let server = Served::new();
    for at in 0..5 {
        server.submit(&format!("item {at}"));
    }
    let missed = server.town.last_event() - 2;

    // Given that events are not kept any longer,
    server.town.gt(["config", "set", "events.keep", "0s"]).ok();
    let root = server.town.cwd().to_str().unwrap().to_owned();
    server.town.gt(["__keep-house", &root]).ok();

    // when a listener continues after one of them, then it is told so first, and after that gets all kept events.
    let from = missed.to_string();
    let mut listener = server.listen("/events", &[("Last-Event-ID", &from)]);
    let told = listener.next().unwrap();
    assert_eq!((told.id, told.event.as_str()), (None, "truncated"));
    let told: Value = serde_json::from_str(&told.data).unwrap();
    let (oldest, last) = (told["oldest"].as_u64().unwrap(), told["last"].as_u64().unwrap());
    assert!(told["since"] == missed && oldest > missed + 1 && oldest <= last, "{told}");
    for expected in oldest..=last {
        assert_eq!(number(&listener.next().unwrap()), expected);
    }

    // Nothing is missing for who has seen all of it.
    let mut listener = server.listen("/events", &[("Last-Event-ID", &last.to_string())]);
    server.submit("And on");
    assert_eq!(number(&listener.next().unwrap()), last + 1);
    server.stop();
}
