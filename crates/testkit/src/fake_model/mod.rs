//! A model without a model: the HTTP interfaces of the vendors, answered by a script in the prompt.
//!
//! Real agents are pointed at it in tests. `script.rs` has the instructions. An agent without tools, which edits by
//! what the model says, is pointed at the path `/text`: there a file to write is part of the answer.

mod answer;
mod refusal;
mod request;
mod script;

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use answer::{CACHED_TOKENS, INPUT_TOKENS, ModelAnswer, OUTPUT_TOKENS, render};
use refusal::Refusal;
use request::{ModelApi, ModelRequest, example_of};
use script::{Act, ModelFault, Turn};

/// The path below which agents without tools work.
const TEXT_ONLY: &str = "/text";

/// A server that plays all model vendors. It ends when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    record: PathBuf,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeModel {
    /// Starts a server on a free port of this machine. Each request becomes a line of JSON in the file `record`.
    pub fn start(record: &Path) -> Self {
        Self::start_at(record, 0)
    }

    /// The same on this port.
    pub fn start_at(record: &Path, port: u16) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .expect("a port for the fake model");
        let address = listener.local_addr().expect("a bound port has an address");
        listener.set_nonblocking(true).expect("a socket can be told not to block");
        let file = File::options()
            .create(true)
            .append(true)
            .open(record)
            .expect("open the record of requests");
        let state =
            Arc::new(Mutex::new(Memory { file, conversations: HashMap::new(), answers: 0 }));
        let (stop, stopped) = oneshot::channel::<Infallible>();
        let serve = async move {
            let listener =
                tokio::net::TcpListener::from_std(listener).expect("a socket for the fake model");
            let routes = Router::new()
                .fallback(answer_request)
                .layer(DefaultBodyLimit::disable())
                .with_state(state);
            tokio::select! {
                served = async { axum::serve(listener, routes).await } => served.expect("serve the fake model"),
                _ = stopped => {}
            }
        };
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // Requests that are never answered end with the runtime.
            runtime.expect("a runtime for the fake model").block_on(serve);
        });
        Self { address, record: record.to_owned(), stop: Some(stop), thread: Some(thread) }
    }

    /// The beginning of its addresses, such as `http://127.0.0.1:4711`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address for an agent without tools.
    pub fn text_url(&self) -> String {
        format!("http://{}{TEXT_ONLY}", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.record).expect("read the record of requests");
        text.lines().map(|line| serde_json::from_str(line).expect("the record is JSON")).collect()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server has been printed already.
            let _ = thread.join();
        }
    }
}

/// The state of the server between requests.
#[derive(Debug)]
struct Memory {
    file: File,
    /// The conversations of each prompt text, by the part of the text that all runs of a bead share: the script.
    conversations: HashMap<String, Vec<Conversation>>,
    answers: u64,
}

/// One conversation with an agent.
#[derive(Debug)]
struct Conversation {
    prompt: String,
    /// How many requests there were in each turn.
    requests: HashMap<usize, usize>,
}

impl Memory {
    /// The number of the conversation that begins with this prompt, and how often this turn was asked for before.
    fn meet(&mut self, script: String, prompt: &str, calls: usize) -> (usize, usize) {
        let known = self.conversations.entry(script).or_default();
        let number = known.iter().position(|one| one.prompt == prompt).unwrap_or_else(|| {
            known.push(Conversation { prompt: prompt.to_owned(), requests: HashMap::new() });
            known.len() - 1
        });
        let requests = known[number].requests.entry(calls).or_default();
        *requests += 1;
        (number, *requests - 1)
    }

    fn write(&mut self, line: &Value) {
        writeln!(self.file, "{line}").expect("write the record of requests");
    }
}

/// The answer to a request.
enum ModelOutcome {
    Answer(ModelAnswer),
    /// An answer that breaks off.
    Cut(ModelAnswer),
    Refused(Refusal),
    Silence,
}

impl ModelOutcome {
    /// Its name in the record.
    fn name(&self) -> String {
        match self {
            Self::Answer(ModelAnswer { call: Some(call), .. }) => format!("call {}", call.name),
            Self::Answer(_) => "say".to_owned(),
            Self::Cut(_) => "cut".to_owned(),
            Self::Refused(refusal) => refusal.status.to_string(),
            Self::Silence => "hang".to_owned(),
        }
    }
}

async fn answer_request(
    State(memory): State<Arc<Mutex<Memory>>>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Response {
    let path = uri.path();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some(api) = ModelApi::of(path).filter(|_| method == Method::POST) else {
        let (status, body) = side_answer(&method, path);
        let record = json!({"api": "other", "method": method.as_str(), "path": path, "status": status.as_u16()});
        memory.lock().unwrap_or_else(PoisonError::into_inner).write(&record);
        return whole(status, Vec::new(), body.to_string());
    };
    let request = ModelRequest::read(api, path, &body);
    let (outcome, turn) = {
        let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcome, conversation, turn) =
            decide(&mut memory, &request, path.starts_with(TEXT_ONLY));
        let is_answer = matches!(outcome, ModelOutcome::Answer(_));
        let tokens = |count: u64| if is_answer { count } else { 0 };
        let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        memory.write(&json!({
            "api": api.as_str(), "path": path, "model": request.model, "stream": request.is_streaming,
            "conversation": conversation, "turn": request.calls, "outcome": outcome.name(), "tools": tools,
            "input_tokens": tokens(INPUT_TOKENS), "cached_tokens": tokens(CACHED_TOKENS),
            "output_tokens": tokens(OUTPUT_TOKENS),
        }));
        (outcome, turn)
    };
    if !turn.delay.is_zero() {
        tokio::time::sleep(turn.delay).await;
    }
    respond(&request, outcome).await
}

/// The answer to a request, and in which conversation and turn that is. Requests without a script are questions that agents
/// ask besides their work, such as for a title.
fn decide(
    memory: &mut Memory,
    request: &ModelRequest,
    is_text_only: bool,
) -> (ModelOutcome, Option<usize>, Turn) {
    memory.answers += 1;
    let number = memory.answers;
    let say = |text: String| ModelOutcome::Answer(ModelAnswer { text, call: None, number });
    if let Some(schema) = &request.answer_schema {
        return (say(example_of(schema).to_string()), None, Turn::default());
    }
    let (prompt, script) = match &request.script {
        Some((prompt, script)) if is_text_only || !request.tools.is_empty() => (prompt, script),
        _ => return (say("ready".to_owned()), None, Turn::default()),
    };
    let script = match script {
        Ok(script) => script,
        Err(wrong) => return (say(wrong.clone()), None, Turn::default()),
    };
    let name = conversation_name(prompt);
    let (conversation, asked_before) = memory.meet(format!("{script:?}"), &name, request.calls);
    let turn = script.turn(conversation, request.calls);
    let fault = turn.fault(asked_before);
    let answer = match &turn.act {
        Some(Act::Write { path, text }) if is_text_only => {
            let text = format!("{}\n\n{path}\n```\n{text}```\n", turn.text);
            ModelAnswer { text, call: None, number }
        }
        Some(act) => match request.call(act) {
            Some(call) => ModelAnswer { text: turn.text.clone(), call: Some(call), number },
            None => ModelAnswer {
                text: format!("There is no tool for this: {act:?}"),
                call: None,
                number,
            },
        },
        None => ModelAnswer { text: turn.text.clone(), call: None, number },
    };
    let outcome = match fault {
        None => ModelOutcome::Answer(answer),
        Some(ModelFault::Cut) => ModelOutcome::Cut(answer),
        Some(ModelFault::Hang) => ModelOutcome::Silence,
        Some(ModelFault::Status(status)) => {
            ModelOutcome::Refused(refusal::error(request.api, status))
        }
        Some(ModelFault::Limit(length)) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let reset = (now + length).as_secs();
            ModelOutcome::Refused(refusal::limit(request.api, reset, length.as_secs()))
        }
    };
    (outcome, Some(conversation), turn)
}

/// The part of a prompt that stays the same through a conversation: some agents add the time at its end, and goose puts
/// it before the last message. The run that it names tells the runs of a bead apart, and the beginning tells the sessions
/// of a run apart.
fn conversation_name(prompt: &str) -> String {
    let beginning = prompt.split(script::LAST_LINE).next().unwrap_or_default();
    let beginning = beginning.rsplit("</info-msg>").next().unwrap_or_default().trim();
    let is_run = |word: &&str| {
        word.split_once('#').is_some_and(|(bead, epoch)| {
            bead.contains('-') && epoch.starts_with(|digit: char| digit.is_ascii_digit())
        })
    };
    let run = prompt.split_whitespace().find(is_run).unwrap_or_default();
    format!("{run} {beginning}")
}

async fn respond(request: &ModelRequest, outcome: ModelOutcome) -> Response {
    let (answer, is_cut) = match outcome {
        ModelOutcome::Silence => std::future::pending().await,
        ModelOutcome::Refused(refusal) => {
            let status =
                StatusCode::from_u16(refusal.status).expect("the script names a status of HTTP");
            return whole(status, refusal.headers, refusal.body.to_string());
        }
        ModelOutcome::Answer(answer) => (answer, false),
        ModelOutcome::Cut(answer) => (answer, true),
    };
    let mut parts = render(request.api, &request.model, &answer, request.is_streaming);
    if !is_cut && !request.is_streaming {
        return whole(StatusCode::OK, Vec::new(), parts.concat());
    }
    let kind = if request.is_streaming { "text/event-stream" } else { "application/json" };
    let mut chunks: Vec<io::Result<Bytes>> = Vec::new();
    if is_cut {
        let last = parts.len() / 2;
        parts.truncate(last + 1);
        let half = parts[last].floor_char_boundary(parts[last].len() / 2);
        parts[last].truncate(half);
    }
    chunks.extend(parts.into_iter().map(|part| Ok(part.into())));
    if is_cut {
        chunks.push(Err(io::Error::other("the script cuts the answer here")));
    }
    let body = Body::from_stream(stream::iter(chunks));
    Response::builder().header(header::CONTENT_TYPE, kind).body(body).expect("a well-formed answer")
}

fn whole(status: StatusCode, headers: Vec<(&'static str, String)>, body: String) -> Response {
    let mut response =
        Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Body::from(body)).expect("a well-formed answer")
}

/// The answer to what agents ask besides answers of a model.
fn side_answer(method: &Method, path: &str) -> (StatusCode, Value) {
    if path.ends_with("/count_tokens") {
        (StatusCode::OK, json!({"input_tokens": INPUT_TOKENS}))
    } else if path.ends_with(":countTokens") {
        (StatusCode::OK, json!({"totalTokens": INPUT_TOKENS}))
    } else if path.ends_with("/models") {
        let model = json!({"id": "fake-model", "object": "model", "type": "model", "owned_by": "fake", "created": 0,
            "name": "models/fake-model", "display_name": "Fake"});
        (
            StatusCode::OK,
            json!({"object": "list", "data": [model], "models": [], "has_more": false}),
        )
    } else if path == "/" || *method == Method::HEAD {
        (StatusCode::OK, json!({}))
    } else {
        (
            StatusCode::NOT_FOUND,
            json!({"error": {"message": "not found", "type": "not_found_error"}}),
        )
    }
}

#[cfg(test)]
mod tests;
