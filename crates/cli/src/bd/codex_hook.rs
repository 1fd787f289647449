//! `bd codex-hook`.

use std::io;

use clap::Args;

use super::prime::{self, PrimeArgs};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::served;

/// Answer a session hook of Codex
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd codex-hook SessionStart")]
pub(super) struct CodexHookArgs {
    /// The event
    #[arg(value_name = "EVENT")]
    event: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &CodexHookArgs) -> Result<(), CliError> {
    if !served::stdin_is_terminal() {
        // The input is only drained, so that Codex gets no broken pipe; an error does no harm.
        let _ = io::copy(&mut served::stdin(), &mut io::sink());
    }
    match args.event.as_deref() {
        None | Some("SessionStart") => prime::run(context, &PrimeArgs::for_hook()),
        // The other events of the original need no text.
        Some(_) => Ok(()),
    }
}
