//! `bd count`.

use clap::Args;
use gt_api::{CountDocument, GroupDocument, GroupedCountDocument};
use gt_beads::beads::{count, count_by};
use gt_town::CountGroup;
use gt_town::StatusFilter;

use super::filters::FilterArgs;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table};

/// Count beads
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd count --status open\n  bd count --by-label --json")]
pub(super) struct CountArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// For each status
    #[arg(long, group = "by")]
    by_status: bool,
    /// For each priority
    #[arg(long, group = "by")]
    by_priority: bool,
    /// For each type
    #[arg(long, group = "by")]
    by_type: bool,
    /// For each assignee
    #[arg(long, group = "by")]
    by_assignee: bool,
    /// For each label
    #[arg(long, group = "by")]
    by_label: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &CountArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let mut filter = args.filter.filter(&town)?;
    // A count without a filter is a count of everything.
    if filter.status == StatusFilter::Current {
        filter.status = StatusFilter::All;
        filter.exclude_statuses.clear();
    }
    let total = count(&town, &filter)?;
    let group = [
        (args.by_status, CountGroup::Status),
        (args.by_priority, CountGroup::Priority),
        (args.by_type, CountGroup::Type),
        (args.by_assignee, CountGroup::Assignee),
        (args.by_label, CountGroup::Label),
    ];
    let group = group.into_iter().find(|(asked, _)| *asked).map(|(_, group)| group);
    let groups = group.map(|group| count_by(&town, &filter, group)).transpose()?;
    let name_of = |name: &str| match (name, args.by_priority) {
        ("", _) if args.by_assignee => "(unassigned)".to_owned(),
        ("", _) => "(none)".to_owned(),
        (number, true) => format!("P{number}"),
        (name, false) => name.to_owned(),
    };
    if printer.json() {
        return match groups {
            None => printer.object(&CountDocument { count: total }),
            Some(groups) => {
                let group =
                    |(name, count): (String, i64)| GroupDocument { group: name_of(&name), count };
                let groups = groups.into_iter().map(group).collect();
                printer.object(&GroupedCountDocument { total, groups })
            }
        };
    }
    let Some(groups) = groups else {
        return printer.line(total.to_string());
    };
    let mut table = Table::new();
    for (name, count) in groups {
        table.row(vec![Cell::new(name_of(&name)), Cell::new(count.to_string())]);
    }
    table.row(vec![Cell::bold("total"), Cell::bold(total.to_string())]);
    printer.table(table)
}
