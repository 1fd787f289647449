//! `gt completions`.

use clap::Args;
use clap_complete::Shell;

use crate::completion_values;
use crate::context::CommandContext;
use crate::error::CliError;

/// Print completions for your shell
///
/// They complete commands and flags, and the ids, rigs, runs and settings of the town that you are in.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt completions bash > ~/.local/share/bash-completion/completions/gt
  gt completions zsh --program bd > ~/.zfunc/_bd")]
pub(super) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
    /// For which program
    #[arg(long, default_value = "gt", value_parser = ["gt", "bd"])]
    program: String,
}

pub(super) fn run(context: &CommandContext<'_>, args: &CompletionsArgs) -> Result<(), CliError> {
    print_completions(context, args.shell, &args.program)
}

/// Prints the completions of `gt` or `bd`.
pub(crate) fn print_completions(
    context: &CommandContext<'_>,
    shell: Shell,
    program: &str,
) -> Result<(), CliError> {
    let script = completion_values::script(shell, program)?;
    context.printer.data(String::from_utf8_lossy(&script).trim_end())
}
