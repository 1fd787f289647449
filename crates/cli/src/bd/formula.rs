//! `bd formula`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use gt_api::{FormulaDocument, FormulaProblemDocument, FormulaProblemsDocument};
use gt_core::formula::{
    Formula, FormulaKind, FormulaProblem, PlaceholderMode, Repetition, Step, Variable, WordSet,
};
use gt_core::{Invalid, Json};
use gt_records::formula_json;
use gt_town::OperationError;
use gt_town::formulas::{Cooking, FormulaCatalog, FormulaTier, ListedFormula, LoadedFormula};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table};
use crate::served;

/// Find and read formulas: recipes of steps for work
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd formula list
  bd formula show mol-polecat-work
  bd formula show mol-review --raw > .beads/formulas/mol-review.formula.toml
  bd cook mol-review --var issue=gt-abc --dry-run")]
pub(crate) struct FormulaArgs {
    #[command(subcommand)]
    verb: FormulaVerb,
}

#[derive(Debug, Subcommand)]
enum FormulaVerb {
    /// List the formulas of the rig, the town, yourself and the program
    List(ListArgs),
    /// Show one formula: its variables, its steps and their order
    Show(ShowArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only of this type: workflow, expansion, aspect or convoy
    #[arg(long = "type", value_name = "TYPE", value_parser = kind)]
    kind: Option<FormulaKind>,
    #[command(flatten)]
    search: SearchArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// Its name, or a file
    #[arg(value_name = "NAME|FILE")]
    name: String,
    /// Print the file as it is
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    search: SearchArgs,
}

/// Where to look first.
#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    /// Look in this directory first (can be repeated)
    #[arg(long, value_name = "DIR")]
    search_path: Vec<PathBuf>,
}

impl SearchArgs {
    /// The places where formulas are looked for; a town is of use, but not needed.
    pub(super) fn catalog(&self, context: &CommandContext<'_>) -> Result<FormulaCatalog, CliError> {
        let town = match context.town() {
            Ok(town) => Some(town),
            Err(CliError::Operation(OperationError::NoTown(_) | OperationError::NoDirectory)) => {
                None
            }
            Err(error) => return Err(error),
        };
        let (directory, environment) = (&context.directory, &context.environment);
        let (asked, caller) = (&self.search_path, served::caller_files());
        Ok(FormulaCatalog::of(town.as_ref(), directory, environment, asked, caller)?)
    }
}

fn kind(text: &str) -> Result<FormulaKind, Invalid> {
    FormulaKind::parse(text)
}

pub(crate) fn run(context: &CommandContext<'_>, args: &FormulaArgs) -> Result<(), CliError> {
    match &args.verb {
        FormulaVerb::List(args) => list(context, args),
        FormulaVerb::Show(args) => show(context, args),
    }
}

fn list(context: &CommandContext<'_>, args: &ListArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let wanted = |listed: &ListedFormula| match (&listed.formula, args.kind) {
        (_, None) => true,
        (Ok(loaded), Some(kind)) => loaded.formula.kind == kind,
        (Err(_), Some(_)) => false,
    };
    let mut all = args.search.catalog(context)?.list()?;
    all.retain(wanted);
    if printer.json() {
        let mut list = printer.list();
        for listed in &all {
            list.push(&document(listed))?;
        }
        return list.finish();
    }
    if all.is_empty() {
        return printer.done("No formulas of that type.");
    }
    let mut table =
        Table::with_header(&["NAME", "TYPE", "VERSION", "STEPS", "FROM", "DESCRIPTION"]);
    for listed in &all {
        let shadowed = if listed.shadowed { " (shadowed)" } else { "" };
        let from = format!("{}{shadowed}", listed.tier.as_str());
        let [kind, version, steps, description] = match &listed.formula {
            Ok(LoadedFormula { formula, .. }) => [
                formula.kind.as_str().to_owned(),
                formula.version.to_string(),
                formula.step_count().to_string(),
                formula.description.trim().lines().next().unwrap_or_default().to_owned(),
            ],
            Err(_) => ["broken", "", "", "bd formula show says what is wrong"].map(str::to_owned),
        };
        table.row(
            [listed.name.clone(), kind, version, steps, from, description].map(Cell::new).into(),
        );
    }
    printer.table(table)
}

fn document(listed: &ListedFormula) -> FormulaDocument {
    let (formula, error) = match &listed.formula {
        Ok(LoadedFormula { formula, .. }) => (Some(formula), None),
        Err(error) => (None, Some(error.to_string())),
    };
    FormulaDocument {
        name: listed.name.clone(),
        r#type: formula.map(|formula| formula.kind.as_str().to_owned()),
        version: formula.map(|formula| formula.version),
        description: formula.map(|formula| formula.description.trim().to_owned()),
        steps: formula.map(|formula| formula.step_count() as u64),
        vars: formula.map(|formula| formula.variables.len() as u64),
        error,
        source: listed.location.clone(),
        tier: listed.tier.as_str().to_owned(),
        shadowed: listed.shadowed,
    }
}

fn show(context: &CommandContext<'_>, args: &ShowArgs) -> Result<(), CliError> {
    let printer = context.printer;
    let catalog = args.search.catalog(context)?;
    let loaded = match catalog.find(&args.name, &context.directory) {
        Ok(loaded) => loaded,
        Err(error) => return Err(refused(printer, error)),
    };
    if args.raw {
        return printer.data(loaded.text.trim_end_matches('\n'));
    }
    let problems = catalog.problems(&loaded);
    if printer.json() {
        let formula = Json::trusted(formula_json(&loaded.formula));
        let with_source = formula.with("source", &Json::string(&loaded.location));
        printer.record(with_source.as_str())?;
    } else {
        describe(printer, &catalog, &loaded)?;
    }
    for problem in &loaded.warnings {
        printer.note(format!("warning: {problem}"));
    }
    for problem in &problems {
        printer.note(format!("problem: {problem}"));
    }
    Ok(())
}

fn describe(
    printer: &Printer,
    catalog: &FormulaCatalog,
    loaded: &LoadedFormula,
) -> Result<(), CliError> {
    // Inherited parts belong to it; a problem of the inheritance is told at the end.
    let formula = &catalog.resolved(loaded).unwrap_or_else(|_| loaded.formula.clone());
    let version = format!("  {} version {}", formula.kind.as_str(), formula.version);
    printer.heading(loaded.name(), &version)?;
    let tier = match loaded.tier {
        FormulaTier::BuiltIn | FormulaTier::Asked => String::new(),
        near => format!(" ({})", near.as_str()),
    };
    printer.line(format!("from {}{tier}", loaded.location))?;
    if !loaded.formula.extends.is_empty() {
        printer.line(format!("extends {}", loaded.formula.extends.join(", ")))?;
    }
    if !formula.description.trim().is_empty() {
        printer.line("")?;
        printer.text(formula.description.trim())?;
    }
    if !formula.variables.is_empty() {
        printer.line("")?;
        printer.heading("Variables", "")?;
        let mut table = Table::new();
        for variable in &formula.variables {
            let name = format!("  {}", variable.name);
            let cells = [name, value_of(variable), variable.description.clone()];
            table.row(cells.map(Cell::new).into());
        }
        printer.table(table)?;
    }
    if !formula.own_steps().is_empty() {
        printer.line("")?;
        printer.heading("Steps", "")?;
        let mut table = Table::new();
        step_rows(formula.own_steps(), 1, &mut table);
        printer.table(table)?;
    }
    order(printer, catalog, loaded, formula)
}

/// The order in which the steps can be done, where the formula can be cooked as it is.
fn order(
    printer: &Printer,
    catalog: &FormulaCatalog,
    loaded: &LoadedFormula,
    formula: &Formula,
) -> Result<(), CliError> {
    if formula.kind == FormulaKind::Expansion {
        return Ok(());
    }
    let given = BTreeMap::new();
    let cooking = Cooking { given: &given, mode: PlaceholderMode::Compile, prefix: None };
    match catalog.cook(loaded, &cooking) {
        Ok(cooked) => {
            printer.line("")?;
            print_order(printer, &cooked)
        }
        Err(OperationError::Formula { problems, .. }) => {
            // The problems of the formula as it is written are printed elsewhere.
            let told = catalog.problems(loaded);
            for problem in problems.iter().filter(|problem| !told.contains(problem)) {
                printer.note(format!("cannot be cooked: {problem}"));
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints the steps that can be done at once, wave after wave.
pub(super) fn print_order(
    printer: &Printer,
    cooked: &gt_core::formula::Cooked,
) -> Result<(), CliError> {
    printer.heading("Order", "")?;
    for (number, wave) in cooked.waves().iter().enumerate() {
        let names: Vec<&str> = wave.iter().map(|step| cooked.steps[*step].step.as_str()).collect();
        printer.line(format!("  {}. {}", number + 1, names.join(", ")))?;
    }
    Ok(())
}

fn value_of(variable: &Variable) -> String {
    let mut parts = Vec::new();
    match &variable.default {
        Some(default) => parts.push(format!("default \"{default}\"")),
        None if variable.required => parts.push("required".to_owned()),
        None => parts.push("no default".to_owned()),
    }
    if !variable.allowed.is_empty() {
        parts.push(format!("one of {}", variable.allowed.join(", ")));
    }
    if let Some(pattern) = &variable.pattern {
        parts.push(format!("like {pattern}"));
    }
    parts.join("; ")
}

fn step_rows(steps: &[Step], depth: usize, table: &mut Table) {
    for step in steps {
        let mut remarks = Vec::new();
        if !step.needs.is_empty() {
            remarks.push(format!("after {}", step.needs.join(", ")));
        }
        if let Some(waits_for) = &step.waits_for {
            remarks.push(format!("waits for {}", waits_for.text()));
        }
        if let Some(gate) = &step.gate {
            remarks.push(format!("gate {}", gate.kind));
        }
        if let Some(condition) = &step.condition {
            remarks.push(format!("if {condition}"));
        }
        if let Some(expansion) = &step.expand {
            remarks.push(format!("expands to {expansion}"));
        }
        if let Some(repeat) = &step.repeat {
            remarks.push(match &repeat.repetition {
                Repetition::Count(count) => format!("{count} times"),
                Repetition::Range(range) => format!("for each of {range}"),
                Repetition::Until { condition, .. } => format!("until {condition}"),
            });
        }
        let id = format!("{:indent$}{}", "", step.id, indent = depth * 2);
        table.row([id, step.title.clone(), remarks.join("; ")].map(Cell::new).into());
        step_rows(&step.children, depth + 1, table);
        if let Some(repeat) = &step.repeat {
            step_rows(&repeat.body, depth + 1, table);
        }
    }
}

/// Tells every problem of a formula on a line of its own, and ends the command.
pub(super) fn refused(printer: &Printer, error: OperationError) -> CliError {
    let OperationError::Formula { problems, .. } = &error else { return error.into() };
    for problem in problems {
        printer.part_failed(&CliError::request(problem.to_string()));
    }
    let summary = error.to_string();
    if printer.json()
        && let Err(error) = printer.object(&problems_document(&summary, problems))
    {
        return error;
    }
    CliError::AlreadyTold(summary)
}

fn problems_document(summary: &str, problems: &[FormulaProblem]) -> FormulaProblemsDocument {
    let problems = problems.iter().map(|problem| FormulaProblemDocument {
        file: problem.source.file.to_string(),
        line: problem.source.line.map(|line| line as u64),
        subject: problem.subject.clone(),
        message: problem.message.clone(),
    });
    FormulaProblemsDocument { error: summary.to_owned(), problems: problems.collect() }
}
