//! `bd cook`.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use gt_core::Prefix;
use gt_core::formula::{Cooked, PlaceholderMode, Role};
use gt_records::{cooked_json, formula_json};
use gt_town::formulas::Cooking;

use super::formula::{SearchArgs, print_order, refused};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, plural};
use crate::values::binding;

/// Check a formula and print what becomes of it; nothing is written
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd cook mol-polecat-work                              # is it all right? exit 1 if not
  bd cook mol-review --var issue=gt-abc --dry-run       # what would be made
  bd cook ./release.formula.toml --var version=1.2.3 --dry-run --json")]
pub(super) struct CookArgs {
    /// The name of a formula, or a file
    #[arg(value_name = "NAME|FILE")]
    name: String,
    /// Show the beads that would be made, instead of the resolved formula
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// The value of a variable (can be repeated)
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = binding)]
    variables: Vec<(String, String)>,
    /// Keep placeholders (compile), or require a value for each (runtime); the default is runtime if a
    /// variable is given
    #[arg(long, value_name = "MODE")]
    mode: Option<CookMode>,
    /// The prefix of the ids, before the name of the formula
    #[arg(long, value_parser = Prefix::parse)]
    prefix: Option<Prefix>,
    #[command(flatten)]
    search: SearchArgs,
    #[arg(long, hide = true)]
    persist: bool,
    #[arg(long, hide = true)]
    force: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CookMode {
    Compile,
    Runtime,
}

pub(super) fn run(context: &CommandContext<'_>, args: &CookArgs) -> Result<(), CliError> {
    if args.persist || args.force {
        return Err(CliError::request(
            "bd cook does not store formulas: it checks and shows them, which needs neither --persist nor \
             --force; turning a formula into beads is not implemented yet",
        ));
    }
    let printer = context.printer;
    let catalog = args.search.catalog(context)?;
    let given: BTreeMap<String, String> = args.variables.iter().cloned().collect();
    let mode = match args.mode {
        Some(CookMode::Compile) => PlaceholderMode::Compile,
        None if given.is_empty() => PlaceholderMode::Compile,
        Some(CookMode::Runtime) | None => PlaceholderMode::Runtime,
    };
    let cooking = Cooking { given: &given, mode, prefix: args.prefix.as_ref() };
    let loaded = catalog.find(&args.name, &context.directory);
    let cooked = loaded.and_then(|loaded| Ok((catalog.cook(&loaded, &cooking)?, loaded)));
    let (cooked, loaded) = match cooked {
        Ok(cooked) => cooked,
        Err(error) => return Err(refused(printer, error)),
    };
    for warning in &loaded.warnings {
        printer.note(format!("warning: {warning}"));
    }
    for warning in &cooked.warnings {
        printer.note(format!("warning: {warning}"));
    }
    match (args.dry_run, printer.json()) {
        (false, _) => printer.record(&formula_json(&cooked.formula)),
        (true, true) => printer.record(&cooked_json(&cooked)),
        (true, false) => preview(printer, &cooked),
    }
}

/// Prints the beads that would be made.
fn preview(printer: &Printer, cooked: &Cooked) -> Result<(), CliError> {
    let steps = plural(cooked.steps.len() as u64, "step");
    printer.heading(&format!("Would make {}", cooked.root.id), &format!(" with {steps}"))?;
    let mut table = Table::new();
    for step in &cooked.steps {
        let mut remarks = Vec::new();
        let after: Vec<&str> =
            step.needs.iter().map(|need| cooked.steps[*need].step.as_str()).collect();
        if !after.is_empty() {
            remarks.push(format!("after {}", after.join(", ")));
        }
        if let Some(wait) = &step.wait {
            let spawner = &cooked.steps[wait.spawner].step;
            remarks.push(format!("waits for the children of {spawner}"));
        }
        if let Role::Work { condition, on_complete } = &step.role {
            remarks.extend(condition.iter().map(|condition| format!("if {condition}")));
            remarks.extend(on_complete.iter().map(|then| format!("then {} for each", then.bond)));
        }
        let kind = step.issue_type.as_str().to_owned();
        let title = step.title.as_str().to_owned();
        let cells = [format!("  {}", step.id), kind, title, remarks.join("; ")];
        table.row(cells.map(Cell::new).into());
    }
    printer.table(table)?;
    print_order(printer, cooked)?;
    printer.done("Nothing was written.")
}
