//! `gt work show`.

use clap::Args;
use gt_api::WorkDetailsDocument;
use gt_workqueue::work::WorkClient;

use super::{colour, until};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, ago, local_times, run_state_colour};

/// Show an item with its dispatch log
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt work show wq-abc\n  gt work show wq-abc --json")]
pub(super) struct ShowArgs {
    /// Which item: its UUID or its bead
    item: String,
}

pub(super) fn run(
    context: &CommandContext<'_>,
    client: &WorkClient,
    args: &ShowArgs,
) -> Result<(), CliError> {
    let reference = client.item_named(&args.item)?;
    let details = client.item(&reference)?;
    let (printer, item, now) = (context.printer, &details.item, client.now());
    if printer.json() {
        let (log, depends_on) = (&details.dispatch_log, &details.depends_on);
        return printer.object(&WorkDetailsDocument::of(item, log, depends_on));
    }
    printer.heading(item.bead.as_str(), &format!("  {}", item.uid))?;
    printer.text(&item.description)?;
    printer.line("")?;
    let mut table = Table::wrapped();
    let status = match item.held {
        Some(held) => local_times(&format!("{} ({held})", item.status)),
        None => item.status.to_string(),
    };
    table.row(vec![Cell::new("Status"), Cell::coloured(status, colour(item.status))]);
    for (name, value) in [
        ("Type", item.kind.as_str().to_owned()),
        ("Priority", item.priority.to_string()),
        ("Agent", item.agent.clone().unwrap_or_default()),
        ("Lease", item.lease_expires_at.map(|lease| until(lease, now)).unwrap_or_default()),
        ("Submitted", format!("{} by {}", ago(item.created_at, now), item.created_by)),
        ("Updated", ago(item.updated_at, now)),
        ("Ended", item.completed_at.map(|at| ago(at, now)).unwrap_or_default()),
        ("Payload", item.payload.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("Version", item.version().to_string()),
    ] {
        if !value.is_empty() {
            table.row(vec![Cell::new(name), Cell::new(value)]);
        }
    }
    printer.table(table)?;
    if !item.notes.is_empty() {
        printer.line("")?;
        printer.heading("Notes", "")?;
        printer.text(&item.notes)?;
    }
    if details.dispatch_log.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    let mut table = Table::with_header(&["RUN", "STATE", "AGENT", "DISPATCHED", "ENDED"]);
    for attempt in &details.dispatch_log {
        table.row(vec![
            Cell::bold(attempt.run.to_string()),
            Cell::coloured(attempt.state.as_str(), Some(run_state_colour(attempt.state))),
            Cell::new(attempt.agent.as_str()),
            Cell::new(ago(attempt.dispatched_at, now)),
            Cell::new(attempt.completed_at.map(|at| ago(at, now)).unwrap_or_default()),
        ]);
    }
    printer.table(table)
}
