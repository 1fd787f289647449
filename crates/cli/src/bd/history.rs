//! `bd history` and `bd graph`.

use clap::Args;

use super::activity::{self, ActivityArgs};
use super::dep::{self, DepArgs};
use crate::context::CommandContext;
use crate::error::CliError;

/// Show what happened to a bead
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd history gt-abc --limit 10")]
pub(super) struct HistoryArgs {
    /// An id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// At most this many (50 unless said); 0 for all
    #[arg(short = 'n', long)]
    limit: Option<usize>,
}

/// Show everything that a bead depends on
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd graph gt-abc --format mermaid\n  bd graph --all")]
pub(super) struct GraphArgs {
    /// An id, or a part of it
    #[arg(value_name = "ID", required_unless_present = "all")]
    id: Option<String>,
    /// Every bead that is not closed, each with what it depends on
    #[arg(long, conflicts_with = "id")]
    all: bool,
    #[arg(long, hide = true)]
    compact: bool,
}

pub(super) fn run_history(
    context: &CommandContext<'_>,
    args: &HistoryArgs,
) -> Result<(), CliError> {
    let of_bead =
        ActivityArgs { bead: Some(args.id.clone()), limit: args.limit, ..ActivityArgs::default() };
    activity::run(context, &of_bead)
}

pub(super) fn run_graph(
    context: &CommandContext<'_>,
    args: &GraphArgs,
    diagram: bool,
) -> Result<(), CliError> {
    match &args.id {
        Some(id) => dep::run(context, DepArgs::tree_of(id.clone()), diagram),
        None => dep::run_forest(context, diagram),
    }
}
