//! `gt doctor`.

use clap::Args;

use crate::context::CommandContext;
use crate::doctor::{DoctorScope, examine_town};
use crate::error::CliError;

/// Look for problems of the town
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 1 if there is a problem.\n\nExamples:\n  gt doctor --json\n  gt doctor --fleet"
)]
pub(super) struct DoctorArgs {
    /// Look at the hosts of the town together: schema, clocks, hosts that are away, rigs that no host can work on
    #[arg(long)]
    fleet: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &DoctorArgs) -> Result<(), CliError> {
    let scope = if args.fleet { DoctorScope::Fleet } else { DoctorScope::Here };
    examine_town(context, scope, None)
}
