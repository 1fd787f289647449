//! `gt import`.

use std::path::PathBuf;

use clap::Args;

use crate::bd::{ImportFlags, bring};
use crate::context::CommandContext;
use crate::error::CliError;

/// Bring a Gas Town directory into this town: rigs, settings and beads, all of it or nothing
#[derive(Debug, Args)]
#[command(
    after_help = "Rigs, routes, settings, the beads of all stores, accounts and pause state come in one \
transaction.
Nothing in the directory is changed. What the town here says differently stays as it is and is listed;
importing again brings only what is new. Everything that bd import takes is taken too.

Examples:
  gt import ~/gt --dry-run
  gt import ~/gt
  gt import .            # after gt install in the old directory itself"
)]
pub(super) struct ImportArgs {
    /// The directory (or file) to import
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    flags: ImportFlags,
}

pub(super) fn run(context: &CommandContext<'_>, args: &ImportArgs) -> Result<(), CliError> {
    bring(context, &args.path, &args.flags, |_| Ok(()))
}
