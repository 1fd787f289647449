//! `gt work stale-check`.

use clap::Args;
use gt_api::OverdueDocument;
use gt_workqueue::work::WorkClient;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;

/// Block what agents have been silent about for too long, and queue again what leases have ended for
///
/// The daemon and the server do the same by themselves.
#[derive(Debug, Args)]
#[command(after_help = "How long is too long: gt config get work.stale_after

Examples:\n  gt work stale-check\n  gt work stale-check --json")]
pub(super) struct StaleCheckArgs {}

pub(super) fn run(
    context: &CommandContext<'_>,
    client: &WorkClient,
    StaleCheckArgs {}: &StaleCheckArgs,
) -> Result<(), CliError> {
    let found = client.check_overdue()?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&OverdueDocument::of(&found.stale, &found.lost, found.due));
    }
    for run in &found.stale {
        printer
            .line(format!("{} is blocked: {run} has sent no heartbeat for too long", run.bead))?;
    }
    for run in &found.lost {
        printer.line(format!("{} is queued again: the lease of {run} has ended", run.bead))?;
    }
    if found.count() == 0 {
        return printer.done("✓ Nothing is stale");
    }
    printer.done(format!("✓ Found {}", plural(found.count() as u64, "stale item")))
}
