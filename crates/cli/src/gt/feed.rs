//! `gt feed`.

use clap::Args;

use crate::bd::{ActivityArgs, run_activity};
use crate::context::CommandContext;
use crate::error::CliError;

/// Show what happens in the town
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt feed --follow\n  gt feed --type closed --rig web --json")]
pub(super) struct FeedArgs {
    #[command(flatten)]
    activity: ActivityArgs,
}

pub(super) fn run(context: &CommandContext<'_>, args: &FeedArgs) -> Result<(), CliError> {
    run_activity(context, &args.activity)
}
