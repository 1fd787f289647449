//! The issue record in its canonical order.

use gt_core::{Bead, Comment, Dependency, Json, Timestamp};

use super::layout::{escape_html, needs_html_escape};
use super::object::ObjectWriter;
use super::view::BeadView;

/// Fields we carry for other tools, grouped by the place they have among the fields of our own.
mod carried {
    pub(super) const AFTER_NOTES: &[&str] = &["spec_id"];
    pub(super) const AFTER_OUTCOME: &[&str] = &["closed_by_session"];
    pub(super) const AFTER_EXTERNAL_REF: &[&str] = &["source_system"];
    pub(super) const AFTER_METADATA: &[&str] =
        &["compaction_level", "compacted_at", "compacted_at_commit", "original_size"];
    pub(super) const AFTER_COMMENTS: &[&str] = &["sender"];
    pub(super) const AFTER_NO_HISTORY: &[&str] = &["wisp_type"];
    pub(super) const AFTER_IS_TEMPLATE: &[&str] = &[
        "bonded_from",
        "await_type",
        "await_id",
        "timeout",
        "waiters",
        "source_formula",
        "source_location",
        "mol_type",
        "work_type",
        "event_kind",
        "actor",
        "target",
        "payload",
    ];

    /// Whether a field has a place of its own; the others come after all of these.
    pub(super) fn has_place(name: &str) -> bool {
        [
            AFTER_NOTES,
            AFTER_OUTCOME,
            AFTER_EXTERNAL_REF,
            AFTER_METADATA,
            AFTER_COMMENTS,
            AFTER_NO_HISTORY,
            AFTER_IS_TEMPLATE,
        ]
        .iter()
        .any(|group| group.contains(&name))
    }
}

/// Writes the issue as one compact object. `more` appends fields at the end, after the counts and the
/// parent, for commands that say more about a bead than its record does.
pub fn write_bead(out: &mut String, view: &BeadView<'_>, more: impl FnOnce(&mut ObjectWriter<'_>)) {
    let mut object = ObjectWriter::new(out);
    write_fields(&mut object, view);
    more(&mut object);
    object.finish();
}

/// The issue as one line of a JSONL file, without the newline, escaped as Go does it, so that a file
/// of ours and a file of theirs differ only where the beads do.
pub fn export_line(view: &BeadView<'_>) -> String {
    let mut line = String::with_capacity(LINE_BYTES_USUAL + view.bead.description.len());
    let mut object = ObjectWriter::new(&mut line);
    object.text("_type", "issue");
    write_fields(&mut object, view);
    object.finish();
    escaped(line)
}

/// A memory as one line of a JSONL file, without the newline.
pub fn export_memory_line(key: &str, value: &Json) -> String {
    let mut line = String::new();
    let mut object = ObjectWriter::new(&mut line);
    object.text("_type", "memory");
    object.text("key", key);
    object.raw("value", value.as_str());
    object.finish();
    escaped(line)
}

/// The record of a deletion as one line of a JSONL file, without the newline. It names the bead and keeps nothing of its text.
pub fn export_tombstone_line(bead: &Bead, deleted_at: Timestamp, deleted_by: &str) -> String {
    let mut line = String::new();
    let mut object = ObjectWriter::new(&mut line);
    object.text("_type", "issue");
    object.text("id", bead.id.as_str());
    object.text("title", bead.title.as_str());
    object.text("status", "tombstone");
    object.number("priority", bead.priority.number());
    object.text("issue_type", bead.issue_type.as_str());
    object.timestamp("created_at", bead.created_at);
    object.timestamp("updated_at", deleted_at);
    object.timestamp("deleted_at", deleted_at);
    object.text_unless_empty("deleted_by", deleted_by);
    object.finish();
    escaped(line)
}

/// Enough for most lines without growing.
const LINE_BYTES_USUAL: usize = 640;

fn escaped(line: String) -> String {
    if needs_html_escape(&line) { escape_html(&line) } else { line }
}

fn write_fields(object: &mut ObjectWriter<'_>, view: &BeadView<'_>) {
    let bead = view.bead;
    object.text("id", bead.id.as_str());
    object.text("title", bead.title.as_str());
    object.text_unless_empty("description", &bead.description);
    object.text_unless_empty("design", &bead.design);
    object.text_unless_empty("acceptance_criteria", &bead.acceptance_criteria);
    object.text_unless_empty("notes", &bead.notes);
    write_carried(object, bead, carried::AFTER_NOTES);
    object.text("status", bead.status.as_str());
    object.number("priority", bead.priority.number());
    object.text("issue_type", bead.issue_type.as_str());
    object.text_unless_empty("assignee", &bead.assignee);
    object.text_unless_empty("owner", &bead.owner);
    if let Some(minutes) = bead.estimated_minutes {
        object.number("estimated_minutes", i64::from(minutes));
    }
    object.timestamp("created_at", bead.created_at);
    object.text_unless_empty("created_by", &bead.created_by);
    object.timestamp("updated_at", bead.updated_at);
    for (key, at) in [("started_at", bead.started_at), ("closed_at", bead.closed_at)] {
        if let Some(at) = at {
            object.timestamp(key, at);
        }
    }
    object.text_unless_empty("close_reason", &bead.close_reason);
    if let Some(outcome) = bead.outcome {
        object.text("outcome", outcome.as_str());
    }
    write_carried(object, bead, carried::AFTER_OUTCOME);
    for (key, at) in [("due_at", bead.due_at), ("defer_until", bead.defer_until)] {
        if let Some(at) = at {
            object.timestamp(key, at);
        }
    }
    object.text_unless_empty("external_ref", bead.external_ref.as_deref().unwrap_or(""));
    write_carried(object, bead, carried::AFTER_EXTERNAL_REF);
    // A record cannot tell null from absent here.
    if let Some(metadata) = bead.metadata.as_ref().filter(|json| json.as_str() != "null") {
        object.raw("metadata", metadata.as_str());
    }
    write_carried(object, bead, carried::AFTER_METADATA);
    write_lists(object, view);
    write_carried(object, bead, carried::AFTER_COMMENTS);
    object.flag_if_set("ephemeral", bead.ephemeral);
    object.flag_if_set("no_history", bead.no_history);
    write_carried(object, bead, carried::AFTER_NO_HISTORY);
    object.flag_if_set("pinned", bead.pinned);
    object.flag_if_set("is_template", bead.is_template);
    write_carried(object, bead, carried::AFTER_IS_TEMPLATE);
    for (name, json) in &bead.carried {
        if !carried::has_place(name) {
            object.raw(name, json.as_str());
        }
    }
    if let Some(counts) = view.counts {
        object.count("dependency_count", counts.dependencies);
        object.count("dependent_count", counts.dependents);
        object.count("comment_count", counts.comments);
    }
    if let Some(parent) = view.parent {
        object.text("parent", parent.as_str());
    }
}

fn write_lists(object: &mut ObjectWriter<'_>, view: &BeadView<'_>) {
    if !view.labels.is_empty() {
        object.array("labels", |array| {
            for label in view.labels {
                array.text(label);
            }
        });
    }
    if !view.dependencies.is_empty() {
        object.array("dependencies", |array| {
            for dependency in view.dependencies {
                write_dependency(array.element(), dependency);
            }
        });
    }
    if !view.comments.is_empty() {
        object.array("comments", |array| {
            for comment in view.comments {
                write_comment(array.element(), comment);
            }
        });
    }
}

fn write_carried(object: &mut ObjectWriter<'_>, bead: &Bead, names: &[&str]) {
    if bead.carried.is_empty() {
        return;
    }
    for name in names {
        if let Some((_, json)) = bead.carried.iter().find(|(key, _)| key == name) {
            object.raw(name, json.as_str());
        }
    }
}

/// Writes an edge as one compact object.
pub fn write_dependency(out: &mut String, dependency: &Dependency) {
    let mut object = ObjectWriter::new(out);
    object.text("issue_id", dependency.issue.as_str());
    object.text("depends_on_id", dependency.target.as_str());
    object.text("type", dependency.kind.as_str());
    object.timestamp("created_at", dependency.created_at);
    object.text_unless_empty("created_by", &dependency.created_by);
    object.text_unless_empty("metadata", &dependency.metadata);
    object.text_unless_empty("thread_id", &dependency.thread_id);
    for (name, json) in &dependency.carried {
        object.raw(name, json.as_str());
    }
    object.finish();
}

/// Writes a comment as one compact object.
pub fn write_comment(out: &mut String, comment: &Comment) {
    let mut object = ObjectWriter::new(out);
    object.text("id", &comment.id);
    object.text("issue_id", comment.bead.as_str());
    object.text("author", &comment.author);
    object.text("text", &comment.text);
    object.timestamp("created_at", comment.created_at);
    for (name, json) in &comment.carried {
        object.raw(name, json.as_str());
    }
    object.finish();
}
