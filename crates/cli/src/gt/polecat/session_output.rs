//! `gt polecat attach`, `gt polecat peek` and `gt polecat log`.

use std::io::IsTerminal as _;

use clap::Args;
use gt_api::PeekDocument;

use super::super::run;
use crate::context::CommandContext;
use crate::error::CliError;

/// Sit down at the session of a worker; leave it with Ctrl-b d
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt attach gastown/nux\n  gt attach nux\n  gt attach gt-abc")]
pub(in crate::gt) struct AttachArgs {
    /// The polecat: <rig>/<name>, or its name if one rig has it; or a bead, for its worker
    polecat: String,
}

/// Print what a worker shows at the moment
///
/// That is the end of its session, or of what its run printed if it has none.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt peek gastown/nux\n  gt peek nux\n  gt peek gt-abc -n 100")]
pub(in crate::gt) struct PeekArgs {
    /// The polecat: <rig>/<name>, or its name if one rig has it; or a bead, for its worker
    polecat: String,
    /// How many lines
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 30)]
    lines: u32,
}

/// Print everything that a worker has printed in its run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt polecat log gastown/nux
  gt polecat log gastown/nux -f
  gt polecat log gt-abc -n 50")]
pub(super) struct LogArgs {
    /// The polecat: <rig>/<name>, or its name if one rig has it; or a bead, for its worker
    polecat: String,
    #[command(flatten)]
    how: run::LogOptions,
}

pub(in crate::gt) fn attach(
    context: &CommandContext<'_>,
    args: &AttachArgs,
) -> Result<(), CliError> {
    let command = gt_execution::polecats::attach(&context.town()?, &args.polecat)?;
    if !context.printer.is_terminal() || !std::io::stdin().is_terminal() {
        return Err(CliError::request(format!(
            "a session needs a terminal, and this is none; gt polecat peek {} prints what it shows",
            args.polecat
        )));
    }
    Err(CliError::request(command.become_it().to_string()))
}

pub(in crate::gt) fn peek(context: &CommandContext<'_>, args: &PeekArgs) -> Result<(), CliError> {
    let glimpse = gt_execution::polecats::peek(&context.town()?, &args.polecat, args.lines)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&PeekDocument {
            run: glimpse.run.id.to_string(),
            state: glimpse.run.state.as_str().to_owned(),
            source: if glimpse.session.is_some() { "session" } else { "log" }.to_owned(),
            session: glimpse.session.filter(|session| !session.is_empty()),
            output: glimpse.text,
        });
    }
    if glimpse.text.is_empty() {
        printer.note(format!("{} shows nothing", glimpse.run.id));
    }
    glimpse.text.lines().try_for_each(|line| printer.line(run::plain(line.as_bytes())))
}

pub(super) fn log(context: &CommandContext<'_>, args: &LogArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let run = gt_execution::polecats::run_of(&town, &args.polecat)?;
    run::print_log(context, &town, &run, &args.how)
}
