//! `gt rig check`.

use std::time::Duration;

use clap::{Args, Subcommand};
use gt_api::{CheckReportDocument, RigCheckDocument};
use gt_core::checks::{
    CHECK_RETRIES_MAX, CheckDefinition, CheckError, CheckPurpose, CheckResult, PathPattern,
};
use gt_core::time::{format_duration, parse_duration};
use gt_core::{Rig, RigSlug};
use gt_execution::checks::{CheckOrder, CheckReport, commit_to_check, run_checks};
use gt_town::{Town, rigs};

use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, short_commit, span};

/// The commands that work in a project must pass before it lands
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt rig check add web test \"npm test\"
  gt rig check add web lint \"npm run lint\" --timeout 2m --paths 'src/**' --paths package.json
  gt rig check list web
  gt rig check run we-a3x
  gt rig check remove web lint")]
pub(super) struct CheckArgs {
    #[command(subcommand)]
    verb: CheckVerb,
}

#[derive(Debug, Subcommand)]
enum CheckVerb {
    /// Add a check to a project
    Add(AddCheckArgs),
    /// List the checks of one project, or of all, in the order in which they run
    List(ListChecksArgs),
    /// Remove a check from a project
    Remove(RemoveCheckArgs),
    /// Run the checks of a project on a commit, up to the first that does not pass
    Run(RunChecksArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "A check runs with sh -c in a worktree of its own, at the commit that is to land. Exit status 0
is a pass. The time limit, a signal from outside, a full disk and a missing program are errors: they
judge nothing, and the check is run again later.

Examples:
  gt rig check add web test \"npm test\"
  gt rig check add api test \"cargo test\" --timeout 30m --retry 1
  gt rig check add web docs \"mkdocs build --strict\" --paths 'docs/**' --paths mkdocs.yml"
)]
struct AddCheckArgs {
    /// The project
    rig: String,
    /// The name of the check: letters, digits, - and _
    name: String,
    /// The command, for sh -c
    command: String,
    /// How long one run of it may take
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    timeout: Duration,
    /// How often it is run again after a failure; a pass then is recorded as flaky
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(CHECK_RETRIES_MAX)))]
    retry: u32,
    /// Paths that its result depends on, as .gitignore writes them; if none of them changed since a pass, it is
    /// skipped. Can be given several times
    #[arg(long, value_name = "GLOB", value_parser = PathPattern::parse)]
    paths: Vec<PathPattern>,
}

#[derive(Debug, Args)]
struct ListChecksArgs {
    /// The project; all of them if none is named
    rig: Option<String>,
}

#[derive(Debug, Args)]
struct RemoveCheckArgs {
    /// The project
    rig: String,
    /// The name of the check
    name: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A check that passed before on the same contents is not run again. A worker has its own branch checked.

Exits with 0 if all pass, with 1 if one fails, and with 3 if one could not say: it was over its time
limit, was killed, found no program or no room on the disk, or its worktree could not be set up.

Examples:
  gt rig check run we-a3x
  gt rig check run main --rig web
  gt rig check run --json"
)]
struct RunChecksArgs {
    /// A commit or a branch, or a bead whose branch is meant; a worker may leave it out
    #[arg(value_name = "COMMIT-OR-BEAD")]
    what: Option<String>,
    /// The project of the commit
    #[arg(long)]
    rig: Option<String>,
}

/// The exit code if a check could not say.
const CHECK_ERROR: u8 = 3;

/// How many of the last lines of an output are shown.
const LINES_SHOWN: usize = 20;

pub(super) fn run(context: &CommandContext<'_>, args: &CheckArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    match &args.verb {
        CheckVerb::Add(args) => add(printer, &town, args),
        CheckVerb::List(args) => list(printer, &town, args.rig.as_deref()),
        CheckVerb::Run(args) => run_all(context, &town, args),
        CheckVerb::Remove(args) => {
            let (rig, removed) = rigs::remove_check(&town, &args.rig, &args.name)?;
            if printer.json() {
                return printer.object(&RigCheckDocument::of(&rig.slug, &removed));
            }
            printer.done(format!("✓ Removed the check {} of the rig {}", removed.name, rig.slug))
        }
    }
}

fn add(printer: &Printer, town: &Town, args: &AddCheckArgs) -> Result<(), CliError> {
    let AddCheckArgs { rig, name, command, timeout, retry, paths } = args;
    let check = CheckDefinition::new(name, command, *timeout, *retry, paths.clone())?;
    let (rig, is_new) = rigs::add_check(town, rig, &check)?;
    if printer.json() {
        return printer.object(&RigCheckDocument::of(&rig.slug, &check));
    }
    printer.done(if is_new {
        format!(
            "✓ Work in the rig {} lands only if {} passes: {}",
            rig.slug, check.name, check.command
        )
    } else {
        format!("The rig {} has this check {} already; nothing to do", rig.slug, check.name)
    })
}

fn list(printer: &Printer, town: &Town, only: Option<&str>) -> Result<(), CliError> {
    let slugs: Vec<RigSlug> = match only {
        Some(name) => vec![rigs::slug(town, name)?],
        None => rigs::list(town)?.into_iter().map(|(rig, _)| rig.slug).collect(),
    };
    let mut found: Vec<(RigSlug, CheckDefinition)> = Vec::new();
    for slug in slugs {
        let checks = rigs::checks(town, &slug)?;
        found.extend(checks.into_iter().map(|check| (slug.clone(), check)));
    }
    if printer.json() {
        let mut list = printer.list();
        for (rig, check) in &found {
            list.push(&RigCheckDocument::of(rig, check))?;
        }
        return list.finish();
    }
    if found.is_empty() {
        let rig = only.unwrap_or("<rig>");
        return printer.done(format!(
            "No checks yet; add one with gt rig check add {rig} test \"<command>\", or see what gt doctor suggests"
        ));
    }
    let mut table = Table::with_header(&["RIG", "CHECK", "LIMIT", "RETRY", "PATHS", "COMMAND"]);
    for (rig, check) in &found {
        let paths: Vec<&str> = check.paths.iter().map(PathPattern::as_str).collect();
        table.row(vec![
            Cell::new(rig.as_str()),
            Cell::new(check.name.as_str()),
            Cell::new(format_duration(check.timeout)),
            Cell::new(check.retries.to_string()),
            Cell::new(if paths.is_empty() { "all".to_owned() } else { paths.join(" ") }),
            Cell::new(check.command.as_str()),
        ]);
    }
    printer.table(table)
}

fn run_all(
    context: &CommandContext<'_>,
    town: &Town,
    args: &RunChecksArgs,
) -> Result<(), CliError> {
    let printer = context.printer;
    let found = commit_to_check(town, args.what.as_deref(), args.rig.as_deref())?;
    let program = this_program()?;
    if rigs::checks(town, &found.rig.slug)?.is_empty() {
        return Err(CliError::request(format!(
            "the rig {0} has no checks; add one with gt rig check add {0} test \"<command>\"",
            found.rig.slug
        )));
    }
    let reports = run_checks(&CheckOrder {
        town,
        program: &program,
        rig: &found.rig,
        commit: &found.commit,
        purpose: CheckPurpose::Manual,
        only: None,
        keep_going: &|| true,
    })?;
    if printer.json() {
        let mut list = printer.list();
        for CheckReport { check, run, cached, last_lines } in &reports {
            list.push(&CheckReportDocument::of(check, run, *cached, last_lines))?;
        }
        list.finish()?;
    } else {
        for report in &reports {
            print_report(printer, town, report)?;
        }
    }
    match reports.last().map(|report| report.run.result) {
        Some(CheckResult::Failed) => Err(CliError::Said(1)),
        Some(CheckResult::Error) => Err(CliError::Said(CHECK_ERROR)),
        Some(CheckResult::Passed) | None => Ok(()),
    }
}

fn print_report(printer: &Printer, town: &Town, report: &CheckReport) -> Result<(), CliError> {
    let CheckReport { check, run, cached, last_lines } = report;
    let took = span(Duration::from_millis(run.duration_ms));
    let on = short_commit(&run.commit);
    let name = &check.name;
    let line = match (run.result, run.error, run.exit_code) {
        (CheckResult::Passed, ..) if *cached => {
            format!("✓ {name} passed before on the same contents ({on}, {took}); not run again")
        }
        (CheckResult::Passed, ..) if run.flaky => {
            format!("✓ {name} passed on {on} in try {} ({took}), so it is flaky", run.attempt)
        }
        (CheckResult::Passed, ..) => format!("✓ {name} passed on {on} ({took})"),
        (CheckResult::Failed, _, Some(code)) => {
            format!("✗ {name} failed on {on} with exit status {code} ({took}): {}", check.command)
        }
        (CheckResult::Failed, ..) => {
            format!("✗ {name} crashed on {on} ({took}): {}", check.command)
        }
        (CheckResult::Error, error, _) => {
            let why = match error {
                Some(CheckError::Timeout) => {
                    format!("it was over its time limit of {}", format_duration(check.timeout))
                }
                Some(CheckError::Killed) => "it was killed".to_owned(),
                Some(CheckError::DiskFull) => "there is no room left on the disk".to_owned(),
                Some(CheckError::MissingProgram) => "a program that it needs is missing".to_owned(),
                Some(CheckError::Setup) => "its worktree could not be made ready".to_owned(),
                Some(CheckError::Lost) | None => "the process that watched it has gone".to_owned(),
            };
            format!("! {name} says nothing about {on}, because {why}: {}", check.command)
        }
    };
    printer.line(line)?;
    if report.is_passed() {
        return Ok(());
    }
    let lines: Vec<&str> = last_lines.lines().collect();
    for line in &lines[lines.len().saturating_sub(LINES_SHOWN)..] {
        printer.line(format!("    {line}"))?;
    }
    if !run.log.is_empty() {
        printer.line(format!("  log: {}", town.root().join(&run.log).display()))?;
    }
    Ok(())
}

/// Prints the checks that the files of a new rig suggest, or adds them.
pub(super) fn suggest(
    printer: &Printer,
    town: &Town,
    rig: &Rig,
    suggestions: &[CheckDefinition],
    is_accepted: bool,
) -> Result<(), CliError> {
    if suggestions.is_empty() {
        if is_accepted {
            printer.done(format!(
                "No file of it suggests a check; add one with gt rig check add {} test \"<command>\"",
                rig.slug
            ))?;
        }
        return Ok(());
    }
    if is_accepted {
        for check in suggestions {
            rigs::add_check(town, rig.slug.as_str(), check)?;
            printer
                .done(format!("✓ Work lands only if {} passes: {}", check.name, check.command))?;
        }
        return Ok(());
    }
    printer.done("Work lands unchecked until the rig has checks; its files suggest:")?;
    for check in suggestions {
        printer.done(format!("  {}", check.add_command(rig.slug.as_str())))?;
    }
    Ok(())
}
