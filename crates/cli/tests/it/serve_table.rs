//! The whole table of statuses over HTTP: from each to each, with every outcome, with and without an agent. What the core
//! decides is tested there; this is about what is done, and what is answered.

use serde_json::{Value, json};

use crate::serving::{Served, assert_problem, field, text};

const STATUSES: [&str; 7] =
    ["queued", "dispatched", "in_progress", "blocked", "completed", "failed", "cancelled"];

/// Where an item can go from where it stands, as the specification has it.
fn allowed(from: &str) -> &'static [&'static str] {
    match from {
        "queued" => &["dispatched", "cancelled"],
        "dispatched" => &["in_progress", "queued", "cancelled", "dispatched"],
        "in_progress" => &["blocked", "completed", "failed"],
        "blocked" => &["in_progress", "queued", "failed"],
        _ => &[],
    }
}

/// The outcomes that can be given with a status.
fn outcomes(to: &str) -> &'static [Option<&'static str>] {
    match to {
        "completed" => &[Some("success")],
        "failed" => &[Some("failed")],
        "cancelled" => &[None, Some("cancelled")],
        _ => &[None],
    }
}

/// The changes that bring a new item there.
fn way_to(status: &str, agent: &str) -> Vec<Value> {
    let dispatch = json!({"status": "dispatched", "assigned_agent": agent});
    let (start, block) = (json!({"status": "in_progress"}), json!({"status": "blocked"}));
    match status {
        "dispatched" => vec![dispatch],
        "in_progress" => vec![dispatch, start],
        "blocked" => vec![dispatch, start, block],
        "completed" => {
            vec![dispatch, start, json!({"status": "completed", "outcome": "success"})]
        }
        "failed" => vec![dispatch, start, json!({"status": "failed", "outcome": "failed"})],
        "cancelled" => vec![json!({"status": "cancelled"})],
        _ => vec![],
    }
}

/// The document of an item, and its version.
fn seen(server: &Served, path: &str) -> (Value, String) {
    let answer = server.get(path).is(200);
    (answer.json(), answer.header("etag").unwrap_or_default().to_owned())
}

/// Asks for one change of an item that stands somewhere, and checks the answer and what became of the item.
fn try_it(server: &Served, from: &str, to: &str, outcome: Option<&str>, agent: Option<&str>) {
    let case = format!("{from} → {to}, outcome {outcome:?}, agent {agent:?}");
    let own = agent.unwrap_or("agent-0");
    let path = format!("/work/{}", server.submit(&case));
    for step in way_to(from, own) {
        server.patch(&path, &step).is(200);
    }
    let (before, version) = seen(server, &path);
    assert_eq!(before["status"], from, "{case}");

    let mut change = json!({"status": to});
    if let Some(outcome) = outcome {
        change["outcome"] = json!(outcome);
    }
    if let Some(agent) = agent {
        change["assigned_agent"] = json!(agent);
    }
    let answer = server.patch(&path, &change);
    // The status that it has changes nothing; its outcome need not be said again.
    let is_repeated = from == to && from != "dispatched";
    let outcome_fits = outcomes(to).contains(&outcome) || (is_repeated && outcome.is_none());
    let wrong = if !outcome_fits {
        Some("outcome")
    } else if (from, to, agent) == ("queued", "dispatched", None) {
        Some("assigned_agent")
    } else {
        None
    };
    // An item that was cancelled before an agent had it cannot get one any more.
    let gets_agent = from == "cancelled" && agent.is_some() && outcome_fits;
    if !allowed(from).contains(&to) && (!is_repeated || gets_agent) {
        let problem = assert_problem(&answer, 409, "not-allowed");
        let mut told: Vec<String> =
            problem["allowed"].as_array().unwrap().iter().map(text).collect();
        let mut expected = allowed(from).to_vec();
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!(told, expected, "{case}");
    } else if let Some(wrong) = wrong {
        assert_eq!(field(&assert_problem(&answer, 422, "invalid")), wrong, "{case}");
    } else {
        let after = answer.is(200).json();
        assert_eq!(after["status"], to, "{case}");
        let is_over = ["completed", "failed", "cancelled"].contains(&to);
        assert_eq!(after["completed_at"].is_string(), is_over, "{case}: {after}");
        assert_eq!(after["outcome"].is_string(), is_over, "{case}: {after}");
        let log = &seen(server, &path).0["dispatch_log"];
        let live = log.as_array().unwrap().iter().filter(|run| run["completed_at"].is_null());
        let is_held = ["dispatched", "in_progress", "blocked"].contains(&to);
        assert_eq!(live.count(), usize::from(is_held), "{case}: {log}");
        return end(server, &path, to);
    }
    assert_eq!(seen(server, &path), (before, version), "{case}: it was refused, and changed");
    end(server, &path, from);
}

/// Ends an item, so that its agent is free for the next case.
fn end(server: &Served, path: &str, status: &str) {
    let cancelled = json!({"status": "cancelled"});
    let failed = json!({"status": "failed", "outcome": "failed"});
    match status {
        "dispatched" => server.patch(path, &cancelled).is(200),
        "in_progress" | "blocked" => server.patch(path, &failed).is(200),
        _ => return,
    };
}

#[test]
fn every_change_of_status_is_done_or_refused_as_the_table_says() {
    let server = Served::new();
    for from in STATUSES {
        for to in STATUSES {
            for outcome in [None, Some("success"), Some("failed"), Some("cancelled")] {
                for agent in [None, Some("steve-w")] {
                    try_it(&server, from, to, outcome, agent);
                }
            }
        }
    }
    server.stop();
}
