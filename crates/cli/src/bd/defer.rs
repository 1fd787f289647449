//! `bd defer` and `bd undefer`.

use clap::Args;
use gt_beads::beads;
use gt_core::BeadId;
use gt_town::{OperationError, Town};

use super::bead_output;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::moment;
use crate::values::instant;

/// Put beads off, until a date or until bd undefer
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd defer gt-abc --until +2d
  bd defer gt-abc gt-def --reason \"after the release\"")]
pub(super) struct DeferArgs {
    /// Ids, or parts of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// From then on it can be worked on again
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Why; kept as a comment
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Take up again what was put off
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd undefer gt-abc")]
pub(super) struct UndeferArgs {
    /// Ids, or parts of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &DeferArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let until = args.until.as_deref().map(|text| instant(text, town.now())).transpose()?;
    if until.is_some_and(|until| until <= town.now()) {
        context.printer.note("warning: that time has passed, so it can be worked on at once");
    }
    let done = beads::defer(&town, &args.ids, until, args.reason.as_deref())?;
    let when = until.map_or_else(String::new, |until| format!(" until {}", moment(until)));
    let said = |id: &BeadId, changed: bool| {
        if changed {
            format!("✓ Deferred {id}{when}")
        } else {
            format!("{id} is deferred{when} already")
        }
    };
    report(context, &town, done, said)
}

pub(super) fn run_undefer(
    context: &CommandContext<'_>,
    args: &UndeferArgs,
) -> Result<(), CliError> {
    let town = context.store_town()?;
    let done = beads::undefer(&town, &args.ids)?;
    let said = |id: &BeadId, changed: bool| {
        if changed { format!("✓ Undeferred {id}") } else { format!("{id} is not deferred") }
    };
    report(context, &town, done, said)
}

/// Says what became of each bead, and shows them all as they are now.
fn report(
    context: &CommandContext<'_>,
    town: &Town,
    results: Vec<Result<(BeadId, bool), OperationError>>,
    said: impl Fn(&BeadId, bool) -> String,
) -> Result<(), CliError> {
    let printer = context.printer;
    let (mut done, mut refused) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok((id, changed)) => {
                printer.done(said(&id, changed))?;
                done.push(id.to_string());
            }
            Err(error) => refused.push(printer.part_failed(&error.into())),
        }
    }
    if done.is_empty() {
        return Err(CliError::AlreadyTold(refused.join("; ")));
    }
    if printer.json() { bead_output::print_json(printer, town, &done) } else { Ok(()) }
}
