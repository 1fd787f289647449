use std::slice;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";
/// After both, so that an import takes it over.
const MERGED: &str = "2026-01-02T00:00:00.001Z";

fn file(records: &[Value]) -> String {
    let lines: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    lines.concat()
}

fn merged(base: &[Value], ours: &[Value], theirs: &[Value]) -> Vec<Value> {
    let (base, ours, theirs) = (file(base), file(ours), file(theirs));
    let text = merge_records(&base, &ours, &theirs).unwrap();
    assert_eq!(merge_records(&base, &theirs, &ours).unwrap(), text, "the sides change nothing");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn one(base: Value, ours: Value, theirs: Value) -> Value {
    let mut records = merged(&[base], &[ours], &[theirs]);
    assert_eq!(records.len(), 1);
    records.remove(0)
}

#[test]
fn different_fields_of_one_bead_merge_without_a_trace() {
    let base = json!({"id": "a", "title": "t", "priority": 2, "x": 1, "updated_at": EARLY});
    let ours = json!({"id": "a", "title": "new", "priority": 2, "x": 1, "updated_at": EARLY});
    let theirs =
        json!({"id": "a", "title": "t", "priority": 0, "x": {"y": [1]}, "updated_at": LATE});
    let expected =
        json!({"id": "a", "title": "new", "priority": 0, "x": {"y": [1]}, "updated_at": MERGED});
    assert_eq!(one(base, ours, theirs), expected);
}

#[test]
fn the_later_value_of_one_field_wins_and_the_other_becomes_a_comment() {
    let base = json!({"id": "a", "title": "t", "updated_at": EARLY});
    let ours = json!({"id": "a", "title": "zebra", "updated_at": EARLY});
    let theirs = json!({"id": "a", "title": "ant", "updated_at": LATE});
    let record = one(base, ours, theirs);
    assert_eq!(record["title"], "ant");
    assert_eq!(record["comments"].as_array().unwrap().len(), 1);
    let comment = &record["comments"][0];
    assert!(
        comment["text"].as_str().unwrap().ends_with("changed title; the other value was: zebra")
    );
    assert_eq!(
        (&comment["author"], &comment["created_at"]),
        (&json!("bd merge-driver"), &json!(LATE))
    );
}

#[test]
fn between_equal_times_the_greater_value_wins() {
    let base = json!({"id": "a", "notes": "", "updated_at": EARLY});
    let ours = json!({"id": "a", "notes": "b", "updated_at": LATE});
    let theirs = json!({"id": "a", "notes": "a", "updated_at": LATE});
    assert_eq!(one(base, ours, theirs)["notes"], "b");
}

#[test]
fn the_status_and_its_fields_stay_together() {
    let base = json!({"id": "a", "status": "open", "updated_at": EARLY});
    let ours = json!({
        "id": "a", "status": "closed", "closed_at": EARLY, "close_reason": "done", "updated_at": EARLY,
    });
    let theirs = json!({"id": "a", "status": "in_progress", "assignee": "ann", "updated_at": LATE});
    let record = one(base, ours, theirs);
    assert_eq!((&record["status"], &record["assignee"]), (&json!("in_progress"), &json!("ann")));
    assert!(record["closed_at"].is_null(), "{record}");
    let said = record["comments"].to_string();
    assert!(said.contains("was: closed") && said.contains("was: done"), "{said}");
}

#[test]
fn labels_dependencies_comments_and_metadata_merge_by_their_parts() {
    let edge = |to: &str| json!({"issue_id": "a", "depends_on_id": to, "type": "blocks"});
    let comment = |id: &str| json!({"id": id, "author": "x", "text": id, "created_at": EARLY});
    let record = |labels: Value, edges: Value, comments: Value, metadata: Value| {
        json!({
            "id": "a", "labels": labels, "dependencies": edges, "comments": comments,
            "metadata": metadata, "updated_at": EARLY,
        })
    };
    let base =
        record(json!(["l", "m"]), json!([edge("b")]), json!([comment("1")]), json!({"k": 1}));
    let ours = record(
        json!(["l", "n"]),
        json!([edge("b"), edge("c")]),
        json!([comment("1"), comment("2")]),
        json!({"k": 1, "o": 2}),
    );
    let theirs = record(
        json!(["l", "m", "o"]),
        json!([edge("d")]),
        json!([comment("1"), comment("3")]),
        json!({"k": 5}),
    );
    let record = one(base, ours, theirs);
    assert_eq!(record["labels"], json!(["l", "n", "o"]));
    assert_eq!(record["dependencies"], json!([edge("c"), edge("d")]));
    let comments: Vec<&Value> = record["comments"].as_array().unwrap().iter().collect();
    assert_eq!(comments.len(), 3);
    assert_eq!(record["metadata"], json!({"k": 5, "o": 2}));
}

#[test]
fn a_bead_that_one_side_deleted_stays_if_the_other_changed_it() {
    let (a, changed) = (json!({"id": "a", "title": "t"}), json!({"id": "a", "title": "u"}));
    let new = json!({"id": "b"});
    assert_eq!(merged(slice::from_ref(&a), &[], &[a.clone(), new.clone()]), [new]);
    assert_eq!(merged(&[a], &[], slice::from_ref(&changed)), slice::from_ref(&changed));
}

#[test]
fn a_memory_that_both_sides_changed_keeps_its_other_value() {
    let memory = |value: &str| json!({"_type": "memory", "key": "k", "value": value});
    let records = merged(&[memory("a")], &[memory("b")], &[memory("c")]);
    assert_eq!(records[0], memory("c"));
    assert_eq!(records[1], json!({"_type": "memory", "key": "k~merged", "value": "b"}));
}

#[test]
fn a_file_that_cannot_be_read_is_refused_with_its_line() {
    let good = "{\"id\":\"a\"}\n";
    for (bad, said) in [
        ("{\"id\":\"a\"}\n<<<<<<< ours\n", "our side, line 2 is a conflict marker"),
        ("{\"id\":\"a\"}\n\n{\"id\":\"a\",\"x\":1}\n", "has a twice, on lines 1 and 3"),
        ("{\"id\":\"a\"}\n{\"id\":\"b\",\"tit", "line 2 is no record (it is cut off)"),
        ("[1]\n", "line 1 is no record"),
        ("{\"title\":\"no id\"}\n", "it has neither an id nor a key"),
    ] {
        let problem = merge_records(good, bad, good).unwrap_err().to_string();
        assert!(problem.contains(said), "{problem}");
    }
    assert_eq!(merge_records("", "\u{feff}\r\n", "\n").unwrap(), "");
}

fn record() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["", "a", "b", "c"]);
    let time = prop::sample::select(vec![EARLY, LATE, "not a time"]);
    let labels = prop::collection::btree_set(prop::sample::select(vec!["x", "y", "z"]), 0..3);
    let status = prop::sample::select(vec!["open", "closed", "in_progress"]);
    let unknown = prop::option::of(0..3u8);
    (prop::sample::select(vec!["a", "b", "c"]), text, time, labels, status, unknown).prop_map(
        |(id, title, time, labels, status, unknown)| {
            let mut record = json!({
                "id": id, "title": title, "labels": labels, "status": status, "updated_at": time,
            });
            if let Some(unknown) = unknown {
                record["unknown"] = json!({"deep": [unknown]});
            }
            record
        },
    )
}

fn records() -> impl Strategy<Value = String> {
    prop::collection::vec(record(), 0..4).prop_map(|records| {
        let mut seen = std::collections::BTreeSet::new();
        let is_new = |record: &Value| seen.insert(record["id"].to_string());
        file(&records.into_iter().filter(is_new).collect::<Vec<_>>())
    })
}

proptest! {
    #[test]
    fn a_merge_does_not_depend_on_the_sides(base in records(), ours in records(), theirs in records()) {
        let one = merge_records(&base, &ours, &theirs).unwrap();
        prop_assert_eq!(merge_records(&base, &theirs, &ours).unwrap(), one);
    }

    #[test]
    fn a_merge_with_itself_or_again_changes_nothing(base in records(), ours in records(), theirs in records()) {
        let sorted = merge_records(&base, &ours, &ours).unwrap();
        prop_assert_eq!(&merge_records(&base, &sorted, &sorted).unwrap(), &sorted);
        // Merging the result with a side once more, as a clone does that comes late.
        let merged = merge_records(&base, &ours, &theirs).unwrap();
        prop_assert_eq!(&merge_records(&base, &merged, &merged).unwrap(), &merged);
        prop_assert_eq!(&merge_records(&theirs, &merged, &theirs).unwrap(), &merged);
        prop_assert_eq!(&merge_records(&ours, &merged, &ours).unwrap(), &merged);
    }

    #[test]
    fn every_bead_and_unknown_field_of_one_side_survives(ours in records()) {
        let merged = merge_records("", &ours, "").unwrap();
        let lines = |text: &str| -> std::collections::BTreeSet<String> { text.lines().map(str::to_owned).collect() };
        prop_assert_eq!(lines(&merged), lines(&ours));
    }

    #[test]
    fn no_text_makes_it_panic(base in ".{0,80}", ours in "(\\{\"id\":\"[ab]\",\"x\":.{0,9}\\}\n){0,3}", theirs in records()) {
        let _ = merge_records(&base, &ours, &theirs);
    }
}

#[test]
fn a_deletion_counts_unless_the_bead_was_changed_later() {
    const LATER: &str = "2026-01-03T00:00:00Z";
    let bead = |title: &str, at: &str| json!({"id": "a", "title": title, "status": "open", "updated_at": at});
    let deleted =
        |at: &str| json!({"id": "a", "title": "t", "status": "tombstone", "updated_at": at});
    for (base, ours, theirs, expected) in [
        (bead("t", EARLY), deleted(LATE), bead("t", EARLY), deleted(LATE)),
        (bead("t", EARLY), deleted(LATER), bead("new", LATE), deleted(LATER)),
        (bead("t", EARLY), deleted(LATE), bead("new", LATER), bead("new", LATER)),
        (bead("t", EARLY), deleted(LATE), bead("new", LATE), deleted(LATE)),
        (bead("t", EARLY), deleted(LATE), deleted(LATER), deleted(LATER)),
        (deleted(EARLY), deleted(EARLY), bead("again", LATE), bead("again", LATE)),
    ] {
        assert_eq!(one(base, ours, theirs), expected);
    }
}
