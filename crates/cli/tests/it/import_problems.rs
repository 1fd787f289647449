//! `bd import` of files that are not what they should be.

use std::fs;

use serde_json::json;

use crate::support::{Steps as _, assert_says, json_refusal, refusal, texts, town};

const GOOD: &str = r#"{"id":"hq-good","title":"good"}"#;

/// Lines that cannot be kept, and what is said about them.
fn bad_lines() -> Vec<(String, &'static str)> {
    let long_id = format!(r#"{{"id":"hq-{}","title":"a"}}"#, "x".repeat(200));
    let lines = [
        (r#"{"id":"hq-a","title":"#, "not valid JSON"),
        ("words", "not valid JSON"),
        ("[1]", "expected an object"),
        ("5", "expected an object"),
        (r#"{"title":"a"}"#, "\"id\": missing"),
        (r#"{"id":5,"title":"a"}"#, "\"id\": expected a text"),
        (r#"{"id":"a b","title":"a"}"#, "not a bead id"),
        (r#"{"_type":"zebra","id":"hq-a","title":"a"}"#, "unknown record type \"zebra\""),
        (r#"{"_type":"memory","value":1}"#, "\"key\": missing"),
    ];
    let mut lines: Vec<(String, &str)> =
        lines.map(|(line, reason)| (line.to_owned(), reason)).to_vec();
    lines.push((long_id, "longer than 200 bytes"));
    lines
}

#[test]
fn a_wrong_line_is_named_with_file_line_and_reason_and_nothing_changes() {
    let town = town();
    for (line, reason) in bad_lines() {
        let path = town.write("in.jsonl", format!("{GOOD}\n\n{line}\n"));

        let error = refusal(&town.bd(["import", "in.jsonl"]));

        let place = format!("{}:3: ", path.display());
        assert_says(&error, &[&place, reason, "nothing was imported", "--skip-invalid"]);
    }
    assert_eq!(town.export(), "");
    assert_eq!(town.last_event(), 0);
}

#[test]
fn wrong_lines_can_be_left_out() {
    let town = town();
    let lines = bad_lines();
    let file: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
    town.write("in.jsonl", format!("{}\n{GOOD}", file.join("\n")));

    let summary = town.json(&["import", "in.jsonl", "--skip-invalid"]);

    assert_eq!(summary["created"], 1);
    assert_eq!(summary["skipped"], lines.len());
    let skipped = summary["skipped_details"].as_array().unwrap();
    for (at, ((_, reason), skipped)) in lines.iter().zip(skipped).enumerate() {
        assert_eq!(skipped["line"], at + 1);
        assert_says(skipped["reason"].as_str().unwrap(), &[reason]);
    }
    assert_eq!(town.ids(&["list"]), ["hq-good"]);
}

#[test]
fn values_that_cannot_be_kept_are_mended_and_told_and_the_bead_stays() {
    let lines = [
        r#"{"id":"hq-a","title":"a","priority":50,"labels":["x",""]}"#,
        r#"{"id":"hq-b","title":"b","notes":"a\u0000b"}"#,
        r#"{"id":"hq-c","title":"c","dependencies":[{"depends_on_id":"hq-a","created_at":"0001-01-01T00:00:00Z"}]}"#,
        r#"{"id":"hq-d","status":"Open"}"#,
    ];
    for flags in [&[][..], &["--skip-invalid"]] {
        let town = town();
        town.write("in.jsonl", lines.join("\n"));
        let summary = town.json(&[&["import", "in.jsonl", "--dry-run"], flags].concat());
        assert_eq!((&summary["created"], &summary["mended"]), (&json!(4), &json!(6)));

        let said = town.start_bd(&["import", "in.jsonl"]).args(flags).run().ok().stdout;

        assert_says(
            &said,
            &[
                "4 created",
                "0 skipped",
                "Mended 6 values",
                "mended line 1 hq-a: priority is 4: priority 50 is not between",
                "mended line 1 hq-a: dropped an empty label",
                "mended line 2 hq-b: removed NUL characters",
                "mended line 4 hq-d: the title is hq-d: there was none",
                "mended line 4 hq-d: status is open: it was \"Open\"",
                "mended line 3 hq-c: of the dependency on hq-a: created_at is",
            ],
        );
        let mended = town.show("hq-a");
        assert_eq!((&mended["priority"], &mended["labels"]), (&json!(4), &json!(["x"])));
        assert_eq!(town.show("hq-b")["notes"], "ab");
        // The same once more changes nothing.
        let again = town.json(&["import", "in.jsonl"]);
        assert_eq!((&again["unchanged"], &again["updated"]), (&json!(4), &json!(0)));
    }
}

#[test]
fn people_see_the_first_of_many_skipped_lines() {
    let town = town();
    town.write("in.jsonl", "nonsense\n".repeat(30));

    let said = town.bd(["import", "in.jsonl", "--skip-invalid"]).ok();

    assert_says(&said.stdout, &["30 skipped", "skipped line 20:", "10 more"]);
    assert_eq!(said.stdout.lines().count(), 22);
}

#[test]
fn a_wrong_line_on_standard_input_is_named_too() {
    let town = town();
    let import = town.start_bd(&["import", "-"]).stdin(format!("{GOOD}\n{{"));
    let error = refusal(&import.run());
    assert_says(&error, &["standard input:2: not valid JSON"]);
    let import = town.start_bd(&["import", "-", "--json"]).stdin("{");
    let error = json_refusal(&import.run());
    assert_says(&error, &["standard input:1: not valid JSON"]);
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_told() {
    let town = town();
    let mut bytes = format!("{GOOD}\n").into_bytes();
    bytes.extend(b"{\"id\":\"hq-x\",\"title\":\"caf\xe9\"}\n{\"id\":\"hq-y\",\"title\":\"y\"}\n");
    town.write("in.jsonl", &bytes);

    let said = town.bd(["import", "in.jsonl"]).ok().stdout;

    assert_says(&said, &["mended line 2 hq-x: replaced bytes that are not UTF-8", "3 created"]);
    assert_eq!(town.show("hq-x")["title"], "caf\u{fffd}");
    // A file in another encoding has no line that can be read.
    let utf16: Vec<u8> = GOOD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    town.write("in.jsonl", [&[0xff, 0xfe][..], &utf16].concat());
    assert_says(&refusal(&town.bd(["import", "in.jsonl"])), &["in.jsonl:1: ", "not UTF-8"]);
}

#[test]
fn a_line_longer_than_64_mebibytes_is_a_wrong_line() {
    let town = town();
    let head = r#"{"id":"hq-big","title":"big","description":""#;
    let fill = 64 * 1024 * 1024 + 1 - head.len() - 2;
    let mut bytes = format!("{head}{}\"}}\n", "x".repeat(fill)).into_bytes();
    assert_eq!(bytes.len(), 64 * 1024 * 1024 + 2);
    bytes.extend(GOOD.as_bytes());
    let path = town.write("in.jsonl", &bytes);

    let error = refusal(&town.bd(["import", "in.jsonl"]));
    let place = format!("{}:1: ", path.display());
    assert_says(&error, &[&place, "longer than 64 MiB"]);
    assert_eq!(town.export(), "");

    let summary = town.json(&["import", "in.jsonl", "--skip-invalid"]);
    assert_eq!((&summary["created"], &summary["skipped"]), (&json!(1), &json!(1)));
    assert_eq!(town.ids(&["list"]), ["hq-good"]);
}

#[test]
fn an_unreadable_file_is_named() {
    let town = town();
    town.make_dir("directory");
    for (path, reason) in [
        ("missing.jsonl", "No such file"),
        ("directory", "is a directory"),
        ("directory/missing/file", "No such file"),
    ] {
        let error = refusal(&town.bd(["import", path]));
        assert_says(&error, &[path, reason]);
    }
    let error = refusal(&town.bd(["import"]));
    assert_says(&error, &["which file?", "- for standard input"]);
    json_refusal(&town.bd(["import", "missing.jsonl", "--json"]));
}

#[test]
fn edges_that_close_a_circle_are_left_out_and_reported() {
    let town = town();
    let edge = |id: &str, target: &str| {
        format!(
            r#"{{"id":"{id}","title":"t","dependencies":[{{"depends_on_id":"{target}","type":"blocks"}}]}}"#
        )
    };

    let summary =
        town.import(&[edge("hq-a", "hq-b"), edge("hq-b", "hq-c"), edge("hq-c", "hq-a")].join("\n"));

    assert_eq!((&summary["created"], &summary["skipped"]), (&json!(3), &json!(1)));
    let reason = summary["skipped_details"][0]["reason"].as_str().unwrap();
    assert_says(reason, &["would be a cycle", "→"]);
    assert_eq!(town.json(&["dep", "cycles"]), json!([]));
    assert_eq!(town.ready().len(), 1, "the rest of the circle still holds");
    town.gt(["doctor"]).ok();
}

#[test]
fn a_circle_with_what_is_there_already_is_left_out_too() {
    let town = town();
    town.bead("hq-a", &[]);
    town.bead("hq-b", &["--deps", "hq-a"]);
    let line = json!({
        "id": "hq-a", "title": "a", "updated_at": "2200-01-01T00:00:00Z",
        "dependencies": [{"depends_on_id": "hq-b", "type": "blocks"}],
    });

    let summary = town.import(&line.to_string());

    assert_eq!(summary["skipped"], 1);
    assert_eq!(town.ready(), ["hq-a"]);
    assert_eq!(town.show("hq-b")["dependencies"][0]["id"], "hq-a", "ours stays");
}

#[test]
fn contradictions_are_repaired_and_told() {
    let town = town();
    let lines = [
        r#"{"id":"hq-a","title":"a","status":"closed","updated_at":"2026-01-02T00:00:00Z"}"#,
        r#"{"id":"hq-b","title":"b","status":"open","closed_at":"2026-01-02T00:00:00Z"}"#,
        r#"{"id":"hq-c","title":"c","dependencies":[{"depends_on_id":"hq-c"}]}"#,
        r#"{"id":"hq-d","title":"d","wisp":true,"comments":[{"id":7,"text":"old"}]}"#,
    ];

    let summary = town.import(&lines.join("\n"));

    assert_eq!(summary["created"], 4);
    assert_eq!(texts(&summary["repaired"], "id"), ["hq-a", "hq-b", "hq-c"]);
    assert_eq!(town.show("hq-a")["closed_at"], "2026-01-02T00:00:00Z");
    assert_eq!(town.show("hq-b").get("closed_at"), None);
    assert_eq!(town.show("hq-c").get("dependencies"), None);
    assert_eq!(town.show("hq-d")["ephemeral"], true);
    assert_eq!(texts(&town.json(&["comments", "hq-d"]), "id"), ["7"]);
    let elsewhere = crate::support::town();
    elsewhere.write("in.jsonl", lines.join("\n"));
    let said = elsewhere.bd(["import", "in.jsonl"]).ok();
    assert_says(&said.stdout, &["mended line 1 hq-a: closed without closed_at"]);
}

#[test]
fn nothing_of_standard_input_is_left_behind() {
    let town = town();
    town.import(GOOD);
    let temporary = town.root().join("tmp");
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0);
}

#[test]
fn json_as_deep_as_a_well_is_kept() {
    let town = town();
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let line = format!(r#"{{"id":"hq-a","title":"a","metadata":{deep}}}"#);

    town.import(&line);

    assert_says(&town.export(), &[&deep]);
    town.bd(["show", "hq-a", "--json"]).ok();
    town.bd(["update", "hq-a", "--title", "b"]).ok();
}
