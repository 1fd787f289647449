//! `bd help`.

use clap::{Args, Command};

use crate::context::CommandContext;
use crate::error::CliError;

/// Print the help of a command
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd help dep add\n  bd help --all")]
pub(super) struct HelpArgs {
    /// The command; without one, all of them in short
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
    /// The help of every command
    #[arg(long)]
    all: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &HelpArgs) -> Result<(), CliError> {
    let mut root = crate::bd_command();
    root.build();
    let mut command = &root;
    for word in &args.words {
        command = command
            .find_subcommand(word)
            .ok_or_else(|| CliError::request(format!("unknown command \"{word}\"; try bd help")))?;
    }
    context.printer.text(&explained(command))?;
    if !args.all {
        return Ok(());
    }
    let mut waiting: Vec<&Command> = command.get_subcommands().collect();
    waiting.reverse();
    while let Some(command) = waiting.pop() {
        context.printer.line("")?;
        context.printer.text(&explained(command))?;
        let mut below: Vec<&Command> = command.get_subcommands().collect();
        below.reverse();
        waiting.extend(below);
    }
    Ok(())
}

fn explained(command: &Command) -> String {
    command.clone().render_long_help().to_string()
}
