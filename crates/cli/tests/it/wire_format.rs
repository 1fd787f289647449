//! The JSON of commands and of the HTTP service: nothing of it changes by accident.
//!
//! `fixtures/wire_format.snap` holds a transcript; `UPDATE_REFERENCES=1` writes it anew.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::fixture;
use crate::wire_transcript::{record, script};

/// Commands that are not in the transcript, and why.
const NOT_RECORDED: [(&str, &str); 16] = [
    ("gt attach", "it takes over the terminal"),
    ("gt polecat attach", "it takes over the terminal"),
    ("gt top", "it takes over the terminal; without one it prints what gt status prints"),
    ("gt completions", "it prints a script for a shell"),
    ("gt man", "it prints manual pages"),
    ("gt mcp", "it speaks a protocol of its own"),
    ("gt demo", "it takes long, and all that it prints are measurements"),
    ("gt daemon run", "it runs until it is stopped, and its output is its log"),
    ("gt work watch", "it runs until it is stopped; it prints what gt work show prints"),
    ("gt bd completion", "it prints a script for a shell"),
    ("gt bd edit", "it takes over the terminal; it prints what bd update prints"),
    ("gt bd onboard", "it prints a page for people"),
    ("gt bd quickstart", "it prints a page for people"),
    ("gt bd codex-hook", "Codex calls it; it prints what bd prime prints"),
    ("gt bd merge-driver", "git calls it, and it prints nothing"),
    ("gt bd hook", "git calls it, and it prints nothing"),
];

fn transcript() -> String {
    fs::read_to_string(fixture("wire_format.snap")).unwrap()
}

#[test]
fn json_is_as_recorded() {
    let recorded = transcript();
    let now = record(&recorded, Path::new(env!("CARGO_BIN_EXE_gt")));
    let update = std::env::var_os("UPDATE_REFERENCES").is_some();
    if update {
        fs::write(fixture("wire_format.snap"), now).unwrap();
        return;
    }
    let mut step = "";
    for (number, pair) in recorded.lines().zip(now.lines()).enumerate() {
        let (before, after) = pair;
        if before.starts_with("$ ") || before.starts_with("> ") {
            step = before;
        }
        assert_eq!(after, before, "line {} of the transcript, after: {step}", number + 1);
    }
    assert_eq!(now.lines().count(), recorded.lines().count());
}

#[test]
fn every_command_is_recorded() {
    let text = transcript();
    let lines: Vec<String> = script(&text)
        .map(|line| format!(" {line} ").replace(" bd ", " gt bd ").replace(" gt gt ", " gt "))
        .collect();
    let is_recorded = |name: &str| lines.iter().any(|line| line.contains(&format!(" {name} ")));
    let names = gt_cli::reference::command_names();
    let missing: Vec<&String> = names
        .iter()
        .filter(|name| !is_recorded(name) && NOT_RECORDED.iter().all(|(known, _)| known != name))
        .collect();
    assert!(missing.is_empty(), "add these to fixtures/wire_format.snap: {missing:?}");
}

#[test]
fn every_route_is_recorded() {
    let text = transcript();
    let asked: Vec<(&str, Vec<&str>)> = script(&text)
        .filter_map(|line| {
            let mut words = line.strip_prefix("> ")?.split(' ');
            let method = words.next()?;
            let path = words.find(|word| word.starts_with('/'))?;
            let path = path.split('?').next().unwrap_or_default();
            Some((if method == "EVENTS" { "GET" } else { method }, path.split('/').collect()))
        })
        .collect();
    let description =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    let description: Value =
        serde_json::from_str(&fs::read_to_string(description).unwrap()).unwrap();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let parts: Vec<&str> = path.split('/').collect();
        let fits = |asked: &[&str]| {
            asked.len() == parts.len()
                && asked
                    .iter()
                    .zip(&parts)
                    .all(|(is, wanted)| is == wanted || wanted.starts_with('{'))
        };
        for method in methods.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            let found = asked.iter().any(|(asked, path)| *asked == method && fits(path));
            // The description itself is kept in docs/reference.
            assert!(found || path == "/openapi.json", "record {method} {path} too");
        }
    }
}
