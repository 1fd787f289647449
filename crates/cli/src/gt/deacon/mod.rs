//! `gt deacon`: recovery, by hand.

mod feed_stranded;
mod redispatch;
mod resume;
mod stale_hooks;

use clap::{Args, Subcommand};

use crate::context::CommandContext;
use crate::error::CliError;

pub(super) use resume::{resume_account, resume_runtime};

/// Recover work by hand: what the daemon does by itself
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt deacon feed-stranded
  gt deacon redispatch gt-abc
  gt deacon stale-hooks --dry-run
  gt deacon resume runtime claude")]
pub(super) struct DeaconArgs {
    #[command(subcommand)]
    verb: DeaconVerb,
}

#[derive(Debug, Subcommand)]
enum DeaconVerb {
    FeedStranded(feed_stranded::FeedStrandedArgs),
    Redispatch(redispatch::RedispatchArgs),
    StaleHooks(stale_hooks::StaleHooksArgs),
    Resume(resume::ResumeArgs),
}

pub(super) fn run(context: &CommandContext<'_>, args: &DeaconArgs) -> Result<(), CliError> {
    match &args.verb {
        DeaconVerb::FeedStranded(args) => feed_stranded::run(context, args),
        DeaconVerb::Redispatch(args) => redispatch::run(context, args),
        DeaconVerb::StaleHooks(args) => stale_hooks::run(context, args),
        DeaconVerb::Resume(args) => resume::run(context, args),
    }
}
