//! `gt polecat`: the places where workers work.

mod list;
mod look;
mod remove;

pub(super) use look::{AttachArgs, PeekArgs, attach, peek};

use clap::{Args, Subcommand};

use crate::context::Context;
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
    Attach(look::AttachArgs),
    Peek(look::PeekArgs),
    Log(look::LogArgs),
    Nuke(remove::NukeArgs),
    Undelete(remove::UndeleteArgs),
    Purge(remove::PurgeArgs),
}

pub(super) fn run(context: &Context<'_>, args: &PolecatArgs) -> Result<(), CliError> {
    match &args.verb {
        PolecatVerb::List(args) => list::run(context, args),
        PolecatVerb::Status(args) => list::status(context, args),
        PolecatVerb::Attach(args) => look::attach(context, args),
        PolecatVerb::Peek(args) => look::peek(context, args),
        PolecatVerb::Log(args) => look::log(context, args),
        PolecatVerb::Nuke(args) => remove::nuke(context, args),
        PolecatVerb::Undelete(args) => remove::undelete(context, args),
        PolecatVerb::Purge(args) => remove::purge(context, args),
    }
}
