//! The fields that a query can test.

/// Texts and names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextField {
    /// The id.
    Id,
    /// The title.
    Title,
    /// The task, in full.
    Description,
    /// The design of the solution.
    Design,
    /// The criteria by which the work is accepted.
    Acceptance,
    /// Notes made during the work.
    Notes,
    /// The status.
    Status,
    /// The outcome.
    Outcome,
    /// The reason of the close.
    CloseReason,
    /// task, bug, epic, …
    Type,
    /// The assignee.
    Assignee,
    /// The person behind it.
    Owner,
    /// The actor that made it.
    CreatedBy,
    /// Any of its labels.
    Label,
    /// The bead it is a part of.
    Parent,
    /// The project it belongs to.
    Rig,
    /// The specification it comes from.
    Spec,
    /// Its name in another system.
    ExternalRef,
    /// The type of molecule.
    MolType,
    /// The type of ephemeral bead.
    WispType,
    /// A top-level field of its metadata.
    Metadata(String),
}

impl TextField {
    /// Whether this is prose, which is searched rather than compared.
    pub fn is_prose(&self) -> bool {
        matches!(
            self,
            Self::Title
                | Self::Description
                | Self::Design
                | Self::Acceptance
                | Self::Notes
                | Self::CloseReason
        )
    }
}

/// Numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberField {
    /// 0 (highest) to 4.
    Priority,
    /// The estimate in minutes.
    Estimate,
}

/// Times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeField {
    /// When it was made.
    Created,
    /// When it last changed.
    Updated,
    /// When work on it first began.
    Started,
    /// When it was closed.
    Closed,
    /// When it should be finished.
    Due,
    /// Until when it is deferred.
    Defer,
}

/// Properties that a bead has or has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// It is machinery that may be purged.
    Ephemeral,
    /// It is a fixed reference.
    Pinned,
    /// It is a pattern for others.
    Template,
    /// Something must be done before it.
    Blocked,
    /// It can be worked on.
    Ready,
}

/// A field of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    Text(TextField),
    Number(NumberField),
    Time(TimeField),
    Flag(Flag),
}

/// A field as a person reads about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldHelp {
    /// The names it goes by; the first is the one we write.
    pub names: &'static [&'static str],
    /// A short description.
    pub help: &'static str,
    field: Field,
}

const fn text(names: &'static [&'static str], field: TextField, help: &'static str) -> FieldHelp {
    FieldHelp { names, help, field: Field::Text(field) }
}

const fn number(
    names: &'static [&'static str],
    field: NumberField,
    help: &'static str,
) -> FieldHelp {
    FieldHelp { names, help, field: Field::Number(field) }
}

const fn time(names: &'static [&'static str], field: TimeField, help: &'static str) -> FieldHelp {
    FieldHelp { names, help, field: Field::Time(field) }
}

const fn flag(names: &'static [&'static str], field: Flag, help: &'static str) -> FieldHelp {
    FieldHelp { names, help, field: Field::Flag(field) }
}

/// Every field, in the order in which people think of them. `metadata.KEY` is one more.
pub const FIELDS: &[FieldHelp] = &[
    text(&["id"], TextField::Id, "the id, or gt-* for a pattern"),
    text(&["title"], TextField::Title, "words of the title"),
    text(&["description", "desc"], TextField::Description, "words of the description"),
    text(&["design"], TextField::Design, "words of the design"),
    text(&["acceptance", "acceptance_criteria"], TextField::Acceptance, "words of the criteria"),
    text(&["notes"], TextField::Notes, "words of the notes"),
    text(&["status", "state"], TextField::Status, "open, in_progress, closed, …"),
    text(&["outcome"], TextField::Outcome, "success, failed or cancelled"),
    text(&["close_reason", "reason"], TextField::CloseReason, "words of the reason it was closed"),
    number(&["priority"], NumberField::Priority, "0 to 4, or P0 to P4"),
    text(&["type", "issue_type"], TextField::Type, "task, bug, epic, …"),
    text(&["assignee"], TextField::Assignee, "who has it"),
    text(&["owner"], TextField::Owner, "the person behind it"),
    text(&["created_by", "creator"], TextField::CreatedBy, "who made it"),
    text(&["label", "labels"], TextField::Label, "one of its labels"),
    text(&["parent"], TextField::Parent, "the bead it is a part of"),
    text(&["rig"], TextField::Rig, "the rig it belongs to"),
    time(&["created", "created_at"], TimeField::Created, "when it was made"),
    time(&["updated", "updated_at"], TimeField::Updated, "when it last changed"),
    time(&["started", "started_at"], TimeField::Started, "when work on it began"),
    time(&["closed", "closed_at"], TimeField::Closed, "when it was closed"),
    time(&["due", "due_at"], TimeField::Due, "when it should be finished"),
    time(&["defer", "defer_until"], TimeField::Defer, "until when it is put off"),
    flag(&["ready"], Flag::Ready, "it can be worked on"),
    flag(&["blocked"], Flag::Blocked, "something must be done first"),
    flag(&["ephemeral"], Flag::Ephemeral, "machinery that may be purged"),
    flag(&["pinned"], Flag::Pinned, "a fixed reference"),
    flag(&["template", "is_template"], Flag::Template, "a pattern for other beads"),
    number(&["estimate", "estimated_minutes"], NumberField::Estimate, "minutes it should take"),
    text(&["spec", "spec_id"], TextField::Spec, "the specification it comes from"),
    text(&["external_ref"], TextField::ExternalRef, "its name in another system"),
    text(&["mol_type"], TextField::MolType, "swarm, patrol or work"),
    text(&["wisp_type"], TextField::WispType, "the kind of an ephemeral bead"),
];

pub(super) const METADATA: &str = "metadata.";

/// The field of this name, written in any case; nothing if there is none.
pub(super) fn lookup(name: &str) -> Option<Field> {
    let lower = name.to_ascii_lowercase();
    if lower.starts_with(METADATA) {
        // A name that looks like a path would be taken for one.
        let key = &name[METADATA.len()..];
        let is_name = !key.is_empty() && !key.starts_with(['$', '[']) && !key.contains('"');
        return is_name.then(|| Field::Text(TextField::Metadata(key.to_owned())));
    }
    let found = FIELDS.iter().find(|help| help.names.contains(&lower.as_str()))?;
    Some(found.field.clone())
}

/// The name we write for a field.
pub(super) fn name_of(field: &Field) -> String {
    if let Field::Text(TextField::Metadata(key)) = field {
        return format!("{METADATA}{key}");
    }
    let found = FIELDS.iter().find(|help| help.field == *field);
    found.map_or_else(String::new, |help| help.names[0].to_owned())
}
