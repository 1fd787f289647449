//! `gt scheduler adopt`.

use clap::Args;
use gt_api::{AdoptedDocument, AdoptionDocument, CleanedDocument, QuarantinedDocument};
use gt_beads::adopt::{Adoption, adopt};

use crate::context::CommandContext;
use crate::error::CliError;

/// Turn what older queues left with imported beads into contexts
///
/// A bead with a queue block, a queue label or an open context bead becomes scheduled; a damaged block is set aside and can
/// be retried. Blocks and labels are removed; the event log keeps the old text.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt scheduler adopt --dry-run
  gt scheduler adopt")]
pub(in crate::gt) struct AdoptArgs {
    /// Only say what would happen
    #[arg(short = 'n', long)]
    dry_run: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &AdoptArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let adoption = adopt(&town, args.dry_run)?;
    if printer.json() {
        return printer.object(&document(&adoption, args.dry_run));
    }
    let Adoption { adopted, quarantined, cleaned } = &adoption;
    if adopted.is_empty() && quarantined.is_empty() && cleaned.is_empty() {
        return printer.done("No bead carries anything of an older queue; nothing to do");
    }
    for one in adopted {
        printer.line(format!("✓ Scheduled {} → {} ({})", one.bead, one.rig, one.context))?;
    }
    for one in quarantined {
        printer.line(format!("⚠ {} is {}: {}", one.bead, one.reason.as_str(), one.why))?;
    }
    for one in cleaned {
        printer.line(format!("- {} is only cleaned: {}", one.bead, one.why))?;
    }
    let would = if args.dry_run { "Would adopt" } else { "Adopted" };
    printer.done(format!(
        "{would} {} bead(s), set aside {}, cleaned {}",
        adopted.len(),
        quarantined.len(),
        cleaned.len()
    ))
}

fn document(adoption: &Adoption, dry_run: bool) -> AdoptionDocument {
    let adopted = adoption.adopted.iter().map(|one| AdoptedDocument {
        id: one.bead.to_string(),
        context: one.context.to_string(),
        target_rig: one.rig.to_string(),
        dispatch_failures: one.failures.into(),
        gated: one.gated,
    });
    let quarantined = adoption.quarantined.iter().map(|one| QuarantinedDocument {
        id: one.bead.to_string(),
        context: one.context.as_ref().map(ToString::to_string),
        reason: one.reason.as_str().to_owned(),
        why: one.why.clone(),
    });
    let cleaned = adoption
        .cleaned
        .iter()
        .map(|one| CleanedDocument { id: one.bead.to_string(), why: one.why.clone() });
    AdoptionDocument {
        adopted: adopted.collect(),
        quarantined: quarantined.collect(),
        cleaned: cleaned.collect(),
        dry_run,
    }
}
