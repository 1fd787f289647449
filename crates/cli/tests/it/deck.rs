//! The flight deck of the real binary: how it is opened, where it is, and what it shows of workers.

use std::fs;
use std::net::TcpListener;

use gt_testkit::http::{self, EventListener, HttpAnswer};
use gt_testkit::{Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::{Stage as _, town_with_agent};
use crate::projects::{STAYS, Worker, town_with_project};
use crate::serving::Served;
use crate::sessions::{script_bead, town_with_scripted_screens};
use crate::support::{Steps as _, assert_says, refusal, town};
use crate::trees::Trees as _;

/// The address and the path of a link.
fn parts(link: &str) -> (String, String) {
    let (address, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
    (address.to_owned(), format!("/{path}"))
}

/// A browser that has followed a login link.
struct Browser {
    address: String,
    cookie: String,
    csrf: String,
}

impl Browser {
    #[track_caller]
    fn of(link: &str) -> Self {
        let (address, path) = parts(link);
        let answer = http::ask(&address, "GET", &path, &[], "").is(303);
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let shown = http::ask(&address, "GET", "/api/v1/session", &[("cookie", &cookie)], "");
        let csrf = shown.is(200).json()["csrf"].as_str().unwrap().to_owned();
        Self { address, cookie, csrf }
    }

    fn get(&self, path: &str) -> HttpAnswer {
        http::ask(&self.address, "GET", path, &[("cookie", &self.cookie)], "")
    }

    fn post(&self, path: &str, body: &Value) -> HttpAnswer {
        let headers = [
            ("cookie", self.cookie.as_str()),
            ("x-gt-csrf", self.csrf.as_str()),
            ("content-type", "application/json"),
        ];
        http::ask(&self.address, "POST", path, &headers, &body.to_string())
    }

    fn look(&self, path: &str) -> EventListener {
        EventListener::to(&self.address, path, &[("cookie", &self.cookie)])
    }
}

/// The text of a screen.
fn text_of(screen: &Value) -> String {
    let rows = screen["rows"].as_array().unwrap().iter();
    let row = |row: &Value| {
        row.as_array().unwrap().iter().map(|piece| piece["t"].as_str().unwrap()).collect::<String>()
    };
    rows.map(row).collect::<Vec<_>>().join("\n")
}

/// The first frame for which this is true.
#[track_caller]
fn frame_with(frames: &mut EventListener, is_it: impl Fn(&Value) -> bool) -> Value {
    let mut parsed =
        frames.by_ref().map(|heard| serde_json::from_str::<Value>(&heard.data).unwrap());
    parsed.find(|frame| is_it(frame)).expect("the stream goes on")
}

fn deck_of(town: &Sandbox) -> Value {
    town.gt_json(&["status"])["deck"].clone()
}

#[test]
fn the_daemon_serves_the_deck_on_a_port_that_it_keeps() {
    let town = town();
    assert_eq!(deck_of(&town)["serving"], false);
    assert_says(&refusal(&town.gt(["deck", "--no-open"])), &["no daemon runs", "gt up"]);
    town.gt(["up"]).ok();
    wait_until("the deck is served", || deck_of(&town)["serving"] == true);
    let url = deck_of(&town)["url"].as_str().unwrap().to_owned();
    assert_says(&town.gt(["status"]).ok().stdout, &[&format!("Deck: {url} (gt deck opens it)")]);

    let made = town.gt_json(&["deck", "--no-open"]);
    let link = made["url"].as_str().unwrap();
    assert!(link.starts_with(&url), "{link}");
    assert_eq!((&made["opened"], &made["actor"]), (&json!(false), &json!("Test Person")));
    let browser = Browser::of(link);
    let session = browser.get("/api/v1/session").is(200).json();
    assert_eq!(session["actor"], "Test Person");
    assert_eq!(session["scopes"], json!(["view", "operate", "review", "type"]));
    browser.get("/api/v1/inbox").is(200);
    let listed = town.gt(["token", "list"]).ok().stdout;
    assert!(listed.contains("browser") && !listed.contains("login link"), "{listed}");
    // Without a login there is nothing, also for this machine's own users.
    http::ask(&browser.address, "GET", "/work", &[], "").is(401);

    // A worker and a check get no login.
    for (name, value) in [("GT_RUN", "we-a#1"), ("GT_CHECK", "test"), ("GT_RUN_TOKEN", "gtr_0")] {
        let refused = town.start_gt(&["deck", "--no-open"]).env(name, value).run();
        assert!(refused.code != 0 && !refused.stdout.contains("code="), "{name}: {refused:?}");
    }

    town.gt(["token", "revoke", "Test Person"]).ok();
    browser.get("/api/v1/session").is(401);

    town.gt(["down"]).ok();
    assert_eq!(deck_of(&town)["serving"], false);
    town.gt(["up"]).ok();
    wait_until("the deck is served again", || deck_of(&town)["serving"] == true);
    assert_eq!(deck_of(&town)["url"], json!(url));

    // A port that another program has is a problem that is told, and the daemon works without a deck.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    town.gt(["config", "set", "deck.port", &port]).ok();
    wait_until("the problem is told", || deck_of(&town)["problem"].is_string());
    assert_says(&town.gt(["doctor"]).stdout, &["deck", "cannot listen on", "deck.port"]);
    assert_says(&refusal(&town.gt(["deck"])), &["cannot serve the flight deck", "deck.port"]);
    town.gt(["config", "set", "deck.enabled", "false"]).ok();
    assert_says(&refusal(&town.gt(["deck"])), &["deck.enabled is false"]);
    town.gt(["down"]).ok();
}

#[test]
fn a_review_is_decided_on_the_page_while_agents_work() {
    let town = town_with_project(STAYS);
    town.gt(["config", "set", "rig.web.merge", "mr"]).ok();
    town.gt(["config", "set", "scheduler.max_polecats", "2"]).ok();
    town.gt(["up"]).ok();
    for bead in ["we-a", "we-b"] {
        let worker = Worker::begin(&town, bead, &["--review"]);
        worker.commit(bead, "x\n", &format!("Add {bead}"));
        worker.gt(&["done"]).ok();
        wait_until("it waits for a review", || {
            town.gt_json(&["mq", "show", bead])["state"] == "review"
        });
    }
    // The daemon waits for the end of this run, so it has the run's lock open.
    Worker::begin(&town, "we-live", &[]);
    let daemon = town.gt_json(&["daemon", "status"])["pid"].to_string();
    wait_until("the daemon waits for the run", || {
        let open = fs::read_dir(format!("/proc/{daemon}/fd")).unwrap().flatten();
        open.filter_map(|file| fs::read_link(file.path()).ok())
            .any(|file| file.to_string_lossy().ends_with("we-live#1.lock"))
    });
    wait_until("the deck is served", || deck_of(&town)["serving"] == true);
    let browser = Browser::of(town.gt_json(&["deck", "--no-open"])["url"].as_str().unwrap());

    let remark = json!({"message": "nice"});
    browser.post("/api/v1/reviews/we-a@1/comment", &remark).is(201);
    let approved = browser.post("/api/v1/reviews/we-a@1/approve", &json!({})).is(200).json();
    assert_eq!(approved["state"], "queued");
    browser.post("/api/v1/reviews/we-b@1/reject", &json!({"message": "no"})).is(200);

    town.allow("end-we-live");
    town.allow("end-we-b");
    town.gt(["down"]).ok();
}

/// A deck of `gt serve` and a browser that is logged in to it.
fn open_deck(town: Sandbox, scopes: &str) -> (Served, Browser) {
    let served = Served::of(town, &[]);
    let url = format!("http://{}/deck/", served.address);
    let arguments = ["deck", "--no-open", "--scopes", scopes, "--url", &url];
    let link = served.town.gt_json(&arguments)["url"].as_str().unwrap().to_owned();
    (served, Browser::of(&link))
}

#[test]
fn hostile_output_is_text_on_a_screen_and_a_client_that_does_not_read_stops_no_other() {
    let town = town_with_agent(
        "printf '\\033]0;title\\007\\033[31m<script>alert(1)</script>\\033[0m \\033]52;c;eA==\\007end\\n'\n\
         wait_for flood\n\
         i=0; while [ $i -lt 3000 ]; do echo \"line $i ........................................\"; i=$((i + 1)); done\n\
         echo over; wait_for go",
    );
    town.bead("we-a", &[]);
    town.gt(["sling", "we-a"]).ok();
    town.wait_for_agent("we-a#1");
    let (served, browser) = open_deck(town, "view");
    let path = "/api/v1/runs/we-a%231/screen";
    let mut frames = browser.look(path);
    let first = frame_with(&mut frames, |frame| text_of(frame).contains("end"));
    assert_eq!(text_of(&first), "<script>alert(1)</script> end");
    assert_eq!((&first["run"], &first["rows"][0][0]["s"]), (&json!("we-a#1"), &json!("f1")));
    let mut tiles = browser.look("/api/v1/wall?runs=we-a%231,we-none");
    let mut shown: Vec<Value> = Vec::new();
    while shown.len() < 2 {
        shown.push(serde_json::from_str(&tiles.next().unwrap().data).unwrap());
    }
    assert!(shown.iter().any(|tile| tile["run"] == "we-none" && tile["problem"].is_string()));
    assert!(shown.iter().any(|tile| tile["run"] == "we-a#1" && tile["ended"] == false));

    // Streams whose clients never read.
    let _silent: Vec<EventListener> = (0..5).map(|_| browser.look(path)).collect();
    served.town.allow("flood");
    let flooded = frame_with(&mut frames, |frame| text_of(frame).contains("\nover"));
    assert!(flooded["rows"].as_array().unwrap().len() <= 50);
    frame_with(&mut tiles, |tile| text_of(tile).contains("\nover"));
    browser.get("/api/v1/inbox").is(200);
    browser.post("/api/v1/runs/we-a%231/keys", &json!({"text": "x"})).is(403);
    browser.get("/api/v1/runs/we-none/screen").is(404);

    served.town.allow("go");
    frame_with(&mut frames, |frame| frame["ended"] == true);
    frame_with(&mut tiles, |frame| frame["ended"] == true);
    served.stop();
}

#[test]
fn keys_of_a_page_reach_the_session_of_one_worker_from_one_client() {
    let town = town_with_scripted_screens();
    script_bead(&town, "we-1", "touch begun\nread typed.log\nwait-for go.log\ndone");
    town.begin("we-1");
    let (served, browser) = open_deck(town, "type");
    let keys = "/api/v1/runs/we-1%231/keys";
    let mut frames = browser.look("/api/v1/runs/we-1%231/screen");
    frame_with(&mut frames, |frame| frame["source"] == "screen");
    let typed = browser.post(keys, &json!({"text": "The fixture moved"})).is(200).json();
    assert_eq!((&typed["how"], &typed["detail"]), (&json!("typed"), &json!("we-furiosa")));
    frame_with(&mut frames, |frame| text_of(frame).contains("The fixture moved"));

    let url = format!("http://{}/deck/", served.address);
    let other = served.town.gt_json(&["deck", "--no-open", "--url", &url]);
    let other = Browser::of(other["url"].as_str().unwrap());
    let refused = other.post(keys, &json!({"key": "enter"})).is(409).json();
    assert_eq!(refused["code"], "keyboard-taken");
    for wrong in [
        json!({}),
        json!({"key": "f13"}),
        json!({"text": "\u{1b}[A"}),
        json!({"text": "a", "key": "up"}),
    ] {
        browser.post(keys, &wrong).is(422);
    }
    browser.post(keys, &json!({"key": "enter"})).is(200);
    let town = &served.town;
    wait_until("the agent has read it", || {
        fs::read_to_string(town.tree("furiosa").join("typed.log")).unwrap_or_default()
            == "The fixture moved\n"
    });
    town.write("web/polecats/furiosa/rig/go.log", "");
    wait_until("we-1 is done", || town.run_of("we-1")["state"] == "done");
    browser.post(keys, &json!({"key": "enter"})).is(409);
    served.stop();
}
