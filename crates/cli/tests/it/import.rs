//! `bd import`: everything comes in, and comes in once.

use serde_json::{Value, json};

use crate::support::{Steps as _, assert_says, texts, town, town_with_rigs};

/// Lines as another tool wrote them.
const FOREIGN: &str = include_str!("../../../records/tests/data/export_lines.jsonl");

/// A line of an export without the counts at its end, which are made anew.
fn without_counts(line: &str) -> &str {
    line.split_once(",\"dependency_count\"").map_or(line, |(record, _)| record)
}

#[test]
fn lines_of_another_tool_come_back_as_they_were() {
    let town = town();

    let summary = town.import(FOREIGN);

    assert_eq!(summary["created"], 2);
    let export = town.export();
    let exported: Vec<&str> = export.lines().map(without_counts).collect();
    let original: Vec<&str> = FOREIGN.lines().map(without_counts).collect();
    assert_eq!(exported, original);
}

#[test]
fn unknown_fields_are_kept_as_they_are_written() {
    let town = town();
    let line = concat!(
        r#"{"_type":"issue","id":"hq-a","title":"a","status":"open","priority":2,"#,
        r#""issue_type":"task","created_at":"2026-01-01T00:00:00.000000001Z","#,
        r#""updated_at":"2026-01-01T00:00:00.12Z","#,
        r#""dependencies":[{"issue_id":"hq-a","depends_on_id":"hq-b","type":"waits-for","#,
        r#""created_at":"2026-01-01T00:00:00.5Z","created_by":"zed","#,
        r#""metadata":"{\"gate\":\"any-children\"}","thread_id":"t-1","x_edge":[1.0]}],"#,
        r#""comments":[{"id":"c-1","issue_id":"hq-a","author":"zed","text":"one","#,
        r#""created_at":"2026-01-01T00:00:00.25Z","x_comment":true}],"#,
        r#""x_number":1.50,"x_big":123456789012345678901234567890,"x_null":null,"#,
        r#""x_nested":{"z":[{"a":"\u00e9"}],"a":{}}"#,
    );

    town.import(&format!("{line}}}"));

    assert_eq!(without_counts(town.export().trim_end()), line);
}

#[test]
fn every_character_survives() {
    let town = town();
    let everything: String = (1..0x300)
        .chain(0x2000..0x2070)
        .chain([0xfeff, 0xfffd, 0xffff, 0x1_f600, 0x10_ffff])
        .filter_map(char::from_u32)
        .collect();
    let line = json!({
        "id": "hq-a", "title": "\u{7f}\u{9b}31m\u{202e}", "description": everything,
        "labels": ["\u{7f}"], "metadata": {"\u{7f}": everything},
    });

    town.import(&line.to_string());

    let exported: Value = serde_json::from_str(&town.export()).unwrap();
    let shown = town.show("hq-a");
    town.bd(["export", "-o", "out.jsonl"]).ok();
    let file = std::fs::read_to_string(town.cwd().join("out.jsonl")).unwrap();
    assert_eq!(file, town.export(), "the same whichever way it is written");
    for (field, value) in line.as_object().unwrap() {
        assert_eq!(exported[field], *value, "{field}");
        assert_eq!(shown[field], *value, "{field}");
    }
}

#[test]
fn an_export_imported_elsewhere_exports_the_same() {
    let town = town_with_rigs(&["web"]);
    town.bead("hq-e", &["-t", "epic", "-l", "b,a", "--metadata", r#"{"n": 1.0}"#]);
    town.create("Part", &["--parent", "hq-e", "--due", "+1d", "-e", "5"]);
    town.bead("we-w", &["--waits-for", "hq-e", "--waits-for-gate", "any-children"]);
    town.bead("hq-wisp-1", &["--ephemeral"]);
    town.bead("hq-x", &["--deps", "other-1", "-d", "<b>&\u{2028}"]);
    town.bd(["comments", "add", "hq-x", "hello"]).ok();
    town.bd(["close", "hq-x", "--outcome", "failed", "--session", "s"]).ok();
    town.import("{\"_type\":\"memory\",\"key\":\"k\",\"value\":{\"z\":1,\"a\":null}}");

    let elsewhere = town_with_rigs(&["web"]);
    elsewhere.import(&town.export());

    assert_eq!(elsewhere.export(), town.export());
    assert_eq!(elsewhere.ready(), town.ready());
    assert_eq!(elsewhere.json(&["stats"]), town.json(&["stats"]));
}

#[test]
fn importing_the_same_again_changes_nothing() {
    let town = town();
    town.import(FOREIGN);
    town.bead("hq-a", &["-l", "x", "--deps", "bd-a1b"]);
    let (export, last) = (town.export(), town.last_event());

    let summary = town.import(&export);

    for (field, count) in [("created", 0), ("updated", 0), ("unchanged", 3), ("skipped", 0)] {
        assert_eq!(summary[field], count, "{field}");
    }
    assert_eq!((town.export(), town.last_event()), (export, last));
}

#[test]
fn importing_what_has_no_times_again_changes_nothing_either() {
    let town = town();
    let lines = [
        r#"{"id":"hq-a","title":"a","labels":["x"],"comments":[{"author":"zed","text":"hi"}]}"#,
        r#"{"id":"hq-b","title":"b","status":"closed","dependencies":[{"depends_on_id":"hq-a"}]}"#,
    ];
    town.import(&lines.join("\n"));
    let before = (town.export(), town.last_event());

    let summary = town.import(&lines.join("\n"));

    assert_eq!((&summary["updated"], &summary["unchanged"]), (&json!(0), &json!(2)));
    assert_eq!((town.export(), town.last_event()), before);

    let summary = town.import(r#"{"id":"hq-a","title":"new"}"#);
    assert_eq!(summary["updated"], 1, "what it says is newer than what is there");
    assert_eq!(town.show("hq-a")["title"], "new");
}

/// A record of `hq-a` that was changed at this second.
fn version(second: u32, more: &str) -> String {
    format!(
        r#"{{"id":"hq-a","title":"v{second}","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:{second:02}Z"{more}}}"#
    )
}

#[test]
fn a_newer_record_replaces_labels_and_edges_too() {
    let town = town();
    town.import(&version(
        1,
        r#","labels":["old","both"],"dependencies":[{"depends_on_id":"hq-x"},{"depends_on_id":"hq-y"}],"x":1"#,
    ));

    let summary = town.import(&version(
        2,
        r#","labels":["new","both"],"dependencies":[{"depends_on_id":"hq-y","type":"related"}]"#,
    ));

    assert_eq!(summary["updated"], 1);
    let bead = town.show("hq-a");
    assert_eq!(bead["title"], "v2");
    assert_eq!(bead["labels"], json!(["both", "new"]));
    assert_eq!(texts(&bead["dependencies"], "id"), ["hq-y"]);
    assert_eq!(texts(&bead["dependencies"], "dependency_type"), ["related"]);
    assert_eq!(bead.get("x"), None);
}

#[test]
fn an_equally_old_record_adds_what_it_has() {
    let town = town();
    town.import(&version(1, r#","labels":["one"],"dependencies":[{"depends_on_id":"hq-x"}]"#));

    let more = r#","labels":["two"],"dependencies":[{"depends_on_id":"hq-y"}]"#;
    let summary = town.import(&version(1, more));

    assert_eq!(summary["updated"], 1);
    let bead = town.show("hq-a");
    assert_eq!(bead["labels"], json!(["one", "two"]));
    assert_eq!(texts(&bead["dependencies"], "id"), ["hq-x", "hq-y"]);
}

#[test]
fn every_addition_of_a_record_is_counted_and_told() {
    let town = town();
    town.import(&version(1, ""));
    for (more, kind) in [
        (r#","labels":["x"]"#, "label_added"),
        (r#","comments":[{"id":"c","author":"zed","text":"hi"}]"#, "commented"),
    ] {
        let last = town.last_event().to_string();
        let summary = town.import(&version(1, more));
        assert_eq!(summary["updated"], 1, "{more}");
        let told = town.json(&["activity", "--after", &last]);
        assert_eq!(texts(&told, "event_type"), [kind]);
    }
    let edge = r#","dependencies":[{"depends_on_id":"hq-y"}]"#;
    assert_eq!(town.import(&version(1, edge))["updated"], 1);
}

#[test]
fn an_older_record_is_skipped_and_said_to_be() {
    let town = town();
    town.import(&version(5, r#","labels":["keep"]"#));
    let before = (town.export(), town.last_event());

    let summary = town.import(&version(4, ""));

    assert_eq!(summary["skipped"], 1);
    let skipped = &summary["skipped_details"][0];
    assert_eq!((&skipped["line"], &skipped["id"]), (&json!(1), &json!("hq-a")));
    assert_says(
        skipped["reason"].as_str().unwrap(),
        &["older", "2026-01-01T00:00:04Z", "2026-01-01T00:00:05Z"],
    );
    assert_eq!((town.export(), town.last_event()), before);
}

#[test]
fn of_two_lines_about_a_bead_the_newer_one_counts() {
    let (open, closed) = (version(1, ""), version(2, r#","status":"closed""#));
    let waits = r#"{"id":"hq-b","title":"b","dependencies":[{"depends_on_id":"hq-a"}]}"#;
    for lines in [[waits, &open, &closed], [&open, waits, &closed], [&closed, &open, waits]] {
        let town = town();
        town.import(&lines.join("\n"));
        assert_eq!(town.show("hq-a")["title"], "v2");
        assert_eq!(town.ready(), ["hq-b"], "{lines:?}");
        town.gt(["doctor"]).ok();
    }
}

#[test]
fn readiness_follows_the_stored_bead_and_not_a_skipped_record() {
    let town = town();
    town.import(&version(5, r#","status":"closed""#));

    let waits = r#"{"id":"hq-b","title":"b","dependencies":[{"depends_on_id":"hq-a"}]}"#;
    town.import(&[waits, &version(4, "")].join("\n"));

    assert_eq!(town.ready(), ["hq-b"]);
    town.gt(["doctor"]).ok();
}

#[test]
fn the_order_of_lines_does_not_matter() {
    let mut lines = [
        r#"{"id":"hq-s","title":"s","status":"closed"}"#,
        r#"{"id":"hq-s.1","title":"1","dependencies":[{"depends_on_id":"hq-s","type":"parent-child"}]}"#,
        r#"{"id":"hq-s.2","title":"2","status":"closed","dependencies":[{"depends_on_id":"hq-s","type":"parent-child"}]}"#,
        r#"{"id":"hq-all","title":"all","dependencies":[{"depends_on_id":"hq-s","type":"waits-for"}]}"#,
        r#"{"id":"hq-any","title":"any","dependencies":[{"depends_on_id":"hq-s","type":"waits-for","metadata":"{\"gate\":\"any-children\"}"}]}"#,
        r#"{"id":"hq-f","title":"f","status":"closed","outcome":"failed"}"#,
        r#"{"id":"hq-c","title":"c","dependencies":[{"depends_on_id":"hq-f","type":"conditional-blocks"}]}"#,
        r#"{"id":"hq-b","title":"b","dependencies":[{"depends_on_id":"hq-f","type":"blocks"}]}"#,
    ];
    for _ in 0..lines.len() {
        lines.rotate_left(3);
        lines.swap(0, 1);
        let town = town();
        town.import(&lines.join("\n"));
        assert_eq!(town.ready(), ["hq-any", "hq-c", "hq-s.1"], "{lines:#?}");
        town.gt(["doctor"]).ok();
    }
}

#[test]
fn missing_fields_of_a_record_have_defaults() {
    let town = town();

    town.import(r#"{"id":"hq-a","title":"a"}"#);

    let bead = town.show("hq-a");
    assert_eq!(bead["status"], "open");
    assert_eq!(bead["issue_type"], "task");
    assert_eq!(bead["priority"], 0, "as in the tools it comes from");
    assert_eq!(bead["created_at"], bead["updated_at"]);
}

#[test]
fn headers_memories_and_tombstones_have_their_place() {
    let town = town();
    let lines = [
        r#"{"_schema":"beads-jsonl/1","exported_by":"ann"}"#,
        r#"{"_type":"memory","key":"k <1>","value":{"z":1.50,"a":null}}"#,
        r#"{"_type":"memory","key":"b","value":"text"}"#,
        r#"{"id":"hq-gone","title":"gone","status":"tombstone"}"#,
        r#"{"id":"hq-a","title":"a"}"#,
    ];

    let summary = town.import(&lines.join("\n"));

    assert_eq!((&summary["created"], &summary["memories"]), (&json!(1), &json!(2)));
    assert_eq!(
        summary["skipped_details"],
        json!([{"line": 4, "id": "hq-gone", "reason": "deleted where it comes from"}])
    );
    let export = town.export();
    assert_says(
        &export,
        &[
            "{\"_type\":\"memory\",\"key\":\"b\",\"value\":\"text\"}\n",
            "{\"_type\":\"memory\",\"key\":\"k \\u003c1\\u003e\",\"value\":{\"z\":1.50,\"a\":null}}\n",
        ],
    );
    assert_eq!(export.lines().count(), 3);
}

#[test]
fn beads_find_their_rig_by_the_longest_prefix() {
    let town = town();
    town.gt(["rig", "add", "short", "--prefix", "my"]).ok();
    town.gt(["rig", "add", "long", "--prefix", "my-app"]).ok();

    town.import(concat!(
        r#"{"id":"my-1","title":"a"}"#,
        "\n",
        r#"{"id":"my-app-1","title":"b"}"#,
        "\n",
        r#"{"id":"zz-1","title":"c"}"#
    ));

    assert_eq!(town.ids(&["list", "--rig", "short"]), ["my-1"]);
    assert_eq!(town.ids(&["list", "--rig", "long"]), ["my-app-1"]);
}

#[test]
fn a_file_or_standard_input_with_any_line_ends() {
    let town = town();
    let line = |id: &str| format!(r#"{{"id":"{id}","title":"t"}}"#);
    let text = format!("\u{feff}{}\r\n\r\n   \n{}", line("hq-a"), line("hq-b"));
    town.write("in.jsonl", &text);

    let file = town.json(&["import", "in.jsonl"]);
    assert_eq!(file["created"], 2);
    let flag = town.json(&["import", "-i", "in.jsonl"]);
    assert_eq!(flag["created"], 0);
    let piped = town.import(&line("hq-c"));
    assert_eq!(piped["created"], 1);
    let empty = town.import("");
    assert_eq!((&empty["created"], &empty["skipped"]), (&json!(0), &json!(0)));
}

#[test]
fn a_dry_run_says_what_would_come_and_changes_nothing() {
    let town = town();
    town.bead("hq-a", &[]);
    let before = (town.export(), town.last_event());
    town.write(
        "in.jsonl",
        concat!(
            r#"{"id":"hq-b","title":"b","labels":["gt:queued"],"dependencies":[{"depends_on_id":"hq-a"}]}"#,
            "\n",
            r#"{"id":"hq-a","title":"older","updated_at":"2001-01-01T00:00:00Z"}"#,
            "\n",
            r#"{"_type":"memory","key":"k","value":1}"#
        ),
    );

    let would = town.json(&["import", "in.jsonl", "--dry-run"]);
    assert_eq!((town.export(), town.last_event()), before);
    let said = town.bd(["import", "in.jsonl", "--dry-run"]).ok();
    assert_says(&said.stdout, &["Would import 1 issue: 1 created", "1 skipped"]);

    let mut did = town.json(&["import", "in.jsonl"]);
    did["dry_run"] = json!(true);
    assert_eq!(would, did, "what it said is what happens");
}

#[test]
fn the_state_of_older_queues_is_counted_and_kept() {
    let town = town();
    let lines = [
        r#"{"id":"hq-a","title":"a","labels":["gt:queued","x"]}"#,
        r#"{"id":"hq-b","title":"b","labels":["gt:dispatch-failed"]}"#,
        r#"{"id":"hq-c","title":"c","description":"text\n---gt:queue:v1---\ntarget_rig: web"}"#,
        r#"{"id":"hq-d","title":"d","labels":["x"]}"#,
    ];

    let summary = town.import(&lines.join("\n"));

    assert_eq!(summary["old_queue_state"], 3);
    assert_eq!(town.show("hq-a")["labels"], json!(["gt:queued", "x"]));
    assert_eq!(town.show("hq-c")["description"], "text\n---gt:queue:v1---\ntarget_rig: web");
    let elsewhere = crate::support::town();
    elsewhere.write("in.jsonl", lines.join("\n"));
    let said = elsewhere.bd(["import", "in.jsonl"]).ok();
    assert_says(&said.stdout, &["3 beads carry the state of an older queue"]);
}

#[test]
fn the_summary_has_every_number() {
    let summary = town().import(r#"{"id":"hq-a","title":"a"}"#);
    assert_eq!(
        summary,
        json!({
            "source": "jsonl", "files": ["standard input"],
            "created": 1, "updated": 0, "unchanged": 0, "skipped": 0, "skipped_details": [],
            "repaired": [], "mended": 0,
            "memories": 0, "old_queue_state": 0, "dry_run": false,
            "kept_running": 0, "kept_running_details": [],
            "rigs": [], "rigs_unchanged": 0, "settings": {}, "settings_unchanged": 0, "kept": {},
            "conflicts": [], "left_out": [], "remarks": [], "schema_version": 1,
        })
    );
}

#[test]
fn many_beads_come_in_with_one_event_each() {
    let town = town();
    let lines: Vec<String> = (0..2000)
        .map(|number| {
            let before = number / 2;
            format!(
                r#"{{"id":"hq-{number}","title":"Task {number}","labels":["l{}"],"dependencies":[{{"depends_on_id":"hq-{before}"}}]}}"#,
                number % 7
            )
        })
        .collect();

    let summary = town.import(&lines.join("\n"));

    assert_eq!(summary["created"], 2000);
    assert_eq!(town.last_event(), 2000);
    assert_eq!(town.ready(), ["hq-0"], "everything else waits for an earlier one");
    town.gt(["doctor"]).ok();
}

#[test]
fn a_record_that_is_only_newer_makes_the_bead_as_new() {
    let town = town();
    town.import(&version(1, r#","notes":"n""#).replace("v1", "same"));
    let last = town.last_event();

    let newer = version(3, r#","notes":"n""#).replace("v3", "same");
    let summary = town.import(&newer);

    assert_eq!(summary["unchanged"], 1);
    assert_eq!(town.show("hq-a")["updated_at"], "2026-01-01T00:00:03Z");
    assert_eq!(town.last_event(), last, "nothing to tell");
    assert_eq!(town.import(&version(2, ""))["skipped"], 1);
}

#[test]
fn a_circle_is_left_out_again_without_a_trace() {
    let town = town();
    let edge = |id: &str, target: &str, second: u32| {
        format!(
            r#"{{"id":"{id}","title":"t","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:{second:02}Z","dependencies":[{{"depends_on_id":"{target}","created_at":"2026-01-01T00:00:00Z"}}]}}"#
        )
    };
    town.import(&edge("hq-a", "hq-b", 1));
    let lines =
        [edge("hq-a", "hq-b", 1), edge("hq-b", "hq-c", 2), edge("hq-c", "hq-a", 2)].join("\n");
    assert_eq!(town.import(&lines)["skipped"], 1);
    let before = (town.export(), town.last_event());

    let summary = town.import(&lines);

    assert_eq!((&summary["updated"], &summary["skipped"]), (&json!(0), &json!(1)));
    assert_says(summary["skipped_details"][0]["reason"].as_str().unwrap(), &["would be a cycle"]);
    assert_eq!((town.export(), town.last_event()), before);
}

#[test]
fn of_several_lines_about_a_bead_the_last_newest_counts_each_time() {
    let town = town();
    let lines =
        [version(2, r#","labels":["x"]"#), version(1, ""), version(2, r#","labels":["y"]"#)];
    let summary = town.import(&lines.join("\n"));
    assert_eq!((&summary["created"], &summary["skipped"]), (&json!(1), &json!(2)));
    assert_eq!(town.show("hq-a")["labels"], json!(["y"]));
    let before = (town.export(), town.last_event());

    let summary = town.import(&lines.join("\n"));

    assert_eq!((&summary["unchanged"], &summary["skipped"]), (&json!(1), &json!(2)));
    assert_eq!((town.export(), town.last_event()), before);
}

#[test]
fn an_equally_old_record_that_says_something_else_is_a_conflict_and_the_bead_stays() {
    let town = town();
    let record = |rest: &str| {
        format!(
            r#"{{"id":"hq-1","created_at":"2025-01-01T00:00:00Z","updated_at":"2025-01-02T00:00:00Z",{rest}}}"#
        )
    };
    town.import(&record(r#""title":"mine","description":"keep me","labels":["a"]"#));

    let summary = town.import(&record(r#""title":"theirs","labels":["b"]"#));

    let conflict = summary["conflicts"][0].as_str().expect("a conflict is listed").to_owned();
    assert_says(&conflict, &["hq-1", "title", "description", "what is here stays"]);
    let bead = town.show("hq-1");
    assert_eq!((&bead["title"], &bead["description"]), (&"mine".into(), &"keep me".into()));
    assert_eq!(bead["labels"], serde_json::json!(["a", "b"]));
}
