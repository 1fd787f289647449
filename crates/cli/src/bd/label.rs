//! `bd label`.

use clap::{Args, Subcommand};
use gt_api::{LabelChangeDocument, LabelCountDocument};
use gt_beads::batch::BatchStep;
use gt_beads::beads::label_counts;
use gt_beads::notes::{label, labels, propagate_label};
use gt_core::BeadId;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table};

/// Add, remove and list labels
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd label add gt-abc soon\n  bd label list-all --json")]
pub(super) struct LabelArgs {
    #[command(subcommand)]
    verb: LabelVerb,
}

#[derive(Debug, Subcommand)]
enum LabelVerb {
    /// Add a label to beads
    Add(ChangeArgs),
    /// Remove a label from beads
    Remove(ChangeArgs),
    /// List the labels of a bead
    List {
        /// An id, or a part of it
        id: String,
    },
    /// List every label with how many beads have it
    ListAll,
    /// Give a label to the direct parts of a bead
    Propagate {
        /// The bead that they are a part of
        #[arg(value_name = "ID")]
        parent: String,
        /// The label
        label: String,
    },
}

#[derive(Debug, Args)]
struct ChangeArgs {
    /// Ids, and the label last
    #[arg(value_name = "ID… LABEL", required = true, num_args = 2..)]
    words: Vec<String>,
}

/// The change that a line of a batch asks for.
pub(super) fn step(args: LabelArgs) -> Result<BatchStep, CliError> {
    let (mut words, add) = match args.verb {
        LabelVerb::Add(args) => (args.words, true),
        LabelVerb::Remove(args) => (args.words, false),
        LabelVerb::List { .. } | LabelVerb::ListAll | LabelVerb::Propagate { .. } => {
            return Err(CliError::request(
                "a batch changes the labels of beads that it names; it lists nothing",
            ));
        }
    };
    match words.pop() {
        Some(label) if !words.is_empty() => Ok(BatchStep::Label { beads: words, label, add }),
        _ => Err(CliError::request("which label? label add <id> <label>")),
    }
}

pub(super) fn run(context: &CommandContext<'_>, args: &LabelArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let (words, add) = match &args.verb {
        LabelVerb::Add(args) => (&args.words, true),
        LabelVerb::Remove(args) => (&args.words, false),
        LabelVerb::List { id } => {
            let (id, labels) = labels(&town, id)?;
            if printer.json() {
                let mut list = printer.list();
                for label in &labels {
                    list.push(&label.name)?;
                }
                return list.finish();
            }
            if labels.is_empty() {
                return printer.done(format!("{id} has no labels"));
            }
            return labels.iter().try_for_each(|label| {
                let remark = if label.derived { "  (follows from the queue)" } else { "" };
                printer.line(format!("{}{remark}", label.name))
            });
        }
        LabelVerb::Propagate { parent, label } => {
            let given = propagate_label(&town, parent, label)?;
            return print_changes(printer, given.iter().map(|id| (id, true)), label, true);
        }
        LabelVerb::ListAll => {
            let counts = label_counts(&town)?;
            if printer.json() {
                let mut list = printer.list();
                for (label, count) in &counts {
                    list.push(&LabelCountDocument { label: label.clone(), count: *count })?;
                }
                return list.finish();
            }
            let mut table = Table::new();
            for (label, count) in counts {
                table.row(vec![Cell::new(label), Cell::new(count.to_string())]);
            }
            return printer.table(table);
        }
    };
    let Some((name, ids)) = words.split_last() else {
        return Err(CliError::request("which label? bd label add <id> <label>"));
    };
    let changed = label(&town, ids, name, add)?;
    print_changes(printer, changed.iter().map(|(id, change)| (id, *change)), name, add)
}

fn print_changes<'i>(
    printer: &Printer,
    changed: impl Iterator<Item = (&'i BeadId, bool)>,
    name: &str,
    add: bool,
) -> Result<(), CliError> {
    let verb = if add { "added" } else { "removed" };
    if printer.json() {
        let mut list = printer.list();
        for (id, _) in changed {
            list.push(&LabelChangeDocument {
                status: verb.to_owned(),
                issue_id: id.to_string(),
                label: name.to_owned(),
            })?;
        }
        return list.finish();
    }
    for (id, change) in changed {
        printer.done(match (change, add) {
            // Scripts look for the beginning of these lines.
            (true, true) => format!("✓ Added label {name} to {id}"),
            (true, false) => format!("✓ Removed label {name} from {id}"),
            (false, true) => format!("{id} already has the label {name}"),
            (false, false) => format!("{id} does not have the label {name}"),
        })?;
    }
    Ok(())
}
