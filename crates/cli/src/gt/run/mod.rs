//! `gt run`: live and past runs of workers.

mod cancel;
mod list;
mod log;
mod show;

use clap::{Args, Subcommand};
use gt_core::schedule::Run;

use crate::context::CommandContext;
use crate::error::CliError;

pub(super) use gt_daemon::views::lasted;
pub(super) use log::{LineSplitter, LogOptions, print_log};

pub(super) use cancel::{document as cancelled_document, sentence as cancelled_sentence};

/// See, follow and end what workers are doing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt run list
  gt run show gt-abc
  gt run log gt-abc -f
  gt run cancel gt-abc#2")]
pub(super) struct RunArgs {
    #[command(subcommand)]
    verb: RunVerb,
}

#[derive(Debug, Subcommand)]
enum RunVerb {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Log(log::LogArgs),
    Cancel(cancel::CancelArgs),
}

pub(super) fn run(context: &CommandContext<'_>, args: &RunArgs) -> Result<(), CliError> {
    match &args.verb {
        RunVerb::List(args) => list::run(context, args),
        RunVerb::Show(args) => show::run(context, args),
        RunVerb::Log(args) => log::run(context, args),
        RunVerb::Cancel(args) => cancel::run(context, args),
    }
}

/// The commit that the origin has of the work of a run.
pub(super) fn landed_commit(run: &Run) -> Option<&str> {
    Some(run.landing.commit.as_str()).filter(|commit| !commit.is_empty())
}
