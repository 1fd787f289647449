//! The command behind `gt doctor` and `bd doctor`.

use comfy_table::Color;
use gt_api::CheckDocument;
use gt_daemon::health::{CheckGrade, HealthCheck, examine, examine_fleet};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, plural};

/// Checks of the original that look at its own storage: here they find nothing.
const CHECKS_OF_ORIGINAL: [&str; 4] = ["artifacts", "conventions", "pollution", "validate"];

/// The checks that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoctorScope {
    /// The town as this machine sees it.
    Here,
    /// The town as all its hosts see it.
    Fleet,
}

/// Runs the checks of the town and prints their results.
pub(crate) fn examine_town(
    context: &CommandContext<'_>,
    scope: DoctorScope,
    only: Option<&str>,
) -> Result<(), CliError> {
    print_checks(context, &checks(context, scope, only)?, only.is_some(), DoctorDetail::All)
}

/// How much is printed for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoctorDetail {
    /// Every check, in a table.
    All,
    /// Only findings, each with its remedy, in sentences.
    Findings,
}

/// Runs the checks of the town, all or those of a name.
pub(crate) fn checks(
    context: &CommandContext<'_>,
    scope: DoctorScope,
    only: Option<&str>,
) -> Result<Vec<HealthCheck>, CliError> {
    // Somewhere without a town there is nothing to look at; a town that does not open is a finding.
    let root = context.root()?;
    let mut checks = match context.town() {
        Ok(town) => match scope {
            DoctorScope::Here => examine(&town)?,
            DoctorScope::Fleet => examine_fleet(&town, env!("CARGO_PKG_VERSION"))?,
        },
        Err(error) => {
            vec![HealthCheck::unopened(format!("{}: {}", root.display(), error.chain()))]
        }
    };
    let Some(name) = only else { return Ok(checks) };
    let mut known: Vec<&str> = checks.iter().map(|check| check.name).collect();
    checks.retain(|check| check.name.contains(name));
    if checks.is_empty() && !CHECKS_OF_ORIGINAL.contains(&name) {
        known.dedup();
        return Err(CliError::request(format!(
            "this town has no check \"{name}\"; its checks are {}",
            known.join(", ")
        )));
    }
    Ok(checks)
}

/// Prints the results of checks; a problem is an error. A caller that names a check expects an object.
pub(crate) fn print_checks(
    context: &CommandContext<'_>,
    checks: &[HealthCheck],
    as_object: bool,
    detail: DoctorDetail,
) -> Result<(), CliError> {
    let printer = context.printer;
    let problems = checks.iter().filter(|check| check.grade == CheckGrade::Problem).count();
    if printer.json() && as_object {
        let mut sections = printer.sections();
        sections.array("checks")?;
        checks.iter().try_for_each(|check| sections.push(&document(check)))?;
        sections.field("overall_ok", &(problems == 0))?;
        sections.finish()?;
    } else if printer.json() {
        let mut list = printer.list();
        for check in checks {
            list.push(&document(check))?;
        }
        list.finish()?;
    } else if detail == DoctorDetail::Findings {
        let findings = checks.iter().filter(|check| check.grade != CheckGrade::Good);
        for check in findings {
            let grade = if check.grade == CheckGrade::Problem { "problem" } else { "warning" };
            printer.line(format!("{grade}: {}: {}", check.name, check.detail))?;
            printer.line(format!("  fix: {}", check.fix))?;
        }
        printer.done(format!("{} were run", plural(checks.len() as u64, "check")))?;
    } else {
        let mut table = Table::wrapped();
        for check in checks {
            let (mark, colour) = match check.grade {
                CheckGrade::Good => ("✓", Color::Green),
                CheckGrade::Warning => ("!", Color::Yellow),
                CheckGrade::Problem => ("✗", Color::Red),
            };
            let fix =
                if check.fix.is_empty() { String::new() } else { format!(" → {}", check.fix) };
            table.row(vec![
                Cell::coloured(mark, Some(colour)),
                Cell::new(check.name),
                Cell::new(format!("{}{fix}", check.detail)),
            ]);
        }
        printer.table(table)?;
    }
    match problems {
        0 => Ok(()),
        1 => Err(CliError::request("1 problem was found")),
        many => Err(CliError::request(format!("{many} problems were found"))),
    }
}

fn document(check: &HealthCheck) -> CheckDocument {
    let grade = match check.grade {
        CheckGrade::Good => "good",
        CheckGrade::Warning => "warning",
        CheckGrade::Problem => "problem",
    };
    CheckDocument {
        check: check.name.to_owned(),
        grade: grade.to_owned(),
        detail: check.detail.clone(),
        fix: check.fix.clone(),
    }
}
