//! `gt scheduler adopt`.

use clap::Args;
use gt_operations::adopt::{Adoption, adopt};
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;

/// Turn what older queues left with imported beads into contexts
///
/// A bead with a queue block, a queue label or an open context bead becomes scheduled; what is damaged is set aside and can
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

pub(super) fn run(context: &Context<'_>, args: &AdoptArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let adoption = adopt(&town, args.dry_run)?;
    if printer.json() {
        return printer.object(&json(&adoption, args.dry_run));
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

fn json(adoption: &Adoption, dry_run: bool) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.array("adopted", |array| {
        for one in &adoption.adopted {
            array.object(|object| {
                object.text("id", one.bead.as_str());
                object.text("context", one.context.as_str());
                object.text("target_rig", one.rig.as_str());
                object.number("dispatch_failures", one.failures.into());
                object.flag("gated", one.gated);
            });
        }
    });
    object.array("quarantined", |array| {
        for one in &adoption.quarantined {
            array.object(|object| {
                object.text("id", one.bead.as_str());
                if let Some(context) = &one.context {
                    object.text("context", context.as_str());
                }
                object.text("reason", one.reason.as_str());
                object.text("why", &one.why);
            });
        }
    });
    object.array("cleaned", |array| {
        for one in &adoption.cleaned {
            array.object(|object| {
                object.text("id", one.bead.as_str());
                object.text("why", &one.why);
            });
        }
    });
    object.flag("dry_run", dry_run);
    object.finish();
    out
}
