//! One line of a JSONL file.

use std::borrow::Cow;

use gt_core::{BeadId, Invalid, Json, Timestamp};

use super::fields::RecordFields;
use super::{IssueRecord, issue, values};
use crate::RecordError;
use crate::tokens::{contains_nul, without_nul};

/// One line of a JSONL file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordLine {
    /// A bead with everything that belongs to it; boxed, because the other lines are tiny.
    Issue(Box<IssueRecord>),
    /// A memory: a value under a name.
    Memory {
        /// The name.
        key: String,
        /// The value.
        value: Json,
    },
    /// A header that describes the file; nothing to import.
    Header,
    /// The place of a bead that was deleted elsewhere.
    Tombstone(TombstoneRecord),
}

/// The record of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TombstoneRecord {
    /// The bead.
    pub id: BeadId,
    /// When it was deleted, if the record says so.
    pub deleted_at: Option<Timestamp>,
    /// The whole record, which is passed on as it is.
    pub record: Json,
}

/// The kind of a line, as far as its first fields tell.
enum LineKind {
    Issue(BeadId),
    Memory,
    Header,
    Tombstone(BeadId),
}

/// Reads one line. `imported_at` stands in for a missing `created_at` or `updated_at`, so that the
/// same input gives the same record.
///
/// Values that no store can hold are mended where the rest of the line does not depend on them; the record says so.
pub fn parse_line(text: &str, imported_at: Timestamp) -> Result<RecordLine, RecordError> {
    if !text.contains('\0') && !contains_nul(text) {
        return parse_text(text, imported_at);
    }
    let mut line = parse_text(&without_nul(text), imported_at)?;
    if let RecordLine::Issue(record) = &mut line {
        record.repairs.insert(0, "removed NUL characters".to_owned());
    }
    Ok(line)
}

/// Reads one line of a file that may not be UTF-8 throughout: bytes that are not are replaced, and the record says so.
pub fn parse_line_bytes(line: &[u8], imported_at: Timestamp) -> Result<RecordLine, RecordError> {
    let text = match String::from_utf8_lossy(line) {
        Cow::Borrowed(text) => return parse_line(text, imported_at),
        Cow::Owned(text) => text,
    };
    let not_utf8 = || RecordError::line("the line is not UTF-8");
    match parse_line(&text, imported_at).map_err(|_| not_utf8())? {
        RecordLine::Issue(mut record) => {
            record.repairs.insert(0, "replaced bytes that are not UTF-8".to_owned());
            Ok(RecordLine::Issue(record))
        }
        other => Ok(other),
    }
}

fn parse_text(text: &str, imported_at: Timestamp) -> Result<RecordLine, RecordError> {
    let mut fields = RecordFields::parse(text)?;
    match kind(&mut fields)? {
        LineKind::Issue(id) => {
            let record = issue::parse_issue(fields, id, imported_at)?;
            Ok(RecordLine::Issue(Box::new(record)))
        }
        LineKind::Memory => memory(fields),
        LineKind::Header => Ok(RecordLine::Header),
        LineKind::Tombstone(id) => {
            // A time that cannot be read is no time; the record is not worth refusing a file for.
            let time =
                |name: &str| fields.peek(name).and_then(|raw| values::timestamp(raw).ok()?);
            let deleted_at = time("deleted_at").or_else(|| time("updated_at"));
            let record = Json::parse(text).map_err(|invalid| RecordError::field("id", invalid))?;
            Ok(RecordLine::Tombstone(TombstoneRecord { id, deleted_at, record }))
        }
    }
}

fn kind(fields: &mut RecordFields<'_>) -> Result<LineKind, RecordError> {
    let record_type = fields.read("_type", values::text)?;
    match record_type.as_deref() {
        Some("issue") => {}
        Some("memory") => return Ok(LineKind::Memory),
        // A record that calls itself an issue is one, with any other fields.
        _ if fields.peek("_schema").is_some() => return Ok(LineKind::Header),
        None => {}
        Some(other) => {
            let problem = format!(
                "unknown record type \"{}\"; known: issue, memory",
                values::shown(other).escape_debug()
            );
            return Err(RecordError::field("_type", Invalid(problem)));
        }
    }
    let id = fields
        .read("id", |raw| BeadId::parse(&values::text(raw)?))?
        .ok_or_else(|| RecordError::missing("id"))?;
    let is_tombstone = fields.peek("status").is_some_and(|raw| {
        values::text(raw).is_ok_and(|status| status.eq_ignore_ascii_case("tombstone"))
    });
    Ok(if is_tombstone { LineKind::Tombstone(id) } else { LineKind::Issue(id) })
}

fn memory(mut fields: RecordFields<'_>) -> Result<RecordLine, RecordError> {
    let key = fields
        .read("key", values::lookup_key)?
        .filter(|key| !key.is_empty())
        .map(Cow::into_owned)
        .ok_or_else(|| RecordError::missing("key"))?;
    let raw = fields.take_even_null("value").ok_or_else(|| RecordError::missing("value"))?;
    let value = values::json(raw).map_err(|invalid| RecordError::field("value", invalid))?;
    Ok(RecordLine::Memory { key, value })
}
