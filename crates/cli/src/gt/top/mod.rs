//! `gt top`: the town on one screen, with the keys that answer it.
//!
//! `model` says what is shown and what a key does, `draw` draws it, `snapshot` reads the town, and `terminal` joins them. An
//! answer is a command line, which is run as if it had been typed.

mod answers;
mod draw;
mod model;
mod snapshot;
mod terminal;
#[cfg(test)]
mod tests;
mod transcript;

use std::io::IsTerminal as _;

use clap::Args;

pub(super) use model::TopView;

use crate::context::CommandContext;
use crate::error::CliError;

/// See the town at work on one screen, and answer what needs you
///
/// Shows what needs you, the board, runs, the merge queue, convoys and the feed. Keys answer the chosen row: a approves, d rejects,
/// r replies, t tries again, x cancels, e edits the bead; Enter opens it, ? lists all keys. Each answer shows the command that
/// it runs. Where there is no terminal, it prints what gt status --watch does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt top\n  gt top --view runs")]
pub(super) struct TopArgs {
    /// The view to begin with: needs-you, board, runs, queue, convoys or feed
    #[arg(long, value_name = "VIEW", default_value = "needs-you", value_parser = ["needs-you", "board", "runs", "queue", "convoys", "feed"])]
    view: String,
}

pub(super) fn run(context: &CommandContext<'_>, args: &TopArgs) -> Result<(), CliError> {
    let view = match args.view.as_str() {
        "board" => TopView::Board,
        "runs" => TopView::Runs,
        "queue" => TopView::Queue,
        "convoys" => TopView::Convoys,
        "feed" => TopView::Feed,
        _ => TopView::NeedsYou,
    };
    if !can_show(context) {
        return super::status::watch_status(context);
    }
    show(context, view)
}

/// Whether there is a terminal to show it on, and a keyboard.
pub(super) fn can_show(context: &CommandContext<'_>) -> bool {
    let printer = context.printer;
    printer.is_terminal() && !printer.json() && std::io::stdin().is_terminal()
}

/// Shows it, beginning with this view, until it is quit.
pub(super) fn show(context: &CommandContext<'_>, view: TopView) -> Result<(), CliError> {
    terminal::run(context, view)
}
