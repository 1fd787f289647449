//! `bd onboard` and `bd quickstart`.

use clap::Args;
use gt_beads::agent_setup::INSTRUCTIONS;

use crate::context::CommandContext;
use crate::error::CliError;

/// Print a section for the instructions of agents that tells them to use bd
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd onboard >> AGENTS.md")]
pub(super) struct OnboardArgs {}

/// Print the first commands to try
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd quickstart")]
pub(super) struct QuickstartArgs {}

const FIRST_COMMANDS: &str = "\
Start
  bd init                                  make a store in this directory
  bd create \"Fix the login\" -t bug -p 1    make a bead
  bd list                                  list them

Order
  bd dep add <id> <other>                  id waits for other
  bd ready                                 what can be worked on now
  bd blocked                               what waits, and for what

Work
  bd update <id> --claim                   take it
  bd comments add <id> \"…\"                 say something about it
  bd close <id> --reason \"…\"               done

Agents
  bd setup claude                          let an agent start with bd prime
  bd remember \"…\"                          keep a fact for later sessions

bd <command> --help explains each of them.";

pub(super) fn onboard(context: &CommandContext<'_>) -> Result<(), CliError> {
    context.printer.text(INSTRUCTIONS)
}

pub(super) fn quickstart(context: &CommandContext<'_>) -> Result<(), CliError> {
    context.printer.text(FIRST_COMMANDS)
}
