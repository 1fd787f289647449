//! `gt worker`: what supervisors run.

use clap::{Args, Subcommand};
use gt_core::schedule::RunId;
use gt_operations::runs;

use crate::context::Context;
use crate::error::CliError;

/// What supervisors run
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct WorkerArgs {
    #[command(subcommand)]
    verb: WorkerVerb,
}

#[derive(Debug, Subcommand)]
enum WorkerVerb {
    /// Carry out a run, from its claim to its end
    Exec {
        /// The run
        run: String,
    },
}

pub(super) fn run(context: &Context<'_>, args: &WorkerArgs) -> Result<(), CliError> {
    let WorkerVerb::Exec { run } = &args.verb;
    let run = RunId::parse(run)?;
    Ok(runs::supervise(&context.town()?, &run)?)
}
