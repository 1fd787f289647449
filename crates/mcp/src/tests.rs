//! Sessions in one process: a client that speaks JSON lines, and a town in memory.

use std::sync::Arc;

use gt_beads::beads::{NewBead, create};
use gt_beads::messages::{self, MessageToSend};
use gt_core::schedule::{ContextOrigin, Run, RunId};
use gt_core::{BeadChangeKind, ExecutorKind, RigSlug, Status, Uid};
use gt_scheduling::Consequences;
use gt_store::NewContext;
use gt_town::{Actor, SystemClock, Town};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
    duplex, split,
};
use tokio_util::sync::CancellationToken;

use crate::caller::{McpCaller, McpRights, McpRole};
use crate::http_service::http_service;
use crate::session_limit::{TooManySessions, within_session_limit};
use crate::stdio::serve;

const WORKER: &str = "web/polecats/toast";

fn town() -> Town {
    let actor = Actor { name: "ann".to_owned(), owner: String::new() };
    Town::in_memory(actor, Arc::new(SystemClock), Arc::new(Consequences)).unwrap()
}

fn bead(town: &Town, id: &str) {
    let (title, id) = (format!("Title of {id}"), Some(id.to_owned()));
    create(town, &NewBead { title, id, ..NewBead::default() }, false).unwrap();
}

/// Begins a run of a bead, as a starter does.
fn begin_run(town: &Town, id: &str) -> RunId {
    bead(town, id);
    let begun = town.write(|writer| {
        let bead = gt_beads::lookup::require(town, writer, id)?;
        let rig = RigSlug::trusted("web".to_owned());
        let context =
            NewContext::plain(bead.id.clone(), rig.clone(), bead.priority, ContextOrigin::Sling);
        let contexts = writer.insert_contexts(vec![context])?;
        for context in &contexts {
            writer.set_starting(context, true)?;
        }
        let run = Run {
            agent: WORKER.to_owned(),
            ..Run::begun(
                writer.next_run_id(&bead.id)?,
                Uid::fresh(),
                contexts.first().map(|context| context.number).unwrap_or_default(),
                rig,
                ExecutorKind::Process,
                writer.now(),
            )
        };
        writer.insert_run(&run)?;
        let hooked =
            gt_core::Bead { status: Status::Hooked, assignee: WORKER.to_owned(), ..bead.clone() };
        writer.save_bead(&bead, &hooked, BeadChangeKind::StatusChanged)?;
        Ok(run.id)
    });
    begun.unwrap()
}

fn operator(town: &Town) -> McpCaller {
    McpCaller {
        role: McpRole::Operator,
        town: Arc::new(town.clone()),
        rights: McpRights::ALL,
        program: None,
        process: None,
        address: None,
    }
}

fn worker(town: &Town, run: &RunId) -> McpCaller {
    let actor = Actor { name: WORKER.to_owned(), owner: String::new() };
    let acting = town.clone().acting_as(actor, Some(run.clone()));
    McpCaller { role: McpRole::Worker, town: Arc::new(acting), ..operator(town) }
}

/// A client of a session.
struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: WriteHalf<DuplexStream>,
    next_id: u64,
    /// Notifications that came before an answer.
    told: Vec<Value>,
}

impl Client {
    /// Connects and greets.
    async fn of(caller: McpCaller) -> Self {
        let mut client = Self::connect(caller);
        let hello = client.ask("initialize", greeting("2025-06-18")).await;
        assert_eq!(hello["result"]["serverInfo"]["name"], "gt", "{hello}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    fn connect(caller: McpCaller) -> Self {
        let (ours, theirs) = duplex(1 << 20);
        tokio::spawn(async move { serve(caller, split(theirs)).await });
        let (output, input) = split(ours);
        let lines = BufReader::new(output).lines();
        Self { lines, input, next_id: 0, told: Vec::new() }
    }

    async fn write(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    async fn send(&mut self, message: &Value) {
        self.write(&message.to_string()).await;
    }

    async fn receive(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("the session goes on");
        serde_json::from_str(&line).unwrap()
    }

    /// The answer to a request.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let message = self.receive().await;
            if message["id"] == json!(id) {
                return message;
            }
            self.told.push(message);
        }
    }

    /// The text of a tool that succeeds.
    async fn call(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert_ne!(answer["result"]["isError"], json!(true), "{answer}");
        text_of(&answer)
    }

    /// The text of a tool that fails.
    async fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        if let Some(message) = answer["error"]["message"].as_str() {
            return message.to_owned();
        }
        assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
        text_of(&answer)
    }

    /// The address in the next notification.
    async fn updated(&mut self) -> String {
        let message = match self.told.pop() {
            Some(message) => message,
            None => self.receive().await,
        };
        assert_eq!(message["method"], "notifications/resources/updated", "{message}");
        message["params"]["uri"].as_str().unwrap().to_owned()
    }
}

fn greeting(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    })
}

fn text_of(answer: &Value) -> String {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_operator_creates_plans_and_finds_a_graph() {
    let town = town();
    let mut client = Client::of(operator(&town)).await;
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(names(&listed).len(), 12);
    let beads = json!([
        {"key": "epic", "title": "Login", "type": "epic"},
        {"key": "form", "title": "Form", "parent": "epic"},
        {"title": "Session", "parent": "epic", "deps": ["form"], "priority": 1},
    ]);

    let previewed = client.call("create", json!({"beads": beads, "dry_run": true})).await;
    assert!(previewed.starts_with("Would create epic = "), "{previewed}");
    assert!(client.call("find", json!({})).await.contains("Nothing is ready"));
    let created = client.call("create", json!({"beads": beads})).await;
    assert_eq!(created.lines().count(), 4, "{created}");
    assert!(created.ends_with("Next: plan, then launch or sling"), "{created}");

    let misspelt = json!({"beads": [{"title": "Docs", "deps": ["elsewhere-1"]}]});
    let told = client.call("create", misspelt).await;
    assert!(told.contains("depends on elsewhere-1, which does not exist here"), "{told}");

    let found = client.call("find", json!({"text": "Form"})).await;
    let form = found.split_whitespace().nth(1).unwrap().to_owned();
    let session = client.call("find", json!({"text": "Session"})).await;
    let session = session.split_whitespace().nth(1).unwrap().to_owned();
    let ready = client.call("find", json!({})).await;
    assert!(ready.contains(&form) && !ready.contains(&session), "{ready}");
    let shown = client.call("show", json!({"id": session})).await;
    assert!(shown.contains(&format!("blocks: {form}")), "{shown}");
    let why = client.call("why", json!({"bead": session})).await;
    assert!(why.contains("Because: "), "{why}");
    let planned = client.call("plan", json!({"ids": [form, session]})).await;
    // Town-level beads have no rig, so that a launch is refused; a plan says so and writes nothing.
    assert!(planned.contains("Error: no-rig"), "{planned}");
    assert!(client.call("status", json!({"view": "convoys"})).await.contains("No convoy"));
}

#[tokio::test]
async fn an_operator_pauses_decides_and_reads_the_state() {
    let town = town();
    let run = begin_run(&town, "hq-a");
    let mut client = Client::of(operator(&town)).await;

    assert!(client.call("pause", json!({})).await.contains("paused by ann"));
    assert!(client.call("status", json!({})).await.contains("Paused by ann"));
    assert!(client.call("pause", json!({"resume": true})).await.contains("starts again"));
    assert!(client.call("status", json!({"view": "runs"})).await.contains(&run.to_string()));
    assert!(client.call("status", json!({"view": "merge_queue"})).await.contains("empty"));
    assert!(client.call("status", json!({"view": "cost"})).await.contains("all: "));
    assert!(client.call("inbox", json!({})).await.contains("Nothing needs a person"));
    assert!(client.call("show", json!({"id": run.to_string()})).await.contains(WORKER));
    bead(&town, "hq-b");
    let close = json!({"action": "close", "id": "hq-b"});
    assert_eq!(client.refused("decide", close).await, "text is missing");
    let close = json!({"action": "close", "id": "hq-b", "text": "not needed"});
    assert_eq!(client.call("decide", close).await, "Closed hq-b");
}

#[tokio::test]
async fn a_worker_works_on_its_own_run_alone() {
    let town = town();
    let run = begin_run(&town, "hq-a");
    begin_run(&town, "hq-other");
    let mut client = Client::of(worker(&town, &run)).await;
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(names(&listed)[0], "next");

    let next = client.call("next", json!({})).await;
    assert!(next.contains("hq-a: Title of hq-a"), "{next}");
    assert!(client.call("show", json!({})).await.starts_with("hq-a [hooked"));
    assert_eq!(client.call("comment", json!({"text": "half way"})).await, "Commented on hq-a");
    let created = client.call("create", json!({"title": "A part", "priority": 1})).await;
    assert!(created.starts_with("Created hq-a.1 [open, P1, task] A part"), "{created}");
    let sent = json!({"action": "send", "to": "mayor", "subject": "Hello", "text": "there"});
    assert!(client.call("mail", sent).await.starts_with("Sent msg-"));
    assert_eq!(client.call("mail", json!({"action": "inbox"})).await, "Nothing is unread");

    let refused = client.refused("sling", json!({"beads": ["hq-a"]})).await;
    assert!(refused.contains("sling is for the operator, and this is the worker"), "{refused}");
    let other = client.ask("resources/read", json!({"uri": "gt://runs/hq-other%231"})).await;
    let other = other["error"]["message"].as_str().unwrap();
    assert!(other.contains("its own run, which is gt://runs/hq-a%231"), "{other}");
    let own = client.ask("resources/read", json!({"uri": "gt://runs/hq-a%231"})).await;
    assert!(own["result"]["contents"][0]["text"].as_str().unwrap().contains("\"hq-a#1\""));
}

#[tokio::test]
async fn a_question_waits_for_its_answer() {
    let town = town();
    let run = begin_run(&town, "hq-a");
    let mut client = Client::of(worker(&town, &run)).await;

    let asked = json!({"question": "Which of the two?", "wait_seconds": 0});
    let unanswered = client.call("ask", asked).await;
    assert!(unanswered.starts_with("msg-1 is not answered yet"), "{unanswered}");
    let inbox = Client::of(operator(&town)).await.call("inbox", json!({})).await;
    assert!(inbox.contains("Which of the two?"), "{inbox}");
    let decision = json!({"action": "answer", "id": "msg-1", "text": "The second"});
    Client::of(operator(&town)).await.call("decide", decision).await;
    let again = client.call("ask", json!({"message": "msg-1", "wait_seconds": 600})).await;
    assert!(again.contains("from ann") && again.ends_with("The second"), "{again}");
    let letter = MessageToSend { body: "For others".to_owned(), ..MessageToSend::default() };
    messages::send(&town, None, "mayor", &letter).unwrap();
    let foreign = client.refused("ask", json!({"message": "msg-3"})).await;
    assert!(foreign.contains("is no question of hq-a#1"), "{foreign}");
    let neither = client.refused("ask", json!({})).await;
    assert!(neither.contains("say either question"), "{neither}");
}

#[tokio::test]
async fn the_tools_of_a_run_that_is_over_change_nothing() {
    let town = town();
    let run = begin_run(&town, "hq-a");
    let stranger = RunId::parse("hq-a#7").unwrap();
    let mut client = Client::of(worker(&town, &stranger)).await;
    let refused = client.refused("comment", json!({"text": "still here"})).await;
    assert!(refused.contains("this town has no such run"), "{refused}");
    let mut client = Client::of(worker(&town, &run)).await;
    client.call("comment", json!({"text": "mine"})).await;
}

#[tokio::test]
async fn bad_input_gets_one_clear_error_and_the_session_goes_on() {
    let town = town();
    let mut client = Client::of(operator(&town)).await;
    for (tool, arguments, said) in [
        ("show", json!({}), "id is missing"),
        ("show", json!({"id": 7}), "id is a text, and a number was given"),
        ("find", json!({"limit": -1}), "limit is -1; it is a whole number from 0 to 200"),
        ("show", json!({"id": "hq-nothing"}), "hq-nothing"),
        ("show", json!({"id": "x", "colour": "red"}), "no argument \"colour\""),
        ("status", json!({"view": "moon"}), "view is \"moon\"; it is one of town"),
        ("create", json!({"beads": []}), "beads is a list of objects, at least one"),
        ("create", json!({"beads": [{"title": "a", "colour": "red"}]}), "colour"),
        ("sling", json!({"beads": ["--force"]}), "--force"),
        ("next", json!({}), "next is for the worker, and this is the operator"),
        ("drop_tables", json!({}), "there is no tool drop_tables"),
    ] {
        let refused = client.refused(tool, arguments).await;
        assert!(refused.contains(said), "{tool}: {refused}");
    }
    // Not JSON: it has no id to answer to, and is left out.
    client.write("{\"jsonrpc\": \"2.0\", \"id\": 1, \"meth").await;
    client.write("\u{0}\u{1}").await;
    client.write(&json!({"jsonrpc": "2.0", "id": 5}).to_string()).await;
    assert_eq!(client.receive().await["error"]["code"], -32600);
    let unknown = client.ask("tools/burn", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    assert_eq!(unknown["error"]["message"], "there is no method tools/burn");
    for params in [json!({}), json!({"name": "show", "arguments": [1]})] {
        let unread = client.ask("tools/call", params).await;
        assert_eq!(unread["error"]["code"], -32602, "{unread}");
        assert!(unread["error"]["message"].as_str().unwrap().contains("they are name"), "{unread}");
    }
    let long = client.refused("show", json!({"id": "a".repeat(100_000)})).await;
    assert!(long.contains("is not a bead id") && long.len() < 200, "{long}");
    let wrong = client.ask("resources/read", json!({"uri": "file:///etc/passwd"})).await;
    assert!(wrong["error"]["message"].as_str().unwrap().contains("is no resource"), "{wrong}");
    assert!(client.call("status", json!({})).await.contains("0 running"));
}

#[tokio::test]
async fn another_protocol_version_is_answered_with_one_of_ours() {
    let mut client = Client::connect(operator(&town()));
    let hello = client.ask("initialize", greeting("1999-01-01")).await;
    let version = hello["result"]["protocolVersion"].as_str().unwrap();
    assert!(version.starts_with("20"), "{hello}");
}

#[tokio::test]
async fn a_resource_that_changes_is_told_to_its_subscriber() {
    let town = town();
    let run = begin_run(&town, "hq-a");
    bead(&town, "hq-b");
    let mut client = Client::of(operator(&town)).await;
    let templates = client.ask("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"].as_array().unwrap().len(), 3);
    let listed = client.ask("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"][0]["uri"], "gt://runs/hq-a%231", "{listed}");
    let missing = client.ask("resources/subscribe", json!({"uri": "gt://beads/hq-x"})).await;
    assert!(missing["error"]["message"].as_str().unwrap().contains("hq-x"), "{missing}");
    for uri in ["gt://beads/hq-b", "gt://runs/hq-a%231"] {
        let subscribed = client.ask("resources/subscribe", json!({"uri": uri})).await;
        assert!(subscribed["error"].is_null(), "{subscribed}");
    }

    gt_beads::notes::comment(&town, "hq-a", "not of hq-b", None).unwrap();
    gt_beads::notes::comment(&town, "hq-b", "a change", None).unwrap();

    assert_eq!(client.updated().await, "gt://beads/hq-b");
    let read = client.ask("resources/read", json!({"uri": "gt://beads/hq-b"})).await;
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("a change"));
    client.ask("resources/unsubscribe", json!({"uri": "gt://beads/hq-b"})).await;
    let own = worker(&town, &run);
    Client::of(own).await.call("comment", json!({"text": "mine"})).await;
}

#[tokio::test]
async fn a_client_gets_no_session_beyond_the_limit_until_one_ends() {
    use tower::ServiceExt as _;

    let service = http_service(CancellationToken::new(), None, 2);
    let town = town();
    let ask = |method: &str, session: Option<&str>| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting("2025-06-18")});
        let mut request = http::Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let mut request = request.body(body.to_string()).unwrap();
        request.extensions_mut().insert(operator(&town));
        within_session_limit(service.clone().oneshot(request))
    };

    let mut sessions = Vec::new();
    for _ in 0..2 {
        let begun = ask("POST", None).await.unwrap().unwrap();
        assert_eq!(begun.status(), 200);
        sessions.push(begun.headers()["mcp-session-id"].to_str().unwrap().to_owned());
    }
    let refused = ask("POST", None).await.map(drop);
    assert_eq!(refused, Err(TooManySessions));
    assert!(TooManySessions.to_string().contains("DELETE /mcp"));
    let ended = ask("DELETE", Some(&sessions[0])).await.unwrap().unwrap();
    assert!(ended.status().is_success(), "{}", ended.status());
    assert_eq!(ask("POST", None).await.unwrap().unwrap().status(), 200);
}
