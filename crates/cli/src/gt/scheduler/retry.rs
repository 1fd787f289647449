//! `gt scheduler retry`.

use clap::Args;
use gt_api::{RetriedDocument, RetryDocument};
use gt_daemon::daemon;
use gt_scheduling::schedule::{Retried, retry};
use gt_town::{OperationError, Town};

use crate::context::CommandContext;
use crate::error::CliError;

/// Schedule beads again that failed or were given up
///
/// Nothing is held against them: failures and attempts count from 0 again. A bead that was closed as failed is opened.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt scheduler retry gt-abc
  gt scheduler retry gt-abc --now       # do not wait for the end of a backoff or cooldown
  gt scheduler retry --all              # everything that failed, was circuit-broken or quarantined")]
pub(in crate::gt) struct RetryArgs {
    /// The beads
    #[arg(value_name = "BEAD", required_unless_present = "all", conflicts_with = "all")]
    beads: Vec<String>,
    /// Everything that failed or was given up
    #[arg(long)]
    all: bool,
    /// End the backoff or cooldown of beads that are scheduled already
    #[arg(long)]
    now: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &RetryArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let retried = retry(&town, &args.beads, args.all, args.now)?;
    tell_retried(context, &town, retried, "Nothing failed or was given up")
}

/// Prints the result for each retried bead; `nothing`, if there was none.
pub(in crate::gt) fn tell_retried(
    context: &CommandContext<'_>,
    town: &Town,
    retried: Vec<Result<Retried, OperationError>>,
    nothing: &str,
) -> Result<(), CliError> {
    let printer = context.printer;
    let (mut done, mut refused) = (Vec::new(), Vec::new());
    for result in retried {
        match result {
            Ok(retried) => done.push(retried),
            Err(error) => refused.push(printer.part_failed(&error.into())),
        }
    }
    if printer.json() {
        let retried = done.iter().map(|retried| RetriedDocument {
            id: retried.bead.to_string(),
            target_rig: retried.context.rig.to_string(),
            context: retried.context.id.to_string(),
            reopened: retried.reopened,
            now: retried.hastened,
        });
        printer.object(&RetryDocument { retried: retried.collect(), errors: refused.clone() })?;
    } else {
        for retried in &done {
            let (bead, context) = (&retried.bead, &retried.context);
            let line = if retried.hastened {
                format!("✓ {bead} waits no longer ({}): the next cycle may start it", context.id)
            } else {
                let reopened = if retried.reopened { ", open again" } else { "" };
                format!("✓ Scheduled {bead} → {} ({}){reopened}", context.rig, context.id)
            };
            printer.done(line)?;
        }
        if done.is_empty() && refused.is_empty() {
            printer.done(format!("{nothing}; nothing to do"))?;
        }
    }
    if !done.is_empty() && town.has_directory() && !daemon::is_running(town) {
        printer.note(daemon::NOT_RUNNING);
    }
    if refused.is_empty() { Ok(()) } else { Err(CliError::AlreadyTold(refused.join("; "))) }
}
