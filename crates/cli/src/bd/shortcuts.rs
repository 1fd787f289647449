//! Commands for one change that `bd update` and `bd label` can make too: `bd note`, `bd tag`, `bd assign`, `bd priority`.

use clap::Args;
use gt_beads::beads::BeadChanges;
use gt_core::Priority;

use super::update;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::values::{comma_separated, text_of};

/// Add notes to a bead, behind those that it has
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bd note gt-abc \"the key is in the vault\"\n  bd note gt-abc --file log.txt"
)]
pub(super) struct NoteArgs {
    /// An id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// The text
    #[arg(value_name = "TEXT", required_unless_present_any = ["file", "stdin"])]
    words: Vec<String>,
    /// Take it from this file (- is standard input)
    #[arg(short, long, value_name = "FILE", conflicts_with = "words")]
    file: Option<String>,
    /// Take it from standard input
    #[arg(long, conflicts_with_all = ["words", "file"])]
    stdin: bool,
}

/// Give a bead labels
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd tag gt-abc soon")]
pub(super) struct TagArgs {
    /// An id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// The labels
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,
}

/// Give a bead an assignee
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd assign gt-abc ann\n  bd assign gt-abc \"\"")]
pub(super) struct AssignArgs {
    /// An id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// The assignee; "" for none
    #[arg(value_name = "NAME")]
    name: String,
}

/// Change how urgent a bead is
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd priority gt-abc 1")]
pub(super) struct PriorityArgs {
    /// An id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// 0 (highest) to 4
    #[arg(value_name = "PRIORITY", allow_hyphen_values = true)]
    priority: String,
}

/// Keep an ephemeral bead
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd promote gt-wisp-abc --reason \"it is worth keeping\"")]
pub(super) struct PromoteArgs {
    /// An id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Why; kept in the notes
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn note(context: &CommandContext<'_>, args: &NoteArgs) -> Result<(), CliError> {
    let text = match (&args.file, args.stdin) {
        (Some(path), _) => text_of(path)?,
        (None, true) => text_of("-")?,
        (None, false) => args.words.join(" "),
    };
    let text = text.trim_end().to_owned();
    if text.is_empty() {
        return Err(CliError::request("a note cannot be empty"));
    }
    change(context, &args.id, &BeadChanges { append_notes: Some(text), ..BeadChanges::default() })
}

pub(super) fn tag(context: &CommandContext<'_>, args: &TagArgs) -> Result<(), CliError> {
    let add_labels = comma_separated(&args.labels);
    change(context, &args.id, &BeadChanges { add_labels, ..BeadChanges::default() })
}

pub(super) fn assign(context: &CommandContext<'_>, args: &AssignArgs) -> Result<(), CliError> {
    let assignee = Some(args.name.clone());
    change(context, &args.id, &BeadChanges { assignee, ..BeadChanges::default() })
}

pub(super) fn priority(context: &CommandContext<'_>, args: &PriorityArgs) -> Result<(), CliError> {
    let priority = Some(Priority::parse(&args.priority)?);
    change(context, &args.id, &BeadChanges { priority, ..BeadChanges::default() })
}

pub(super) fn promote(context: &CommandContext<'_>, args: &PromoteArgs) -> Result<(), CliError> {
    let append_notes = args.reason.as_ref().map(|reason| format!("Promoted: {reason}"));
    let changes = BeadChanges { ephemeral: Some(false), append_notes, ..BeadChanges::default() };
    change(context, &args.id, &changes)
}

fn change(context: &CommandContext<'_>, id: &str, changes: &BeadChanges) -> Result<(), CliError> {
    let town = context.store_town()?;
    update::apply(context.printer, &town, &[id.to_owned()], changes)
}
