//! `bd export`: every bead as one line, in one step.

use std::fs;

use serde_json::Value;

use crate::support::{Steps as _, assert_says, files_in, json_refusal, refusal, texts, town};

#[test]
fn every_bead_is_one_line_sorted_by_id() {
    let town = town();
    for id in ["hq-b10", "hq-b2", "hq-a", "hq-b2.10", "hq-b2.9"] {
        town.bead(id, &[]);
    }
    town.bead("hq-wisp-1", &["--ephemeral"]);
    town.bead("hq-gate", &["-t", "gate"]);
    town.bd(["close", "hq-a"]).ok();

    let export = town.bd(["export"]).ok();

    let lines: Vec<Value> = export.json_lines();
    assert!(export.stdout.starts_with("{\"_type\":\"issue\",\"id\":\"hq-a\",\"title\":"));
    assert_eq!(
        texts(&Value::Array(lines), "id"),
        ["hq-a", "hq-b2", "hq-b2.9", "hq-b2.10", "hq-b10", "hq-gate", "hq-wisp-1"]
    );
    assert_eq!(export.stderr, "");
}

#[test]
fn an_empty_store_exports_nothing() {
    let town = town();
    let export = town.bd(["export"]).ok();
    assert_eq!((export.stdout.as_str(), export.stderr.as_str()), ("", ""));
}

#[test]
fn a_file_is_replaced_in_one_step() {
    let town = town();
    town.bead("hq-a", &[]);
    town.write("out/issues.jsonl", "an older export\n");

    let export = town.bd(["export", "-o", "out/issues.jsonl"]).ok();

    assert_eq!(export.stdout, "");
    assert_says(&export.stderr, &["Exported 1 bead"]);
    let file = town.cwd().join("out/issues.jsonl");
    assert_eq!(fs::read_to_string(file).unwrap(), town.export());
    assert_eq!(files_in(town.cwd().join("out")), ["issues.jsonl"]);
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let town = town();
    town.write("file", "in the way");
    town.make_dir("directory");
    for path in ["missing/deep/out.jsonl", "file/out.jsonl", "directory"] {
        let error = refusal(&town.bd(["export", "-o", path]));
        assert_says(&error, &["cannot write", path]);
        json_refusal(&town.bd(["export", "-o", path, "--json"]));
    }
    assert_eq!(files_in(town.cwd()), [".gt", "directory", "file"]);
}

#[test]
fn an_export_that_fails_leaves_the_old_file() {
    let town = town();
    town.bead("hq-a", &["-d", &"x".repeat(100_000)]);
    town.write("out/issues.jsonl", "an older export\n");
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" export -o out/issues.jsonl";

    let bash = town.command("bash").args(["-c", script]);
    let error = refusal(&bash.arg(town.bd_path()).run());

    assert_says(&error, &["cannot write", "issues.jsonl"]);
    let file = town.cwd().join("out/issues.jsonl");
    assert_eq!(fs::read_to_string(file).unwrap(), "an older export\n");
    assert_eq!(files_in(town.cwd().join("out")), ["issues.jsonl"]);
}
