//! `bd children`.

use clap::Args;
use gt_town::{BeadFilter, BeadOrder};

use super::filters::{limit, statuses};
use crate::context::CommandContext;
use crate::error::CliError;
use gt_beads::lookup::resolve;

/// List the direct parts of a bead, closed ones included
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd children gt-epic
  bd children gt-epic --status open --json")]
pub(super) struct ChildrenArgs {
    /// The parent
    #[arg(value_name = "ID")]
    id: String,
    /// Only these statuses, separated by commas
    #[arg(short, long)]
    status: Option<String>,
    /// At most this many; 0 for all
    #[arg(short = 'n', long)]
    limit: Option<usize>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ChildrenArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let all = BeadFilter::everything();
    let filter = BeadFilter {
        parent: Some(resolve(&town, &args.id)?),
        status: statuses(&town, args.status.as_deref())?.unwrap_or(all.status),
        order: BeadOrder::Id,
        limit: limit(args.limit, None),
        ..all
    };
    super::list::print(context.printer, &town, &filter, |_| String::new())
}
