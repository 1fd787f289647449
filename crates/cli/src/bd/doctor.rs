//! `bd doctor`.

use clap::Args;

use crate::context::CommandContext;
use crate::doctor::{DoctorDetail, DoctorScope, checks, print_checks};
use crate::error::CliError;
use crate::output::is_confirmed;

/// Look for problems of the town
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 1 if there is a problem.\n\nExamples:\n  bd doctor --json\n  bd doctor --check store\n  bd doctor --fix --dry-run"
)]
pub(super) struct DoctorArgs {
    /// Only the checks of this name
    #[arg(long, value_name = "NAME")]
    check: Option<String>,
    /// Mend what can be mended without a loss, such as a directory that is missing; each other finding names its command
    #[arg(long)]
    fix: bool,
    /// With --fix: only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Print only findings, each with its remedy, for an agent
    #[arg(long)]
    agent: bool,
    /// With --fix: do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &DoctorArgs) -> Result<(), CliError> {
    let only = args.check.as_deref();
    let mut found = checks(context, DoctorScope::Here, only)?;
    if args.fix && mend(context, args, &found)? {
        found = checks(context, DoctorScope::Here, only)?;
    }
    let detail = if args.agent { DoctorDetail::Findings } else { DoctorDetail::All };
    print_checks(context, &found, only.is_some(), detail)
}

/// Mends what can be mended; says whether anything was.
fn mend(
    context: &CommandContext<'_>,
    args: &DoctorArgs,
    found: &[gt_daemon::health::HealthCheck],
) -> Result<bool, CliError> {
    let printer = context.printer;
    let mends: Vec<_> = found.iter().filter_map(|check| check.mend.as_ref()).collect();
    if mends.is_empty() {
        printer.note("note: there is nothing that can be mended without you");
        return Ok(false);
    }
    for mend in &mends {
        printer.note(format!("to mend: {}", mend.describe()));
    }
    if args.dry_run || !(args.yes || is_confirmed(printer, "Do this?")?) {
        return Ok(false);
    }
    for mend in &mends {
        mend.apply()?;
    }
    Ok(true)
}
