//! A server of the real binary, and short words for what its clients ask.

use gt_testkit::http::{self, EventListener, HttpAnswer};
use gt_testkit::{RunningProgram, Sandbox, wait_until};
use serde_json::{Value, json};

use crate::agents::Stage as _;
use crate::support::town;

/// A server and where it listens.
pub(crate) struct Served {
    pub(crate) town: Sandbox,
    pub(crate) running: RunningProgram,
    pub(crate) address: String,
}

impl Served {
    /// A server of a new town.
    pub(crate) fn new() -> Self {
        Self::of(town(), &[])
    }

    /// A server of this town, on a port that is free.
    #[track_caller]
    pub(crate) fn of(town: Sandbox, flags: &[&str]) -> Self {
        let mut arguments = vec!["serve", "--bind", "127.0.0.1:0", "--json"];
        arguments.extend(flags);
        let running = town.start_gt(&arguments).start();
        Self::once_it_listens(town, running)
    }

    #[track_caller]
    pub(crate) fn once_it_listens(town: Sandbox, running: RunningProgram) -> Self {
        wait_until("the server says where it listens", || running.stdout().ends_with("}\n"));
        let said: Value = serde_json::from_str(&running.stdout()).unwrap();
        let address = said["addresses"][0].as_str().unwrap().replace("http://", "");
        Self { town, running, address }
    }

    #[track_caller]
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> HttpAnswer {
        http::ask(&self.address, method, path, headers, body)
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> HttpAnswer {
        self.ask("GET", path, &[], "")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> HttpAnswer {
        self.ask("POST", path, &[("content-type", "application/json")], &body.to_string())
    }

    #[track_caller]
    pub(crate) fn patch(&self, path: &str, body: &Value) -> HttpAnswer {
        self.ask("PATCH", path, &[("content-type", "application/json")], &body.to_string())
    }

    /// A new work item; its id.
    #[track_caller]
    pub(crate) fn submit(&self, description: &str) -> String {
        let item = json!({"type": "task", "description": description});
        text(&self.post("/work", &item).is(201).json()["id"])
    }

    /// Gives an item to an agent, who begins.
    #[track_caller]
    pub(crate) fn begin(&self, id: &str, agent: &str) {
        let path = format!("/work/{id}");
        self.patch(&path, &json!({"status": "dispatched", "assigned_agent": agent})).is(200);
        self.patch(&path, &json!({"status": "in_progress"})).is(200);
    }

    #[track_caller]
    pub(crate) fn listen(&self, path: &str, headers: &[(&str, &str)]) -> EventListener {
        EventListener::to(&self.address, path, headers)
    }

    /// Asks it to end, and waits until it has.
    #[track_caller]
    pub(crate) fn stop(self) -> Sandbox {
        self.town.signal("TERM", &self.running.id().to_string());
        self.running.wait().ok();
        self.town
    }
}

#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The descriptions of a list of items, in its order.
pub(crate) fn descriptions(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| text(&item["description"])).collect()
}

/// An error is one as RFC 9457 has it, with this status and this word for programs.
#[track_caller]
pub(crate) fn assert_problem(answer: &HttpAnswer, status: u16, code: &str) -> Value {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let problem = answer.json();
    assert_eq!(problem["status"], status);
    assert_eq!(problem["code"], code, "{problem}");
    assert_eq!(problem["request_id"].as_str(), answer.header("x-request-id"));
    assert!(!problem["detail"].as_str().unwrap().is_empty());
    problem
}

/// The first field that a problem names.
pub(crate) fn field(problem: &Value) -> &str {
    problem["errors"][0]["field"].as_str().unwrap_or_default()
}
