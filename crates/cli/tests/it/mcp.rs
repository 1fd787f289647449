//! `gt mcp` and `/mcp`: roles, tokens, and a worker that finishes its run by a tool.

use gt_testkit::Sandbox;
use gt_testkit::http::HttpAnswer;
use serde_json::{Value, json};

use crate::projects::{Origin as _, STAYS, Worker, town_with_project};
use crate::serving::Served;
use crate::support::{Steps as _, assert_says, town_with_rigs};

/// The lines of a session that calls one tool.
fn session(tool: &str, arguments: &Value) -> String {
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"},
    });
    let call = json!({"name": tool, "arguments": arguments});
    [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ]
    .map(|line| format!("{line}\n"))
    .concat()
}

/// The answer to a call among the lines of a session.
fn answer(output: &str) -> Value {
    let mut lines = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.find(|line| line["id"] == 2).unwrap_or_else(|| panic!("no answer in {output}"))
}

#[test]
fn a_person_gets_the_tools_of_an_operator() {
    let town = town_with_rigs(&["web"]);
    let beads = json!({"beads": [{"title": "Add login"}], "rig": "web"});
    let called =
        town.command(town.gt_path()).arg("mcp").stdin(session("create", &beads)).run().ok();
    let answer = answer(&called.stdout);
    assert_says(
        answer["result"]["content"][0]["text"].as_str().unwrap(),
        &["Created we-", "Add login"],
    );
    assert_eq!(town.ready().len(), 1);
}

#[test]
fn an_approval_by_a_tool_lands_the_work_and_names_the_next_step() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-tea", &["--review"]);
    worker.commit("tea", "tea\n", "Add tea");
    worker.gt(&["done"]).ok();
    worker.wait_until_gone();
    let decide = |arguments: Value| {
        let called =
            town.command(town.gt_path()).arg("mcp").stdin(session("decide", &arguments)).run();
        let answer = answer(&called.ok().stdout);
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };

    let said = decide(json!({"action": "approve", "id": "we-tea@1"}));

    assert_says(&said, &["we-tea@1 has landed on main", "Next: nothing; gt mq revert we-tea@1"]);
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
}

#[test]
fn a_worker_finishes_its_run_by_a_tool() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-tea", &[]);
    worker.write("tea", "tea\n");
    let call = |tool: &str, arguments: Value| {
        let called =
            worker.command(town.gt_path()).arg("mcp").stdin(session(tool, &arguments)).run().ok();
        answer(&called.stdout)
    };
    let refused = call("sling", json!({"beads": ["we-tea"]}));
    assert_says(refused["error"]["message"].as_str().unwrap(), &["sling is for the operator"]);
    let next = call("next", json!({}));
    assert_says(
        next["result"]["content"][0]["text"].as_str().unwrap(),
        &["we-tea", "the worker of the run"],
    );
    let done = call("done", json!({"message": "Add tea"}));
    assert_says(
        done["result"]["content"][0]["text"].as_str().unwrap(),
        &["we-tea#1 is over", "Next: end your session"],
    );
    worker.wait_until_gone();
    town.gt(["mq", "run"]).ok();
    assert_eq!(town.landed("main"), ["First commit", "Add tea"]);
}

/// A request to `/mcp` of a session that needs no greeting.
fn post(served: &Served, token: Option<&str>, method: &str, params: &Value) -> HttpAnswer {
    let token = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    if let Some(name) = params["name"].as_str() {
        headers.push(("mcp-name", name));
    }
    headers.extend(token.as_deref().map(|token| ("authorization", token)));
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
    served.ask("POST", "/mcp", &headers, &request.to_string())
}

fn token(town: &Sandbox, name: &str, scopes: &str) -> String {
    let made = town.gt_json(&["token", "create", name, "--scope", scopes]);
    made["token"].as_str().unwrap().to_owned()
}

#[test]
fn the_token_of_a_request_decides_its_role_and_rights() {
    let town = town_with_project(STAYS);
    let worker = Worker::begin(&town, "we-tea", &[]);
    let shown = worker.command("sh").args(["-c", "printf %s \"$GT_RUN_TOKEN\""]).run().ok();
    let run_token = shown.stdout;
    let [viewer, operator, puller] = [("v", "view"), ("o", "operate"), ("p", "work")]
        .map(|(name, scopes)| token(&town, name, scopes));
    let served = Served::of(town, &[]);
    let call = |token: &str, tool: &str, arguments: Value| {
        let answer = post(
            &served,
            Some(token),
            "tools/call",
            &json!({"name": tool, "arguments": arguments}),
        );
        answer.text()
    };

    post(&served, None, "tools/list", &json!({})).is(401);
    post(&served, Some(&puller), "tools/list", &json!({})).is(403);
    post(&served, Some("gtr_00"), "tools/list", &json!({})).is(401);
    let listed = post(&served, Some(&run_token), "tools/list", &json!({})).is(200).text();
    assert_says(&listed, &["step_done"]);
    assert!(!listed.contains("\"sling\""), "{listed}");
    let beads = json!({"beads": [{"title": "New"}], "rig": "web"});
    assert_says(&call(&viewer, "create", beads.clone()), &["this token may only read"]);
    assert_says(&call(&operator, "create", beads), &["Created we-"]);
    let approve = json!({"action": "approve", "id": "we-tea@1"});
    assert_says(&call(&operator, "decide", approve), &["may not review"]);
    assert_says(&call(&run_token, "comment", json!({"text": "By HTTP"})), &["Commented on we-tea"]);
    assert_says(&call(&run_token, "create", json!({"title": "A part"})), &["Created we-tea.1"]);
    assert_says(
        &call(&run_token, "launch", json!({"ids": ["we-tea"]})),
        &["launch is for the operator"],
    );
    let shown = format!("Bearer {operator}");
    let headers = [
        ("authorization", shown.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let broken = served.ask("POST", "/mcp", &headers, "{\"jsonrpc\": ");
    assert!((400..500).contains(&broken.status), "{broken:?}");

    // A client that greets is told of its role.
    let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"},
    }});
    for (token, words) in [(&run_token, "worker of one run"), (&operator, "find, plan, sling")] {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str()), headers[1], headers[2]];
        let answer = served.ask("POST", "/mcp", &headers, &greeting.to_string());
        assert_says(&answer.is(200).text(), &[words]);
    }

    served.town.gt(["run", "cancel", "we-tea"]).ok();
    let over = post(&served, Some(&run_token), "tools/list", &json!({})).is(401);
    assert_says(&over.text(), &["its token is not valid any more"]);
    served.stop();
}
