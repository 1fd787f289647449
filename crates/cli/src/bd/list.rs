//! `bd list`.

use clap::Args;
use gt_operations::beads::for_each_page;
use gt_operations::{BeadFilter, BeadRow, Environment, Readiness, Town};

use super::filters::{FilterArgs, OrderArgs};
use super::shapes;
use crate::context::Context;
use crate::error::CliError;
use crate::output::Printer;

const LIMIT: usize = 50;
/// An agent's context is dear.
const LIMIT_FOR_AGENTS: usize = 20;

/// List beads
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd list
  bd list --status open --label backend --sort updated
  bd list --all --limit 0 --json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Only beads that can be worked on
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    order: OrderArgs,
    #[arg(long, hide = true)]
    flat: bool,
    #[arg(long, hide = true)]
    long: bool,
    #[arg(long, hide = true)]
    pretty: bool,
    #[arg(long, hide = true)]
    no_pager: bool,
}

pub(super) fn run(context: &Context<'_>, args: &ListArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let mut filter = args.filter.filter(&town)?;
    let default = if args.filter.all { None } else { Some(default_limit(&context.environment)) };
    args.order.apply(&mut filter, default);
    if args.ready {
        filter.ready = Some(Readiness { now: town.now(), include_deferred: false });
    }
    print(printer, &town, &filter, |_| String::new())
}

/// Prints what `filter` admits while it is read; for people, with a remark on each bead.
pub(super) fn print(
    printer: &Printer,
    town: &Town,
    filter: &BeadFilter,
    remark: impl Fn(&BeadRow) -> String,
) -> Result<(), CliError> {
    let more = if printer.json() {
        let mut list = printer.list();
        let more = for_each_page(town, filter, |rows| {
            rows.iter().try_for_each(|row| list.push(&shapes::listed(row, |_| {})))
        })?;
        list.finish()?;
        more
    } else {
        let mut any = false;
        let more = for_each_page(town, filter, |rows| {
            any = true;
            shapes::print_rows(printer, rows.iter().map(|row| (row, remark(row))))
        })?;
        if !any {
            printer.done("No issues found.")?;
        }
        more
    };
    if let (true, Some(limit)) = (more, filter.limit) {
        printer.note(format!("Showing the first {limit}; there are more, use --limit 0 for all"));
    }
    Ok(())
}

fn default_limit(environment: &Environment) -> usize {
    let is_agent =
        ["BD_AGENT_MODE", "CLAUDE_CODE"].iter().any(|name| environment.get(name).is_some());
    if is_agent { LIMIT_FOR_AGENTS } else { LIMIT }
}
