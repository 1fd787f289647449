//! The flight deck: its page, its logins, and who may not use them.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use gt_core::work::{SESSION_AGE_MAX, SESSION_IDLE_MAX, Scopes, TokenId, TokenSecret};
use gt_core::{Clock, Timestamp};
use gt_scheduling::Consequences;
use gt_server::{Bind, ServerConfig};
use gt_testkit::http::{self, EventListener, HttpAnswer};
use gt_testkit::wait_until;
use gt_town::{Actor, Environment, StoreOptions, SystemClock, Town, install, settings};
use gt_workqueue::tokens::{self, NewToken};
use tempfile::TempDir;

use crate::support::Served;

/// The clock of this machine, and so much later.
#[derive(Debug, Default)]
struct LaterClock(AtomicI64);

impl LaterClock {
    fn advance(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_nanos()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for LaterClock {
    fn now(&self) -> Timestamp {
        let later = u64::try_from(self.0.load(Ordering::SeqCst)).unwrap();
        SystemClock.now().plus(Duration::from_nanos(later))
    }
}

/// A town with a directory and a server of its deck.
struct Deck {
    town: Town,
    clock: Arc<LaterClock>,
    server: Served,
    _directory: TempDir,
}

/// A browser that has logged in.
struct Browser {
    cookie: String,
    csrf: String,
}

fn town_in(directory: &Path, clock: Arc<LaterClock>) -> Town {
    let (root, environment) = (directory.join("town"), Environment::default());
    let actor = Actor { name: "ann".to_owned(), owner: String::new() };
    install(&root, &environment, &actor, &*clock).unwrap();
    let (options, hook) = (StoreOptions::default(), Arc::new(Consequences));
    Town::open(&root, &root, &environment, actor, clock, options, hook).unwrap()
}

impl Deck {
    fn new() -> Self {
        Self::with(&[], ServerConfig::deck(0))
    }

    fn with(set: &[(&str, &str)], config: ServerConfig) -> Self {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(LaterClock::default()));
        let town = town_in(directory.path(), Arc::clone(&clock));
        for (name, value) in set {
            settings::set(&town, name, value, gt_scheduling::runtimes::check_name).unwrap();
        }
        let server = Served::of(town.clone(), config);
        Self { town, clock, server, _directory: directory }
    }

    fn link(&self, scopes: &str) -> String {
        let (_, secret) = tokens::create_login(&self.town, Scopes::parse(scopes).unwrap()).unwrap();
        format!("/deck/login?code={}", secret.reveal())
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> HttpAnswer {
        let body = if matches!(method, "POST" | "PATCH") { "{}" } else { "" };
        let headers = [&[("content-type", "application/json")], headers].concat();
        http::ask(&self.server.address, method, path, &headers, body)
    }

    fn log_in(&self, scopes: &str) -> Browser {
        let answer = self.ask("GET", &self.link(scopes), &[]).is(303);
        assert_eq!(answer.header("location"), Some("./"));
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let session = self.ask("GET", "/api/v1/session", &[("cookie", &cookie)]).is(200).json();
        Browser { cookie, csrf: session["csrf"].as_str().unwrap().to_owned() }
    }

    fn session_status(&self, browser: &Browser) -> u16 {
        self.ask("GET", "/api/v1/session", &[("cookie", &browser.cookie)]).status
    }

    /// A stream that goes on until the session ends.
    fn wall(&self, browser: &Browser) -> EventListener {
        let headers = [("cookie", browser.cookie.as_str())];
        EventListener::to(&self.server.address, "/api/v1/wall?runs=gt-none", &headers)
    }
}

impl Browser {
    fn secret(&self) -> TokenSecret {
        TokenSecret::parse(self.cookie.split_once('=').unwrap().1).unwrap()
    }

    fn id(&self) -> TokenId {
        self.secret().hash().id()
    }
}

fn code(answer: &HttpAnswer) -> String {
    answer.json()["code"].as_str().unwrap().to_owned()
}

const RETRY: &str = "/api/v1/merge-requests/gt-none@1/retry";

#[test]
fn the_page_comes_whole_and_with_a_strict_policy() {
    let deck = Deck::new();
    let page = deck.ask("GET", "/deck/", &[]).is(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{policy}");
    for part in ["frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let tag = page.header("etag").unwrap();
    let again = deck.ask("GET", "/deck/index.html", &[("if-none-match", tag)]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(deck.ask("GET", "/deck", &[]).is(303).header("location"), Some("deck/"));
    deck.ask("GET", "/deck/no-such-file.js", &[]).is(404);
    // The page is all that is there without a login.
    for path in ["/api/v1/session", "/api/v1/inbox", "/api/v1/wall?runs=a", "/work", "/events"] {
        assert_eq!(deck.ask("GET", path, &[]).status, 401, "{path}");
    }
}

#[test]
fn a_server_without_logins_or_without_a_town_has_no_deck() {
    let insecure = ServerConfig { insecure: true, ..ServerConfig::on(vec![Bind::loopback(0)]) };
    let open = Deck::with(&[], insecure);
    let link = open.link("view");
    for path in ["/deck", "/deck/", "/deck/index.html", &link, "/api/v1/session"] {
        assert_eq!(open.ask("GET", path, &[]).status, 404, "{path}");
    }
    let queue = Served::with(gt_server::ServerLimits::default());
    queue.get("/deck/").is(404);
}

#[test]
fn a_login_link_works_once_and_names_its_person() {
    let deck = Deck::new();
    let link = deck.link("view,operate");
    // A program that looks at links does not use this one up.
    let mut looked = http::connect(&deck.server.address).unwrap();
    let head = format!("HEAD {link} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    looked.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    looked.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert_eq!(deck.ask("GET", &link, &[("sec-fetch-site", "cross-site")]).status, 403);
    let answer = deck.ask("GET", &link, &[]).is(303);
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "{cookie}");
    let id: String = deck.town.id().chars().filter(char::is_ascii_alphanumeric).collect();
    assert!(cookie.starts_with(&format!("gt_deck_{id}=")), "{cookie}");
    let again = deck.ask("GET", &link, &[]).is(403);
    assert!(again.text().contains("gt deck") && again.header("set-cookie").is_none());

    let cookie = cookie.split(';').next().unwrap();
    let session = deck.ask("GET", "/api/v1/session", &[("cookie", cookie)]).is(200).json();
    assert_eq!((&session["actor"], &session["town"]), (&"ann".into(), &"town".into()));
    assert_eq!(session["scopes"], serde_json::json!(["view", "operate"]));
    let listed = tokens::list(&deck.town).unwrap();
    let shown: Vec<&str> = listed.iter().map(|token| token.shown_as.as_str()).collect();
    assert_eq!(shown, ["login", "session"]);

    for wrong in ["", "?code=", "?code=gtw_00", "?code=junk"] {
        deck.ask("GET", &format!("/deck/login{wrong}"), &[]).is(403);
    }
    deck.ask("GET", "/deck/login?code=a&code=b", &[]).is(400);
}

#[test]
fn links_and_sessions_end_by_themselves() {
    let deck = Deck::new();
    let link = deck.link("view");
    deck.clock.advance(Duration::from_secs(61));
    deck.ask("GET", &link, &[]).is(403);

    let idle = deck.log_in("view");
    let (mut stream, busy) = (deck.wall(&idle), deck.log_in("view"));
    assert_eq!(stream.next().unwrap().event, "tile");
    deck.clock.advance(SESSION_IDLE_MAX / 2);
    deck.ask("GET", "/api/v1/session", &[("cookie", &busy.cookie)]).is(200);
    wait_until("the use is recorded", || {
        let tokens = tokens::list(&deck.town).unwrap();
        tokens.iter().any(|token| token.id == busy.id() && token.used_at.is_some())
    });
    deck.clock.advance(SESSION_IDLE_MAX / 2 + Duration::from_secs(1));
    assert_eq!(deck.session_status(&idle), 401);
    assert_eq!(deck.session_status(&busy), 200);
    for _ in 0..15 {
        deck.clock.advance(SESSION_AGE_MAX / 15);
        deck.session_status(&busy);
    }
    assert_eq!(deck.session_status(&busy), 401, "no use makes it last for ever");
}

#[test]
fn a_cookie_alone_changes_nothing() {
    let deck = Deck::new();
    let browser = deck.log_in("view,operate");
    let (cookie, csrf) =
        (("cookie", browser.cookie.as_str()), ("x-gt-csrf", browser.csrf.as_str()));
    assert_eq!(code(&deck.ask("POST", RETRY, &[cookie]).is(403)), "csrf");
    assert_eq!(code(&deck.ask("DELETE", "/api/v1/session", &[cookie]).is(403)), "csrf");
    let other = deck.log_in("view,operate");
    let foreign = [cookie, ("x-gt-csrf", other.csrf.as_str())];
    assert_eq!(code(&deck.ask("POST", RETRY, &foreign).is(403)), "csrf");
    // With the proof the request is judged by itself: there is no such merge request.
    deck.ask("POST", RETRY, &[cookie, csrf]).is(404);

    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1:1"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let refused = deck.ask("POST", RETRY, &[cookie, csrf, (name, value)]).is(403);
        assert_eq!(code(&refused), "wrong-origin", "{value}");
    }
    let own = format!("http://{}", deck.server.address);
    deck.ask("POST", RETRY, &[cookie, csrf, ("origin", &own)]).is(404);
    for host in ["evil.example", "evil.example:80", "localhost.evil.example"] {
        for (method, path) in [("GET", "/deck/"), ("GET", "/api/v1/session"), ("POST", RETRY)] {
            let refused = deck.ask(method, path, &[("host", host), cookie, csrf]).is(403);
            assert_eq!(code(&refused), "wrong-host", "{host} {path}");
        }
    }
}

#[test]
fn secrets_are_worth_something_in_their_own_place_alone() {
    let deck = Deck::new();
    let browser = deck.log_in("view,operate");
    let bearer = format!("Bearer {}", browser.secret().reveal());
    deck.ask("GET", "/api/v1/session", &[("authorization", &bearer)]).is(401);
    let link = deck.link("view");
    let link = format!("Bearer {}", link.split_once('=').unwrap().1);
    deck.ask("GET", "/api/v1/session", &[("authorization", &link)]).is(401);

    let scopes = Scopes::parse("view,operate,read").unwrap();
    let new = NewToken { name: "ci".to_owned(), scopes, agent: None, expires_at: None };
    let (_, secret) = tokens::create(&deck.town, new).unwrap();
    let name = browser.cookie.split_once('=').unwrap().0;
    let cookie = format!("{name}={}", secret.reveal());
    deck.ask("GET", "/api/v1/session", &[("cookie", &cookie)]).is(401);
    let token = format!("Bearer {}", secret.reveal());
    // A token needs no proof, because no browser sends it by itself; and any name of the server will do.
    let headers = [("authorization", token.as_str()), ("host", "town.example")];
    deck.ask("POST", RETRY, &headers).is(404);
    let session = deck.ask("GET", "/api/v1/session", &headers).is(200).json();
    assert_eq!((&session["actor"], session.get("csrf")), (&"ci".into(), None));
    assert_eq!(deck.ask("DELETE", "/api/v1/session", &headers).status, 409);
    // A session is for the deck, and not for the work queue.
    deck.ask("GET", "/work", &[("cookie", &browser.cookie)]).is(401);
    deck.ask("GET", "/work", &headers[..1]).is(200);
}

#[test]
fn a_session_has_its_scopes() {
    let deck = Deck::new();
    let keys = "/api/v1/runs/gt-none/keys";
    for (scopes, may_operate, may_type) in [
        ("view", false, false),
        ("operate", true, false),
        ("review", false, false),
        ("type", false, true),
        ("admin", true, true),
    ] {
        let browser = deck.log_in(scopes);
        let headers = [("cookie", browser.cookie.as_str()), ("x-gt-csrf", browser.csrf.as_str())];
        deck.ask("GET", "/api/v1/inbox", &headers).is(200);
        let status = deck.ask("POST", RETRY, &headers).status;
        assert_eq!(status, if may_operate { 404 } else { 403 }, "{scopes}");
        // An empty body is wrong for a client that may type.
        let status = deck.ask("POST", keys, &headers).status;
        assert_eq!(status, if may_type { 422 } else { 403 }, "{scopes}");
    }
    let old = deck.log_in("read");
    deck.ask("GET", "/api/v1/inbox", &[("cookie", &old.cookie)]).is(403);
}

#[test]
fn logging_out_and_revoking_end_a_session_and_its_streams() {
    let deck = Deck::new();
    let (ann, bob) = (deck.log_in("view"), deck.log_in("view"));
    let (mut of_ann, mut of_bob) = (deck.wall(&ann), deck.wall(&bob));
    assert!(of_ann.next().unwrap().data.contains("problem"));
    assert!(of_bob.next().is_some());
    tokens::revoke(&deck.town, &ann.id()).unwrap();
    assert_eq!(deck.session_status(&ann), 401);
    assert_eq!(of_ann.next(), None);

    let headers = [("cookie", bob.cookie.as_str()), ("x-gt-csrf", bob.csrf.as_str())];
    let over = deck.ask("DELETE", "/api/v1/session", &headers).is(204);
    assert!(over.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(deck.session_status(&bob), 401);
    assert_eq!(of_bob.next(), None);
}

#[test]
fn a_deck_behind_a_proxy_is_reached_by_its_own_name() {
    let set = [
        ("deck.url", "https://town.example/gt/deck/"),
        ("server.trusted_proxies", "127.0.0.0/8, ::1"),
    ];
    let deck = Deck::with(&set, ServerConfig::deck(0));
    let public = [("host", "town.example"), ("x-forwarded-proto", "https")];
    deck.ask("GET", "/deck/", &public).is(200);
    let answer = deck.ask("GET", &deck.link("operate"), &public).is(303);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; Path=/gt;") && cookie.ends_with("; Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    // The proxy may pass its own name on, or that of this machine.
    for host in ["town.example", "127.0.0.1"] {
        let asked = [("host", host), ("origin", "https://town.example"), ("cookie", cookie)];
        let session = deck.ask("GET", "/api/v1/session", &asked).is(200).json();
        let proof = session["csrf"].as_str().unwrap();
        let asked = [&asked[..], &[("x-gt-csrf", proof)]].concat();
        deck.ask("POST", RETRY, &asked).is(404);
    }
    deck.ask("GET", "/deck/", &[("host", "other.example")]).is(403);
}

#[test]
fn fifty_pages_are_served_and_one_login_has_so_many_streams() {
    let deck = Deck::new();
    let browsers: Vec<Browser> = (0..50).map(|_| deck.log_in("view")).collect();
    let mut streams: Vec<EventListener> =
        browsers.iter().map(|browser| deck.wall(browser)).collect();
    for stream in &mut streams {
        assert_eq!(stream.next().unwrap().event, "tile");
    }
    let mut more: Vec<EventListener> = (1..12).map(|_| deck.wall(&browsers[0])).collect();
    let headers = [("cookie", browsers[0].cookie.as_str())];
    deck.ask("GET", "/api/v1/wall?runs=gt-none", &headers).is(503);
    assert!(more.iter_mut().all(|stream| stream.next().is_some()));
    let many: Vec<String> = (0..65).map(|at| format!("gt-{at}")).collect();
    let path = format!("/api/v1/wall?runs={}", many.join(","));
    deck.ask("GET", &path, &[("cookie", &browsers[1].cookie)]).is(400);
    deck.ask("GET", "/api/v1/wall", &[("cookie", &browsers[1].cookie)]).is(400);

    // A client that asks and never reads the answer keeps no other one waiting.
    let mut silent = http::connect(&deck.server.address).unwrap();
    let head = format!(
        "GET /api/v1/wall?runs=gt-none HTTP/1.1\r\nhost: localhost\r\ncookie: {}\r\n\r\n",
        browsers[2].cookie
    );
    silent.write_all(head.as_bytes()).unwrap();
    deck.ask("GET", "/api/v1/session", &[("cookie", &browsers[3].cookie)]).is(200);
    drop(silent);
}
