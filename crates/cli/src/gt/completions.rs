//! `gt completions`.

use clap::Args;
use clap_complete::Shell;

use crate::context::CommandContext;
use crate::error::CliError;

/// Print completions for your shell
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
    let mut command = if args.program == "bd" { crate::bd_command() } else { crate::gt_command() };
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, &args.program, &mut script);
    context.printer.data(String::from_utf8_lossy(&script).trim_end())
}
