//! `bd state` and `bd set-state`: labels of the form `dimension:value`, of which a bead has one for each dimension.

use clap::Args;
use gt_beads::beads::BeadChanges;
use gt_beads::notes::labels;

use super::update;
use crate::context::CommandContext;
use crate::error::CliError;

/// Print a state of a bead; a state is a label such as health:good
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd state gt-abc health")]
pub(super) struct StateArgs {
    /// An id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Which state; without one, all of them
    #[arg(value_name = "DIMENSION")]
    dimension: Option<String>,
}

/// Change a state of a bead, in place of its old value
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd set-state gt-abc health=good --reason \"the disk is new\"")]
pub(super) struct SetStateArgs {
    /// An id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// The state and its value
    #[arg(value_name = "DIMENSION=VALUE", value_parser = crate::values::binding)]
    state: (String, String),
    /// Why; kept in the notes
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &StateArgs) -> Result<(), CliError> {
    // `bd state list <id>` means all states of the bead.
    let (input, dimension) = match &args.dimension {
        Some(id) if args.id == "list" => (id, None),
        dimension => (&args.id, dimension.as_deref()),
    };
    let (id, found) = labels(&context.store_town()?, input)?;
    let states: Vec<(String, String)> = found
        .iter()
        .filter_map(|label| label.name.split_once(':'))
        .filter(|(name, _)| dimension.is_none_or(|asked| asked == *name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let printer = context.printer;
    if printer.json() {
        return printer.object(&states.into_iter().collect::<gt_api::OrderedMap<String>>());
    }
    match (dimension, states.as_slice()) {
        (Some(_), [(_, value), ..]) => printer.line(value),
        (_, []) => printer.done(format!("{id} has no such state")),
        (_, states) => {
            states.iter().try_for_each(|(name, value)| printer.line(format!("{name}: {value}")))
        }
    }
}

pub(super) fn run_set(context: &CommandContext<'_>, args: &SetStateArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let (dimension, value) = &args.state;
    let (_, found) = labels(&town, &args.id)?;
    let new = format!("{dimension}:{value}");
    let beginning = format!("{dimension}:");
    let is_old = |label: &String| label.starts_with(&beginning) && *label != new;
    let old = found.into_iter().filter(|label| !label.derived).map(|label| label.name);
    let changes = BeadChanges {
        remove_labels: old.filter(is_old).collect(),
        add_labels: vec![new.clone()],
        append_notes: args.reason.as_ref().map(|reason| format!("{new}: {reason}")),
        ..BeadChanges::default()
    };
    update::apply(context.printer, &town, std::slice::from_ref(&args.id), &changes)
}
