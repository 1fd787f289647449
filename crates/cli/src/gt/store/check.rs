//! `gt store check`.

use clap::Args;
use comfy_table::Color;
use gt_operations::IfAbsent;
use gt_operations::store::{self, Verdict};
use gt_records::{ArrayWriter, ObjectWriter};

use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, plural};

/// How many findings of a kind are listed for people; JSON has more.
const LISTED_MAX: usize = 20;

/// Look at everything in the store, and recompute whatever is derived
#[derive(Debug, Args)]
#[command(after_help = "Exits with 1 if anything is wrong. Nothing is changed.

Example:
  gt store check --json")]
pub(super) struct CheckArgs {}

pub(super) fn run(context: &Context<'_>) -> Result<(), CliError> {
    let town = context.town_or_database(IfAbsent::Refuse)?;
    let printer = context.printer;
    let verdict = store::check(&town)?;
    if printer.json() {
        printer.object(&json(&verdict))?;
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

fn print(printer: &Printer, verdict: &Verdict) -> Result<(), CliError> {
    let Verdict { damage, differences, circles, warnings } = verdict;
    let mut table = Table::new();
    findings(&mut table, "integrity", "intact", damage.len() as u64, damage);
    let told: Vec<String> = differences.first.iter().map(ToString::to_string).collect();
    findings(&mut table, "derived values", "all as they should be", differences.count, &told);
    let told: Vec<String> = circles
        .iter()
        .map(|circle| circle.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → "))
        .collect();
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

fn json(verdict: &Verdict) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.count("problems", verdict.problems());
    object.array("damage", |array| verdict.damage.iter().for_each(|line| array.text(line)));
    object.array("warnings", |array| verdict.warnings.iter().for_each(|line| array.text(line)));
    object.count("difference_count", verdict.differences.count);
    object.array("differences", |array| {
        for difference in &verdict.differences.first {
            array.object(|object| {
                object.text("about", &difference.about);
                object.text("value", &difference.value);
                object.text("stored", &difference.stored);
                object.text("computed", &difference.computed);
            });
        }
    });
    object.array("circles", |array| {
        for circle in &verdict.circles {
            let mut beads = ArrayWriter::new(array.element());
            for id in circle {
                beads.text(id.as_str());
            }
            beads.finish();
        }
    });
    object.finish();
    out
}
