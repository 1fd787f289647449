//! `gt store check`.

use clap::Args;
use comfy_table::Color;
use gt_api::{DifferenceDocument, StoreCheckDocument};
use gt_beads::store::{self, StoreVerdict};
use gt_core::decide::shown_path;
use gt_town::IfAbsent;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, plural};
use crate::values::texts;

/// How many findings of a kind are listed for people; JSON has more.
const LISTED_MAX: usize = 20;

/// Check every record of the store, and recompute the derived values
#[derive(Debug, Args)]
#[command(after_help = "Exits with 1 if anything is wrong. Nothing is changed.

Example:
  gt store check --json")]
pub(super) struct CheckArgs {}

pub(super) fn run(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.town_or_database(IfAbsent::Refuse)?;
    let printer = context.printer;
    let verdict = store::check(&town)?;
    if printer.json() {
        printer.object(&document(&verdict))?;
    } else {
        print(printer, &verdict)?;
    }
    match verdict.problems() {
        0 => Ok(()),
        1 => Err(CliError::request("1 problem was found; restore a backup or report it")),
        many => Err(CliError::request(format!(
            "{many} problems were found; restore a backup or report it"
        ))),
    }
}

fn print(printer: &Printer, verdict: &StoreVerdict) -> Result<(), CliError> {
    let StoreVerdict { damage, differences, circles, warnings } = verdict;
    let mut table = Table::wrapped();
    findings(&mut table, "integrity", "intact", damage.len() as u64, damage);
    let told: Vec<String> = differences.first.iter().map(ToString::to_string).collect();
    findings(&mut table, "derived values", "all as they should be", differences.count, &told);
    let told: Vec<String> = circles.iter().map(|circle| shown_path(circle)).collect();
    findings(&mut table, "dependencies", "no circles", circles.len() as u64, &told);
    for warning in warnings {
        let mark = Cell::coloured("!", Some(Color::Yellow));
        table.row(vec![mark, Cell::new("warning"), Cell::new(warning)]);
    }
    printer.table(table)
}

fn findings(table: &mut Table, name: &str, good: &str, count: u64, found: &[String]) {
    if count == 0 {
        let mark = Cell::coloured("✓", Some(Color::Green));
        table.row(vec![mark, Cell::new(name), Cell::new(good)]);
    }
    let mut bad = |text: &str| {
        let mark = Cell::coloured("✗", Some(Color::Red));
        table.row(vec![mark, Cell::new(name), Cell::new(text)]);
    };
    found.iter().take(LISTED_MAX).for_each(|line| bad(line));
    let listed = found.len().min(LISTED_MAX) as u64;
    if count > listed {
        bad(&format!("and {} more; --json lists them", plural(count - listed, "finding")));
    }
}

fn document(verdict: &StoreVerdict) -> StoreCheckDocument {
    let differences = verdict.differences.first.iter().map(|difference| DifferenceDocument {
        about: difference.about.clone(),
        value: difference.value.clone(),
        stored: difference.stored.clone(),
        computed: difference.computed.clone(),
    });
    StoreCheckDocument {
        problems: verdict.problems(),
        damage: verdict.damage.clone(),
        warnings: verdict.warnings.clone(),
        difference_count: verdict.differences.count,
        differences: differences.collect(),
        circles: verdict.circles.iter().map(texts).collect(),
    }
}
