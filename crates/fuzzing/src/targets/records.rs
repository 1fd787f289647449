//! Lines of files that hold beads, and rows of tables that do.

use gt_core::Timestamp;
use gt_core::record_merge::merge_records;
use gt_records::{
    BeadView, IssueRecord, RecordLine, RowParts, comment_row, config_row, dependency_row,
    export_line, export_memory_line, issue_row, label_row, parse_line, pretty, row_id,
    sorted_object, table_rows,
};

use crate::promise::{accepted, is_json_line, tells_on_one_line, text};

pub(super) const FIELDS: &[&str] = &[
    "{\"id\":\"gt-a\",\"title\":\"T\"",
    "\"_type\":\"issue\"",
    "\"_type\":\"memory\"",
    "\"_schema\":1",
    "\"status\":\"closed\"",
    "\"status\":\"tombstone\"",
    "\"parent\":\"gt-b\"",
    "\"created_at\":\"2026-01-01T00:00:00Z\"",
    "\"0001-01-01T00:00:00Z\"",
    "\"labels\":[\"a\"]",
    "\"dependencies\":[{\"depends_on_id\":\"gt-b\"}]",
    "\"comments\":[{\"text\":\"t\"}]",
    "\"metadata\":{}",
    "\"external_ref\":\"\"",
    "\"issue_id\":\"gt-a\"",
    "\"label\":\"l\"",
    "\"key\":\"kv.memory.k\"",
    "\"value\":null",
    "\"rows\":[",
    "\"timeout_ns\":1",
    "\"waiters\":\"[]\"",
    "\"pinned\":1",
    "null",
    "\"\"",
    "},{",
    ",",
];

/// Three files of records, apart by a line with a dash, merge into one that the order of the sides does not change, and that
/// merges again without a change.
pub(super) fn record_merge(input: &[u8]) {
    let Some(whole) = text(input) else { return };
    let mut parts = whole.split("\n-\n");
    let mut next = || parts.next().unwrap_or_default();
    let (base, ours, theirs) = (next(), next(), next());
    let Ok(merged) = merge_records(base, ours, theirs) else {
        assert!(
            merge_records(base, theirs, ours).is_err(),
            "only one order of the sides is refused"
        );
        return;
    };
    assert_eq!(merge_records(base, theirs, ours).as_ref(), Ok(&merged), "the sides matter");
    assert_eq!(merge_records(base, &merged, &merged).as_ref(), Ok(&merged), "it changes again");
}

/// The time of records that name none.
const IMPORTED_AT: Timestamp = Timestamp::from_nanos(1_780_230_896_000_000_000);

fn exported(record: &IssueRecord) -> String {
    export_line(&BeadView {
        labels: &record.labels,
        dependencies: &record.dependencies,
        comments: &record.comments,
        ..BeadView::bare(&record.bead)
    })
}

/// A line of a JSONL file: an accepted line is written so that it always reads back as the same.
pub(super) fn record_line(input: &[u8]) {
    let Some(line) = text(input) else { return };
    match accepted(parse_line(line, IMPORTED_AT)) {
        Some(RecordLine::Issue(record)) => {
            record.repairs.iter().for_each(tells_on_one_line);
            let first = exported(&record);
            is_json_line(&first);
            is_json_line(&sorted_object(&first));
            assert!(serde_json::from_str::<&serde_json::value::RawValue>(&pretty(&first)).is_ok());
            // A later reader must not need the time of the first import.
            match parse_line(&first, Timestamp::from_nanos(0)) {
                Ok(RecordLine::Issue(again)) => {
                    assert_eq!(again.repairs, Vec::<String>::new(), "{first}");
                    assert_eq!(exported(&again), first);
                    assert_eq!(again.bead.id, record.bead.id);
                    assert_eq!(again.bead.uid, record.bead.uid);
                    assert_eq!(again.bead.title, record.bead.title);
                    assert_eq!(again.bead.status, record.bead.status);
                    assert_eq!(again.labels, record.labels);
                    // Carried JSON may have got other escapes; the rest is the same.
                    let plain = |record: &IssueRecord| {
                        let mut parts = (record.dependencies.clone(), record.comments.clone());
                        parts.0.iter_mut().for_each(|edge| edge.carried.clear());
                        parts.0.iter_mut().for_each(|edge| edge.metadata.clear());
                        parts.1.iter_mut().for_each(|comment| comment.carried.clear());
                        parts
                    };
                    assert_eq!(plain(&again), plain(&record));
                }
                other => panic!("{first}: {other:?}"),
            }
        }
        Some(RecordLine::Memory { key, value }) => {
            let first = export_memory_line(&key, &value);
            is_json_line(&first);
            match parse_line(&first, IMPORTED_AT) {
                Ok(RecordLine::Memory { key: same, value }) => {
                    assert_eq!(same, key);
                    assert_eq!(export_memory_line(&key, &value), first);
                }
                other => panic!("{first}: {other:?}"),
            }
        }
        Some(RecordLine::Header | RecordLine::Tombstone(_)) | None => {}
    }
}

/// A file with the rows of a table, as an array, as an answer of a SQL shell or a row per line.
fn rows_of(file: &str) -> Vec<&str> {
    match table_rows(file) {
        Ok(Some(rows)) => rows,
        Ok(None) => file.lines().collect(),
        Err(error) => {
            tells_on_one_line(&error);
            Vec::new()
        }
    }
}

/// Rows of every table, joined into records.
pub(super) fn tables(input: &[u8]) {
    let Some(file) = text(input) else { return };
    let rows = rows_of(file);
    let mut parts = RowParts::default();
    for row in &rows {
        accepted(config_row(row));
        let labels = accepted(label_row(row)).map(|(_, label)| label);
        let edges = accepted(dependency_row(row)).map(|(_, edge)| edge);
        let comments = accepted(comment_row(row)).map(|(_, comment)| comment);
        for json in [&labels, &edges, &comments].into_iter().flatten() {
            is_json_line(json);
        }
        parts.labels.extend(labels);
        parts.dependencies.extend(edges);
        parts.comments.extend(comments);
    }
    for row in rows {
        let line = issue_row(row, &parts);
        if row_id(row).is_some() {
            is_json_line(&line);
        }
        record_line(line.as_bytes());
    }
}
