//! The issue record.

use std::borrow::Cow;
use std::collections::HashSet;

use gt_core::bead::check_name;
use gt_core::{
    Bead, BeadId, Comment, Dependency, Invalid, IssueType, Outcome, Priority, Status, Timestamp,
    Title, Uid, limits,
};
use serde_json::value::RawValue;

use super::fields::RecordFields;
use super::{comments, dependencies, values};
use crate::RecordError;

/// An issue as it was read, not yet known to any store.
///
/// The bead belongs to no rig and nothing blocks it, because only the store knows rigs and blockers.
/// Its alias is derived from id and creation time, so that it survives export and import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueRecord {
    /// The bead itself.
    pub bead: Bead,
    /// Its labels, each once, in the order of the record.
    pub labels: Vec<String>,
    /// Its dependencies, each target once.
    pub dependencies: Vec<Dependency>,
    /// Its comments.
    pub comments: Vec<Comment>,
    /// The changes that made the record consistent, for the person who imports it.
    pub repairs: Vec<String>,
}

/// Fields that repeat the edges and comments; if they were kept, they would become wrong.
const DERIVED: [&str; 3] = ["dependency_count", "dependent_count", "comment_count"];

/// Reads the rest of an issue whose `id` was taken already.
pub(super) fn parse_issue(
    mut fields: RecordFields<'_>,
    id: BeadId,
    imported_at: Timestamp,
) -> Result<IssueRecord, RecordError> {
    let mut repairs = Vec::new();
    let (title, cut) = title(&mut fields, &id, &mut repairs);
    let time = |fields: &mut RecordFields<'_>, name, repairs: &mut Vec<String>| {
        fields.mended_time(name, repairs, Some(imported_at)).unwrap_or(imported_at)
    };
    let created_at = time(&mut fields, "created_at", &mut repairs);
    let updated_at = time(&mut fields, "updated_at", &mut repairs);
    let ending = ClosingFields::parse(&mut fields, updated_at, &mut repairs);
    let labels = fields.mended("labels", &mut repairs, values::list).unwrap_or_default();
    let labels = self::labels(labels, &mut repairs);
    let raw = fields.take("dependencies");
    let mut dependencies = dependencies::parse(raw, &id, imported_at, &mut repairs);
    if let Some(raw) = fields.take("parent") {
        dependencies::apply_parent(raw, &id, created_at, &mut dependencies, &mut repairs);
    }
    let comments = comments::parse(fields.take("comments"), &id, imported_at, &mut repairs);
    for name in DERIVED {
        fields.take(name);
    }
    let mut description = fields.mended_text("description", &mut repairs);
    if let Some(whole) = cut {
        let between = if description.is_empty() { "" } else { "\n\n" };
        description = format!("{whole}{between}{description}");
    }
    let bead = Bead {
        uid: Uid::of_bead(&id, created_at),
        id,
        rig: None,
        title,
        description,
        design: fields.mended_text("design", &mut repairs),
        acceptance_criteria: fields.mended_text("acceptance_criteria", &mut repairs),
        notes: fields.mended_text("notes", &mut repairs),
        status: ending.status,
        priority: priority(&mut fields, &mut repairs),
        issue_type: fields
            .mended("issue_type", &mut repairs, |raw| match values::text(raw)? {
                empty if empty.is_empty() => Ok(IssueType::default()),
                text => issue_type(&text),
            })
            .unwrap_or_default(),
        assignee: fields
            .mended("assignee", &mut repairs, values::lookup_key)
            .map(Cow::into_owned)
            .unwrap_or_default(),
        owner: fields.mended_text("owner", &mut repairs),
        estimated_minutes: fields.mended("estimated_minutes", &mut repairs, minutes),
        created_at,
        created_by: fields.mended_text("created_by", &mut repairs),
        updated_at,
        started_at: fields.mended_time("started_at", &mut repairs, None),
        closed_at: ending.closed_at,
        close_reason: fields.mended_text("close_reason", &mut repairs),
        outcome: ending.outcome,
        due_at: fields.mended_time("due_at", &mut repairs, None),
        defer_until: fields.mended_time("defer_until", &mut repairs, None),
        external_ref: Some(fields.mended_text("external_ref", &mut repairs))
            .filter(|text| !text.is_empty()),
        metadata: fields.mended("metadata", &mut repairs, values::json),
        ephemeral: flag(&mut fields, "ephemeral", &mut repairs)
            | flag(&mut fields, "wisp", &mut repairs),
        no_history: flag(&mut fields, "no_history", &mut repairs),
        pinned: flag(&mut fields, "pinned", &mut repairs),
        is_template: flag(&mut fields, "is_template", &mut repairs),
        open_blockers: 0,
        carried: fields.carried()?,
    };
    Ok(IssueRecord { bead, labels, dependencies, comments, repairs })
}

/// The fields that must agree on whether the bead is closed.
struct ClosingFields {
    status: Status,
    closed_at: Option<Timestamp>,
    outcome: Option<Outcome>,
}

impl ClosingFields {
    /// The status wins over the fields that only describe a closed bead.
    fn parse(
        fields: &mut RecordFields<'_>,
        updated_at: Timestamp,
        repairs: &mut Vec<String>,
    ) -> Self {
        let status = fields.take("status").map_or(Status::Open, |raw| status(raw, repairs));
        let mut closed_at = fields.mended_time("closed_at", repairs, None);
        let outcome = fields.mended("outcome", repairs, |raw| match values::text(raw)? {
            empty if empty.is_empty() => Ok(None),
            text => Outcome::parse(&text).map(Some),
        });
        let mut outcome = outcome.flatten();
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
        Self { status, closed_at, outcome }
    }
}

/// The status; one that is spelled like no status is the one that it spells in small letters, or open.
fn status(raw: &RawValue, repairs: &mut Vec<String>) -> Status {
    let parsed = values::text(raw).and_then(|text| {
        if text.is_empty() {
            return Ok(Status::Open);
        }
        Status::parse(&text).or_else(|invalid| {
            let small = text.trim().to_ascii_lowercase().replace(' ', "_");
            let small = Status::parse(&small).map_err(|_| invalid)?;
            repairs.push(format!("status is {small}: it was \"{}\"", values::shown(&text)));
            Ok(small)
        })
    });
    parsed.unwrap_or_else(|invalid| {
        repairs.push(format!("status is open: {invalid}"));
        Status::Open
    })
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

/// The title, and the whole of it if it had to be cut. The id stands in for one that is empty or absent.
fn title(
    fields: &mut RecordFields<'_>,
    id: &BeadId,
    repairs: &mut Vec<String>,
) -> (Title, Option<String>) {
    let Some(raw) = fields.take("title") else {
        repairs.push(format!("the title is {id}: there was none"));
        return (Title::trusted(id.to_string()), None);
    };
    let text = values::text(raw).map_or_else(
        |invalid| {
            repairs.push(format!("kept title as text: {invalid}"));
            values::any_text(raw)
        },
        Cow::into_owned,
    );
    if text.is_empty() {
        repairs.push(format!("the title is {id}: it was empty"));
        return (Title::trusted(id.to_string()), None);
    }
    match Title::imported(&text) {
        Ok(title) => (title, None),
        Err(invalid) => {
            let end = text.floor_char_boundary(limits::TITLE_BYTES_MAX);
            repairs
                .push(format!("cut the title, and put all of it into the description: {invalid}"));
            (Title::trusted(text[..end].to_owned()), Some(text))
        }
    }
}

/// The priority; one that is out of range is the nearest, and one that is no number is that of most beads.
fn priority(fields: &mut RecordFields<'_>, repairs: &mut Vec<String>) -> Priority {
    const DEFAULT: i64 = 2;
    let Some(raw) = fields.take("priority") else { return Priority::HIGHEST };
    let given = values::whole_number(raw).and_then(Priority::new);
    given.unwrap_or_else(|invalid| {
        let nearest = values::loose_number(raw).unwrap_or(DEFAULT).clamp(0, 4);
        repairs.push(format!("priority is {nearest}: {invalid}"));
        Priority::new(nearest).unwrap_or(Priority::HIGHEST)
    })
}

fn flag(fields: &mut RecordFields<'_>, name: &str, repairs: &mut Vec<String>) -> bool {
    fields.mended(name, repairs, values::flag).unwrap_or(false)
}

fn labels(elements: Vec<&RawValue>, repairs: &mut Vec<String>) -> Vec<String> {
    let mut labels = Vec::new();
    let mut seen = HashSet::new();
    for element in elements {
        let label = match values::lookup_key(element) {
            Ok(label) if label.is_empty() => {
                repairs.push("dropped an empty label".to_owned());
                continue;
            }
            Ok(label) => label,
            Err(invalid) => {
                repairs.push(format!("dropped a label: {invalid}"));
                continue;
            }
        };
        if seen.insert(label.clone()) {
            labels.push(label.into_owned());
        }
    }
    labels
}
