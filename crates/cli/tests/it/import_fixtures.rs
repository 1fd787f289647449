//! Everything that a record can say, in the words of current and older tools: it comes in, it goes out.

use std::collections::BTreeMap;

use gt_testkit::Sandbox;
use serde_json::{Value, json};

use crate::support::{Steps as _, fixture, texts, town};

/// The beads of an export by id, without the counts that are made anew. Edges and comments have no
/// order of their own, so here they have one.
fn beads(lines: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for line in lines.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let object = record.as_object_mut().unwrap();
        for count in ["dependency_count", "dependent_count", "comment_count"] {
            object.remove(count);
        }
        for (list, key) in [("dependencies", "depends_on_id"), ("comments", "id")] {
            if let Some(parts) = object.get_mut(list).and_then(Value::as_array_mut) {
                parts.sort_by_key(|part| part[key].to_string());
            }
        }
        if let Some(id) = object.get("id").and_then(Value::as_str) {
            found.insert(id.to_owned(), record.clone());
        }
    }
    found
}

fn import_file(town: &Sandbox, name: &str) -> Value {
    town.json(&["import", fixture(name).to_str().unwrap()])
}

#[test]
fn every_field_comes_out_as_it_went_in() {
    let town = town();
    let original = std::fs::read_to_string(fixture("everything.jsonl")).unwrap();

    let summary = import_file(&town, "everything.jsonl");

    let (before, after) = (beads(&original), beads(&town.export()));
    assert_eq!(summary["created"], before.len());
    assert_eq!((&summary["skipped"], &summary["repaired"]), (&json!(0), &json!([])));
    assert_eq!(summary["memories"], 6);
    assert_eq!(summary["old_queue_state"], 1);
    for (id, record) in &before {
        let mut expected = record.clone();
        // Nothing said about metadata and an explicit null are the same.
        if expected["metadata"].is_null() {
            expected.as_object_mut().unwrap().remove("metadata");
        }
        assert_eq!(after.get(id), Some(&expected), "{id}");
    }
    // Number spellings and orders of keys are more than a parsed tree can tell.
    let export = town.export();
    for part in [
        r#""metadata":{"z":1.50,"a":[null,true,"\u003c\u0026\u003e"],"big":12345678901234567890,"deep":{"b":{},"a":[]}}"#,
        r#""x_unknown":{"z":1.0,"a":[1e3,-0.0]},"x_null":null,"#,
        r#""bonded_from":[{"source_id":"p","bond_type":"sequential","bond_point":"end"},{"proto_id":"old","bond_type":"parallel"}]"#,
        r#""title":"Everything: \u003cb\u003e\u0026amp; \u2028\u2029 \"q\" \\ äöü 漢字 🚚""#,
    ] {
        assert!(export.contains(part), "expected {part} in:\n{export}");
    }
}

#[test]
fn all_of_it_moves_on_to_another_town() {
    for name in ["everything.jsonl", "older.jsonl", "dump", "project"] {
        let (town, elsewhere) = (town(), town());
        import_file(&town, name);
        let export = town.export();

        let summary = elsewhere.import(&export);

        assert_eq!(elsewhere.export(), export, "{name}");
        assert_eq!(summary["skipped"], 0, "{name}");
        assert_eq!(elsewhere.ready(), town.ready(), "{name}");
        town.gt(["doctor"]).ok();
    }
}

#[test]
fn all_of_it_changes_nothing_the_second_time() {
    for name in ["everything.jsonl", "older.jsonl", "dump", "project"] {
        let town = town();
        import_file(&town, name);
        let before = (town.export(), town.last_event());

        let summary = import_file(&town, name);

        assert_eq!((&summary["created"], &summary["updated"]), (&json!(0), &json!(0)), "{name}");
        assert_eq!(summary["conflicts"], json!([]), "{name}");
        assert_eq!((town.export(), town.last_event()), before, "{name}");
    }
}

#[test]
fn a_rehearsal_of_any_of_it_says_what_happens() {
    for name in ["everything.jsonl", "older.jsonl", "dump", "project"] {
        let town = town();
        let path = fixture(name);
        let would = town.json(&["import", path.to_str().unwrap(), "--dry-run"]);
        assert_eq!((town.export(), town.last_event()), (String::new(), 0), "{name}");

        let mut did = import_file(&town, name);

        did["dry_run"] = json!(true);
        assert_eq!(would, did, "{name}");
    }
}

#[test]
fn older_records_mean_what_they_meant() {
    let town = town();

    let summary = import_file(&town, "older.jsonl");

    assert_eq!(summary["created"], 10);
    let after = beads(&town.export());
    assert_eq!(after["old-46"]["created_at"], "2025-12-30T23:21:06.352123456Z");
    assert_eq!(after["old-main-idj"]["status"], "in_progress");
    assert_eq!(after["old-wisp"]["ephemeral"], true);
    assert_eq!(after["old-wisp"].get("wisp"), None);
    assert_eq!(after.get("old-gone"), None);
    assert_eq!(after["old-bare"]["priority"], 0);
    assert!(texts(&after["old-ints"]["comments"], "id").contains(&"7".to_owned()));
    assert_eq!(texts(&after["old-edge"]["dependencies"], "type"), ["related", "blocks"]);
    assert_eq!(after["old-child"]["dependencies"][0]["type"], "parent-child");
    assert_eq!(after["old-child"].get("parent"), None);
    assert_eq!(after["old-bond"]["bonded_from"][0]["proto_id"], "mol-x");
    assert_eq!(after["old-status"]["status"], "review");
    assert_eq!(after["old-status"]["issue_type"], "investigation");
    assert_eq!(after["old-shut"]["closed_at"], "2026-03-01T10:00:00Z");
    assert_eq!(
        summary["repaired"],
        json!([
            {"line": 7, "id": "old-edge", "reason": "of the dependency on old-46: created_at is the time of the import: it is the zero time"},
            {"line": 8, "id": "old-child", "reason": "made a parent-child dependency of its parent, old-bare"},
            {"line": 11, "id": "old-shut", "reason": "closed without closed_at; took updated_at, 2026-03-01T10:00:00Z"},
        ])
    );
    assert_eq!(town.ids(&["list", "--parent", "old-bare"]), ["old-child"]);
}
