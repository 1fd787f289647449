//! `gt scheduler retry`.

use clap::Args;
use gt_api::{RetriedDocument, RetryDocument};
use gt_daemon::daemon;
use gt_scheduling::schedule::{Retried, beads_to_retry, count_retries, retry, retry_found};
use gt_town::{OperationError, Town};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::gt::sling;

/// Schedule beads again that failed or were given up
///
/// Nothing is held against them: failures and attempts count from 0 again. A bead that was closed as failed is opened; if it was
/// never scheduled, that is all.
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
    /// Start any number of agents at once, without being asked
    #[arg(long, short = 'y')]
    yes: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &RetryArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let names = if args.all { beads_to_retry(&town, args.now)? } else { args.beads.clone() };
    let retry = RetryOfBeads { names, found: args.all, now: args.now, yes: args.yes };
    retry_and_print(context, &town, &retry, "Nothing failed or was given up")
}

/// Beads to try again.
pub(in crate::gt) struct RetryOfBeads {
    pub(in crate::gt) names: Vec<String>,
    /// They were found to need it, and not named by a person.
    pub(in crate::gt) found: bool,
    pub(in crate::gt) now: bool,
    /// Any number of agents may start at once.
    pub(in crate::gt) yes: bool,
}

/// Tries beads again, if a person wants to start so many agents, and prints the result for each; `nothing`, if there was
/// none.
pub(in crate::gt) fn retry_and_print(
    context: &CommandContext<'_>,
    town: &Town,
    beads: &RetryOfBeads,
    nothing: &str,
) -> Result<(), CliError> {
    let RetryOfBeads { names, found, now, yes } = beads;
    let count = || Ok(count_retries(town, names, *now)?);
    if !yes && !sling::is_number_wanted(context, town, count)? {
        return context.printer.done(sling::NOTHING_STARTED);
    }
    let retried = if *found { retry_found(town, names, *now) } else { retry(town, names, *now) };
    print_retried(context, town, retried?, nothing)
}

fn print_retried(
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
            target_rig: retried.context.as_ref().map(|context| context.rig.to_string()),
            context: retried.context.as_ref().map(|context| context.id.to_string()),
            reopened: retried.reopened,
            now: retried.hastened,
        });
        printer.object(&RetryDocument { retried: retried.collect(), errors: refused.clone() })?;
    } else {
        for retried in &done {
            let bead = &retried.bead;
            let line = match &retried.context {
                Some(context) if retried.hastened => {
                    format!(
                        "✓ {bead} waits no longer ({}): the next cycle may start it",
                        context.id
                    )
                }
                Some(context) => {
                    let reopened = if retried.reopened { ", open again" } else { "" };
                    format!("✓ Scheduled {bead} → {} ({}){reopened}", context.rig, context.id)
                }
                None if retried.is_pulled => {
                    format!("✓ {bead} is open again, for agents that pull it")
                }
                None => format!("✓ {bead} is open again; gt sling {bead} schedules it"),
            };
            printer.done(line)?;
        }
        if done.is_empty() && refused.is_empty() {
            printer.done(format!("{nothing}; nothing to do"))?;
        }
    }
    let is_scheduled = done.iter().any(|retried| retried.context.is_some());
    if is_scheduled
        && town.has_directory()
        && let Some(warning) = daemon::absence_warning(town)
    {
        printer.note(warning);
    }
    if refused.is_empty() { Ok(()) } else { Err(CliError::AlreadyTold(refused.join("; "))) }
}
