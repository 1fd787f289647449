//! The promises of the record format, seen from outside.

#![expect(clippy::unwrap_used, reason = "a panic is how the helpers of a test fail")]

mod contexts;
mod export_lines;
mod formulas;
mod layout;
mod plans;
mod reading;
mod repairs;
mod round_trip;
mod strategies;
mod writing;

use gt_core::Timestamp;
use gt_records::{IssueRecord, RecordError, RecordLine, parse_line};

/// Characters that never stand unescaped in printed JSON.
const HTML: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

/// The time of every import here.
fn imported_at() -> Timestamp {
    Timestamp::parse("2026-07-01T00:00:00Z").unwrap()
}

fn read(text: &str) -> Result<RecordLine, RecordError> {
    parse_line(text, imported_at())
}

/// The issue on this line.
fn issue(text: &str) -> IssueRecord {
    match read(text) {
        Ok(RecordLine::Issue(record)) => *record,
        other => panic!("not an issue: {text}: {other:?}"),
    }
}

/// An issue with an id, a title and these fields.
fn issue_with(fields: &str) -> IssueRecord {
    issue(&format!(r#"{{"id":"gt-a","title":"T",{fields}}}"#))
}

/// Why an issue with an id, a title and these fields is refused.
fn refusal(fields: &str) -> String {
    let text = format!(r#"{{"id":"gt-a","title":"T",{fields}}}"#);
    match read(&text) {
        Err(error) => error.to_string(),
        Ok(line) => panic!("accepted: {text}: {line:?}"),
    }
}
