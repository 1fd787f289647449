//! `bd update`.

use clap::Args;
use gt_beads::batch::BatchStep;
use gt_beads::beads::{BeadChanges, FieldEdit, update};
use gt_beads::events::last_touched;
use gt_core::{IssueType, Json, Priority, Status, Timestamp};
use gt_town::Town;

use super::bead_output;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::Printer;
use crate::values::{
    DescriptionArgs, comma_separated, instant, json_argument, note_past_due, text_of, typed_field,
};

/// Change beads; each one changes whole or not at all
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd update gt-abc --claim
  bd update gt-abc --status blocked --append-notes \"waiting for the key\"
  bd update gt-abc gt-def --add-label soon --priority 1
  bd update hq-abc --rig gastown        # move it to a rig; its id stays")]
pub(super) struct UpdateArgs {
    /// Ids, or parts of them; without one, the bead that you changed last
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Take it, if it has no other assignee
    #[arg(long)]
    claim: bool,
    /// open, blocked, deferred, closed, …
    #[arg(short, long)]
    status: Option<String>,
    /// How urgent it is: 0 (highest) to 4
    #[arg(short, long, allow_hyphen_values = true)]
    priority: Option<String>,
    /// The title, in one line
    #[arg(long)]
    title: Option<String>,
    /// Its type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    issue_type: Option<String>,
    /// The assignee; "" for none
    #[arg(short, long, value_name = "NAME")]
    assignee: Option<String>,
    #[command(flatten)]
    description: DescriptionArgs,
    #[arg(long, hide = true)]
    allow_empty_description: bool,
    /// How it is to be done
    #[arg(long, value_name = "TEXT")]
    design: Option<String>,
    /// Take the design from this file (- is standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "design")]
    design_file: Option<String>,
    /// How one knows that it is done
    #[arg(long, visible_alias = "acceptance-criteria", value_name = "TEXT")]
    acceptance: Option<String>,
    /// Notes in place of the old ones
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// Notes after the old ones
    #[arg(long, value_name = "TEXT")]
    append_notes: Option<String>,
    /// Its name in another system; "" for none
    #[arg(long, value_name = "REF")]
    external_ref: Option<String>,
    /// The specification it comes from; "" for none
    #[arg(long, value_name = "ID")]
    spec_id: Option<String>,
    /// How long it should take, in minutes
    #[arg(short, long, value_name = "MINUTES")]
    estimate: Option<u32>,
    /// Add labels (can be repeated)
    #[arg(long, value_name = "LABEL")]
    add_label: Vec<String>,
    /// Remove labels (can be repeated)
    #[arg(long, value_name = "LABEL")]
    remove_label: Vec<String>,
    /// Labels in place of the old ones (can be repeated)
    #[arg(long, value_name = "LABEL")]
    set_labels: Vec<String>,
    /// Make it a part of this bead; "" for none
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Move it to this rig, with its id and everything about it; "" for the town itself
    #[arg(long, value_name = "RIG")]
    rig: Option<String>,
    /// When it should be finished; "" for no date
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    due: Option<String>,
    /// Do not work on it before this; "" for no date
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    defer: Option<String>,
    /// Set these metadata fields: a JSON object, or @file
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Set a metadata field (can be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    set_metadata: Vec<String>,
    /// Remove a metadata field (can be repeated)
    #[arg(long, value_name = "KEY")]
    unset_metadata: Vec<String>,
    /// Machinery that may be purged
    #[arg(long, conflicts_with = "persistent")]
    ephemeral: bool,
    /// Keep it
    #[arg(long)]
    persistent: bool,
    /// Keep it without history
    #[arg(long, conflicts_with = "history")]
    no_history: bool,
    /// Keep it with history
    #[arg(long)]
    history: bool,
    #[arg(long, hide = true)]
    session: Option<String>,
    #[arg(long, hide = true)]
    await_id: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &UpdateArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let town = context.store_town()?;
    let changes = changes(args, town.now())?;
    if changes.is_empty() {
        if printer.json() {
            return printer.list().finish();
        }
        return printer.done("No updates specified");
    }
    if let FieldEdit::Set(due) = changes.due_at {
        note_past_due(printer, Some(due), town.now());
    }
    let ids = named_or_last_touched(printer, &town, &args.ids)?;
    apply(printer, &town, &ids, &changes)
}

/// The beads that were named or, if none was, the one that the actor changed last.
pub(super) fn named_or_last_touched(
    printer: &Printer,
    town: &Town,
    ids: &[String],
) -> Result<Vec<String>, CliError> {
    if !ids.is_empty() {
        return Ok(ids.to_vec());
    }
    let id = last_touched(town)?;
    printer.note(format!("note: no bead was named; {id} is the one that you changed last"));
    Ok(vec![id.to_string()])
}

/// Changes beads, and says what became of each.
pub(super) fn apply(
    printer: &Printer,
    town: &Town,
    ids: &[String],
    changes: &BeadChanges,
) -> Result<(), CliError> {
    let (mut changed, mut refused) = (Vec::new(), Vec::new());
    for result in update(town, ids, changes)? {
        match result {
            Ok(id) => changed.push(id.to_string()),
            Err(error) => refused.push(printer.part_failed(&error.into())),
        }
    }
    if changed.is_empty() {
        return Err(CliError::AlreadyTold(refused.join("; ")));
    }
    if !printer.json() {
        let done = if changes.claim { "Claimed" } else { "Updated" };
        return changed.iter().try_for_each(|id| printer.done(format!("✓ {done} {id}")));
    }
    bead_output::print_json(printer, town, &changed)
}

/// The change that a line of a batch asks for.
pub(super) fn step(args: &UpdateArgs, now: Timestamp) -> Result<BatchStep, CliError> {
    let changes = changes(args, now)?;
    if changes.is_empty() {
        return Err(CliError::request("it says nothing that is to change; write key=value"));
    }
    if args.ids.is_empty() {
        return Err(CliError::request("which bead? update <id> key=value"));
    }
    Ok(BatchStep::Update { beads: args.ids.clone(), changes: Box::new(changes) })
}

fn changes(args: &UpdateArgs, now: Timestamp) -> Result<BeadChanges, CliError> {
    let mut metadata = Vec::new();
    if let Some(text) = &args.metadata {
        let object = json_argument(text)?;
        let fields =
            object.fields().ok_or_else(|| CliError::request("--metadata needs a JSON object"))?;
        metadata.extend(fields.into_iter().map(|(key, value)| (key, Some(value))));
    }
    for text in &args.set_metadata {
        let (key, value) = typed_field(text)?;
        metadata.push((key, Some(value)));
    }
    metadata.extend(args.unset_metadata.iter().map(|key| (key.clone(), None)));
    let mut carried = Vec::new();
    for (name, value) in [("spec_id", &args.spec_id), ("await_id", &args.await_id)] {
        if let Some(value) = value {
            carried.push((name, (!value.is_empty()).then(|| Json::string(value))));
        }
    }
    let either = |yes: bool, no: bool| if yes { Some(true) } else { no.then_some(false) };
    Ok(BeadChanges {
        claim: args.claim,
        status: args.status.as_deref().map(Status::parse).transpose()?,
        title: args.title.clone(),
        description: args.description.read()?,
        design: match (&args.design, &args.design_file) {
            (None, Some(path)) => Some(text_of(path)?),
            (design, _) => design.clone(),
        },
        acceptance_criteria: args.acceptance.clone(),
        notes: args.notes.clone(),
        append_notes: args.append_notes.clone(),
        priority: args.priority.as_deref().map(Priority::parse).transpose()?,
        issue_type: args.issue_type.as_deref().map(IssueType::parse).transpose()?,
        assignee: args.assignee.clone(),
        external_ref: edit(args.external_ref.as_deref(), |text| Ok(text.to_owned()))?,
        estimated_minutes: args.estimate,
        due_at: edit(args.due.as_deref(), |text| instant(text, now))?,
        defer_until: edit(args.defer.as_deref(), |text| instant(text, now))?,
        set_labels: (!args.set_labels.is_empty()).then(|| comma_separated(&args.set_labels)),
        add_labels: comma_separated(&args.add_label),
        remove_labels: comma_separated(&args.remove_label),
        parent: edit(args.parent.as_deref(), |text| Ok(text.to_owned()))?,
        rig: edit(args.rig.as_deref(), |text| Ok(text.to_owned()))?,
        metadata,
        ephemeral: either(args.ephemeral, args.persistent),
        no_history: either(args.no_history, args.history),
        carried,
    })
}

/// A flag that was not given keeps, an empty one clears, any other sets.
fn edit<T>(
    text: Option<&str>,
    read: impl FnOnce(&str) -> Result<T, CliError>,
) -> Result<FieldEdit<T>, CliError> {
    match text {
        None => Ok(FieldEdit::Keep),
        Some("") => Ok(FieldEdit::Clear),
        Some(text) => read(text).map(FieldEdit::Set),
    }
}
