use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use gt_core::{Clock, decide};
use gt_executors::web::signature;
use tempfile::TempDir;

use super::*;
use gt_town::{Actor, CommitFollower, CommitHook, Environment, StoreOptions, install, settings};

/// A clock that a test moves.
#[derive(Debug)]
struct Hands(AtomicI64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Hands {
    fn pass(&self, duration: Duration) {
        let nanos = i64::try_from(duration.as_nanos()).unwrap();
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// A town in a directory of its own.
struct Place {
    directory: TempDir,
    clock: Arc<Hands>,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(Hands(AtomicI64::new(1_790_000_000_000_000_000)));
        install(&directory.path().join("town"), &Environment::default(), &actor(), &*clock)
            .unwrap();
        Self { directory, clock }
    }

    fn root(&self) -> std::path::PathBuf {
        self.directory.path().join("town")
    }

    /// The town as another process opens it.
    fn open(&self) -> Town {
        let (root, clock) = (self.root(), Arc::clone(&self.clock));
        let environment = Environment::default();
        Town::open(
            &root,
            &root,
            &environment,
            actor(),
            clock,
            StoreOptions::default(),
            Arc::new(TellNews),
        )
        .unwrap()
    }
}

fn actor() -> Actor {
    Actor { name: "tester".to_owned(), owner: String::new() }
}

fn tell(town: &Town, key: &str) -> bool {
    let bead = BeadId::parse("gt-abc").unwrap();
    let notice = NewNotice {
        key: key.to_owned(),
        kind: "circuit-broken",
        bead: Some(&bead),
        rig: None,
        run: None,
        message: "gt-abc could not be started 3 times".to_owned(),
        details: Json::parse(r#"{"failures":3}"#).unwrap(),
        spent: gt_core::cost::Spent::default(),
    };
    let written = town.write(|writer| {
        let settings = layers_in(town.root(), writer)?;
        notify_in(writer, &settings, &notice)
    });
    written.unwrap()
}

fn unsent_counts(town: &Town) -> (u64, u64) {
    let UnsentNotices { waiting, given_up } = unsent(town).unwrap();
    (waiting, given_up)
}

/// Records the notices it is to send, and fails as long as it is told to.
#[derive(Default)]
struct Book {
    sent: Mutex<Vec<String>>,
    fails: Mutex<Option<SendFailure>>,
}

impl Notifier for Book {
    fn send(&self, _target: &NoticeTarget, notice: &Notice) -> Result<(), SendFailure> {
        self.sent.lock().unwrap().push(format!("{}#{}", notice.key, notice.attempts));
        self.fails.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

impl Book {
    fn failing(error: SendFailure) -> Self {
        Self { fails: Mutex::new(Some(error)), ..Self::default() }
    }

    fn works(&self) {
        *self.fails.lock().unwrap() = None;
    }

    fn sent(&self) -> Vec<String> {
        std::mem::take(&mut self.sent.lock().unwrap())
    }
}

#[test]
fn without_a_channel_nothing_is_written_and_nothing_sent() {
    let place = Place::new();
    let town = place.open();
    assert!(!tell(&town, "a"));
    assert_eq!(unsent_counts(&town), (0, 0));
    assert_eq!(deliver(&town, &Book::default(), 10).unwrap(), Delivered::default());
    assert!(super::test(&town, &Book::default()).is_err());
}

#[test]
fn a_key_is_told_once_on_each_channel() {
    let place = Place::new();
    let town = place.open();
    settings::set(&town, "notify.command", "tell --now", |_, _| Ok(())).unwrap();
    settings::set(&town, "notify.webhook", "http://127.0.0.1:1/", |_, _| Ok(())).unwrap();
    assert!(tell(&town, "a"));
    assert!(!tell(&town, "a"));
    let book = Book::default();
    assert_eq!(deliver(&town, &book, 10).unwrap(), Delivered { sent: 2, ..Delivered::default() });
    assert_eq!(book.sent(), ["a#1", "a#1"]);
    assert!(!tell(&town, "a"), "not even after it has arrived");
    assert_eq!(deliver(&town, &book, 10).unwrap(), Delivered::default());
    assert_eq!(unsent_counts(&town), (0, 0));
}

#[test]
fn a_refused_notice_is_tried_ten_times_and_given_up() {
    let place = Place::new();
    let town = place.open();
    settings::set(&town, "notify.command", "tell", |_, _| Ok(())).unwrap();
    tell(&town, "a");
    let book = Book::failing(SendFailure::Refused("no such person".to_owned()));
    let mut passes = Vec::new();
    while unsent_counts(&town) == (1, 0) {
        passes.push(deliver(&town, &book, 10).unwrap());
        assert_eq!(deliver(&town, &book, 10).unwrap(), Delivered::default(), "it is not due");
        place.clock.pass(decide::NOTICE_WAIT_MAX);
    }
    let attempts = usize::try_from(decide::NOTICE_ATTEMPTS_MAX).unwrap();
    assert_eq!(passes.len(), attempts);
    assert_eq!(passes[attempts - 1], Delivered { given_up: 1, ..Delivered::default() });
    assert_eq!(book.sent().len(), attempts);
    assert_eq!(list(&town, 10).unwrap()[0].last_error, "no such person");

    book.works();
    assert_eq!(retry(&town, &book).unwrap(), Delivered { sent: 1, ..Delivered::default() });
    assert_eq!(unsent_counts(&town), (0, 0));
}

#[test]
fn a_refused_notice_delays_no_other_but_a_dead_channel_is_left_alone() {
    let place = Place::new();
    let town = place.open();
    settings::set(&town, "notify.command", "tell", |_, _| Ok(())).unwrap();
    for key in ["a", "b", "c"] {
        tell(&town, key);
    }
    let book = Book::failing(SendFailure::Unreachable("away".to_owned()));
    assert_eq!(deliver(&town, &book, 10).unwrap(), Delivered { failed: 1, ..Delivered::default() });
    assert_eq!(book.sent(), ["a#1"]);
    let book = Book::failing(SendFailure::Refused("no".to_owned()));
    assert_eq!(deliver(&town, &book, 10).unwrap(), Delivered { failed: 2, ..Delivered::default() });
    assert_eq!(book.sent(), ["b#1", "c#1"]);
}

#[test]
fn a_pass_sends_no_more_than_it_may() {
    let place = Place::new();
    let town = place.open();
    settings::set(&town, "notify.command", "tell", |_, _| Ok(())).unwrap();
    for key in ["a", "b", "c"] {
        tell(&town, key);
    }
    let book = Book::default();
    assert_eq!(deliver(&town, &book, 2).unwrap().sent, 2);
    assert_eq!(deliver(&town, &book, 2).unwrap().sent, 1);
    assert_eq!(book.sent(), ["a#1", "b#1", "c#1"]);
}

#[test]
fn a_removed_channel_keeps_its_waiting_notices() {
    let place = Place::new();
    let town = place.open();
    settings::set(&town, "notify.command", "tell", |_, _| Ok(())).unwrap();
    tell(&town, "a");
    settings::unset(&town, "notify.command").unwrap();
    let book = Book::default();
    assert_eq!(deliver(&town, &book, 10).unwrap(), Delivered { failed: 1, ..Delivered::default() });
    assert_eq!(list(&town, 10).unwrap()[0].last_error, "notify.command is not set");
    assert!(book.sent().is_empty());
    settings::set(&town, "notify.command", "tell", |_, _| Ok(())).unwrap();
    place.clock.pass(Duration::from_mins(1));
    assert_eq!(deliver(&town, &book, 10).unwrap().sent, 1);
}

#[test]
fn two_parallel_passes_send_each_notice_once() {
    let place = Place::new();
    let town = place.open();
    settings::set(&town, "notify.command", "tell", |_, _| Ok(())).unwrap();
    let mut keys: Vec<String> = (0..40).map(|number| format!("key {number}")).collect();
    for key in &keys {
        tell(&town, key);
    }
    let book = Book::default();
    let sent: usize = std::thread::scope(|scope| {
        let deliverers: Vec<_> = (0..3)
            .map(|_| {
                let (place, book) = (&place, &book);
                scope.spawn(move || deliver(&place.open(), book, 100).unwrap().sent)
            })
            .collect();
        deliverers.into_iter().map(|deliverer| deliverer.join().unwrap()).sum()
    });
    assert_eq!(sent, keys.len());
    let mut told = book.sent();
    told.sort();
    keys = keys.into_iter().map(|key| format!("{key}#1")).collect();
    keys.sort();
    assert_eq!(told, keys);
}

/// Sends, and then dies.
struct Killed<'a>(&'a Book);

impl Notifier for Killed<'_> {
    fn send(&self, target: &NoticeTarget, notice: &Notice) -> Result<(), SendFailure> {
        let _ = self.0.send(target, notice);
        panic!("killed between sending and writing it down");
    }
}

#[test]
fn a_notice_whose_sender_was_killed_is_sent_again_with_the_same_key() {
    let place = Place::new();
    let town = place.open();
    settings::set(&town, "notify.command", "tell", |_, _| Ok(())).unwrap();
    tell(&town, "a");
    let book = Book::default();
    let killed = std::panic::AssertUnwindSafe(|| deliver(&place.open(), &Killed(&book), 10));
    assert!(std::panic::catch_unwind(killed).is_err());

    assert_eq!(
        deliver(&town, &book, 10).unwrap(),
        Delivered::default(),
        "it may still be on its way"
    );
    place.clock.pass(Duration::from_mins(1));
    assert_eq!(deliver(&town, &book, 10).unwrap().sent, 1);

    assert_eq!(book.sent(), ["a#1", "a#2"]);
    assert_eq!(unsent_counts(&town), (0, 0));
}

/// A web service that gives these answers, one after the other, and returns its requests.
fn service(answers: &'static [&'static str]) -> (String, JoinHandle<Vec<(String, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let heard = std::thread::spawn(move || {
        let mut heard = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = Vec::new();
            // The body is an object with this last field, so this is its end.
            while !bytes.ends_with(b"\"url\":null}") {
                let mut chunk = [0; 4096];
                let count = stream.read(&mut chunk).unwrap();
                assert!(count > 0, "the request ends early");
                bytes.extend_from_slice(&chunk[..count]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            heard.push((head.to_owned(), body.to_owned()));
        }
        heard
    });
    (address, heard)
}

#[test]
fn a_web_service_that_fails_first_gets_the_same_signed_notice_again() {
    let (address, heard) = service(&[
        "HTTP/1.1 503 Busy\r\n\r\ncome back later",
        "HTTP/1.1 301 Moved\r\nLocation: https://example.com/\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
    ]);
    let place = Place::new();
    let town = place.open();
    settings::set(&town, "notify.webhook", &address, |_, _| Ok(())).unwrap();
    settings::set(&town, "notify.secret", "s3cret", |_, _| Ok(())).unwrap();
    tell(&town, "circuit-broken:hq-ctx-00012");
    let outside = NoticeSender::of(&town);

    for why in ["answered 503: come back later", "redirects are not followed"] {
        assert_eq!(deliver(&town, &outside, 10).unwrap().failed, 1);
        let error = list(&town, 10).unwrap().remove(0).last_error;
        assert!(error.contains(why), "{error}");
        assert!(!error.contains("/hook"), "the path may be a key: {error}");
        place.clock.pass(Duration::from_mins(5));
    }
    assert_eq!(deliver(&town, &outside, 10).unwrap().sent, 1);

    let heard = heard.join().unwrap();
    assert_eq!(heard[0], heard[1]);
    assert_eq!(heard[0], heard[2]);
    let (head, body) = &heard[0];
    assert!(head.contains("\r\nIdempotency-Key: circuit-broken:hq-ctx-00012\r\n"), "{head}");
    let signed = format!("X-GT-Signature: sha256={}", signature("s3cret", body.as_bytes()));
    assert!(head.contains(&signed), "{head}");
    let payload = Json::parse(body).unwrap();
    assert_eq!(payload.string_field("kind").as_deref(), Some("circuit-broken"));
    assert_eq!(payload.string_field("bead").as_deref(), Some("gt-abc"));
    assert!(body.contains(r#""details":{"failures":3}"#), "{body}");
    assert!(body.contains(r#""run":null"#), "{body}");
}

fn script(directory: &Path, text: &str) -> String {
    let path = directory.join("tell");
    gt_testkit::write_program(&path, format!("#!/bin/sh\n{text}\n"));
    path.display().to_string()
}

#[test]
fn a_program_that_fails_first_is_run_again() {
    let place = Place::new();
    let town = place.open();
    let program = script(
        place.directory.path(),
        "echo \"$1|$GT_NOTICE_KEY|$GT_NOTICE_KIND|$GT_BEAD|$GT_RUN|$PWD|$(cat)\" >> said\n\
         [ -e ready ] || { echo 'not yet' >&2; exit 3; }",
    );
    settings::set(&town, "notify.command", &format!("'{program}' 'two words'"), |_, _| Ok(()))
        .unwrap();
    tell(&town, "a");
    let outside = NoticeSender::of(&town);

    assert_eq!(deliver(&town, &outside, 10).unwrap().failed, 1);
    let error = list(&town, 10).unwrap().remove(0).last_error;
    assert!(error.ends_with("exit status: 3: not yet"), "{error}");
    std::fs::write(town.root().join("ready"), "").unwrap();
    place.clock.pass(Duration::from_mins(1));
    assert_eq!(deliver(&town, &outside, 10).unwrap().sent, 1);

    let said = std::fs::read_to_string(town.root().join("said")).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], lines[1]);
    let here = town.root().canonicalize().unwrap();
    let begin = format!("two words|a|circuit-broken|gt-abc||{}|{{\"at\":", here.display());
    assert!(lines[0].starts_with(&begin), "{said}");
}

#[test]
fn a_program_that_is_not_there_says_so() {
    let place = Place::new();
    let town = place.open();
    settings::set(&town, "notify.command", "/nonexistent/tell", |_, _| Ok(())).unwrap();
    let tried = super::test(&town, &NoticeSender::of(&town)).unwrap();
    let (NoticeChannel::Command, Err(SendFailure::Unreachable(why))) = &tried[0] else {
        panic!("{tried:?}");
    };
    assert!(why.contains("cannot start /nonexistent/tell"), "{why}");
}

#[test]
fn a_rehearsal_leaves_nothing_to_be_sent() {
    let place = Place::new();
    let town = place.open();
    settings::set(&town, "notify.command", "tell", |_, _| Ok(())).unwrap();
    let key = || "a".to_owned();
    let rehearsed = town.write_or_rehearse(true, |writer| {
        writer.put_notice(&key(), NoticeChannel::Command, &Json::object(&[]))?;
        Ok(writer.notices_written())
    });
    assert_eq!(rehearsed.unwrap(), 1);
    assert_eq!(unsent_counts(&town), (0, 0));
}

/// Tells news at the end of every transaction, and does nothing else.
struct TellNews;

impl CommitHook for TellNews {
    fn begin(&self, town: &Town) -> Option<Box<dyn CommitFollower>> {
        Some(Box::new(Teller(town.file_settings())))
    }
}

struct Teller(gt_core::settings::Layers);

impl CommitFollower for Teller {
    fn before_commit(&mut self, writer: &mut gt_store::Writer<'_>) -> gt_town::Result<()> {
        writer.as_consequence(|writer| super::write_event_notices(writer, &self.0))
    }
}
