//! `bd edit`.

use clap::Args;
use gt_beads::beads::{BeadChanges, edit_text, show};

use super::update;
use crate::context::CommandContext;
use crate::error::CliError;

/// Change a text of a bead in your editor
///
/// The editor is $VISUAL or $EDITOR. A worker has no terminal: bd update changes the same fields.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd edit gt-abc\n  bd edit gt-abc --design")]
pub(super) struct EditArgs {
    /// An id, or a part of it; without one, the bead that you changed last
    #[arg(value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    fields: FieldFlags,
}

/// Which text; the description unless another is named.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct FieldFlags {
    /// The title
    #[arg(long)]
    title: bool,
    /// The description (unless another is named)
    #[arg(long)]
    description: bool,
    /// How it is to be done
    #[arg(long)]
    design: bool,
    /// Notes
    #[arg(long)]
    notes: bool,
    /// How one knows that it is done
    #[arg(long)]
    acceptance: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &EditArgs) -> Result<(), CliError> {
    let (printer, town) = (context.printer, context.store_town()?);
    let ids: Vec<String> = args.id.iter().cloned().collect();
    let ids = update::named_or_last_touched(printer, &town, &ids)?;
    let mut bead = None;
    for shown in show(&town, &ids)? {
        bead = Some(shown?.row.bead);
    }
    let Some(bead) = bead else { return Ok(()) };
    let flags = &args.fields;
    let before = if flags.title {
        bead.title.to_string()
    } else if flags.design {
        bead.design.clone()
    } else if flags.notes {
        bead.notes.clone()
    } else if flags.acceptance {
        bead.acceptance_criteria.clone()
    } else {
        bead.description.clone()
    };
    let Some(after) = edit_text(&town, context.editor()?, bead.id.as_str(), &before)? else {
        return printer.done(format!("No changes made to {}", bead.id));
    };
    let text = Some(after);
    let changes = if flags.title {
        BeadChanges { title: text, ..BeadChanges::default() }
    } else if flags.design {
        BeadChanges { design: text, ..BeadChanges::default() }
    } else if flags.notes {
        BeadChanges { notes: text, ..BeadChanges::default() }
    } else if flags.acceptance {
        BeadChanges { acceptance_criteria: text, ..BeadChanges::default() }
    } else {
        BeadChanges { description: text, ..BeadChanges::default() }
    };
    update::apply(printer, &town, &[bead.id.to_string()], &changes)
}
