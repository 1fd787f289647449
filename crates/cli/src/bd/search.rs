//! `bd search`.

use clap::Args;

use super::filters::{FilterArgs, OrderArgs};
use crate::context::CommandContext;
use crate::error::CliError;

const LIMIT: usize = 50;

/// Find beads by words of their title, or a part of their id
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd search login\n  bd search login --status all --json")]
pub(super) struct SearchArgs {
    /// The text to look for
    #[arg(value_name = "TEXT", required_unless_present = "query")]
    text: Option<String>,
    #[arg(long, value_name = "TEXT", hide = true, conflicts_with = "text")]
    query: Option<String>,
    #[arg(long, hide = true)]
    long: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    order: OrderArgs,
}

pub(super) fn run(context: &CommandContext<'_>, args: &SearchArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let mut filter = args.filter.filter(&town)?;
    filter.text = args.text.clone().or_else(|| args.query.clone());
    args.order.apply(&mut filter, Some(LIMIT));
    super::list::print(printer, &town, &filter, |_| String::new())
}
