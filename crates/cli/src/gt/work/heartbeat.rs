//! `gt work heartbeat`.

use clap::Args;
use gt_api::HeartbeatAnswerDocument;
use gt_core::work::{Lease, RunRef};
use gt_workqueue::work::{Heartbeat, WorkClient};

use super::request_args::lease;
use super::until;
use crate::context::CommandContext;
use crate::error::CliError;

/// Say that an agent is still at its item
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt work heartbeat wq-abc --run-id wq-abc#1
  gt work heartbeat wq-abc --run-id wq-abc#1 --lease 10m")]
pub(super) struct HeartbeatArgs {
    /// Which item: its UUID or its bead
    item: String,
    /// The run in which it was taken: a UUID or <bead>#<number>
    #[arg(long, value_name = "RUN", value_parser = RunRef::parse)]
    run_id: RunRef,
    /// How long it is the agent's from now on; as long as before unless said
    #[arg(long, value_name = "TIME", value_parser = lease)]
    lease: Option<Lease>,
}

pub(super) fn run(
    context: &CommandContext<'_>,
    client: &WorkClient,
    args: &HeartbeatArgs,
) -> Result<(), CliError> {
    let reference = client.item_named(&args.item)?;
    let heartbeat = Heartbeat { run: args.run_id.clone(), lease: args.lease, adopts: false };
    let lease = client.heartbeat(&reference, heartbeat)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&HeartbeatAnswerDocument { lease_expires_at: lease.into() });
    }
    printer.done(format!("✓ {} is held, {}", args.item, until(lease, client.now())))
}
