//! The work queue as JSON: the shapes that clients see, over HTTP and from commands.

use gt_core::work::{Attempt, Project, Token, WorkItem};
use gt_core::{ExecutorKind, Json, Outcome, RunId, Timestamp, Uid};

use super::object::ObjectWriter;

/// A work item.
pub fn work_item_json(item: &WorkItem) -> String {
    let mut out = String::with_capacity(512 + item.description.len() + item.notes.len());
    let mut object = ObjectWriter::new(&mut out);
    write_item(&mut object, item);
    object.finish();
    out
}

/// A work item with its dispatch log and what it depends on.
pub fn work_details_json(item: &WorkItem, log: &[Attempt], depends_on: &[Uid]) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    write_item(&mut object, item);
    object.array("depends_on", |array| {
        for uid in depends_on {
            array.text(&uid.to_string());
        }
    });
    object.array("dispatch_log", |array| {
        for attempt in log {
            array.object(|object| write_attempt(object, attempt));
        }
    });
    object.finish();
    out
}

/// A project.
pub fn project_json(project: &Project) -> String {
    let mut out = String::new();
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

/// What an agent that asked for work got: the item, its run and until when it has it.
pub fn taken_json(item: &WorkItem, run: Uid, lease_expires_at: Timestamp) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.object("item", |object| write_item(object, item));
    object.text("run_id", &run.to_string());
    object.timestamp("lease_expires_at", lease_expires_at);
    object.finish();
    out
}

/// What an agent is told for which there is no work.
pub fn no_work_json(code: &str, reason: &str) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.raw("item", "null");
    object.text("code", code);
    object.text("reason", reason);
    object.finish();
    out
}

/// What a look at all work that agents have found: what is blocked now, what is queued again, and when the next is due.
pub fn overdue_json(stale: &[RunId], lost: &[RunId], due: Option<Timestamp>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    for (name, runs) in [("stale", stale), ("lost", lost)] {
        object.array(name, |array| {
            for run in runs {
                array.object(|object| {
                    object.text("bead", run.bead.as_str());
                    object.text("run", &run.to_string());
                });
            }
        });
    }
    instant_or_null(&mut object, "due", due);
    object.finish();
    out
}

/// Until when an agent has its work.
pub fn lease_json(lease_expires_at: Timestamp) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.timestamp("lease_expires_at", lease_expires_at);
    object.finish();
    out
}

/// A token, without anything of its secret.
pub fn token_json(token: &Token, now: Timestamp) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    write_token(&mut object, token, now);
    object.finish();
    out
}

/// A token that was just made, with its secret.
pub fn new_token_json(token: &Token, secret: &str, now: Timestamp) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    write_token(&mut object, token, now);
    object.text("token", secret);
    object.finish();
    out
}

fn write_item(object: &mut ObjectWriter<'_>, item: &WorkItem) {
    object.text("id", &item.uid.to_string());
    uid_or_null(object, "project_id", item.project);
    object.text("type", item.kind.as_str());
    object.text("description", &item.description);
    object.raw("payload", item.payload.as_ref().map_or("null", Json::as_str));
    object.number("priority", item.priority.number());
    object.text("status", item.status.as_str());
    text_or_null(object, "assigned_agent", item.agent.as_deref());
    text_or_null(object, "created_by", not_empty(&item.created_by));
    object.timestamp("created_at", item.created_at);
    object.timestamp("updated_at", item.updated_at);
    instant_or_null(object, "completed_at", item.completed_at);
    text_or_null(object, "outcome", item.outcome.map(Outcome::as_str));
    text_or_null(object, "notes", not_empty(&item.notes));
    object.text("bead", item.bead.as_str());
    uid_or_null(object, "run_id", item.run);
    instant_or_null(object, "lease_expires_at", item.lease_expires_at);
    let held = item.held.map(|held| held.to_string());
    text_or_null(object, "reason", held.as_deref());
}

fn write_attempt(object: &mut ObjectWriter<'_>, attempt: &Attempt) {
    object.text("id", &attempt.uid.to_string());
    object.text("work_item_id", &attempt.item.to_string());
    object.timestamp("dispatched_at", attempt.dispatched_at);
    object.text("agent", &attempt.agent);
    instant_or_null(object, "completed_at", attempt.completed_at);
    text_or_null(object, "outcome", attempt.outcome.map(Outcome::as_str));
    object.text("run", &attempt.run.to_string());
    object.text("state", attempt.state.as_str());
    object.text("executor", ExecutorKind::as_str(attempt.executor));
}

fn write_token(object: &mut ObjectWriter<'_>, token: &Token, now: Timestamp) {
    object.text("id", token.id.as_str());
    object.text("name", &token.name);
    object.array("scopes", |array| {
        token.scopes.each().for_each(|scope| array.text(scope.as_str()));
    });
    text_or_null(object, "agent", token.agent.as_deref());
    object.flag("valid", token.is_valid(now));
    object.timestamp("created_at", token.created_at);
    object.text("created_by", &token.created_by);
    instant_or_null(object, "expires_at", token.expires_at);
    instant_or_null(object, "revoked_at", token.revoked_at);
}

fn not_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn text_or_null(object: &mut ObjectWriter<'_>, key: &str, text: Option<&str>) {
    match text {
        Some(text) => object.text(key, text),
        None => object.raw(key, "null"),
    }
}

fn uid_or_null(object: &mut ObjectWriter<'_>, key: &str, uid: Option<Uid>) {
    match uid {
        Some(uid) => object.text(key, &uid.to_string()),
        None => object.raw(key, "null"),
    }
}

fn instant_or_null(object: &mut ObjectWriter<'_>, key: &str, instant: Option<Timestamp>) {
    match instant {
        Some(instant) => object.timestamp(key, instant),
        None => object.raw(key, "null"),
    }
}
