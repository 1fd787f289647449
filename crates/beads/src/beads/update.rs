//! Changing a bead.

use gt_core::bead::{Title, check_label, check_text};
use gt_core::decide::Verb;
use gt_core::{
    Bead, BeadChangeKind, BeadId, DependencyType, IssueType, Json, Priority, Status, Timestamp,
};
use gt_store::{Reader, SettingScope, Writer};

use super::moving::move_to;
use super::status::{apply, claim_in};
use super::types::check_type;
use crate::dependencies::add_edge;
use crate::lookup::edge;
use crate::lookup::{require, resolve_in};
use crate::notes::{give_label, take_label};
use crate::review_rules::metadata_requires_review;
use crate::run_records::close_context_of;
use crate::transition_check::refuse_if_over;
use gt_town::settings::{CUSTOM_STATUSES, known_custom_statuses};
use gt_town::{OperationError, Result, Town};

/// A change of a field that may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FieldEdit<T> {
    /// Leave it.
    #[default]
    Keep,
    /// Empty it.
    Clear,
    /// Give it this value.
    Set(T),
}

/// The changes to a bead. Fields keep their value unless a change is given.
#[derive(Debug, Clone, Default)]
pub struct BeadChanges {
    /// Claim it for the actor.
    pub claim: bool,
    /// Its status.
    pub status: Option<Status>,
    /// Its title.
    pub title: Option<String>,
    /// The work to do.
    pub description: Option<String>,
    /// How it is to be done.
    pub design: Option<String>,
    /// How to tell that it is done.
    pub acceptance_criteria: Option<String>,
    /// Notes in place of the old ones.
    pub notes: Option<String>,
    /// Notes after the old ones.
    pub append_notes: Option<String>,
    /// How urgent it is.
    pub priority: Option<Priority>,
    /// Its type.
    pub issue_type: Option<IssueType>,
    /// Its assignee; empty for none.
    pub assignee: Option<String>,
    /// Its name in another system.
    pub external_ref: FieldEdit<String>,
    /// How long it should take.
    pub estimated_minutes: Option<u32>,
    /// When it should be finished.
    pub due_at: FieldEdit<Timestamp>,
    /// Not to be worked on before this. A time to come defers the bead.
    pub defer_until: FieldEdit<Timestamp>,
    /// Labels in place of the old ones.
    pub set_labels: Option<Vec<String>>,
    /// More labels.
    pub add_labels: Vec<String>,
    /// Fewer labels.
    pub remove_labels: Vec<String>,
    /// The bead it is a part of.
    pub parent: FieldEdit<String>,
    /// The rig it belongs to; none is the town itself.
    pub rig: FieldEdit<String>,
    /// Metadata fields to set; `None` removes one.
    pub metadata: Vec<(String, Option<Json>)>,
    /// Whether it is ephemeral, so that it may be purged.
    pub ephemeral: Option<bool>,
    /// Kept without history.
    pub no_history: Option<bool>,
    /// Fields that `gt` keeps without using them; `None` removes one.
    pub carried: Vec<(&'static str, Option<Json>)>,
}

impl BeadChanges {
    /// Whether nothing is to change.
    pub fn is_empty(&self) -> bool {
        let Self {
            claim,
            status,
            title,
            description,
            design,
            acceptance_criteria,
            notes,
            append_notes,
            priority,
            issue_type,
            assignee,
            external_ref,
            estimated_minutes,
            due_at,
            defer_until,
            set_labels,
            add_labels,
            remove_labels,
            parent,
            rig,
            metadata,
            ephemeral,
            no_history,
            carried,
        } = self;
        let texts =
            [title, description, design, acceptance_criteria, notes, append_notes, assignee];
        !claim
            && texts.iter().all(|text| text.is_none())
            && status.is_none()
            && priority.is_none()
            && issue_type.is_none()
            && *external_ref == FieldEdit::Keep
            && estimated_minutes.is_none()
            && *due_at == FieldEdit::Keep
            && *defer_until == FieldEdit::Keep
            && set_labels.is_none()
            && add_labels.is_empty()
            && remove_labels.is_empty()
            && *parent == FieldEdit::Keep
            && *rig == FieldEdit::Keep
            && metadata.is_empty()
            && ephemeral.is_none()
            && no_history.is_none()
            && carried.is_empty()
    }
}

/// Applies the same changes to each bead. Each bead changes whole or not at all.
pub fn update(
    town: &Town,
    inputs: &[String],
    changes: &BeadChanges,
) -> Result<Vec<Result<BeadId>>> {
    town.write_each(inputs, |writer, input| update_in(town, writer, input, changes))
}

pub(crate) fn update_in(
    town: &Town,
    writer: &mut Writer<'_>,
    input: &str,
    changes: &BeadChanges,
) -> Result<BeadId> {
    let old = require(town, writer, input)?;
    let mut new = old.clone();
    let mut kind = BeadChangeKind::Updated;
    let acting = town.acting_run();
    if changes.claim {
        new = claim_in(writer, &old, acting)?;
        kind = BeadChangeKind::Claimed;
    }
    if let Some(status) = &changes.status {
        check_registered(writer, status)?;
        let applied = apply(writer, &new, &Verb::SetStatus(status.clone()), "update", acting)?;
        (new, kind) = (applied.new, applied.kind.unwrap_or(kind));
    }
    if let Some(assignee) = &changes.assignee {
        if !assignee.is_empty() {
            check_label("assignee", assignee)?;
        }
        new = apply(writer, &new, &Verb::Assign(assignee.clone()), "update", acting)?.new;
    }
    if let FieldEdit::Set(until) = changes.defer_until
        && until > writer.now()
    {
        let put_off = apply(writer, &new, &Verb::PutOff, "update", acting)?.new;
        // A status that was asked for by name stands.
        new = if changes.status.is_none() { put_off } else { new };
    }
    refuse_if_over(town, writer, &old.id, "update")?;
    apply_fields(&mut new, changes)?;
    if acting.is_some() && metadata_requires_review(&old) && !metadata_requires_review(&new) {
        return Err(OperationError::rejected(format!(
            "a review of {} is required, and a worker cannot change that",
            old.id
        )));
    }
    move_to(town, writer, &mut new, &changes.rig)?;
    if new.issue_type != old.issue_type {
        check_type(writer, &new.issue_type, new.rig.as_ref())?;
    }
    if changes.status.is_none() && !changes.claim && old.status != new.status {
        kind = BeadChangeKind::StatusChanged;
    }
    let mut touched = change_labels(writer, &old, changes)?;
    touched |= change_parent(town, writer, &old.id, &changes.parent)?;
    if new != old {
        new.updated_at = writer.now().of_change_after(old.updated_at);
        writer.save_bead(&old, &new, kind)?;
        if new.status == Status::Closed {
            close_context_of(writer, &new.id)?;
        }
    } else if touched {
        writer.touch_bead(&old.id)?;
    }
    Ok(new.id)
}

/// A status must be built in, belong to staged convoys, or be named in `status.custom`.
pub(super) fn check_registered(reader: &Reader<'_>, status: &Status) -> Result<()> {
    let Status::Custom(_) = status else {
        return Ok(());
    };
    if known_custom_statuses(reader)?.iter().any(|(known, _)| known == status) {
        return Ok(());
    }
    let configured = reader.setting(SettingScope::Beads, CUSTOM_STATUSES)?.unwrap_or_default();
    let built_in: Vec<String> = Status::BUILT_IN.iter().map(ToString::to_string).collect();
    let before = if configured.is_empty() { "" } else { "," };
    Err(OperationError::rejected(format!(
        "invalid status: unknown status \"{status}\"; use {}, or add it with bd config set {CUSTOM_STATUSES} \
         {configured}{before}{status}",
        built_in.join(", ")
    )))
}

fn apply_fields(bead: &mut Bead, changes: &BeadChanges) -> Result<()> {
    if let Some(title) = &changes.title {
        bead.title = Title::parse(title)?;
    }
    for (name, wanted, field) in [
        ("description", &changes.description, &mut bead.description),
        ("design", &changes.design, &mut bead.design),
        ("acceptance criteria", &changes.acceptance_criteria, &mut bead.acceptance_criteria),
        ("notes", &changes.notes, &mut bead.notes),
    ] {
        if let Some(text) = wanted {
            check_text(name, text)?;
            field.clone_from(text);
        }
    }
    if let Some(more) = &changes.append_notes {
        check_text("notes", more)?;
        if !bead.notes.is_empty() {
            bead.notes.push('\n');
        }
        bead.notes.push_str(more);
    }
    bead.priority = changes.priority.unwrap_or(bead.priority);
    if let Some(issue_type) = &changes.issue_type {
        bead.issue_type = issue_type.clone();
    }
    bead.estimated_minutes = changes.estimated_minutes.or(bead.estimated_minutes);
    change(&mut bead.external_ref, &changes.external_ref);
    change(&mut bead.due_at, &changes.due_at);
    change(&mut bead.defer_until, &changes.defer_until);
    let woken = changes.defer_until == FieldEdit::Clear && bead.status == Status::Deferred;
    if woken && changes.status.is_none() {
        bead.status = Status::Open;
    }
    bead.ephemeral = changes.ephemeral.unwrap_or(bead.ephemeral);
    bead.no_history = changes.no_history.unwrap_or(bead.no_history);
    if bead.ephemeral && bead.no_history {
        return Err(OperationError::rejected(format!(
            "{} is either ephemeral or kept without history, not both",
            bead.id
        )));
    }
    apply_metadata(bead, changes)?;
    for (name, value) in &changes.carried {
        bead.carried.retain(|(key, _)| key != name);
        if let Some(value) = value {
            bead.carried.push(((*name).to_owned(), value.clone()));
        }
    }
    Ok(())
}

fn apply_metadata(bead: &mut Bead, changes: &BeadChanges) -> Result<()> {
    if changes.metadata.is_empty() {
        return Ok(());
    }
    let mut metadata = bead.metadata.clone().unwrap_or_else(|| Json::object(&[]));
    if metadata.fields().is_none() {
        return Err(OperationError::rejected(format!(
            "the metadata of {} is not a JSON object, so its fields cannot be set",
            bead.id
        )));
    }
    for (key, value) in &changes.metadata {
        metadata = match value {
            Some(value) => metadata.with(key, value),
            None => metadata.without(key),
        };
    }
    bead.metadata = Some(metadata).filter(|metadata| metadata.as_str() != "{}");
    Ok(())
}

fn change<T: Clone>(field: &mut Option<T>, edit: &FieldEdit<T>) {
    match edit {
        FieldEdit::Keep => {}
        FieldEdit::Clear => *field = None,
        FieldEdit::Set(value) => *field = Some(value.clone()),
    }
}

fn change_labels(writer: &mut Writer<'_>, bead: &Bead, changes: &BeadChanges) -> Result<bool> {
    let mut changed = false;
    if let Some(wanted) = &changes.set_labels {
        let there = writer.labels(bead)?;
        for label in writer.labels_in_order(bead)? {
            if !wanted.contains(&label) {
                changed |= writer.remove_label(bead, &label, true)?;
            }
        }
        for label in wanted {
            // A caller that sets the labels it was shown changes nothing.
            if !there.contains(label) {
                changed |= give_label(writer, bead, label)?;
            }
        }
    }
    for label in &changes.add_labels {
        changed |= give_label(writer, bead, label)?;
    }
    for label in &changes.remove_labels {
        changed |= take_label(writer, bead, label)?;
    }
    Ok(changed)
}

fn change_parent(
    town: &Town,
    writer: &mut Writer<'_>,
    id: &BeadId,
    parent: &FieldEdit<String>,
) -> Result<bool> {
    let wanted = match parent {
        FieldEdit::Keep => return Ok(false),
        FieldEdit::Clear => None,
        FieldEdit::Set(input) => Some(resolve_in(town, writer, input)?),
    };
    let mut changed = false;
    for old in writer.edges_from(id)? {
        if old.kind == DependencyType::ParentChild && Some(&old.target) != wanted.as_ref() {
            writer.remove_dependency(&old, true)?;
            changed = true;
        }
    }
    if let Some(parent) = wanted {
        match writer.edge(id, &parent)? {
            Some(old) if old.kind == DependencyType::ParentChild => {}
            Some(old) => {
                return Err(OperationError::rejected(format!(
                    "{id} already depends on {parent} as {}; remove that first with bd dep remove \
                     {id} {parent}",
                    old.kind
                )));
            }
            None => {
                let new = edge(writer, id, &parent, DependencyType::ParentChild);
                add_edge(writer, &new, true)?;
                changed = true;
            }
        }
    }
    Ok(changed)
}
