//! `bd doctor`.

use clap::Args;

use crate::context::CommandContext;
use crate::doctor::examine_town;
use crate::error::CliError;

/// Look for problems of the town
#[derive(Debug, Args)]
#[command(after_help = "Exits with 1 if there is a problem.\n\nExample:\n  bd doctor --json")]
pub(super) struct DoctorArgs {}

pub(super) fn run(context: &CommandContext<'_>) -> Result<(), CliError> {
    examine_town(context)
}
