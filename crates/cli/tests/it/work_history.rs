//! A history of a work queue under fire: hundreds of clients submit, take, renew, complete, fail, give back, time out and
//! crash, while the server is killed, its clock jumps, and its database is restarted. Afterwards what they were told must fit
//! what is in the store.
//!
//! `TEST_HISTORY_SECONDS` makes it longer, `TEST_HISTORY_SEED` chooses other clients.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use gt_testkit::http::{HttpAnswer, connect, try_to_ask};
use gt_testkit::{Cluster, Random, RunningProgram, Sandbox, SandboxCommand, TestClock, wait_until};
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::serving::text;
use crate::support::{Steps as _, town_on, town_on_file};

/// Agents that take work. Every fourth of them has a twin that asks in its name.
const AGENTS: u64 = 160;
const TWINS: u64 = 40;
/// Those who submit work.
const SUBMITTERS: u64 = 16;
/// The most that each of them submits.
const SUBMISSIONS_MAX: u64 = 40;
/// The shortest lease there is, and how far the clock jumps so that it ends.
const LEASE_S: u64 = 30;
const JUMP_S: i64 = 45;

fn from_environment(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "the product does not look at it")]
    let value = std::env::var(name);
    value.ok().and_then(|text| text.parse().ok())
}

/// How a run was said to have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Completed,
    Failed,
    Released,
}

/// A request of a client, and the answer.
#[derive(Debug, Clone)]
enum Fact {
    /// An item is in the queue, said the server.
    Submitted { item: String },
    /// An agent has an item now, said the server.
    Taken { agent: String, item: String, run: String },
    /// A run ended like this, said its agent; `told` if the server said so too.
    Ended { item: String, run: String, end: End, told: bool },
}

/// A server that can be killed and whose clock can be set.
struct Arena {
    town: Sandbox,
    address: String,
    clock: TestClock,
    server: Mutex<Option<RunningProgram>>,
    stop: AtomicBool,
    facts: Mutex<Vec<Fact>>,
}

impl Arena {
    fn open(town: Sandbox) -> Self {
        // The port stays free meanwhile: processes that ask for any port get another.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let clock = TestClock::wrong_by(&town, 0);
        let arena = Self {
            town,
            address,
            clock,
            server: Mutex::default(),
            stop: AtomicBool::new(false),
            facts: Mutex::default(),
        };
        arena.start();
        arena
    }

    fn start(&self) {
        let serve = ["serve", "--bind", &self.address, "--log", "json", "--json"];
        let running = self.with_clock(self.town.start_gt(&serve)).start();
        wait_until("the server listens", || running.stdout().ends_with("}\n"));
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    }

    fn with_clock(&self, invocation: SandboxCommand) -> SandboxCommand {
        self.clock.read_by(invocation.time_limit(Duration::from_hours(1)))
    }

    /// `kill -9`.
    fn kill(&self) {
        let running = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        running.map(RunningProgram::kill);
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn record(&self, fact: Fact) {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).push(fact);
    }

    /// The answer of the server; nothing if it gives none. Then it is unknown whether it made the change.
    fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Option<HttpAnswer> {
        let headers = [&[("content-type", "application/json")], headers].concat();
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let answer = try_to_ask(&self.address, method, path, &headers, &text).ok()?;
        if answer.status >= 500 && answer.status != 503 {
            let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
            let log = server.as_ref().map(RunningProgram::stderr).unwrap_or_default();
            let id = answer.header("x-request-id").unwrap_or_default().to_owned();
            let said: Vec<&str> = log.lines().filter(|line| line.contains(&id)).collect();
            panic!("{method} {path}: {}\n{}", answer.text(), said.join("\n"));
        }
        (answer.status != 503).then_some(answer)
    }

    /// Asks, and goes away before there is an answer.
    fn ask_and_leave(&self, method: &str, path: &str, body: &Value) {
        let text = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
            self.address,
            text.len()
        );
        if let Ok(mut stream) = connect(&self.address) {
            // The request may arrive or not: its caller does not wait.
            let _ = stream.write_all(head.as_bytes());
        }
    }

    fn submit(&self, mut random: Random, name: u64) {
        for number in 0..SUBMISSIONS_MAX {
            if self.is_over() {
                return;
            }
            let item = json!({
                "type": "task", "description": format!("Item {number} of {name}"),
                "priority": random.between(1, 5),
            });
            if random.one_in(8) {
                self.ask_and_leave("POST", "/work", &item);
                continue;
            }
            // Repeated under its name until it is acknowledged.
            let key = format!("{name}-{number}");
            while !self.is_over() {
                let Some(answer) = self.ask("POST", "/work", &[("idempotency-key", &key)], &item)
                else {
                    sleep(Duration::from_millis(random.between(5, 50)));
                    continue;
                };
                self.record(Fact::Submitted { item: text(&answer.is(201).json()["id"]) });
                break;
            }
            sleep(Duration::from_millis(random.between(0, 60)));
        }
    }

    fn work(&self, mut random: Random, agent: &str) {
        while !self.is_over() {
            let wait_s = u64::from(random.one_in(3));
            let ask = json!({"agent": agent, "lease_s": LEASE_S, "wait_s": wait_s});
            let answer = self.ask("POST", "/work/next", &[], &ask);
            let Some(answer) = answer.filter(|answer| answer.status == 200) else {
                // Away, or busy with something that it has forgotten or that its twin does.
                sleep(Duration::from_millis(random.between(20, 120)));
                continue;
            };
            let taken = answer.json();
            if taken["item"].is_null() {
                sleep(Duration::from_millis(random.between(5, 40)));
                continue;
            }
            let (item, run) = (text(&taken["item"]["id"]), text(&taken["run_id"]));
            let agent = agent.to_owned();
            self.record(Fact::Taken { agent, item: item.clone(), run: run.clone() });
            self.carry_out(&mut random, &item, &run);
        }
    }

    fn carry_out(&self, random: &mut Random, item: &str, run: &str) {
        for _ in 0..random.below(3) {
            let beat = json!({"run_id": run, "lease_s": LEASE_S});
            self.ask("POST", &format!("/work/{item}/heartbeat"), &[], &beat);
            sleep(Duration::from_millis(random.between(0, 20)));
        }
        let choices = vec![
            (8, Some(End::Completed)),
            (2, Some(End::Failed)),
            (1, Some(End::Released)),
            (2, None),
        ];
        // One that crashes says nothing any more.
        let Some(end) = random.weighted(choices).flatten() else { return };
        let (method, path, body) = match end {
            End::Completed => {
                ("PATCH", "", json!({"status": "completed", "outcome": "success", "run_id": run}))
            }
            End::Failed => {
                ("PATCH", "", json!({"status": "failed", "outcome": "failed", "run_id": run}))
            }
            End::Released => ("POST", "/release", json!({"run_id": run})),
        };
        let path = format!("/work/{item}{path}");
        let told = if random.one_in(6) {
            self.ask_and_leave(method, &path, &body);
            false
        } else {
            match self.ask(method, &path, &[], &body) {
                Some(answer) if answer.status == 200 => true,
                Some(answer) => {
                    assert_eq!(answer.status, 409, "{}", answer.text());
                    return;
                }
                None => false,
            }
        };
        let (item, run) = (item.to_owned(), run.to_owned());
        self.record(Fact::Ended { item, run, end, told });
    }

    /// Looks again and again who has what.
    fn watch(&self) {
        while !self.is_over() {
            if let Some(answer) = self.ask("GET", "/work?status=in_progress", &[], &Value::Null) {
                let items = answer.is(200).json();
                let mut seen = BTreeSet::new();
                for item in items.as_array().unwrap() {
                    let agent = text(&item["assigned_agent"]);
                    assert!(
                        seen.insert(agent.clone()),
                        "{agent} has two items in progress: {items}"
                    );
                }
            }
            sleep(Duration::from_millis(100));
        }
    }

    /// All items, and everything that agents have tried, once nothing happens any more.
    fn settle(&self, clock: i64) -> BTreeMap<String, Value> {
        // The leases of abandoned items run out, and an agent that abandons nothing completes them.
        self.clock.set(clock + 4000);
        let asked = |method: &str, path: &str, body: Value| {
            let mut answer = None;
            wait_until(&format!("{method} {path} is answered"), || {
                answer = self.ask(method, path, &[], &body);
                answer.is_some()
            });
            answer.unwrap()
        };
        // A database counts leases by its own clock, which goes on as always.
        wait_until("every lease is over", || {
            asked("POST", "/work/stale-check", json!({})).is(200);
            let left = asked("GET", "/work?status=in_progress", Value::Null).is(200).json();
            left.as_array().is_some_and(Vec::is_empty)
        });
        loop {
            let ask = json!({"agent": "the last one", "lease_s": 3600});
            let taken = asked("POST", "/work/next", ask).is(200).json();
            if taken["item"].is_null() {
                break;
            }
            let (item, run) = (text(&taken["item"]["id"]), text(&taken["run_id"]));
            let done = json!({"status": "completed", "outcome": "success", "run_id": run});
            asked("PATCH", &format!("/work/{item}"), done).is(200);
            let end = End::Completed;
            self.record(Fact::Ended { item, run, end, told: true });
        }
        let items = asked("GET", "/work", Value::Null).is(200).json();
        let ids: Vec<String> =
            items.as_array().unwrap().iter().map(|item| text(&item["id"])).collect();
        let detailed = |id: String| {
            let item = asked("GET", &format!("/work/{id}"), Value::Null).is(200).json();
            (id, item)
        };
        ids.into_iter().map(detailed).collect()
    }
}

/// One attempt of an agent, as the store has it.
struct Attempt {
    item: String,
    agent: String,
    state: String,
}

/// Compares what clients were told with what is in the store.
fn check(facts: &[Fact], items: &BTreeMap<String, Value>) {
    let mut attempts: HashMap<String, Attempt> = HashMap::new();
    for (id, item) in items {
        for attempt in item["dispatch_log"].as_array().unwrap() {
            let kept = Attempt {
                item: id.clone(),
                agent: text(&attempt["agent"]),
                state: text(&attempt["state"]),
            };
            assert!(attempts.insert(text(&attempt["id"]), kept).is_none());
        }
    }
    let mut handed_out = BTreeSet::new();
    let mut completed = BTreeSet::new();
    let mut asked_for = BTreeSet::new();
    for fact in facts {
        match fact {
            Fact::Submitted { item } => {
                assert!(items.contains_key(item), "{item} was acknowledged and is lost");
            }
            Fact::Taken { agent, item, run } => {
                assert!(handed_out.insert(run), "the run {run} was handed out twice");
                let kept = attempts.get(run).unwrap_or_else(|| panic!("the run {run} is lost"));
                assert_eq!(
                    (&kept.agent, &kept.item),
                    (agent, item),
                    "{run} belongs to another agent or item"
                );
            }
            Fact::Ended { item, run, end, told } => {
                asked_for.insert((run.clone(), *end));
                if !told {
                    continue;
                }
                let state = match end {
                    End::Completed => "done",
                    End::Failed => "failed",
                    End::Released => "cancelled",
                };
                assert_eq!(attempts[run].state, state, "the end of {run} was acknowledged");
                if *end == End::Completed {
                    assert!(completed.insert(item), "{item} was completed twice");
                    assert_eq!(items[item]["status"], "completed", "{item} was completed");
                }
            }
        }
    }
    for (id, item) in items {
        let ended =
            |state: &str| attempts.values().filter(|a| a.item == *id && a.state == state).count();
        let (done, failed) = (ended("done"), ended("failed"));
        let status = text(&item["status"]);
        let expected = match status.as_str() {
            "completed" => (1, 0),
            "failed" => (0, 1),
            _ => (0, 0),
        };
        assert_eq!((done, failed), expected, "{id} is {status}");
        assert!(item["completed_at"].is_string(), "{id} is {status} in the end");
    }
    for (run, attempt) in &attempts {
        let end = match attempt.state.as_str() {
            "done" => End::Completed,
            "failed" => End::Failed,
            _ => continue,
        };
        assert!(
            asked_for.contains(&(run.clone(), end)),
            "no agent reported that {run} was {}",
            attempt.state
        );
    }
}

/// Replays what happened, in the order in which it did: an agent begins nothing before what it had has ended.
fn replay(events: &[Value]) {
    let mut has: HashMap<String, String> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["number"], at as u64 + 1, "the log has no gaps");
        let kind = text(&event["event_type"]);
        let Some(run) = event["run"].as_str() else { continue };
        if kind == "dispatched" {
            let agent = text(&event["payload"]["agent"]);
            let before = has.insert(agent.clone(), run.to_owned());
            assert_eq!(before, None, "{agent} had that when it began {run}");
        } else if ["run_done", "run_failed", "run_lost", "run_cancelled"].contains(&kind.as_str()) {
            let count = has.len();
            has.retain(|_, held| held != run);
            assert_eq!(has.len() + 1, count, "{run} ended, and no agent had it");
        }
    }
}

/// Lets them all loose, with `trouble` now and then, and checks what came of it.
fn play(town: Sandbox, trouble: impl Fn(&Arena) + Sync) {
    let seed = from_environment("TEST_HISTORY_SEED").unwrap_or(7);
    let seconds = from_environment("TEST_HISTORY_SECONDS").unwrap_or(4);
    let arena = Arena::open(town);
    let mut clock = 0;
    scope(|scope| {
        let arena = &arena;
        for name in 0..SUBMITTERS {
            scope.spawn(move || arena.submit(Random::new(seed + 1000 + name), name));
        }
        for number in 0..AGENTS + TWINS {
            let agent =
                format!("agent-{}", if number < AGENTS { number } else { (number - AGENTS) * 4 });
            scope.spawn(move || arena.work(Random::new(seed + 2000 + number), &agent));
        }
        scope.spawn(|| arena.watch());
        let mut random = Random::new(seed);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(seconds) {
            sleep(Duration::from_millis(random.between(300, 900)));
            match random.below(3) {
                0 => {
                    arena.kill();
                    arena.start();
                }
                1 => trouble(arena),
                _ => {
                    clock += JUMP_S;
                    arena.clock.set(clock);
                    arena.ask("POST", "/work/stale-check", &[], &json!({}));
                }
            }
        }
        arena.stop.store(true, Ordering::SeqCst);
    });
    let items = arena.settle(clock);
    let facts = arena.facts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let told = facts.iter().filter(|fact| matches!(fact, Fact::Ended { told: true, .. })).count();
    assert!(
        told > 10,
        "something was done: {} items, {} facts, seed {seed}",
        items.len(),
        facts.len()
    );
    check(&facts, &items);
    replay(&arena.town.events());
}

#[test]
fn the_history_check_finds_each_kind_of_fault() {
    let logged = |run: &str, state: &str| json!({"id": run, "agent": "ann", "state": state});
    let item = |status: &str, log: Vec<Value>| {
        let item = json!({"status": status, "completed_at": "then", "dispatch_log": log});
        BTreeMap::from([("a".to_owned(), item)])
    };
    let taken = |agent: &str| {
        let (item, run) = ("a".to_owned(), "r".to_owned());
        Fact::Taken { agent: agent.to_owned(), item, run }
    };
    let ended = |run: &str, end, told| {
        let (item, run) = ("a".to_owned(), run.to_owned());
        Fact::Ended { item, run, end, told }
    };
    let submitted = |item: &str| Fact::Submitted { item: item.to_owned() };
    let is_right = |facts: Vec<Fact>, items: BTreeMap<String, Value>| {
        std::panic::catch_unwind(|| check(&facts, &items)).is_ok()
    };
    let done = || item("completed", vec![logged("r", "done")]);
    let completed = || ended("r", End::Completed, true);
    assert!(is_right(vec![submitted("a"), taken("ann"), completed()], done()));
    // A lost answer may mean either.
    assert!(is_right(vec![ended("r", End::Completed, false)], done()));
    assert!(is_right(vec![ended("r", End::Failed, false), completed()], done()));

    assert!(!is_right(vec![submitted("b"), completed()], done()), "an item is lost");
    assert!(!is_right(vec![taken("bob"), completed()], done()), "another agent has it");
    assert!(!is_right(vec![taken("ann"), taken("ann"), completed()], done()), "handed out twice");
    assert!(!is_right(vec![], done()), "no agent completed it");
    let lost = item("completed", vec![logged("r", "lost"), logged("s", "done")]);
    let both = vec![completed(), ended("s", End::Completed, true)];
    assert!(!is_right(both.clone(), lost), "a completion is lost");
    let twice = item("completed", vec![logged("r", "done"), logged("s", "done")]);
    assert!(!is_right(both, twice), "completed twice");
    let open = item("queued", vec![logged("r", "done")]);
    assert!(!is_right(vec![completed()], open), "it is done and queued");

    let event = |number: u64, kind: &str, run: &str| {
        let payload = json!({"agent": "ann"});
        json!({"number": number, "event_type": kind, "run": run, "payload": payload})
    };
    let happens = |events: Vec<Value>| std::panic::catch_unwind(|| replay(&events)).is_ok();
    let (first, second) = (event(1, "dispatched", "a#1"), event(3, "dispatched", "b#1"));
    assert!(happens(vec![first.clone(), event(2, "run_lost", "a#1"), second.clone()]));
    assert!(!happens(vec![first.clone(), second]), "a gap");
    assert!(!happens(vec![first, event(2, "dispatched", "b#1")]), "two at once");
}

#[test]
fn nothing_acknowledged_is_lost_or_done_twice_on_a_file() {
    play(town_on_file(), |arena| {
        arena.kill();
        arena.start();
    });
}

#[test]
fn nothing_acknowledged_is_lost_or_done_twice_on_a_database_that_is_restarted() {
    let cluster = Cluster::start("");
    let town = town_on(&cluster.fresh_database());
    play(town, |_| {
        cluster.stop();
        cluster.start_server();
    });
}
