//! The answers are as `/openapi.json` describes them.

use std::collections::HashSet;

use gt_server::ServerLimits;
use serde_json::{Value, json};

use crate::support::Served;

struct Description(Value);

impl Description {
    fn schema(&self, name: &str) -> &Value {
        &self.0["components"]["schemas"][name]
    }

    /// The properties of a schema and those that must be there, its parts included.
    fn properties(&self, schema: &Value) -> (Vec<String>, Vec<String>) {
        let mut found = (Vec::new(), Vec::new());
        for part in schema["allOf"].as_array().into_iter().flatten() {
            let part = match part["$ref"].as_str() {
                Some(name) => self.schema(name.rsplit('/').next().unwrap()),
                None => part,
            };
            let (all, required) = self.properties(part);
            found.0.extend(all);
            found.1.extend(required);
        }
        found.0.extend(
            schema["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()),
        );
        let required = schema["required"].as_array().into_iter().flatten();
        found.1.extend(required.map(|name| name.as_str().unwrap().to_owned()));
        found
    }

    /// Every field of an answer is described, and every field that is promised is there.
    #[track_caller]
    fn assert_fits(&self, name: &str, answer: &Value) {
        let schema = self.schema(name);
        assert!(schema.is_object(), "there is no {name}");
        let (all, required) = self.properties(schema);
        let answer = answer.as_object().unwrap();
        for key in answer.keys() {
            assert!(all.contains(key), "{name} does not describe {key}");
        }
        for key in required {
            assert!(answer.contains_key(&key), "{name} promises {key}");
        }
    }
}

#[test]
fn answers_are_as_described() {
    let server = Served::with(ServerLimits::default());
    let description = Description(server.get("/openapi.json").is(200).json());
    let project = server.post("/projects", r#"{"name": "P"}"#).is(201).json();
    description.assert_fits("ProjectDocument", &project);
    let body = json!({"type": "task", "description": "x", "project_id": project["id"], "payload": {"a": 1}, "notes": "n"});
    let item = server.post("/work", &body.to_string()).is(201).json();
    description.assert_fits("WorkItemDocument", &item);
    let taken = server.post("/work/next", r#"{"agent": "ann"}"#).is(200).json();
    description.assert_fits("NextAnswerDocument", &taken);
    let path = format!("/work/{}", item["id"].as_str().unwrap());
    let found = server.get(&path).is(200).json();
    description.assert_fits("WorkDetailsDocument", &found);
    description.assert_fits("DispatchDocument", &found["dispatch_log"][0]);
    let beat = json!({"run_id": taken["run_id"]}).to_string();
    let beat = server.post(&format!("{path}/heartbeat"), &beat).is(200).json();
    description.assert_fits("HeartbeatAnswerDocument", &beat);
    let why = server.get(&format!("{path}/why")).is(200).json();
    description.assert_fits("WhyDocument", &why);
    description.assert_fits(
        "NextAnswerDocument",
        &server.post("/work/next", r#"{"agent": "bob"}"#).is(200).json(),
    );
    description.assert_fits("HealthDocument", &server.get("/health").is(200).json());
    let problem = server.patch(&path, r#"{"priority": 9, "colour": "red"}"#).is(422).json();
    description.assert_fits("ProblemDocument", &problem);
    description.assert_fits("FieldError", &problem["errors"][0]);
    let problem = server.patch(&path, r#"{"status": "queued"}"#).is(409).json();
    description.assert_fits("ProblemDocument", &problem);
}

/// Every described field of a request is known, and every known one is described: the answer to an unknown one lists
/// them.
#[test]
fn requests_are_as_described() {
    let server = Served::with(ServerLimits::default());
    let description = Description(server.get("/openapi.json").is(200).json());
    let item = server.post("/work", r#"{"type": "task", "description": "x"}"#).is(201).json();
    let project = server.post("/projects", r#"{"name": "P"}"#).is(201).json();
    let item = format!("/work/{}", item["id"].as_str().unwrap());
    let project = format!("/projects/{}", project["id"].as_str().unwrap());
    for (method, path, name) in [
        ("POST", "/projects".to_owned(), "NewProjectDocument"),
        ("PATCH", project, "ProjectChangeDocument"),
        ("POST", "/work".to_owned(), "NewWorkDocument"),
        ("PATCH", item.clone(), "WorkChangeDocument"),
        ("POST", "/work/next".to_owned(), "NextDocument"),
        ("POST", format!("{item}/heartbeat"), "HeartbeatDocument"),
    ] {
        let body = r#"{"no such field": 1}"#;
        let answer =
            if method == "POST" { server.post(&path, body) } else { server.patch(&path, body) };
        let problem = answer.is(422).json();
        let unknown = problem["errors"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(unknown["field"], "no such field");
        let listed = unknown["detail"].as_str().unwrap().rsplit(": ").next().unwrap();
        let mut known: Vec<&str> = listed.split(", ").collect();
        let (mut described, required) = description.properties(description.schema(name));
        known.sort_unstable();
        described.sort_unstable();
        assert_eq!(known, described, "{name}");
        for missing in required {
            let is_named = |error: &Value| error["field"] == missing.as_str();
            assert!(
                problem["errors"].as_array().unwrap().iter().any(is_named),
                "{name} needs {missing}"
            );
        }
    }
}

#[test]
fn every_route_has_a_name_of_its_own_and_says_what_it_answers() {
    let description = Description(serde_json::from_str(&gt_server::openapi_json()).unwrap());
    let mut names = HashSet::new();
    for (path, methods) in description.0["paths"].as_object().unwrap() {
        for (method, about) in methods.as_object().unwrap() {
            assert!(about["summary"].is_string(), "{method} {path}");
            assert!(names.insert(about["operationId"].as_str().unwrap()), "{method} {path}");
            let answers = about["responses"].as_object().unwrap();
            assert!(answers.keys().any(|status| status.starts_with('2')), "{method} {path}");
        }
    }
}
