//! `gt cost`: what runs have cost.

use clap::Args;
use clap::builder::PossibleValuesParser;
use gt_core::Timestamp;
use gt_core::cost::{CostGrouping, CostLine, PriceTable};
use gt_core::schedule::Money;
use gt_daemon::views::cost_document;
use gt_scheduling::costs::{CostReport, costs};
use gt_town::settings;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, local_date, plural};
use crate::values::instant_or_ago;

/// Show what runs have used and cost
///
/// Agents report their usage in their output or as telemetry; where they report no cost, it is by a table of prices. Tokens of
/// models that the table does not have are counted and named: give them a price with gt config set cost.prices.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cost
  gt cost --by bead --since 24h
  gt cost --by model --since 2026-11-01 --json")]
pub(super) struct CostArgs {
    /// How the lines are grouped
    #[arg(long, value_name = "WHAT", default_value = "day", value_parser = groupings())]
    by: String,
    /// Only what was spent since then: 24h, 7d, or an instant
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
}

fn groupings() -> PossibleValuesParser {
    PossibleValuesParser::new(CostGrouping::ALL.map(CostGrouping::as_str))
}

pub(super) fn run(context: &CommandContext<'_>, args: &CostArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let now = town.now();
    let since = args.since.as_deref().map(|text| instant_or_ago(text, now)).transpose()?;
    let from = since.unwrap_or(Timestamp::from_nanos(0));
    let grouping = CostGrouping::parse(&args.by)?;
    let report = costs(&town, grouping, from, Timestamp::from_nanos(i64::MAX), local_date)?;
    if printer.json() {
        return printer.object(&cost_document(grouping, &report));
    }
    if report.lines.is_empty() {
        return printer.done("No run has reported what it used");
    }
    let name = grouping.as_str().to_uppercase();
    let mut table = Table::with_header(&[&name, "RUNS", "BEADS", "DONE", "TOKENS", "COST"]);
    for line in &report.lines {
        table.row(row(if line.name.is_empty() { "-" } else { &line.name }, line));
    }
    table.row(row("all", &report.total));
    printer.table(table)?;
    let own = settings::get(&town, "cost.prices")?.value;
    let prices = PriceTable::parse(&own)?;
    for note in notes(&report, &prices, &own) {
        printer.line(note)?;
    }
    Ok(())
}

fn row(name: &str, line: &CostLine) -> Vec<Cell> {
    let mut cost = dollars_of(line.spent.cost);
    if line.spent.unpriced > 0 {
        cost.push('+');
    }
    [
        name.to_owned(),
        line.runs.to_string(),
        line.beads.to_string(),
        line.done_beads.to_string(),
        line.tokens().to_string(),
        cost,
    ]
    .map(Cell::new)
    .into()
}

/// Facts that the table does not tell. `own` are the prices that were set.
fn notes(report: &CostReport, prices: &PriceTable, own: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(each) = report.total.cost_of_done_bead() {
        let beads = plural(report.total.done_beads, "bead");
        notes.push(format!("{beads} done, {} each", Money(each).dollars()));
    }
    if report.done_without_usage > 0 {
        let beads = plural(report.done_without_usage, "bead");
        notes.push(format!(
            "{beads} done without any report of usage, which no amount here includes"
        ));
    }
    if report.total.spent.priced > 0 {
        notes.push(format!(
            "{} of it by the prices of {}, because the agents report no cost",
            dollars_of(report.total.spent.priced),
            PriceTable::as_of(),
        ));
    }
    for (model, tokens) in &report.unpriced {
        notes.push(if model.is_empty() {
            format!("+ {tokens} tokens have no price: their agent names neither model nor cost")
        } else if prices.price(model).is_some() {
            format!(
                "+ {tokens} tokens of {model} had no price when they were used; later ones have"
            )
        } else {
            let others = if own.is_empty() { String::new() } else { format!("{own}, ") };
            format!(
                "+ {tokens} tokens of {model} have no price; gt config set cost.prices \
                 '{others}{model}=<input>/<output>' prices later ones"
            )
        });
    }
    notes
}

fn dollars_of(amount: i64) -> String {
    Money(u64::try_from(amount).unwrap_or(0)).dollars()
}
