//! `gt polecat`: the places where workers work.

mod attach_transcript;
mod input_line;
mod list;
mod remove;
mod session_output;

pub(super) use session_output::{AttachArgs, PeekArgs, attach, peek};

use clap::{Args, Subcommand};

use crate::context::CommandContext;
use crate::error::CliError;

/// See the trees and sessions of workers; take trees away and bring them back
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt polecat list
  gt polecat peek gastown/nux
  gt polecat attach gt-abc
  gt polecat nuke gastown/nux
  gt polecat undelete gastown/nux")]
pub(super) struct PolecatArgs {
    #[command(subcommand)]
    verb: PolecatVerb,
}

#[derive(Debug, Subcommand)]
enum PolecatVerb {
    List(list::ListArgs),
    Status(list::StatusArgs),
    Attach(session_output::AttachArgs),
    Peek(session_output::PeekArgs),
    Log(session_output::LogArgs),
    Nuke(remove::NukeArgs),
    Undelete(remove::UndeleteArgs),
    Purge(remove::PurgeArgs),
}

pub(super) fn run(context: &CommandContext<'_>, args: &PolecatArgs) -> Result<(), CliError> {
    match &args.verb {
        PolecatVerb::List(args) => list::run(context, args),
        PolecatVerb::Status(args) => list::status(context, args),
        PolecatVerb::Attach(args) => session_output::attach(context, args),
        PolecatVerb::Peek(args) => session_output::peek(context, args),
        PolecatVerb::Log(args) => session_output::log(context, args),
        PolecatVerb::Nuke(args) => remove::nuke(context, args),
        PolecatVerb::Undelete(args) => remove::undelete(context, args),
        PolecatVerb::Purge(args) => remove::purge(context, args),
    }
}
