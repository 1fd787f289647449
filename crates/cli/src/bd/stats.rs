//! `bd stats`.

use clap::Args;
use gt_api::{RawJson, StatisticsDocument, SummaryDocument};
use gt_beads::beads::{own_statistics, ready_count, statistics};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table};

/// Count beads by how they stand
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd stats --json")]
pub(super) struct StatsArgs {
    /// Only your own beads
    #[arg(long)]
    assigned: bool,
    #[arg(long, hide = true)]
    no_activity: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &StatsArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let (found, ready) = if args.assigned {
        own_statistics(&town)?
    } else {
        (statistics(&town)?, ready_count(&town)?)
    };
    let ready = i64::try_from(ready).unwrap_or(i64::MAX);
    let numbers = [
        ("total_issues", "Total Issues:", found.total()),
        ("open_issues", "Open:", found.with_status("open")),
        ("in_progress_issues", "In Progress:", found.with_status("in_progress")),
        ("hooked_issues", "Hooked:", found.with_status("hooked")),
        ("closed_issues", "Closed:", found.with_status("closed")),
        ("blocked_issues", "Blocked:", found.blocked),
        ("deferred_issues", "Deferred:", found.with_status("deferred")),
        ("ready_issues", "Ready to Work:", ready),
        ("pinned_issues", "Pinned:", found.with_status("pinned")),
        ("epics_eligible_for_closure", "Epics Eligible to Close:", found.closable_epics),
    ];
    if printer.json() {
        let counts = numbers.iter().map(|(name, _, number)| ((*name).to_owned(), *number));
        let summary = SummaryDocument {
            counts: counts.collect(),
            average_lead_time_hours: RawJson::decimal(found.lead_time_hours(), 2),
        };
        return printer.object(&StatisticsDocument { summary });
    }
    let mut table = Table::new();
    for (_, name, number) in numbers {
        table.row(vec![Cell::new(name), Cell::new(number.to_string())]);
    }
    let hours = format!("{:.1} h", found.lead_time_hours());
    table.row(vec![Cell::new("Average Lead Time:"), Cell::new(hours)]);
    printer.table(table)
}
