//! `bd doctor`.

use clap::Args;

use crate::context::CommandContext;
use crate::doctor::{DoctorScope, examine_town};
use crate::error::CliError;

/// Look for problems of the town
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 1 if there is a problem.\n\nExamples:\n  bd doctor --json\n  bd doctor --check store"
)]
pub(super) struct DoctorArgs {
    /// Only the checks of this name
    #[arg(long, value_name = "NAME")]
    check: Option<String>,
    /// Print the command that mends each finding; none is run
    #[arg(long)]
    fix: bool,
    #[arg(long, hide = true)]
    agent: bool,
    #[arg(short, long, hide = true)]
    yes: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &DoctorArgs) -> Result<(), CliError> {
    if args.fix {
        context
            .printer
            .note("note: nothing is changed; each finding names the command that mends it");
    }
    examine_town(context, DoctorScope::Here, args.check.as_deref())
}
