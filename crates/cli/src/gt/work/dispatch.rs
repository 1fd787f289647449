//! `gt work dispatch`.

use clap::Args;
use gt_beads::beads::FieldEdit;
use gt_core::work::WorkStatus;
use gt_workqueue::work::{ItemChange, WorkClient};

use super::print_item;
use crate::context::CommandContext;
use crate::error::CliError;

/// Give an item to an agent, and say that it has picked it up
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt work dispatch wq-abc steve-w
  gt work dispatch wq-abc steve-w --no-start")]
pub(super) struct DispatchArgs {
    /// Which item: its UUID or its bead
    item: String,
    /// The agent that gets it; by default the one it was submitted for
    agent: Option<String>,
    /// Only give it to the agent, which reports itself when it picks it up
    #[arg(long)]
    no_start: bool,
}

pub(super) fn run(
    context: &CommandContext<'_>,
    client: &WorkClient,
    args: &DispatchArgs,
) -> Result<(), CliError> {
    let reference = client.item_named(&args.item)?;
    let given = ItemChange {
        status: Some(WorkStatus::Dispatched),
        agent: args.agent.clone().map_or(FieldEdit::Keep, FieldEdit::Set),
        ..ItemChange::default()
    };
    let mut item = client.change(&reference, given)?;
    if !args.no_start {
        let begun = ItemChange { status: Some(WorkStatus::InProgress), ..ItemChange::default() };
        item = client.change(&reference, begun)?;
    }
    let agent = item.agent.as_deref().unwrap_or_default();
    let done = format!("{} is {}, with {agent}", item.bead, item.status);
    print_item(context.printer, &item, &done)
}
