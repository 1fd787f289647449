//! `bd blocked`.

use clap::Args;
use gt_beads::beads::blocked;
use gt_core::BeadId;
use gt_town::{BeadFilter, rigs};

use super::bead_output;
use super::filters::limit;
use crate::context::CommandContext;
use crate::error::CliError;
use gt_beads::lookup::resolve;

/// List what waits for something, and for what
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd blocked --json")]
pub(super) struct BlockedArgs {
    /// Direct parts of this bead
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Only this rig
    #[arg(long)]
    rig: Option<String>,
    /// At most this many; 0 for all
    #[arg(short = 'n', long)]
    limit: Option<usize>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &BlockedArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let filter = BeadFilter {
        blocked: true,
        rig: args.rig.as_deref().map(|name| rigs::slug(&town, name)).transpose()?,
        parent: args.parent.as_deref().map(|input| resolve(&town, input)).transpose()?,
        limit: limit(args.limit, None),
        ..BeadFilter::default()
    };
    if printer.json() {
        let mut list = printer.list();
        blocked(&town, &filter, |row, blockers| {
            list.push_record(&bead_output::listed(row, |object| {
                bead_output::blocked_by(object, blockers);
            }))
        })?;
        return list.finish();
    }
    let mut any = false;
    blocked(&town, &filter, |row, blockers| {
        any = true;
        let names: Vec<&str> = blockers.iter().map(BeadId::as_str).collect();
        bead_output::print_rows(printer, [(row, format!("blocked by {}", names.join(", ")))])
    })?;
    if any { Ok(()) } else { printer.done("Nothing is blocked") }
}
