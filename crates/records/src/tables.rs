//! Rows of database tables, turned into the record they are parts of.
//!
//! A dump of the tables of older tools has a file per table: every column of a row, `NULL` where
//! nothing is set, flags as 0 and 1, JSON inside of strings, instants as the database spells them.

use std::borrow::Cow;

use gt_core::{Invalid, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::read::{RecordFields, values};
use crate::{ObjectWriter, RecordError};
use gt_core::json::compact;

/// Columns that are 0 or 1.
const FLAGS: [&str; 6] =
    ["ephemeral", "no_history", "pinned", "is_template", "wisp", "crystallizes"];

/// Columns for which 0 is the same as nothing.
const COUNTS: [&str; 3] = ["compaction_level", "original_size", "timeout_ns"];

/// Columns that hold an instant.
const INSTANTS: [&str; 7] = [
    "created_at",
    "updated_at",
    "started_at",
    "closed_at",
    "due_at",
    "defer_until",
    "compacted_at",
];

/// Columns whose text is JSON.
const JSON_TEXTS: [&str; 3] = ["metadata", "waiters", "bonded_from"];

/// Columns that databases keep for themselves.
const DERIVED: [&str; 2] = ["content_hash", "is_blocked"];

/// The rows of the other tables about one issue, each part as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowParts {
    /// Its labels.
    pub labels: Vec<String>,
    /// Its edges.
    pub dependencies: Vec<String>,
    /// Its comments.
    pub comments: Vec<String>,
}

/// The rows in an array, or in the `rows` of an object as SQL shells print it; nothing if the text is
/// neither, and so perhaps a row per line.
pub fn table_rows(text: &str) -> serde_json::Result<Option<Vec<&str>>> {
    #[derive(Deserialize)]
    struct RowsObject<'a> {
        #[serde(borrow)]
        rows: Vec<&'a RawValue>,
    }
    let rows = if text.trim_start().starts_with('[') {
        Some(serde_json::from_str(text)?)
    } else {
        serde_json::from_str(text).ok().map(|answer: RowsObject<'_>| answer.rows)
    };
    Ok(rows.map(|rows: Vec<&RawValue>| rows.into_iter().map(RawValue::get).collect()))
}

/// The line that a row of the issues table makes together with the rows of other tables about it. A row
/// that is no object stays as it is: the reader of the line reports the error.
pub fn issue_row(row: &str, parts: &RowParts) -> String {
    let Ok(fields) = RecordFields::parse(row) else {
        return compact(row);
    };
    let mut line = String::with_capacity(row.len());
    let mut object = ObjectWriter::new(&mut line);
    for (name, raw) in fields.rest() {
        column(&mut object, name, raw);
    }
    for (name, list) in [
        ("labels", &parts.labels),
        ("dependencies", &parts.dependencies),
        ("comments", &parts.comments),
    ] {
        if !list.is_empty() {
            object.array(name, |array| list.iter().for_each(|part| array.raw(part)));
        }
    }
    object.finish();
    line
}

/// The id of the issue in a row of the issues table, if the row has one.
pub fn row_id(row: &str) -> Option<String> {
    let mut fields = RecordFields::parse(row).ok()?;
    fields.read("id", values::text).ok()?.map(Cow::into_owned)
}

/// A row of the labels table: the issue and the label.
pub fn label_row(row: &str) -> Result<(String, String), RecordError> {
    let mut fields = RecordFields::parse(row)?;
    let issue = required(&mut fields, "issue_id")?;
    let label = fields.take("label").ok_or_else(|| RecordError::missing("label"))?;
    values::text(label).map_err(|invalid| RecordError::field("label", invalid))?;
    Ok((issue, label.get().to_owned()))
}

/// A row of the dependencies table: the issue that depends, and the edge.
pub fn dependency_row(row: &str) -> Result<(String, String), RecordError> {
    let mut fields = RecordFields::parse(row)?;
    let issue = required(&mut fields, "issue_id")?;
    // Newer tables have one column for each kind of target.
    let mut target = None;
    for name in
        ["depends_on_id", "depends_on_issue_id", "depends_on_wisp_id", "depends_on_external"]
    {
        let given = fields.take(name).filter(|raw| raw.get() != "\"\"");
        target = target.or(given);
    }
    let target = target.ok_or_else(|| RecordError::missing("depends_on_id"))?;
    Ok((issue, part(&fields, &[("depends_on_id", target)])))
}

/// A row of the comments table: the issue, and the comment.
pub fn comment_row(row: &str) -> Result<(String, String), RecordError> {
    let mut fields = RecordFields::parse(row)?;
    let issue = required(&mut fields, "issue_id")?;
    Ok((issue, part(&fields, &[])))
}

/// A row of the config table: its key and its value.
pub fn config_row(row: &str) -> Result<(String, String), RecordError> {
    let mut fields = RecordFields::parse(row)?;
    let key = required(&mut fields, "key")?;
    Ok((key, fields.text("value")?))
}

fn required(fields: &mut RecordFields<'_>, name: &str) -> Result<String, RecordError> {
    let text = fields.text(name)?;
    if text.is_empty() { Err(RecordError::missing(name)) } else { Ok(text) }
}

/// The remaining fields of a row, as a part of the issue it belongs to.
fn part(fields: &RecordFields<'_>, first: &[(&str, &RawValue)]) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    for (name, raw) in first {
        object.raw(name, raw.get());
    }
    for (name, raw) in fields.rest() {
        match (name, raw.get()) {
            (_, "null" | "\"\"") | ("metadata", "\"{}\"" | "{}") => {}
            (name, text) if INSTANTS.contains(&name) => object.raw(name, &instant(raw, text)),
            (name, text) => object.raw(name, &compact(text)),
        }
    }
    object.finish();
    out
}

/// Writes the value of a column, if it has one.
fn column(object: &mut ObjectWriter<'_>, name: &str, raw: &RawValue) {
    match (name, raw.get()) {
        (_, "null" | "\"\"") => {}
        (name, _) if DERIVED.contains(&name) => {}
        // Where a repository kept its own issues, which is where they are anyway.
        ("source_repo", "\".\"") => {}
        (name, "0" | "false") if FLAGS.contains(&name) => {}
        (name, "1") if FLAGS.contains(&name) && name != "crystallizes" => object.flag(name, true),
        (name, "0") if COUNTS.contains(&name) => {}
        ("timeout_ns", nanoseconds) => object.raw("timeout", nanoseconds),
        (name, text) if INSTANTS.contains(&name) => object.raw(name, &instant(raw, text)),
        (name, text) if JSON_TEXTS.contains(&name) => match unwrapped(raw).as_deref() {
            Some("{}" | "[]" | "null" | "") => {}
            Some(json) => object.raw(name, json),
            None => object.raw(name, &compact(text)),
        },
        (name, text) => object.raw(name, &compact(text)),
    }
}

/// The JSON in a string, or the JSON that is no string; nothing if the string is only text.
fn unwrapped(raw: &RawValue) -> Option<String> {
    if !raw.get().starts_with('"') {
        return Some(compact(raw.get()));
    }
    let text = values::text(raw).ok()?;
    serde_json::from_str::<&RawValue>(&text).ok().map(|inner| compact(inner.get()))
}

/// An instant as records spell it. Databases leave out the offset, and mean UTC.
fn instant(raw: &RawValue, spelled: &str) -> String {
    let parsed = values::text(raw).and_then(|text| {
        Timestamp::parse(&text).or_else(|_: Invalid| Timestamp::parse(&format!("{text}Z")))
    });
    parsed.map_or_else(|_| spelled.to_owned(), |instant| format!("\"{instant}\""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{RecordLine, parse_line};

    fn read(row: &str, parts: &RowParts) -> crate::IssueRecord {
        let line = issue_row(row, parts);
        match parse_line(&line, Timestamp::from_nanos(0)) {
            Ok(RecordLine::Issue(record)) => *record,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_row_with_every_column_says_only_what_is_set() {
        let row = r#"{"id":"gt-a","title":"a","description":"","status":"open","priority":2,
            "ephemeral":0,"pinned":1,"is_template":0,"metadata":"{}","waiters":"","closed_at":null,
            "created_at":"2026-01-02 03:04:05","updated_at":"2026-01-02 03:04:05.25+01:00",
            "content_hash":"abc","source_repo":".","compaction_level":0,"timeout_ns":0,
            "crystallizes":0,"quality_score":null,"hook_bead":"","role_type":""}"#;
        let record = read(row, &RowParts::default());
        assert!(record.bead.pinned && !record.bead.ephemeral);
        assert_eq!(record.bead.created_at.to_string(), "2026-01-02T03:04:05Z");
        assert_eq!(record.bead.updated_at.to_string(), "2026-01-02T02:04:05.25Z");
        assert_eq!(record.bead.metadata, None);
        assert_eq!(record.bead.carried, []);
    }

    #[test]
    fn columns_without_a_field_are_carried() {
        let row = r#"{"id":"gt-a","title":"a","metadata":"{\"b\": 1.0}","waiters":"[\"x\"]",
            "timeout_ns":90,"hook_bead":"gt-b","crystallizes":1,"quality_score":0.5,"payload":"{}"}"#;
        let record = read(row, &RowParts::default());
        assert_eq!(record.bead.metadata.unwrap().as_str(), r#"{"b":1.0}"#);
        let carried: Vec<String> =
            record.bead.carried.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            carried,
            [
                r#"waiters=["x"]"#,
                "timeout=90",
                r#"hook_bead="gt-b""#,
                "crystallizes=1",
                "quality_score=0.5",
                r#"payload="{}""#
            ]
        );
    }

    #[test]
    fn parts_come_from_other_tables() {
        let label = label_row(r#"{"issue_id":"gt-a","label":"x<"}"#).unwrap();
        let edge = dependency_row(
            r#"{"issue_id":"gt-a","depends_on_id":"","depends_on_external":"external:b","type":"blocks","created_at":"2026-01-01 00:00:00","created_by":"me","metadata":"{}","thread_id":""}"#,
        );
        let comment = comment_row(
            r#"{"id":7,"issue_id":"gt-a","author":"me","text":"hi","created_at":"2026-01-01 00:00:00"}"#,
        );
        let (edge, comment) = (edge.unwrap(), comment.unwrap());
        assert_eq!([&label.0, &edge.0, &comment.0], ["gt-a"; 3]);
        let parts = RowParts {
            labels: vec![label.1],
            dependencies: vec![edge.1],
            comments: vec![comment.1],
        };
        let record = read(r#"{"id":"gt-a","title":"a"}"#, &parts);
        assert_eq!(record.labels, ["x<"]);
        assert_eq!(record.dependencies[0].target.as_str(), "external:b");
        assert_eq!(record.dependencies[0].metadata, "");
        assert_eq!((record.comments[0].id.as_str(), record.comments[0].text.as_str()), ("7", "hi"));
        assert!(dependency_row(r#"{"issue_id":"gt-a"}"#).is_err());
        assert!(label_row(r#"{"issue_id":null,"label":"x"}"#).is_err());
    }

    proptest! {
        #[test]
        fn no_row_makes_anything_panic(row in ".{0,60}", json in "[{}\\[\\]\":,0-9a-z ]{0,40}") {
            for text in [row.as_str(), json.as_str()] {
                let _ = issue_row(text, &RowParts::default());
                let _ = (label_row(text), dependency_row(text), comment_row(text), config_row(text));
            }
        }
    }
}
