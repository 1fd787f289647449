//! Inconsistent records are made consistent, and say so.

use gt_core::{Outcome, Status};
use gt_records::{RecordLine, parse_line_bytes};

use crate::{imported_at, issue_with};

const UPDATED: &str = r#""updated_at":"2026-05-01T00:00:00Z""#;

#[test]
fn a_closed_bead_gets_a_closing_time() {
    let record = issue_with(&format!(
        r#""status":"closed","outcome":"failed","closed_at":"0001-01-01T00:00:00Z",{UPDATED}"#
    ));
    assert_eq!(record.bead.closed_at, Some(record.bead.updated_at));
    assert_eq!(record.bead.outcome, Some(Outcome::Failed));
    assert_eq!(record.repairs, ["closed without closed_at; took updated_at, 2026-05-01T00:00:00Z"]);
}

#[test]
fn an_open_bead_has_neither_closing_time_nor_outcome() {
    let record =
        issue_with(r#""status":"hooked","closed_at":"2026-05-01T00:00:00Z","outcome":"success""#);
    assert_eq!(record.bead.status, Status::Hooked);
    assert_eq!((record.bead.closed_at, record.bead.outcome), (None, None));
    assert_eq!(
        record.repairs,
        [
            "dropped closed_at, 2026-05-01T00:00:00Z: the status is hooked",
            "dropped outcome \"success\": the status is hooked"
        ]
    );
}

#[test]
fn edges_belong_to_the_bead_they_stand_under() {
    let record = issue_with(
        r#""dependencies":[{"issue_id":"gt-old","depends_on_id":"gt-b"},{"issue_id":"gt-old","depends_on_id":"gt-a"}]"#,
    );
    assert_eq!(record.dependencies.len(), 1);
    assert_eq!(record.dependencies[0].issue, record.bead.id);
    assert_eq!(
        record.repairs,
        [
            "the dependency on gt-b named \"gt-old\" as its issue; it stands under gt-a",
            "the dependency on gt-a named \"gt-old\" as its issue; it stands under gt-a",
            "dropped a dependency of the bead on itself"
        ]
    );
}

#[test]
fn of_two_edges_to_one_target_the_last_counts() {
    let record = issue_with(
        r#""dependencies":[{"depends_on_id":"gt-b"},{"depends_on_id":"gt-c"},{"depends_on_id":"gt-b","type":"tracks"}]"#,
    );
    let kept: Vec<_> =
        record.dependencies.iter().map(|edge| (edge.target.as_str(), edge.kind.as_str())).collect();
    assert_eq!(kept, [("gt-c", "blocks"), ("gt-b", "tracks")]);
    assert_eq!(record.repairs, ["dropped a blocks dependency on gt-b: there is a later one"]);
}

#[test]
fn a_parent_without_its_edge_becomes_one() {
    let record = issue_with(r#""parent":"gt-p","created_at":"2026-05-01T00:00:00Z""#);
    let [edge] = record.dependencies.as_slice() else { panic!("{:?}", record.dependencies) };
    assert_eq!((edge.target.as_str(), edge.kind.as_str()), ("gt-p", "parent-child"));
    assert_eq!(edge.created_at, record.bead.created_at);
    assert_eq!(record.repairs, ["made a parent-child dependency of its parent, gt-p"]);
}

#[test]
fn a_parent_that_the_edges_name_already_is_nothing_new() {
    let record = issue_with(
        r#""parent":"gt-p","dependencies":[{"depends_on_id":"gt-q","type":"parent-child"},{"depends_on_id":"gt-p","type":"parent-child"}]"#,
    );
    assert_eq!((record.dependencies.len(), record.repairs.len()), (2, 0));
}

#[test]
fn the_edges_win_over_a_parent_that_contradicts_them() {
    for (more, said) in [
        (
            r#""parent":"gt-p","dependencies":[{"depends_on_id":"gt-p"}]"#,
            "a blocks dependency on gt-p",
        ),
        (
            r#""parent":"gt-p","dependencies":[{"depends_on_id":"gt-q","type":"parent-child"}]"#,
            "a parent-child dependency on gt-q",
        ),
        (r#""parent":"gt-a""#, "no other bead"),
        (r#""parent":"a b""#, "no other bead"),
        (r#""parent":7"#, "no other bead"),
    ] {
        let record = issue_with(more);
        assert!(record.repairs[0].contains(said), "{more}: {:?}", record.repairs);
        assert!(record.repairs[0].starts_with("dropped the parent"), "{:?}", record.repairs);
    }
    assert_eq!(issue_with(r#""parent":"""#).repairs, Vec::<String>::new());
    assert_eq!(issue_with(r#""parent":null"#).repairs, Vec::<String>::new());
}

/// A record with these fields, and the one repair that it needed.
#[track_caller]
fn mended(fields: &str) -> (gt_records::IssueRecord, String) {
    let mut record = issue_with(fields);
    let repair = record.repairs.pop().unwrap_or_default();
    assert_eq!(record.repairs, [""; 0], "{fields}");
    (record, repair)
}

#[test]
fn a_priority_out_of_range_becomes_the_nearest() {
    for (given, kept, why) in [
        ("50", 4, "priority 50 is not between 0 (highest) and 4"),
        ("-3", 0, "priority -3 is not between 0 (highest) and 4"),
        ("2.0", 2, "expected a whole number, found 2.0"),
        ("\"1\"", 1, "expected a whole number, found \"1\""),
        ("\"P3\"", 3, "expected a whole number, found \"P3\""),
        ("\"high\"", 2, "expected a whole number, found \"high\""),
        ("[1]", 2, "expected a whole number, found [1]"),
    ] {
        let (record, repair) = mended(&format!("\"priority\":{given}"));
        assert_eq!(record.bead.priority.number(), kept, "{given}");
        assert_eq!(repair, format!("priority is {kept}: {why}"));
    }
    assert_eq!(issue_with(r#""priority":3"#).repairs, [""; 0]);
}

#[test]
fn labels_that_cannot_be_kept_are_dropped_one_by_one() {
    let record = issue_with(r#""labels":["a","",7,"b"]"#);
    assert_eq!(record.labels, ["a", "b"]);
    assert_eq!(
        record.repairs,
        ["dropped an empty label", "dropped a label: expected a text, found 7"]
    );
    let (record, repair) = mended(r#""labels":"a""#);
    assert_eq!(record.labels, [""; 0]);
    assert_eq!(repair, r#"dropped labels: expected a list, found "a""#);
}

#[test]
fn nul_characters_are_removed_wherever_they_stand() {
    let (record, repair) = mended(
        r#""notes":"a\u0000b","labels":["x\u0000"],"metadata":{"k\u0000":"\u0000v"},"other":["\u0000"],"n\u0000":1"#,
    );
    assert_eq!(
        (record.bead.notes.as_str(), record.labels.as_slice()),
        ("ab", &["x".to_owned()][..])
    );
    assert_eq!(record.bead.metadata.unwrap().as_str(), r#"{"k":"v"}"#);
    assert_eq!(record.bead.carried[0].1.as_str(), r#"[""]"#);
    assert_eq!(record.bead.carried[1].0, "n");
    assert_eq!(repair, "removed NUL characters");
    let (record, _) = mended("\"notes\":\"a\0b\"");
    assert_eq!(record.bead.notes, "ab", "a byte that JSON does not allow");
    let kept = issue_with(r#""notes":"a\\u0000b""#);
    assert_eq!((kept.bead.notes.as_str(), kept.repairs.len()), ("a\\u0000b", 0));
}

#[test]
fn values_of_another_kind_are_kept_as_text_or_dropped() {
    for (fields, kept, why) in [
        (r#""notes":[1, 2]"#, "[1,2]", "kept notes as text: expected a text, found [1, 2]"),
        (
            r#""notes":"a\ud800b""#,
            "a\u{fffd}b",
            r#"kept notes as text: expected a text without broken \u escapes, found "a\ud800b""#,
        ),
        (r#""pinned":1"#, "", "dropped pinned: expected true or false, found 1"),
        (
            r#""estimated_minutes":-1"#,
            "",
            "dropped estimated_minutes: -1 minutes is not between 0 and 4294967295",
        ),
        (r#""due_at":7"#, "", "dropped due_at: expected a timestamp, found 7"),
        (r#""due_at":"2025-03-01""#, "", r#"due_at is in UTC: "2025-03-01" has no zone"#),
        (
            r#""due_at":"soon""#,
            "",
            r#"dropped due_at: "soon" is not a timestamp; write it like "2026-05-31T12:34:56Z""#,
        ),
        (
            r#""outcome":"meh""#,
            "",
            r#"dropped outcome: "meh" is not an outcome; write success, failed or cancelled"#,
        ),
    ] {
        let (record, repair) = mended(fields);
        assert_eq!((record.bead.notes.as_str(), repair.as_str()), (kept, why), "{fields}");
    }
}

#[test]
fn a_title_that_does_not_fit_loses_nothing() {
    let (record, repair) = mended(r#""title":"""#);
    assert_eq!(record.bead.title.as_str(), "gt-a");
    assert_eq!(repair, "the title is gt-a: it was empty");
    let long = "ä".repeat(400);
    let (record, repair) = mended(&format!(r#""title":"{long}","description":"more""#));
    assert!(long.starts_with(record.bead.title.as_str()));
    assert_eq!(record.bead.description, format!("{long}\n\nmore"));
    assert!(repair.starts_with("cut the title"), "{repair}");
}

#[test]
fn times_that_are_replaced_are_told() {
    let zero = "0001-01-01T00:00:00Z";
    let at = crate::imported_at();
    let (record, repair) = mended(&format!(
        r#""dependencies":[{{"depends_on_id":"gt-b","created_at":"{zero}"}},{{"depends_on_id":"gt-c"}}]"#
    ));
    assert_eq!(record.dependencies[0].created_at, at);
    assert_eq!(
        repair,
        "of the dependency on gt-b: created_at is the time of the import: it is the zero time"
    );
    for text in ["2025-01-02T03:04:05.25", "2025-01-02 03:04:05.25"] {
        let (record, repair) = mended(&format!(r#""created_at":"{text}""#));
        assert_eq!(record.bead.created_at.to_string(), "2025-01-02T03:04:05.25Z");
        assert_eq!(repair, format!("created_at is in UTC: \"{text}\" has no zone"));
    }
    let (record, repair) = mended(&format!(r#""created_at":"{zero}""#));
    assert_eq!(record.bead.created_at, at);
    assert_eq!(repair, "created_at is the time of the import: it is the zero time");
}

#[test]
fn edges_and_comments_that_make_no_sense_are_dropped_alone() {
    for (fields, why) in [
        (
            r#""dependencies":[7]"#,
            r#"dropped field "dependencies[0]": expected an object, found 7"#,
        ),
        (r#""dependencies":[{}]"#, r#"dropped field "dependencies[0].depends_on_id": missing"#),
        (
            r#""dependencies":[{"depends_on_id":"a b"}]"#,
            r#"dropped field "dependencies[0].depends_on_id": "a b" is not a bead id; ids look like gt-abc"#,
        ),
        (r#""comments":[7]"#, r#"dropped field "comments[0]": expected an object, found 7"#),
        (
            r#""comments":[{"id":1.5,"text":"t"}]"#,
            "of a comment: dropped id: expected a text or a whole number, found 1.5",
        ),
    ] {
        let (record, repair) = mended(fields);
        assert_eq!(repair, why);
        assert_eq!(record.comments.len(), usize::from(fields.contains("\"t\"")));
        assert!(record.dependencies.is_empty());
    }
}

#[test]
fn a_status_or_a_type_that_cannot_be_kept_is_mended() {
    for (fields, status, said) in [
        (
            r#""status":"Closed","closed_at":"2026-05-01T00:00:00Z""#,
            "closed",
            "status is closed: it was \"Closed\"",
        ),
        (
            r#""status":"In Progress""#,
            "in_progress",
            "status is in_progress: it was \"In Progress\"",
        ),
        (r#""status":"¿?""#, "open", "status is open: invalid status"),
        (r#""status":7"#, "open", "status is open: expected a text"),
        (r#""issue_type":"a\nb""#, "open", "dropped issue_type: "),
    ] {
        let record = issue_with(fields);
        assert_eq!(record.bead.status.as_str(), status, "{fields}");
        assert_eq!(record.repairs.len(), 1, "{:?}", record.repairs);
        assert!(record.repairs[0].starts_with(said), "{:?}", record.repairs);
    }
    assert_eq!(issue_with(r#""status":"","issue_type":"""#).repairs, [""; 0]);
}

#[test]
fn bytes_that_are_not_utf8_are_replaced() {
    let line = b"{\"id\":\"gt-a\",\"title\":\"caf\xe9\"}";
    let Ok(RecordLine::Issue(record)) = parse_line_bytes(line, imported_at()) else { panic!() };
    assert_eq!(record.bead.title.as_str(), "caf\u{fffd}");
    assert_eq!(record.repairs, ["replaced bytes that are not UTF-8"]);
    let refused = parse_line_bytes(b"\xff\xfe{\0", imported_at()).unwrap_err();
    assert_eq!(refused.to_string(), "the line is not UTF-8");
}
