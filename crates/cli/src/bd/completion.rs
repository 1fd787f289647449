//! `bd completion`.

use clap::Args;
use clap_complete::Shell;

use crate::context::CommandContext;
use crate::error::CliError;

/// Print completions of bd for your shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  bd completion bash > ~/.local/share/bash-completion/completions/bd"
)]
pub(super) struct CompletionArgs {
    /// Which shell
    shell: Shell,
}

pub(super) fn run(context: &CommandContext<'_>, args: &CompletionArgs) -> Result<(), CliError> {
    crate::gt::print_completions(context, args.shell, "bd")
}
