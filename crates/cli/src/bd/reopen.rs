//! `bd reopen`.

use clap::Args;
use gt_beads::batch::BatchStep;
use gt_beads::beads::reopen;
use gt_beads::convoys::scheduled_by_convoy;
use gt_core::BeadId;

use super::bead_output;
use crate::context::CommandContext;
use crate::error::CliError;

/// Open closed beads again
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd reopen gt-abc --reason \"it came back\"")]
pub(super) struct ReopenArgs {
    /// Ids, or parts of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Why
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The change that a line of a batch asks for.
pub(super) fn step(args: ReopenArgs) -> BatchStep {
    BatchStep::Reopen { beads: args.ids, reason: args.reason }
}

pub(super) fn run(context: &CommandContext<'_>, args: &ReopenArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let (mut reopened, mut refused) = (Vec::new(), Vec::new());
    for result in reopen(&town, &args.ids, args.reason.as_deref())? {
        match result {
            Ok((bead, true)) => reopened.push(bead),
            Ok((bead, false)) => printer.note(format!("{} is already open", bead.id)),
            Err(error) => refused.push(printer.part_failed(&error.into())),
        }
    }
    if printer.json() && (refused.is_empty() || !reopened.is_empty()) {
        let ids: Vec<String> = reopened.iter().map(|bead| bead.id.to_string()).collect();
        bead_output::print_json(printer, &town, &ids)?;
    }
    for bead in &reopened {
        printer.done(format!("✓ Reopened {}", bead.id))?;
    }
    let ids: Vec<BeadId> = reopened.into_iter().map(|bead| bead.id).collect();
    for (bead, convoy) in scheduled_by_convoy(&town, &ids)? {
        printer.note(format!(
            "{bead} is scheduled again, because {convoy} is under way; gt scheduler clear --bead {bead} takes it back"
        ));
    }
    if refused.is_empty() { Ok(()) } else { Err(CliError::AlreadyTold(refused.join("; "))) }
}
