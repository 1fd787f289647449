//! `bd list`.

use std::collections::HashMap;

use clap::Args;
use gt_api::SkippedLabelsDocument;
use gt_beads::beads::for_each_page;
use gt_core::BeadId;
use gt_core::decide::outline;
use gt_town::{BeadFilter, BeadRow, Environment, Readiness, Town};

use super::activity::redraw_on_change;
use super::bead_output;
use super::drawing::{self, Drawing};
use super::filters::{FilterArgs, OrderArgs};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table};

const LIMIT: usize = 50;
/// An agent's context is dear.
const LIMIT_FOR_AGENTS: usize = 20;

/// List beads
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd list
  bd list --status open --label backend --sort updated
  bd list --tree --all
  bd list --format dot | dot -Tsvg > beads.svg
  bd list --all --limit 0 --json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Only beads that can be worked on
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    order: OrderArgs,
    /// Parts under what they are a part of
    #[arg(long)]
    tree: bool,
    #[arg(long, hide = true, conflicts_with = "tree")]
    flat: bool,
    #[arg(long, hide = true)]
    long: bool,
    #[arg(long, hide = true)]
    pretty: bool,
    #[arg(long, hide = true)]
    no_pager: bool,
    /// List again after each change
    #[arg(short, long)]
    watch: bool,
    /// Leave the labels out; the JSON is an object with issues
    #[arg(long)]
    skip_labels: bool,
}

pub(super) fn run(
    context: &CommandContext<'_>,
    args: &ListArgs,
    drawing: Option<Drawing>,
) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let mut filter = args.filter.filter(&town)?;
    let default = if args.filter.all { None } else { Some(default_limit(&context.environment)) };
    args.order.apply(&mut filter, default);
    if args.ready {
        filter.ready = Some(Readiness { now: town.now(), include_deferred: false });
    }
    if context.environment.get("BEADS_DIR").is_some() && printer.json() {
        // Gas Town names the directory in each call, and looks for its ephemeral beads in such lists.
        filter.include_ephemeral = true;
    }
    let draw = || print_view(printer, &town, &filter, args, drawing);
    if args.watch { redraw_on_change(context, &town, draw) } else { draw() }
}

fn print_view(
    printer: &Printer,
    town: &Town,
    filter: &BeadFilter,
    args: &ListArgs,
    drawing: Option<Drawing>,
) -> Result<(), CliError> {
    match drawing {
        _ if printer.json() && args.skip_labels => print_without_labels(printer, town, filter),
        _ if printer.json() => print(printer, town, filter, |_| String::new()),
        Some(drawing) => print_drawing(printer, town, filter, drawing),
        None if args.tree => print_tree(printer, town, filter),
        None => print(printer, town, filter, |_| String::new()),
    }
}

/// `{"issues": […], "meta": {…}}`, for readers that do not need labels.
fn print_without_labels(
    printer: &Printer,
    town: &Town,
    filter: &BeadFilter,
) -> Result<(), CliError> {
    let mut sections = printer.sections();
    sections.array("issues")?;
    let more = for_each_page(town, filter, |rows| {
        rows.into_iter().try_for_each(|row| {
            let row = BeadRow { labels: Vec::new(), ..row };
            sections.push_record(&bead_output::listed(&row, |_| {}))
        })
    })?;
    sections.field("meta", &SkippedLabelsDocument { labels_skipped: true, has_more: more })?;
    sections.finish()
}

fn print_drawing(
    printer: &Printer,
    town: &Town,
    filter: &BeadFilter,
    drawing: Drawing,
) -> Result<(), CliError> {
    drawing::begin(printer, drawing)?;
    let more = for_each_page(town, filter, |rows| drawing::rows(printer, drawing, &rows))?;
    drawing::end(printer, drawing)?;
    say_if_more(printer, filter, more);
    Ok(())
}

/// An outline needs every bead before the first line; the limit keeps it small.
fn print_tree(printer: &Printer, town: &Town, filter: &BeadFilter) -> Result<(), CliError> {
    let mut rows = Vec::new();
    let more = for_each_page(town, filter, |page| {
        rows.extend(page);
        Ok::<_, CliError>(())
    })?;
    if rows.is_empty() {
        return printer.done("No issues found.");
    }
    let place: HashMap<&BeadId, usize> =
        rows.iter().enumerate().map(|(at, row)| (&row.bead.id, at)).collect();
    let parents: Vec<Option<usize>> =
        rows.iter().map(|row| place.get(row.parent()?).copied()).collect();
    let mut table = Table::new();
    for (at, depth) in outline(&parents) {
        let mut cells = bead_output::cells(&rows[at].bead, &rows[at].labels, "");
        cells[0] = Cell::bold(format!("{}{}", "  ".repeat(depth), rows[at].bead.id));
        table.row(cells);
    }
    printer.table(table)?;
    say_if_more(printer, filter, more);
    Ok(())
}

fn say_if_more(printer: &Printer, filter: &BeadFilter, more: bool) {
    if let (true, Some(limit)) = (more, filter.limit) {
        printer.note(format!("Showing the first {limit}; there are more, use --limit 0 for all"));
    }
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
            rows.iter().try_for_each(|row| list.push_record(&bead_output::listed(row, |_| {})))
        })?;
        list.finish()?;
        more
    } else {
        let mut any = false;
        let more = for_each_page(town, filter, |rows| {
            any = true;
            bead_output::print_rows(printer, rows.iter().map(|row| (row, remark(row))))
        })?;
        if !any {
            printer.done("No issues found.")?;
        }
        more
    };
    say_if_more(printer, filter, more);
    Ok(())
}

fn default_limit(environment: &Environment) -> usize {
    let is_agent =
        ["BD_AGENT_MODE", "CLAUDE_CODE"].iter().any(|name| environment.get(name).is_some());
    if is_agent { LIMIT_FOR_AGENTS } else { LIMIT }
}
