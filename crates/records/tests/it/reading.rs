//! The meaning of a line, and the reasons for refusals.

use gt_core::{BeadId, DependencyType, Json, Priority, Status, Timestamp, Uid};
use gt_records::{RecordLine, TombstoneRecord};
use proptest::prelude::*;

use crate::{imported_at, issue, issue_with, read, refusal};

fn carried(fields: &str) -> Vec<(String, String)> {
    let carried = issue_with(fields).bead.carried;
    carried.into_iter().map(|(name, json)| (name, json.to_string())).collect()
}

#[test]
fn a_minimal_issue_gets_the_defaults() {
    let record = issue(r#"{"id":"gt-a","title":"T"}"#);
    let bead = &record.bead;
    assert_eq!(bead.status, Status::Open);
    assert_eq!(bead.priority, Priority::HIGHEST);
    assert_eq!(bead.issue_type.as_str(), "task");
    assert_eq!((bead.created_at, bead.updated_at), (imported_at(), imported_at()));
    assert_eq!(bead.uid, Uid::of_bead(&bead.id, imported_at()));
    assert_eq!((bead.open_blockers, &bead.rig), (0, &None));
    assert_eq!(record.repairs, Vec::<String>::new());
}

#[test]
fn null_is_absent_only_where_we_know_the_field() {
    let names = [
        "title_of_mine",
        "status",
        "priority",
        "metadata",
        "labels",
        "dependencies",
        "comments",
        "closed_at",
        "estimated_minutes",
        "pinned",
        "wisp",
    ];
    let fields = names.map(|name| format!(r#""{name}":null"#)).join(",");
    let record = issue_with(&fields);
    assert_eq!(record.bead.metadata, None);
    assert_eq!(carried(&fields), [("title_of_mine".to_owned(), "null".to_owned())]);
}

#[test]
fn unknown_fields_are_carried_in_order_and_as_spelled() {
    let fields = r#""z":{"b" : 1e400, "a":[12345678901234567890, "\u003c" ]},"spec_id":"s","a":-0,"content_hash":"x","dependency_count":3,"dependent_count":1,"comment_count":0,"parent":"gt-b""#;
    let expected = [
        ("z", r#"{"b":1e400,"a":[12345678901234567890,"\u003c"]}"#),
        ("spec_id", r#""s""#),
        ("a", "-0"),
        ("content_hash", r#""x""#),
    ];
    assert_eq!(carried(fields), expected.map(|(name, json)| (name.to_owned(), json.to_owned())));
}

#[test]
fn the_last_of_repeated_fields_counts() {
    let record = issue_with(
        r#""priority":"high","x":1,"y":0,"priority":3,"x":[2],"notes":"n","notes":null"#,
    );
    assert_eq!(record.bead.priority.number(), 3);
    assert_eq!(record.bead.notes, "");
    assert_eq!(
        record.bead.carried,
        [
            ("y".to_owned(), Json::trusted("0".to_owned())),
            ("x".to_owned(), Json::trusted("[2]".to_owned()))
        ]
    );
}

#[test]
fn spelling_is_kept_where_a_person_would_be_corrected() {
    let bead = issue_with(r#""issue_type":"feat","title":"  two\nlines ","status":"""#).bead;
    assert_eq!(bead.issue_type.as_str(), "feat");
    assert_eq!(bead.title.as_str(), "  two\nlines ");
    assert_eq!(bead.status, Status::Open);
}

#[test]
fn a_wisp_is_ephemeral() {
    let bead = issue_with(r#""wisp":true"#).bead;
    assert!(bead.ephemeral);
    assert_eq!(bead.carried, []);
    assert!(!issue_with(r#""wisp":false,"ephemeral":false"#).bead.ephemeral);
}

#[test]
fn metadata_is_any_json() {
    for (given, kept) in [
        (r#"{ "b": 1, "a": "x y" }"#, r#"{"b":1,"a":"x y"}"#),
        (r#""{\"a\":1}""#, r#""{\"a\":1}""#),
        ("[1.50]", "[1.50]"),
        ("false", "false"),
        (r#""\\u0000 \ud800""#, r#""\\u0000 \ud800""#),
    ] {
        let metadata = issue_with(&format!(r#""metadata":{given}"#)).bead.metadata;
        assert_eq!(metadata.unwrap().as_str(), kept);
    }
}

#[test]
fn the_zero_time_of_go_is_no_time() {
    let zero = r#""created_at":"0001-01-01T00:00:00Z","due_at":"0001-01-01T00:00:00Z""#;
    let bead = issue_with(zero).bead;
    assert_eq!(bead.created_at, imported_at());
    assert_eq!(bead.due_at, None);
}

#[test]
fn labels_are_kept_once_and_in_order() {
    let record = issue_with(r#""labels":["b","a","b","\u0061"]"#);
    assert_eq!(record.labels, ["b", "a"]);
}

#[test]
fn edges_get_the_defaults_and_keep_the_rest() {
    let edges = issue_with(
        r#""dependencies":[{"depends_on_id":"gt-b"},{"issue_id":"gt-a","depends_on_id":"external:proj:cap","type":"waits-for","metadata":{"gate": "any-children"},"x":[1, 2]},{"depends_on_id":"gt-c","metadata":"{ }","created_by":"me","thread_id":"t","created_at":"2026-01-01T00:00:00Z"}]"#,
    )
    .dependencies;
    assert_eq!(edges[0].kind, DependencyType::Blocks);
    assert_eq!(edges[0].created_at, imported_at());
    assert_eq!(edges[1].target.as_str(), "external:proj:cap");
    assert_eq!(edges[1].metadata, r#"{"gate":"any-children"}"#);
    assert_eq!(edges[1].carried, [("x".to_owned(), Json::trusted("[1,2]".to_owned()))]);
    assert_eq!(edges[2].metadata, "{ }");
    assert_eq!((&*edges[2].created_by, &*edges[2].thread_id), ("me", "t"));
}

#[test]
fn comments_may_have_numbers_for_ids_or_none() {
    let line = r#""comments":[{"id":7,"issue_id":"gt-old","author":"me","text":"hi","created_at":"2026-01-01T00:00:00Z","mood":"good"},{"id":"u","text":"x"},{"author":"me","text":"y"}]"#;
    let comments = issue_with(line).comments;
    assert_eq!(comments[0].id, "7");
    assert_eq!(comments[0].bead.as_str(), "gt-a");
    assert_eq!(comments[0].carried[0].0, "mood");
    assert_eq!(comments[1].created_at, imported_at());
    assert!(Uid::parse(&comments[2].id).is_some());
    assert_eq!(issue_with(line).comments[2].id, comments[2].id);
}

#[test]
fn other_lines_are_told_apart() {
    let memory = |value: &str| RecordLine::Memory {
        key: "k".to_owned(),
        value: Json::trusted(value.to_owned()),
    };
    let tombstone = |deleted_at: Option<&str>, record: &str| {
        RecordLine::Tombstone(TombstoneRecord {
            id: BeadId::parse("gt-a").unwrap(),
            deleted_at: deleted_at.map(|text| Timestamp::parse(text).unwrap()),
            record: Json::trusted(record.to_owned()),
        })
    };
    for (text, expected) in [
        (r#"{"_schema":"beads-jsonl/1","n":2}"#, RecordLine::Header),
        (r#"{"_type":"header","_schema":"beads-jsonl/1"}"#, RecordLine::Header),
        (r#"{"_type":"memory","key":"k","value":"v"}"#, memory(r#""v""#)),
        (r#"{"_type":"memory","key":"k","value":{"a": null}}"#, memory(r#"{"a":null}"#)),
        (r#"{"_type":"memory","key":"k","value":null}"#, memory("null")),
        (
            r#"{"_type":"issue","id":"gt-a","status":"tombstone"}"#,
            tombstone(None, r#"{"_type":"issue","id":"gt-a","status":"tombstone"}"#),
        ),
        (
            r#"{"id":"gt-a","status":"tombstone","deleted_at":"2026-01-02T00:00:00Z","x":1}"#,
            tombstone(
                Some("2026-01-02T00:00:00Z"),
                r#"{"id":"gt-a","status":"tombstone","deleted_at":"2026-01-02T00:00:00Z","x":1}"#,
            ),
        ),
        (
            r#"{"id":"gt-a","status":"tombstone","deleted_at":"soon"}"#,
            tombstone(None, r#"{"id":"gt-a","status":"tombstone","deleted_at":"soon"}"#),
        ),
    ] {
        assert_eq!(read(text).unwrap(), expected);
    }
    let issue = issue(r#"{"_type":"issue","id":"gt-a","title":"T","_schema":1}"#);
    assert_eq!(issue.bead.carried[0].0, "_schema");
}

#[test]
fn a_refusal_names_the_field() {
    for (fields, message) in [
        (
            r#""_type":"gadget""#,
            r#"field "_type": unknown record type "gadget"; known: issue, memory"#,
        ),
        (r#""_type":"memory""#, r#"field "key": missing"#),
        (r#""_type":"memory","key":"k""#, r#"field "value": missing"#),
        (r#""id":null"#, r#"field "id": missing"#),
        (r#""id":"no""#, r#"field "id": "no" is not a bead id; ids look like gt-abc"#),
    ] {
        assert_eq!(refusal(fields), message);
    }
    let long = refusal(&format!(r#""id":"{}""#, "x".repeat(1000)));
    assert!(long.len() < 1200, "{long}");
}

#[test]
fn a_line_that_is_no_object_is_refused_with_its_place() {
    for (text, message) in [
        ("", "not valid JSON: EOF while parsing a value at column 0"),
        (r#"{"id":"gt-a","title":}"#, "not valid JSON: expected value at column 22"),
        ("{} {}", "not valid JSON: trailing characters at column 4"),
        ("<<<<<<< HEAD", "a conflict marker of git; resolve the conflict first"),
        ("[1]", "expected an object, found [1]"),
        ("7", "expected an object, found 7"),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn depth_is_no_danger() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let bead = issue_with(&format!(r#""x":{deep},"metadata":{deep}"#)).bead;
    assert_eq!(bead.carried[0].1.as_str(), deep);
    assert_eq!(bead.metadata.unwrap().as_str(), deep);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,200}") {
        let _ = read(&text);
    }
}
