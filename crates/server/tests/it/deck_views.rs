//! The views of a town at work, and the decisions that people make in them.

use std::sync::Arc;

use gt_beads::beads::{NewBead, create};
use gt_beads::messages::{Escalation, escalate};
use gt_core::bead::NewDependency;
use gt_core::message::Severity;
use gt_core::schedule::{ContextOrigin, Run, RunEnd, RunState};
use gt_core::work::Scopes;
use gt_core::{BeadChangeKind, BeadId, EventKind, ExecutorKind, RigSlug, Status, Uid};
use gt_scheduling::Consequences;
use gt_scheduling::runtimes::check_name;
use gt_server::{Bind, ServerConfig};
use gt_testkit::http::{self, EventListener, HttpAnswer};
use gt_town::rigs::{self, NewRig};
use gt_town::{Actor, Environment, StoreOptions, SystemClock, Town, install, settings};
use gt_workqueue::tokens::{self, NewToken};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::Served;

/// A town with a rig, in a directory, and a server of it.
struct Deck {
    town: Town,
    server: Served,
    bearer: String,
    _directory: TempDir,
}

impl Deck {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let environment = Environment::default();
        let actor = Actor { name: "tester".to_owned(), owner: String::new() };
        let root = install(directory.path(), &environment, &actor, &SystemClock).unwrap().root;
        let (clock, hook) = (Arc::new(SystemClock), Arc::new(Consequences));
        let options = StoreOptions::default();
        let town = Town::open(&root, &root, &environment, actor, clock, options, hook).unwrap();
        let web = NewRig {
            name: "web",
            repository: None,
            prefix: Some("wb"),
            branch: None,
            executor: ExecutorKind::Process,
        };
        rigs::add(&town, &web).unwrap();
        let bearer = token(&town, "ann", "view,operate");
        let serving = ServerConfig::on(vec![Bind::loopback(0)]);
        let server = Served::of(town.clone(), serving);
        Self { town, server, bearer, _directory: directory }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> HttpAnswer {
        let headers =
            [("authorization", self.bearer.as_str()), ("content-type", "application/json")];
        http::ask(&self.server.address, method, &format!("/api/v1/{path}"), &headers, body)
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, "").is(200).json()
    }

    fn post(&self, path: &str, body: &str) -> HttpAnswer {
        self.ask("POST", path, body)
    }

    fn bead(&self, id: &str, blockers: &[&str]) -> BeadId {
        let links = blockers.iter().map(|on| NewDependency::parse(on).unwrap()).collect();
        let new = NewBead {
            title: format!("Title of {id}"),
            id: Some(id.to_owned()),
            links,
            ..NewBead::default()
        };
        create(&self.town, &new, false).unwrap().bead.id
    }

    /// Begins a run without a worker.
    fn begin(&self, bead: &BeadId) -> Run {
        let begun = self.town.write(|writer| {
            let old = writer.bead(bead)?.unwrap();
            let rig = RigSlug::trusted("web".to_owned());
            let new = gt_store::NewContext::plain(
                bead.clone(),
                rig.clone(),
                old.priority,
                ContextOrigin::Sling,
            );
            let context = writer.insert_contexts(vec![new])?.remove(0);
            writer.set_starting(&context, true)?;
            let id = writer.next_run_id(bead)?;
            let (now, kind) = (writer.now(), ExecutorKind::None);
            let run = Run {
                agent: "web/crew/max".to_owned(),
                ..Run::begun(id, Uid::fresh(), context.number, rig, kind, now)
            };
            writer.insert_run(&run)?;
            let hooked = gt_core::Bead { status: Status::Hooked, ..old.clone() };
            writer.save_bead(&old, &hooked, BeadChangeKind::StatusChanged)?;
            Ok(run)
        });
        begun.unwrap()
    }
}

fn token(town: &Town, name: &str, scopes: &str) -> String {
    let scopes = Scopes::parse(scopes).unwrap();
    let new = NewToken { name: name.to_owned(), scopes, agent: None, expires_at: None };
    let (_, secret) = tokens::create(town, new).unwrap();
    format!("Bearer {}", secret.reveal())
}

fn ids<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

#[test]
fn the_head_line_counts_what_the_board_shows() {
    let deck = Deck::new();
    deck.bead("wb-a", &[]);
    deck.bead("wb-b", &["wb-a"]);
    deck.begin(&deck.bead("wb-c", &[]));

    let town = deck.get("town");
    assert_eq!((&town["ready"], &town["blocked"]), (&1.into(), &1.into()));
    assert_eq!((&town["rigs"], &town["live"]), (&serde_json::json!(["web"]), &0.into()));
    assert_eq!(town["daemon"]["running"], false);
    assert_eq!(town["problems"][0]["code"], "daemon");

    let board = deck.get("board");
    let lanes: Vec<&str> = ids(&board["lanes"], "lane");
    assert_eq!(lanes, ["blocked", "ready", "running", "review", "queue", "landed"]);
    let blocked = &board["lanes"][0];
    assert_eq!((ids(&blocked["items"], "bead"), &blocked["total"]), (vec!["wb-b"], &1.into()));
    let card = &blocked["items"][0];
    assert_eq!(card["reason"]["code"], "blocked");
    assert!(card["ends"].as_str().unwrap().contains("wb-a"), "{card}");
    assert_eq!(ids(&board["lanes"][1]["items"], "bead"), ["wb-a"]);
    let running = &board["lanes"][2]["items"][0];
    assert_eq!((&running["bead"], &running["run"]["id"]), (&"wb-c".into(), &"wb-c#1".into()));
    let narrow = deck.get("board?rig=web&limit=1");
    assert_eq!(narrow["lanes"][1]["items"].as_array().unwrap().len(), 1);
    deck.ask("GET", "board?rig=none", "").is(404);
    deck.ask("GET", "board?limit=0", "").is(400);
}

#[test]
fn runs_come_page_by_page_and_a_second_cancellation_is_told_of_the_first() {
    let deck = Deck::new();
    for id in ["wb-a", "wb-b", "wb-c"] {
        deck.begin(&deck.bead(id, &[]));
    }

    let first = deck.get("runs?limit=2");
    assert_eq!(
        (ids(&first["items"], "id"), &first["total"]),
        (vec!["wb-c#1", "wb-b#1"], &3.into())
    );
    let next = first["next"].as_str().unwrap().replace('#', "%23");
    let second = deck.get(&format!("runs?limit=2&cursor={next}"));
    assert_eq!(ids(&second["items"], "id"), ["wb-a#1"]);
    assert!(second.get("next").is_none());
    deck.ask("GET", "runs?cursor=x", "").is(422);

    let row = deck.get("runs/wb-a%231");
    assert_eq!((&row["state"], &row["agent"]), (&"starting".into(), &"web/crew/max".into()));
    let row = deck.post("runs/wb-a%231/cancel", "{}").is(200).json();
    assert_eq!(row["state"], "cancelled");
    let told = deck.post("runs/wb-a%231/cancel", "{}").is(409).json();
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.starts_with("wb-a#1 has ended already, cancelled by ann at"), "{detail}");
    deck.post("runs/wb-a%231/nudge", r#"{"text": "hello"}"#).is(409);
    deck.post("runs/wb-b%231/nudge", r#"{"text": "hello"}"#).is(200);
    deck.post("runs/wb-x%231/cancel", "{}").is(404);
    assert_eq!(ids(&deck.get("runs?state=ended")["items"], "id"), ["wb-a#1"]);
    assert_eq!(ids(&deck.get("runs?bead=wb-a")["items"], "id"), ["wb-a#1"]);
}

#[test]
fn a_bead_is_shown_changed_and_decided_once() {
    let deck = Deck::new();
    deck.bead("wb-a", &[]);

    let page = deck.get("beads/wb-a");
    assert_eq!((&page["bead"]["id"], &page["why"]["state"]), (&"wb-a".into(), &"idle".into()));
    let seen = page["bead"]["updated_at"].as_str().unwrap().to_owned();
    let change = format!(r#"{{"title": "Better", "priority": 0, "if_updated_at": "{seen}"}}"#);
    let page = deck.ask("PATCH", "beads/wb-a", &change).is(200).json();
    assert_eq!((&page["bead"]["title"], &page["bead"]["priority"]), (&"Better".into(), &0.into()));
    let told = deck.ask("PATCH", "beads/wb-a", &change).is(409).json();
    assert!(told["detail"].as_str().unwrap().contains("was changed meanwhile"), "{told}");
    deck.ask("PATCH", "beads/wb-a", r#"{"priority": 9}"#).is(422);

    gt_town::settings::set(&deck.town, "rig.web.command", "true {bead}", |_, _| Ok(())).unwrap();
    gt_town::settings::set(&deck.town, "scheduler.max_polecats", "2", |_, _| Ok(())).unwrap();
    let page = deck.post("beads/wb-a/sling", "{}").is(200).json();
    assert!(page["why"]["context"].is_object(), "{page}");
    deck.post("beads/wb-a/sling", "{}").is(409);
    deck.post("beads/wb-a/cancel", "{}").is(200);
    let told = deck.post("beads/wb-a/cancel", "{}").is(409).json();
    assert!(told["detail"].as_str().unwrap().contains("any more"), "{told}");
    deck.post("beads/wb-a/retry", r#"{"now": true}"#).is(200);
    deck.post("beads/wb-a/close", "{}").is(422);
    let page = deck.post("beads/wb-a/close", r#"{"reason": "not wanted"}"#).is(200).json();
    assert_eq!(page["bead"]["status"], "closed");
    let told = deck.post("beads/wb-a/close", r#"{"reason": "again"}"#).is(409).json();
    assert!(told["detail"].as_str().unwrap().ends_with("not wanted"), "{told}");
    deck.ask("GET", "beads/wb-none", "").is(404);
    let actors: Vec<String> = deck
        .town
        .read(|reader| {
            let (events, _) = reader.events_after(0, &gt_town::EventFilter::default(), 100)?;
            let closed = events.into_iter().filter(|event| event.kind == EventKind::Closed);
            Ok(closed.map(|event| event.actor).collect())
        })
        .unwrap();
    assert!(actors.iter().all(|actor| actor == "ann"), "a decision names the caller: {actors:?}");
}

#[test]
fn a_question_is_answered_once() {
    let deck = Deck::new();
    let words = "Which port?".to_owned();
    let wanted = Escalation { bead: None, words, severity: Severity::High };
    let message = escalate(&deck.town, None, &wanted).unwrap();

    deck.post(&format!("messages/{}/reply", message.id), r#"{"text": "8080"}"#).is(201);
    for deed in ["reply", "read"] {
        let body = if deed == "reply" { r#"{"text": "9090"}"# } else { "{}" };
        let told = deck.post(&format!("messages/{}/{deed}", message.id), body).is(409).json();
        assert!(told["detail"].as_str().unwrap().contains("already"), "{told}");
    }
    deck.post("messages/msg-999/read", "{}").is(404);
    deck.post("messages/x/read", "{}").is(400);
}

#[test]
fn the_scheduler_is_paused_once_and_by_name() {
    let deck = Deck::new();
    deck.post("scheduler/pause", "{}").is(200);
    let told = deck.post("scheduler/pause", "{}").is(409).json();
    assert!(told["detail"].as_str().unwrap().contains("by ann since"), "{told}");
    assert_eq!(deck.get("town")["paused"]["by"], "ann");
    deck.post("scheduler/resume", "{}").is(200);
    deck.post("scheduler/resume", "{}").is(409);
}

#[test]
fn everything_is_found_and_money_is_counted() {
    let deck = Deck::new();
    let bead = deck.bead("wb-a", &[]);
    let run = deck.begin(&bead);
    let hits = deck.get("search?q=title%20of%20WB");
    assert_eq!(ids(&hits["items"], "id"), ["wb-a"]);
    let hits = deck.get("search?q=wb-a");
    assert_eq!(ids(&hits["items"], "kind"), ["bead", "run"]);
    deck.ask("GET", "search", "").is(400);

    deck.town
        .write(|writer| {
            let change = gt_core::cost::SpendingChange {
                model: "opus".to_owned(),
                input: 5,
                cost: 250_000,
                ..gt_core::cost::SpendingChange::default()
            };
            let now = writer.now();
            writer.add_spending(&run, now, &change)?;
            let end = RunEnd::without_status(RunState::Done, "");
            Ok(writer.end_run(&run, &end, "")?)
        })
        .unwrap();
    let burn = deck.get("burn?hours=2");
    assert_eq!(
        (&burn["hours"][1]["cost"], &burn["hours"][1]["tokens"]),
        (&"0.25".into(), &5.into())
    );
    assert_eq!(deck.get("cost?by=model")["lines"][0]["name"], "opus");
    for path in ["budgets", "accounts", "flaky-checks", "landings", "convoys"] {
        assert_eq!(deck.get(path)["items"], serde_json::json!([]), "{path}");
    }
    deck.ask("GET", "burn?hours=0", "").is(400);
    deck.ask("GET", "cost?by=colour", "").is(400);
}

#[test]
fn events_are_heard_with_the_scope_of_views() {
    let deck = Deck::new();
    let bearer = deck.bearer.clone();
    let mut listener = EventListener::to(
        &deck.server.address,
        "/api/v1/events?since=0",
        &[("authorization", &bearer)],
    );
    deck.bead("wb-a", &[]);
    let heard = listener.find(|event| event.data.contains("wb-a")).unwrap();
    assert_eq!(heard.event, "created", "{heard:?}");
}

#[test]
fn a_convoy_is_shown_as_it_was_as_far_as_events_are_kept() {
    let deck = Deck::new();
    let members = [deck.bead("wb-a", &[]), deck.bead("wb-b", &["wb-a"])];
    let convoy = NewBead {
        title: "Search".to_owned(),
        id: Some("hq-cv-1".to_owned()),
        issue_type: Some(gt_core::IssueType::trusted("convoy".to_owned())),
        ..NewBead::default()
    };
    let convoy = create(&deck.town, &convoy, false).unwrap().bead.id;
    deck.town.write(|writer| Ok(writer.track(&convoy, &members)?)).unwrap();
    let last = || deck.get("town")["last_event"].as_u64().unwrap();
    let early = last();
    let run = deck.begin(&members[0]);
    let running = last();
    deck.post(&format!("runs/{}/cancel", run.id.to_string().replace('#', "%23")), "{}").is(200);
    deck.post("beads/wb-a/close", r#"{"reason": "done"}"#).is(200);

    let states = |at: &str| -> Vec<String> {
        let convoy = deck.get(&format!("convoys/hq-cv-1{at}"));
        let tracked = convoy["tracked"].as_array().unwrap();
        tracked.iter().map(|one| one["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(states(&format!("?at={early}")), ["idle", "blocked"]);
    assert_eq!(states(&format!("?at={running}")), ["starting", "blocked"]);
    assert_eq!(states(&format!("?at={}", last())), states(""), "the last event is the present");
    let now = deck.town.now().to_string();
    assert_eq!(states(&format!("?at={now}")), ["done", "idle"]);
    let graph = deck.get(&format!("convoys/hq-cv-1/graph?at={early}"));
    assert_eq!(
        (&graph["edges"][0]["from"], &graph["as_of"]["number"]),
        (&"wb-a".into(), &early.into())
    );
    assert_eq!(graph["nodes"][1]["state"], "blocked");
    let timeline = deck.get("convoys/hq-cv-1/timeline");
    let first = &timeline["rows"][0];
    assert_eq!((&first["bead"], &first["spans"][0]["kind"]), (&"wb-a".into(), &"running".into()));
    assert_eq!(first["spans"][0]["run"], "wb-a#1");
    assert!(first["spans"][0]["to"].is_string(), "{timeline}");

    deck.ask("GET", "convoys/hq-cv-1?at=tomorrow", "").is(400);
    deck.ask("GET", "convoys/hq-cv-1?at=999999", "").is(409);
    deck.ask("GET", "convoys/wb-a", "").is(409);
    let far = deck.town.now().plus(std::time::Duration::from_hours(1));
    deck.town.write(|writer| Ok(writer.purge_events(far, 4)?)).unwrap();
    let told = deck.ask("GET", "convoys/hq-cv-1?at=1", "").is(410).json();
    assert_eq!(told["code"], "not-kept");
    assert_eq!(
        states(&format!("?at={running}")),
        ["starting", "blocked"],
        "the rest is still told"
    );
}

#[test]
fn the_limit_of_a_budget_is_changed_by_the_person_who_saw_it() {
    let deck = Deck::new();
    let raise = |id: &str, body: &str| deck.ask("PATCH", &format!("budgets/{id}"), body);
    raise("budget.cost_per_day", r#"{"limit": "60"}"#).is(404);
    settings::set(&deck.town, "budget.cost_per_day", "40", check_name).unwrap();
    let seen = deck.get("budgets")["items"][0]["limit"].as_str().unwrap().to_owned();
    let change = format!(r#"{{"limit": "60", "if_limit": "{seen}"}}"#);
    let answer = raise("budget.cost_per_day", &change).is(200).json();
    assert_ne!(answer["items"][0]["limit"], seen.as_str());

    let late = raise("budget.cost_per_day", &change).is(409).json();
    assert!(late["detail"].as_str().unwrap().contains("meanwhile"), "{late}");
    raise("budget.cost_per_day", r#"{"limit": "much"}"#).is(422);
    raise("scheduler.max_polecats", r#"{"limit": "60"}"#).is(404);
}
