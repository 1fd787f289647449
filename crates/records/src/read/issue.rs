//! The issue record.

use std::borrow::Cow;
use std::collections::HashSet;

use gt_core::bead::check_name;
use gt_core::{
    Bead, BeadId, Comment, Dependency, Invalid, IssueType, Outcome, Priority, Status, Timestamp,
    Title, Uid,
};
use serde_json::value::RawValue;

use super::fields::Fields;
use super::{comments, dependencies, values};
use crate::RecordError;

/// An issue as it was read, not yet known to any store.
///
/// The bead belongs to no rig and nothing blocks it, because only the store knows rigs and blockers.
/// Its alias is derived from id and creation time, so that it survives export and import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The bead itself.
    pub bead: Bead,
    /// Its labels, each once, in the order of the record.
    pub labels: Vec<String>,
    /// What it depends on, each target once.
    pub dependencies: Vec<Dependency>,
    /// What was said about it.
    pub comments: Vec<Comment>,
    /// What had to be changed to make the record consistent, for the person who imports it.
    pub repairs: Vec<String>,
}

/// Fields that say again what the edges and comments say; kept, they would become lies.
const DERIVED: [&str; 3] = ["dependency_count", "dependent_count", "comment_count"];

/// Reads the rest of an issue whose `id` was taken already.
pub(super) fn parse_issue(
    mut fields: Fields<'_>,
    id: BeadId,
    imported_at: Timestamp,
) -> Result<Record, RecordError> {
    let mut repairs = Vec::new();
    let title = fields
        .read("title", |raw| Title::imported(&values::text(raw)?))?
        .ok_or_else(|| RecordError::missing("title"))?;
    let created_at = fields.timestamp("created_at")?.unwrap_or(imported_at);
    let updated_at = fields.timestamp("updated_at")?.unwrap_or(imported_at);
    let ending = Ending::parse(&mut fields, updated_at, &mut repairs)?;
    let labels = fields.read("labels", labels)?.unwrap_or_default();
    let raw = fields.take("dependencies");
    let mut dependencies = dependencies::parse(raw, &id, imported_at, &mut repairs)?;
    if let Some(raw) = fields.take("parent") {
        dependencies::heed_parent(raw, &id, created_at, &mut dependencies, &mut repairs);
    }
    let comments = comments::parse(fields.take("comments"), &id, imported_at)?;
    for name in DERIVED {
        fields.take(name);
    }
    let bead = Bead {
        uid: Uid::of_bead(&id, created_at),
        id,
        rig: None,
        title,
        description: fields.text("description")?,
        design: fields.text("design")?,
        acceptance_criteria: fields.text("acceptance_criteria")?,
        notes: fields.text("notes")?,
        status: ending.status,
        priority: fields
            .read("priority", |raw| Priority::new(values::whole_number(raw)?))?
            .unwrap_or(Priority::HIGHEST),
        issue_type: fields.parsed("issue_type", issue_type)?.unwrap_or_default(),
        assignee: fields
            .read("assignee", values::looked_up)?
            .map(Cow::into_owned)
            .unwrap_or_default(),
        owner: fields.text("owner")?,
        estimated_minutes: fields.read("estimated_minutes", minutes)?,
        created_at,
        created_by: fields.text("created_by")?,
        updated_at,
        started_at: fields.timestamp("started_at")?,
        closed_at: ending.closed_at,
        close_reason: fields.text("close_reason")?,
        outcome: ending.outcome,
        due_at: fields.timestamp("due_at")?,
        defer_until: fields.timestamp("defer_until")?,
        external_ref: fields.parsed("external_ref", |text| Ok(text.to_owned()))?,
        metadata: fields.read("metadata", values::json)?,
        ephemeral: fields.flag("ephemeral")? | fields.flag("wisp")?,
        no_history: fields.flag("no_history")?,
        pinned: fields.flag("pinned")?,
        is_template: fields.flag("is_template")?,
        open_blockers: 0,
        carried: fields.carried()?,
    };
    Ok(Record { bead, labels, dependencies, comments, repairs })
}

/// The fields that must agree on whether the bead is closed.
struct Ending {
    status: Status,
    closed_at: Option<Timestamp>,
    outcome: Option<Outcome>,
}

impl Ending {
    /// The status wins over the fields that only describe a closed bead.
    fn parse(
        fields: &mut Fields<'_>,
        updated_at: Timestamp,
        repairs: &mut Vec<String>,
    ) -> Result<Self, RecordError> {
        let status = fields.parsed("status", Status::parse)?.unwrap_or(Status::Open);
        let mut closed_at = fields.timestamp("closed_at")?;
        let mut outcome = fields.parsed("outcome", Outcome::parse)?;
        if status == Status::Closed {
            if closed_at.is_none() {
                closed_at = Some(updated_at);
                repairs.push(format!("closed without closed_at; took updated_at, {updated_at}"));
            }
        } else {
            if let Some(at) = closed_at.take() {
                repairs.push(format!("dropped closed_at, {at}: the status is {status}"));
            }
            if let Some(outcome) = outcome.take() {
                repairs.push(format!(
                    "dropped outcome \"{}\": the status is {status}",
                    outcome.as_str()
                ));
            }
        }
        Ok(Self { status, closed_at, outcome })
    }
}

/// A type as it is spelled: a person's alias may be another town's own type.
fn issue_type(text: &str) -> Result<IssueType, Invalid> {
    check_name("issue type", text)?;
    Ok(IssueType::trusted(text.to_owned()))
}

fn minutes(raw: &RawValue) -> Result<u32, Invalid> {
    let minutes = values::whole_number(raw)?;
    u32::try_from(minutes)
        .map_err(|_| Invalid(format!("{minutes} minutes is not between 0 and {}", u32::MAX)))
}

fn labels(raw: &RawValue) -> Result<Vec<String>, Invalid> {
    let mut labels = Vec::new();
    let mut seen = HashSet::new();
    for element in values::list(raw)? {
        let label = values::looked_up(element)?;
        if label.is_empty() {
            return Err(Invalid::new("a label may not be empty"));
        }
        if seen.insert(label.clone()) {
            labels.push(label.into_owned());
        }
    }
    Ok(labels)
}
