use super::*;
use crate::http::{self, HttpAnswer};

struct Stage {
    model: FakeModel,
    _directory: tempfile::TempDir,
}

fn stage() -> Stage {
    let directory = tempfile::tempdir().unwrap();
    Stage { model: FakeModel::start(&directory.path().join("requests")), _directory: directory }
}

impl Stage {
    fn try_to_ask(&self, path: &str, body: &Value) -> io::Result<HttpAnswer> {
        let headers = [("content-type", "application/json")];
        http::try_to_ask(&self.model.address.to_string(), "POST", path, &headers, &body.to_string())
    }

    fn ask(&self, path: &str, body: &Value) -> HttpAnswer {
        self.try_to_ask(path, body).unwrap()
    }
}

/// A first request of an agent whose prompt has this script, in the words of each vendor.
fn requests(prompt: &str, is_streaming: bool) -> [(&'static str, Value); 4] {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
    let said = [json!({"role": "user", "content": prompt})];
    let function = json!({"name": "bash", "parameters": schema});
    let gemini = if is_streaming {
        "/v1beta/models/m:streamGenerateContent?alt=sse"
    } else {
        "/v1beta/models/m:generateContent"
    };
    [
        (
            "/v1/messages?beta=true",
            json!({"model": "m", "stream": is_streaming, "messages": said,
                "tools": [{"name": "Bash", "input_schema": schema}]}),
        ),
        (
            "/v1/responses",
            json!({"model": "m", "stream": is_streaming, "input": said,
                "tools": [{"type": "function", "name": "shell", "parameters": schema}]}),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "m", "stream": is_streaming, "messages": said,
                "tools": [{"type": "function", "function": function}]}),
        ),
        (
            gemini,
            json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}],
                "tools": [{"functionDeclarations": [function]}]}),
        ),
    ]
}

fn script(lines: &str) -> String {
    format!("Do it.\nfake-model:\n{lines}\nend of script\n")
}

#[test]
fn each_vendor_calls_a_tool_and_records_it() {
    for is_streaming in [false, true] {
        let stage = stage();
        let requests = requests(&script("say Looking\nshell ls -l"), is_streaming);
        for (path, body) in &requests {
            let answer = stage.ask(path, body).is(200);
            let kind = if is_streaming { "text/event-stream" } else { "application/json" };
            assert_eq!(answer.header("content-type"), Some(kind), "{path}");
            let text = answer.text();
            assert!(text.contains("Looking") && text.contains("ls -l"), "{path}: {text}");
        }
        let record = stage.model.requests();
        assert_eq!(record.len(), requests.len());
        for line in &record {
            let outcome = line["outcome"].as_str().unwrap();
            assert!(["call Bash", "call shell", "call bash"].contains(&outcome), "{line}");
            assert_eq!((&line["model"], &line["input_tokens"]), (&json!("m"), &json!(1000)));
        }
    }
}

#[test]
fn a_limit_has_the_status_and_the_words_of_the_vendor() {
    let stage = stage();
    let words = [
        "account's rate limit",
        "usage_limit_reached",
        "exceeded your current quota",
        "RESOURCE_EXHAUSTED",
    ];
    for ((path, body), words) in requests(&script("limit 90"), true).iter().zip(words) {
        for _ in 0..2 {
            let refused = stage.ask(path, body).is(429);
            assert_eq!(refused.header("retry-after"), Some("90"));
            assert!(refused.text().contains(words), "{path}: {}", refused.text());
        }
    }
}

#[test]
fn faults_pass_and_a_new_prompt_is_the_next_run() {
    let stage = stage();
    let lines = "error 500\ncut\nsay First\nnext run\nsay Second";
    let [(path, first), ..] = requests(&script(lines), true);
    stage.ask(path, &first).is(500);
    let cut = stage.try_to_ask(path, &first);
    assert!(cut.is_err() || !cut.unwrap().text().contains("message_stop"));
    assert!(stage.ask(path, &first).is(200).text().contains("First"));

    let [(path, second), ..] = requests(&format!("Go on.\n{}", script(lines)), true);
    assert!(stage.ask(path, &second).is(200).text().contains("Second"));
    let outcomes: Vec<Value> =
        stage.model.requests().iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["500", "cut", "say", "say"]);
}

#[test]
fn text_behind_the_script_does_not_begin_another_run() {
    let stage = stage();
    let prompt = |run: &str, time: &str| {
        format!("{}You work on {run}.\n{time}", script("say First\nnext run\nsay Second"))
    };
    for (run, time, said) in
        [("we-a#1", "12:00", "First"), ("we-a#1", "12:01", "First"), ("we-a#2", "12:02", "Second")]
    {
        let [(path, body), ..] = requests(&prompt(run, time), false);
        assert!(stage.ask(path, &body).is(200).text().contains(said), "{run} {time}");
    }
}

#[test]
fn an_agent_without_tools_gets_files_in_the_answer() {
    let stage = stage();
    let said = [json!({"role": "user", "content": script("write a.txt Hello\nsay Done")})];
    let body = json!({"model": "m", "messages": said});
    let answer = stage.ask("/text/v1/chat/completions", &body).is(200).json();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(text.contains("\na.txt\n```\nHello\n```\n"), "{text}");
    // Elsewhere that is a question besides the work.
    let answer = stage.ask("/v1/chat/completions", &body).is(200).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "ready");
}

#[test]
fn a_server_with_unanswered_requests_ends() {
    let stage = stage();
    let [(path, body), ..] = requests(&script("hang"), true);
    let mut open = std::net::TcpStream::connect(stage.model.address).unwrap();
    let body = body.to_string();
    write!(open, "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    crate::wait_until("the request has arrived", || !stage.model.requests().is_empty());
    assert_eq!(stage.model.requests()[0]["outcome"], "hang");
    drop(stage);
}

#[test]
fn models_and_counts_are_answered() {
    let stage = stage();
    assert_eq!(
        stage.ask("/v1/messages/count_tokens", &json!({})).is(200).json()["input_tokens"],
        1000
    );
    let models =
        http::ask(&stage.model.address.to_string(), "GET", "/v1/models", &[], "").is(200).json();
    assert_eq!(models["data"][0]["id"], "fake-model");
    stage.ask("/nowhere", &json!({})).is(404);
}
