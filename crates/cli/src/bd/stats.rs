//! `bd stats`.

use clap::Args;
use gt_api::{RawJson, StatisticsDocument, SummaryDocument};
use gt_beads::beads::{ready_count, statistics};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table};

/// Count beads by how they stand
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd stats --json")]
pub(super) struct StatsArgs {
    #[arg(long, hide = true)]
    no_activity: bool,
}

pub(super) fn run(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let found = statistics(&town)?;
    let ready = i64::try_from(ready_count(&town)?).unwrap_or(i64::MAX);
    let numbers = [
        ("total_issues", found.total()),
        ("open_issues", found.with_status("open")),
        ("in_progress_issues", found.with_status("in_progress")),
        ("hooked_issues", found.with_status("hooked")),
        ("closed_issues", found.with_status("closed")),
        ("blocked_issues", found.blocked),
        ("deferred_issues", found.with_status("deferred")),
        ("ready_issues", ready),
        ("pinned_issues", found.with_status("pinned")),
        ("epics_eligible_for_closure", found.closable_epics),
    ];
    if printer.json() {
        let counts = numbers.iter().map(|(name, number)| ((*name).to_owned(), *number));
        let summary = SummaryDocument {
            counts: counts.collect(),
            average_lead_time_hours: RawJson::decimal(found.lead_time_hours(), 2),
        };
        return printer.object(&StatisticsDocument { summary });
    }
    let mut table = Table::new();
    for (name, number) in numbers {
        let name = name.trim_end_matches("_issues").replace('_', " ");
        table.row(vec![Cell::new(name), Cell::new(number.to_string())]);
    }
    let hours = format!("{:.1} h", found.lead_time_hours());
    table.row(vec![Cell::new("average lead time"), Cell::new(hours)]);
    printer.table(table)
}
