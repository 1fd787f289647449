//! Work items and projects as clients of the work queue read them, over HTTP and with `--json`.

use gt_core::work::{Attempt, Project, WorkItem};
use gt_core::{Json, Timestamp, Uid};

use super::{ArrayWriter, ObjectWriter};

/// The fields of a work item. What is not known is `null`: clients find every field in every item.
pub fn write_work_item(object: &mut ObjectWriter<'_>, item: &WorkItem) {
    object.text("id", &item.uid.to_string());
    object.text("bead", item.bead.as_str());
    uid_or_null(object, "project_id", item.project);
    object.text("type", item.kind.as_str());
    object.text("description", &item.description);
    object.raw("payload", item.payload.as_ref().map_or("null", Json::as_str));
    object.number("priority", item.priority.number());
    object.text("status", item.status.as_str());
    text_or_null(object, "assigned_agent", item.agent.as_deref());
    object.text("created_by", &item.created_by);
    object.timestamp("created_at", item.created_at);
    object.timestamp("updated_at", item.updated_at);
    timestamp_or_null(object, "completed_at", item.completed_at);
    text_or_null(object, "outcome", item.outcome.map(gt_core::Outcome::as_str));
    let notes = Some(item.notes.as_str()).filter(|notes| !notes.is_empty());
    text_or_null(object, "notes", notes);
    uid_or_null(object, "run_id", item.run);
    timestamp_or_null(object, "lease_expires_at", item.lease_expires_at);
    text_or_null(object, "held", item.held.map(|held| held.to_string()).as_deref());
}

/// A work item.
pub fn work_item_json(item: &WorkItem) -> String {
    let mut out = String::with_capacity(512);
    let mut object = ObjectWriter::new(&mut out);
    write_work_item(&mut object, item);
    object.finish();
    out
}

/// A work item with its dispatch log and what it depends on.
pub fn work_details_json(item: &WorkItem, dispatch_log: &[Attempt], depends_on: &[Uid]) -> String {
    let mut out = String::with_capacity(1024);
    let mut object = ObjectWriter::new(&mut out);
    write_work_item(&mut object, item);
    object
        .array("depends_on", |list| depends_on.iter().for_each(|uid| list.text(&uid.to_string())));
    object.array("dispatch_log", |log| dispatch_log.iter().for_each(|run| write_attempt(log, run)));
    object.finish();
    out
}

fn write_attempt(log: &mut ArrayWriter<'_>, attempt: &Attempt) {
    log.object(|object| {
        object.text("id", &attempt.uid.to_string());
        object.text("run", &attempt.run.to_string());
        object.text("work_item_id", &attempt.item.to_string());
        object.timestamp("dispatched_at", attempt.dispatched_at);
        object.text("agent", &attempt.agent);
        object.text("executor", attempt.executor.as_str());
        object.text("state", attempt.state.as_str());
        timestamp_or_null(object, "completed_at", attempt.completed_at);
        text_or_null(object, "outcome", attempt.outcome.map(gt_core::Outcome::as_str));
    });
}

/// A project.
pub fn project_json(project: &Project) -> String {
    let mut out = String::with_capacity(256);
    let mut object = ObjectWriter::new(&mut out);
    object.text("id", &project.uid.to_string());
    object.text("name", &project.name);
    text_or_null(&mut object, "external_ref", project.external_ref.as_deref());
    object.timestamp("created_at", project.created_at);
    object.timestamp("updated_at", project.updated_at);
    object.text("rig", project.rig.as_str());
    object.text("executor", project.executor.as_str());
    object.finish();
    out
}

fn text_or_null(object: &mut ObjectWriter<'_>, key: &str, text: Option<&str>) {
    match text {
        Some(text) => object.text(key, text),
        None => object.raw(key, "null"),
    }
}

fn timestamp_or_null(object: &mut ObjectWriter<'_>, key: &str, timestamp: Option<Timestamp>) {
    match timestamp {
        Some(timestamp) => object.timestamp(key, timestamp),
        None => object.raw(key, "null"),
    }
}

fn uid_or_null(object: &mut ObjectWriter<'_>, key: &str, uid: Option<Uid>) {
    text_or_null(object, key, uid.map(|uid| uid.to_string()).as_deref());
}
