//! The lines of a merged file, as an export of the merged beads would write them.

use std::collections::{HashMap, HashSet};

use gt_core::{BeadId, DependencyType, Timestamp};
use gt_records::{BeadView, Counts, IssueRecord, RecordLine, export_line, parse_line};

/// How the lines of an export begin.
const EXPORTED: &str = r#"{"_type":"issue","id":"#;

/// A merged file whose new lines are in the form of an export: otherwise the next export would change each of them once more. Lines
/// that a side has, and those that no export has written, stay as they are.
pub(super) fn as_exported(merged: &str, ours: &str, theirs: &str) -> String {
    let of_sides: HashSet<&str> = ours.lines().chain(theirs.lines()).collect();
    let is_new = |line: &str| line.starts_with(EXPORTED) && !of_sides.contains(line);
    if !merged.lines().any(is_new) {
        return merged.to_owned();
    }
    let mut dependents: HashMap<BeadId, u64> = HashMap::new();
    for record in merged.lines().filter_map(exported_record) {
        for edge in record.dependencies.iter().filter(|edge| edge.kind == DependencyType::Blocks) {
            *dependents.entry(edge.target.clone()).or_default() += 1;
        }
    }
    let mut text = String::with_capacity(merged.len());
    for line in merged.lines() {
        match exported_record(line).filter(|_| is_new(line)) {
            Some(record) => text.push_str(&exported_line(record, &dependents)),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// The bead of a line that an export has written, if nothing of it would change.
fn exported_record(line: &str) -> Option<IssueRecord> {
    let has_times = line.contains("\"created_at\":") && line.contains("\"updated_at\":");
    if !line.starts_with(EXPORTED) || !has_times {
        return None;
    }
    match parse_line(line, Timestamp::from_nanos(0)) {
        Ok(RecordLine::Issue(record)) if record.repairs.is_empty() => Some(*record),
        _ => None,
    }
}

fn exported_line(mut record: IssueRecord, dependents: &HashMap<BeadId, u64>) -> String {
    record.labels.sort_unstable();
    record.comments.sort_by(|one, other| {
        (one.created_at, one.id.as_str()).cmp(&(other.created_at, other.id.as_str()))
    });
    let blocks = record.dependencies.iter().filter(|edge| edge.kind == DependencyType::Blocks);
    let counts = Counts {
        dependencies: blocks.count() as u64,
        dependents: dependents.get(&record.bead.id).copied().unwrap_or_default(),
        comments: record.comments.len() as u64,
    };
    export_line(&BeadView {
        labels: &record.labels,
        dependencies: &record.dependencies,
        comments: &record.comments,
        counts: Some(counts),
        ..BeadView::bare(&record.bead)
    })
}
