//! `bd query`: beads by a condition in one line. The language itself is tested where it is read.

use gt_core::query::FIELDS;
use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, keys, refusal, town, town_with_rigs};

#[test]
fn beads_are_found_by_what_is_true_of_them() {
    let town = town();
    town.bead("hq-a", &["-p", "0", "-t", "bug", "-l", "backend,soon", "-a", "ann"]);
    town.bead("hq-b", &["-p", "1", "-l", "backend", "--metadata", r#"{"team":"blue","size":3}"#]);
    town.bead("hq-c", &["-p", "3", "-d", "waits for the key", "-e", "90", "--spec-id", "s-1"]);
    town.bead("hq-d", &[]);
    town.bd(["update", "hq-d", "--parent", "hq-c", "--external-ref", "JIRA-7"]).ok();
    town.bd(["dep", "add", "hq-b", "hq-a"]).ok();

    for (query, expected) in [
        ("priority<=1", &["hq-a", "hq-b"][..]),
        ("priority<=1 AND NOT label=soon", &["hq-b"]),
        ("label=backend AND (type=bug OR assignee=none)", &["hq-a", "hq-b"]),
        ("type=bug,feature OR metadata.size=3", &["hq-a", "hq-b"]),
        ("metadata.team=blue", &["hq-b"]),
        ("description~KEY", &["hq-c"]),
        ("description!=none", &["hq-c"]),
        ("estimate>60 AND spec=s-*", &["hq-c"]),
        ("parent=hq-c", &["hq-d"]),
        ("parent=c", &["hq-d"]),
        ("external_ref=jira-*", &["hq-d"]),
        ("assignee=ann", &["hq-a"]),
        ("blocked", &["hq-b"]),
        ("ready AND priority<2", &["hq-a"]),
        ("created>1h AND created<=now AND updated=today", &["hq-a", "hq-b", "hq-c", "hq-d"]),
        ("due!=none", &[]),
        ("id=hq-a,hq-d", &["hq-a", "hq-d"]),
        ("id=a", &["hq-a"]),
    ] {
        assert_eq!(town.ids(&["query", query, "--sort", "id"]), expected, "{query}");
    }
    assert_eq!(town.ids(&["query", "ready"]), town.ids(&["ready"]), "the same rule");
}

#[test]
fn a_found_bead_looks_like_a_listed_one() {
    let town = town();
    town.bead("hq-a", &["-l", "x", "--deps", "other-1"]);

    assert_eq!(town.json(&["query", "label=x"]), town.json(&["list"]));
    assert_eq!(town.bd(["query", "label=x"]).ok().stdout, town.bd(["list"]).ok().stdout);
    assert_eq!(town.bd(["query", "label=y"]).ok().line(), "No issues found.");
    assert_eq!(town.json(&["query", "label=y"]), json!([]));
}

#[test]
fn closed_beads_are_left_out_until_the_query_speaks_of_them() {
    let town = town();
    town.bead("hq-open", &[]);
    town.bead("hq-closed", &[]);
    town.bd(["close", "hq-closed", "--outcome", "failed"]).ok();

    for (query, expected) in [
        ("priority=2", &["hq-open"][..]),
        ("status!=open", &["hq-closed"]),
        ("status=open,closed", &["hq-closed", "hq-open"]),
        ("closed>1h", &["hq-closed"]),
        ("outcome=failed", &["hq-closed"]),
        ("id=hq-closed", &["hq-closed"]),
    ] {
        assert_eq!(town.ids(&["query", query, "--sort", "id"]), expected, "{query}");
    }
    let all = town.ids(&["query", "priority=2", "-a", "--sort", "id"]);
    assert_eq!(all, ["hq-closed", "hq-open"]);
}

#[test]
fn hidden_kinds_are_found_only_when_the_query_names_them() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-wisp-1", &["--ephemeral"]);
    town.bead("hq-gate", &["-t", "gate"]);
    town.bead("hq-mail", &["-t", "message"]);
    town.import(r#"{"id":"hq-proto","title":"t","priority":2,"is_template":true}"#);

    for (query, expected) in [
        ("priority=2", &["hq-a"][..]),
        ("ephemeral=true", &["hq-mail", "hq-wisp-1"]),
        ("ephemeral=true AND status=open AND type!=message", &["hq-wisp-1"]),
        ("type=gate", &["hq-gate"]),
        ("type=message", &["hq-mail"]),
        ("template", &["hq-proto"]),
        ("id=hq-wisp-*", &["hq-wisp-1"]),
    ] {
        assert_eq!(town.ids(&["query", query, "--sort", "id"]), expected, "{query}");
    }
}

#[test]
fn a_query_takes_orders_and_limits() {
    let town = town();
    for number in 0..4 {
        town.bead(&format!("hq-{number}"), &[]);
    }

    let found = town.bd(["query", "ready", "--sort", "id", "-r", "-n", "2", "--json"]).ok();

    assert_eq!(found.json()[0]["id"], "hq-3");
    assert_eq!(found.json().as_array().unwrap().len(), 2);
    assert_says(&found.stderr, &["--limit 0"]);
    assert_eq!(town.ids(&["query", "ready", "-n", "0"]).len(), 4);
}

#[test]
fn the_words_of_a_query_need_no_quotation_marks() {
    let town = town();
    town.bead("hq-a", &["-l", "x"]);

    assert_eq!(town.ids(&["query", "label=x", "AND", "NOT", "blocked"]), ["hq-a"]);
}

#[test]
fn rigs_go_by_their_name() {
    let town = town_with_rigs(&["web"]);
    let id = town.create("Mine", &["--rig", "web"]);
    town.bead("hq-a", &[]);

    assert_eq!(town.ids(&["query", "rig=web"]), [id]);
    assert_eq!(town.ids(&["query", "rig=none"]), ["hq-a"]);
    assert_says(&refusal(&town.bd(["query", "rig=nope"])), &["rig \"nope\" not found"]);
}

#[test]
fn a_slip_is_shown_where_it_is() {
    let town = town();

    let ran = town.bd(["query", "priority<=1 AND colour=red"]).fails(1);

    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_says(lines[0], &["Error: ", "column 17", "\"colour\" is not a field", "metadata.KEY"]);
    assert_eq!(lines[1], "  priority<=1 AND colour=red");
    assert_eq!(lines[2], "                  ^");
    assert_eq!(ran.stdout, "");
    let ran = town.bd(["query", "status=opne"]);
    assert_says(&refusal(&ran), &["unknown status \"opne\""]);
    let error = json_refusal(&town.bd(["query", "--json", "parent=nope"]));
    assert_says(&error, &["no issue found matching \"nope\""]);
    town.bd(["query"]).fails(1);
}

#[test]
fn a_query_can_be_only_read() {
    let sandbox = crate::support::nowhere();

    let said = sandbox.bd(["query", "label = a,b and not title=x", "--parse-only"]).ok();

    assert_eq!(said.line(), "(label=a OR label=b) AND NOT title~x");
    let read = sandbox.json(&["query", "priority=P1", "--parse-only"]);
    assert_eq!(read, json!({"expression": "priority=1", "schema_version": 1}));
    assert_eq!(keys(&read), ["expression", "schema_version"]);
}

#[test]
fn nothing_in_a_value_reaches_the_store_as_anything_but_text() {
    let town = town();
    town.bead("hq-a", &[]);
    for value in ["' OR 1=1 --", "%", "_", "\\", "?1", "$1", "; DROP TABLE beads"] {
        let quoted = format!("\"{}\"", value.replace('\\', "\\\\"));
        for field in ["title", "assignee", "label", "metadata.k", "spec"] {
            let query = format!("{field}={quoted} OR {field}~{quoted}");
            assert_eq!(town.ids(&["query", &query]), Vec::<String>::new(), "{query}");
        }
    }
}

#[test]
fn the_help_names_every_field() {
    let help = town().bd(["query", "--help"]).ok().stdout;
    let words: Vec<&str> = help.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    for field in FIELDS {
        assert!(words.contains(&field.names[0]), "{}", field.names[0]);
    }
}
