//! `gt sling`, as far as the tests of runs need it.

use clap::Args;
use gt_operations::dispatch::{Pass, pass};
use gt_operations::schedule::{Fate, Flags, SlingRequest, sling};

use crate::context::Context;
use crate::error::CliError;

/// Send work to a rig
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt sling gt-abc")]
pub(super) struct SlingArgs {
    arguments: Vec<String>,
    #[arg(long)]
    queue: bool,
    #[arg(long)]
    force: bool,
    #[arg(long, default_value_t = 0)]
    retries: u32,
}

pub(super) fn run(context: &Context<'_>, args: &SlingArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let request = SlingRequest {
        arguments: args.arguments.clone(),
        flags: Flags { force: args.force, retries: args.retries, ..Flags::default() },
        queue: args.queue,
        ..SlingRequest::default()
    };
    let report = sling(&town, &request)?;
    let refused = report.has_refused();
    for entry in report.entries {
        match entry.fate {
            Fate::Refused(error) => {
                context.printer.part_failed(&error.into());
            }
            other => context.printer.done(format!("{} {other:?}", entry.name))?,
        }
    }
    if !report.deferred && !report.contexts.is_empty() {
        let program = std::env::current_exe()?;
        let mut how = Pass::by_hand(&program);
        how.only = Some(report.contexts);
        let (_, done) = pass(&town, &how)?;
        for (bead, error) in &done.errors {
            context.printer.note(format!("{bead}: {error}"));
        }
        if !done.errors.is_empty() {
            return Err(CliError::AlreadyTold(String::new()));
        }
    }
    if refused { Err(CliError::AlreadyTold(String::new())) } else { Ok(()) }
}
