//! `bd epic`.

use clap::{Args, Subcommand};
use gt_api::{ClosedEpicsDocument, EpicProgressDocument, RawJson};
use gt_beads::beads::{ALL_PARTS_CLOSED, EpicProgress, close_finished_epics, open_epics};

use super::bead_output;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, plural};

/// Show how far epics are, and close those whose parts are closed
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd epic status
  bd epic status --eligible-only --json
  bd epic close-eligible --dry-run")]
pub(super) struct EpicArgs {
    #[command(subcommand)]
    verb: EpicVerb,
}

#[derive(Debug, Subcommand)]
enum EpicVerb {
    /// Show how many parts of each open epic are closed
    Status {
        /// Only epics whose parts are all closed
        #[arg(long)]
        eligible_only: bool,
    },
    /// Close the epics whose parts are all closed
    CloseEligible {
        /// Only show which
        #[arg(long)]
        dry_run: bool,
        /// Why
        #[arg(short, long, value_name = "TEXT", default_value = ALL_PARTS_CLOSED)]
        reason: String,
    },
}

pub(super) fn run(context: &CommandContext<'_>, args: &EpicArgs) -> Result<(), CliError> {
    match &args.verb {
        EpicVerb::Status { eligible_only } => {
            let nothing = if *eligible_only { "No epics to close" } else { "No open epics found" };
            print_progress(context, *eligible_only, nothing)
        }
        EpicVerb::CloseEligible { dry_run: true, .. } => {
            print_progress(context, true, "No epics eligible for closure")
        }
        EpicVerb::CloseEligible { reason, .. } => close_all(context, reason),
    }
}

fn print_progress(
    context: &CommandContext<'_>,
    eligible_only: bool,
    nothing: &str,
) -> Result<(), CliError> {
    let mut epics = open_epics(&context.store_town()?)?;
    epics.retain(|progress| !eligible_only || progress.can_close());
    let printer = context.printer;
    if printer.json() {
        let mut list = printer.list();
        for progress in &epics {
            list.push(&document(progress))?;
        }
        return list.finish();
    }
    if epics.is_empty() {
        return printer.done(nothing);
    }
    epics.iter().try_for_each(|progress| print(printer, progress))
}

fn print(printer: &Printer, progress: &EpicProgress) -> Result<(), CliError> {
    let EpicProgress { epic, total, closed, .. } = progress;
    let share = closed.saturating_mul(100).checked_div(*total).unwrap_or(0);
    let next = if progress.can_close() { ": can be closed" } else { "" };
    printer.heading(epic.id.as_str(), &format!("  {}", epic.title))?;
    printer.line(format!("  {closed}/{total} parts closed ({share}%){next}"))
}

fn document(progress: &EpicProgress) -> EpicProgressDocument {
    EpicProgressDocument {
        epic: RawJson::record(bead_output::bare(&progress.epic, &progress.labels)),
        total_children: progress.total,
        closed_children: progress.closed,
        eligible_for_close: progress.can_close(),
    }
}

fn close_all(context: &CommandContext<'_>, reason: &str) -> Result<(), CliError> {
    let printer = context.printer;
    let (mut closed, mut refused) = (Vec::new(), Vec::new());
    for result in close_finished_epics(&context.store_town()?, reason)? {
        match result {
            Ok(epic) => closed.push(epic.bead.id.to_string()),
            Err(error) => refused.push(printer.part_failed(&error.into())),
        }
    }
    if printer.json() {
        printer.object(&ClosedEpicsDocument {
            count: closed.len() as u64,
            closed,
            reason: reason.to_owned(),
        })?;
    } else if closed.is_empty() && refused.is_empty() {
        printer.done("No epics eligible for closure")?;
    } else {
        printer.done(format!("✓ Closed {}: {reason}", plural(closed.len() as u64, "epic")))?;
        closed.iter().try_for_each(|id| printer.done(format!("  {id}")))?;
    }
    if refused.is_empty() { Ok(()) } else { Err(CliError::AlreadyTold(refused.join("; "))) }
}
