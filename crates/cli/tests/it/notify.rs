//! Telling people: `notify.*` and `gt outbox`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use std::sync::Arc;

use gt_beads::outbox::{NewNotice, notify_in};
use gt_core::Json;
use gt_scheduling::Consequences;
use gt_testkit::Sandbox;
use gt_town::settings::layers_in;
use gt_town::{Actor, Environment, StoreOptions, SystemClock, Town};
use serde_json::{Value, json};

use crate::support::{Steps as _, assert_says, json_refusal, refusal, town};

#[test]
fn nonsense_is_refused_when_it_is_set() {
    let town = town();
    for (key, value, reason) in [
        ("notify.webhook", "nonsense", "write it like https://example.com/path"),
        ("notify.webhook", "ftp://example.com/", "write it like https://example.com/path"),
        ("notify.webhook", "https://me:s3cret@example.com/", "user name"),
        ("notify.webhook", "https://example.com:99999/", "port"),
        ("notify.command", "say 'hello", "never closed"),
        ("notify.secret", "two\nlines", "control characters"),
    ] {
        let message = refusal(&town.gt(["config", "set", key, value]));
        assert_says(&message, &[key, reason]);
        assert!(!message.contains("s3cret"), "{message}");
    }
    town.gt(["config", "set", "notify.webhook", ""]).ok();
}

#[test]
fn keys_are_shown_only_to_who_asks_for_them() {
    let town = town();
    let said = [
        town.gt(["config", "set", "notify.secret", "s3cret"]).ok().stdout,
        town.gt(["config", "set", "notify.webhook", "https://example.com/s3cret"]).ok().stdout,
        town.gt(["config", "set", "notify.secret", "s3cret2", "--json"]).ok().stdout,
        town.gt(["config", "list"]).ok().stdout,
        town.gt_json(&["config", "list"]).to_string(),
        town.gt(["feed", "--json"]).ok().stdout,
    ];
    for text in &said {
        assert!(!text.contains("s3cret"), "{text}");
    }
    assert_eq!(said[0], "Set notify.secret = …\n");
    assert_eq!(said[1], "Set notify.webhook = https://example.com/…\n");
    assert_eq!(town.gt(["config", "get", "notify.secret"]).ok().line(), "s3cret2");
    assert_eq!(
        town.gt(["config", "get", "notify.webhook"]).ok().line(),
        "https://example.com/s3cret"
    );
}

#[test]
fn a_test_notice_needs_a_command_or_webhook() {
    let town = town();
    let message = refusal(&town.gt(["outbox", "test"]));
    assert_says(&message, &["gt config set notify.command", "gt config set notify.webhook"]);
}

#[test]
fn a_program_is_told() {
    let town = town();
    let program = town.write_script("tell", "cat > \"$1\"; echo \"$GT_NOTICE_KIND\" > kind");
    let command = format!("'{}' 'what it said'", program.display());
    town.gt(["config", "set", "notify.command", &command]).ok();

    let told = town.gt(["outbox", "test"]).ok();

    assert_says(&told.stdout, &["notify.command was told"]);
    let said = std::fs::read_to_string(town.cwd().join("what it said")).unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["kind"], "test");
    assert!(said["key"].as_str().unwrap().starts_with("test:"), "{said}");
    assert_eq!(said["bead"], json!(null));
    assert_eq!(std::fs::read_to_string(town.cwd().join("kind")).unwrap(), "test\n");
    assert_eq!(town.gt_json(&["outbox", "test"])["told"], json!(["command"]));
}

#[test]
fn a_program_that_fails_is_a_failure_with_its_last_words() {
    let town = town();
    let program = town.write_script("tell", "echo 'no such room' >&2; exit 4");
    town.gt(["config", "set", "notify.command", &program.display().to_string()]).ok();
    assert_says(&refusal(&town.gt(["outbox", "test"])), &["notify.command", "no such room"]);
    let message = json_refusal(&town.gt(["outbox", "test", "--json"]));
    assert_says(&message, &["exit status: 4"]);
}

#[test]
fn a_web_service_is_told_with_a_signature() {
    let town = town();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"\"url\":null}") {
            let mut chunk = [0; 4096];
            let count = stream.read(&mut chunk).unwrap();
            assert!(count > 0, "the request ends early");
            heard.extend_from_slice(&chunk[..count]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        String::from_utf8(heard).unwrap()
    });
    town.gt(["config", "set", "notify.webhook", &address]).ok();
    town.gt(["config", "set", "notify.secret", "s3cret"]).ok();

    town.gt(["outbox", "test"]).ok();

    let heard = heard.join().unwrap();
    assert_says(&heard, &["POST /hook HTTP/1.1\r\n", "\r\nIdempotency-Key: test:"]);
    assert_says(&heard, &["\r\nX-GT-Signature: sha256="]);
}

#[test]
fn a_web_service_that_is_away_is_a_failure() {
    let town = town();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/s3cret", listener.local_addr().unwrap());
    drop(listener);
    town.gt(["config", "set", "notify.webhook", &address]).ok();
    let message = refusal(&town.gt(["outbox", "test"]));
    assert_says(&message, &["notify.webhook: cannot reach http://127.0.0.1:", "refused"]);
    assert!(!message.contains("s3cret"), "{message}");
}

#[test]
fn an_outbox_in_which_everything_has_arrived_says_so() {
    let town = town();
    assert_eq!(town.gt(["outbox", "list"]).ok().line(), "Everything has arrived");
    assert_eq!(town.gt_json(&["outbox", "list"]), json!([]));
    assert_says(&town.gt(["outbox", "retry"]).ok().stdout, &["0 notices sent"]);
    assert_eq!(town.gt_json(&["outbox", "retry"])["waiting"], 0);
    assert_eq!(town.gt_json(&["status"])["notices"], json!({"given_up": 0, "waiting": 0}));
    assert_says(&town.gt(["doctor"]).ok().stdout, &["notices"]);
}

/// Raises a need for a person, as the engine does.
fn something_needs_a_person(town: &Sandbox, key: &str) {
    let actor = Actor { name: "engine".to_owned(), owner: String::new() };
    let (root, clock, options) = (town.cwd(), Arc::new(SystemClock), StoreOptions::default());
    let opened = Town::open(
        root,
        root,
        &Environment::default(),
        actor,
        clock,
        options,
        Arc::new(Consequences),
    )
    .unwrap();
    let notice = NewNotice {
        key: key.to_owned(),
        kind: "circuit-broken",
        bead: None,
        rig: None,
        run: None,
        message: "gt-abc could not be started".to_owned(),
        details: Json::object(&[]),
        spent: gt_core::cost::Spent::default(),
    };
    let written = opened.write(|writer| {
        let settings = layers_in(opened.root(), writer)?;
        notify_in(writer, &settings, &notice)
    });
    assert!(written.unwrap());
}

#[test]
fn undelivered_notices_are_listed_and_sent_again() {
    let town = town();
    let program = town.write_script(
        "tell",
        "[ -e ready ] || { echo 'not yet' >&2; exit 1; }; echo \"$GT_NOTICE_KEY\" >> told",
    );
    town.gt(["config", "set", "notify.command", &program.display().to_string()]).ok();
    something_needs_a_person(&town, "circuit-broken:hq-ctx-00001");
    assert_eq!(town.gt_json(&["outbox", "list"])[0]["attempts"], 0);

    // The helper that is started after a commit.
    let deliver = || town.gt(["__deliver-notices", &town.cwd().display().to_string()]).ok();
    deliver();

    let list = town.gt_json(&["outbox", "list"]);
    assert_eq!(list[0]["key"], "circuit-broken:hq-ctx-00001");
    assert_eq!(list[0]["state"], "waiting");
    assert_eq!(list[0]["attempts"], 1);
    assert_says(list[0]["last_error"].as_str().unwrap(), &["not yet"]);
    assert_eq!(list[0]["payload"]["kind"], "circuit-broken");
    assert_says(&town.gt(["status"]).ok().stdout, &["1 waiting to be sent", "gt outbox list"]);

    town.write("ready", "");
    assert_says(&town.gt(["outbox", "retry"]).ok().stdout, &["1 notice sent"]);

    assert_eq!(town.gt_json(&["outbox", "list"]), json!([]));
    deliver();
    let told = std::fs::read_to_string(town.cwd().join("told")).unwrap();
    assert_eq!(told, "circuit-broken:hq-ctx-00001\n", "once");
}
