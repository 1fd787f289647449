//! `gt deacon resume`, `gt config account resume` and `gt config agent resume`.

use clap::{Args, ValueEnum};
use gt_api::ResumedDocument;
use gt_core::schedule::{ParkSubject, ParkSubjectKind};
use gt_town::Town;

use super::super::daemon::note_daemon_absence;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::Printer;

/// Start work again with a runtime or an account that is parked
#[derive(Debug, Args)]
#[command(
    after_help = "gt scheduler status shows parked runtimes and accounts. The own command of a rig is called <rig>/command.

Examples:
  gt deacon resume runtime claude
  gt deacon resume runtime gastown/command
  gt deacon resume account work"
)]
pub(super) struct ResumeArgs {
    /// Whether a runtime or an account is parked
    kind: Kind,
    /// Its name
    name: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Runtime,
    Account,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ResumeArgs) -> Result<(), CliError> {
    let kind = match args.kind {
        Kind::Runtime => ParkSubjectKind::Runtime,
        Kind::Account => ParkSubjectKind::Account,
    };
    resume(context, &ParkSubject { kind, name: args.name.clone() })
}

/// Carries out `gt config account resume <handle>`.
pub(in super::super) fn resume_account(
    context: &CommandContext<'_>,
    handle: &str,
) -> Result<(), CliError> {
    resume(context, &ParkSubject::account(handle))
}

/// Carries out `gt config agent resume <name>`.
pub(in super::super) fn resume_runtime(
    context: &CommandContext<'_>,
    name: &str,
) -> Result<(), CliError> {
    resume(context, &ParkSubject { kind: ParkSubjectKind::Runtime, name: name.to_owned() })
}

fn resume(context: &CommandContext<'_>, means: &ParkSubject) -> Result<(), CliError> {
    let town = context.town()?;
    let changed = gt_scheduling::dispatch::resume(&town, means)?;
    print_resumed(context.printer, &town, means, changed)?;
    note_daemon_absence(context.printer, &town);
    Ok(())
}

fn print_resumed(
    printer: &Printer,
    town: &Town,
    means: &ParkSubject,
    changed: bool,
) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&ResumedDocument {
            kind: means.kind.as_str().to_owned(),
            name: means.name.clone(),
            changed,
        });
    }
    if changed {
        return printer.done(format!("✓ Work starts again with the {means}"));
    }
    printer.done(format!("The {means} is not parked; nothing to do"))?;
    let parked = gt_scheduling::dispatch::parked(town)?;
    let names: Vec<String> = parked.iter().map(|parked| parked.park.means.to_string()).collect();
    if names.is_empty() { Ok(()) } else { printer.done(format!("Parked: {}", names.join(", "))) }
}
