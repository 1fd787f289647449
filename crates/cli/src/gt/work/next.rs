//! `gt work next`.

use std::time::Duration;

use clap::Args;
use gt_api::NextAnswerDocument;
use gt_core::time::parse_duration;
use gt_workqueue::work::{NextWork, WorkClient};

use super::request_args::WorkRequestArgs;
use super::{first_line, until};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::local_times;

/// Take the next thing to do, if there is one
#[derive(Debug, Args)]
#[command(
    after_help = "Items dispatched to the agent come first, then the most urgent and oldest ready item. The agent has the \
item for the time of its lease; gt work heartbeat renews that.

Examples:
  gt work next --agent steve-w
  gt work next --agent steve-w --type code_review,bug_fix --wait 30s
  gt work next --agent steve-w --project web --lease 10m --json"
)]
pub(super) struct NextArgs {
    #[command(flatten)]
    asking: WorkRequestArgs,
    /// How long to wait if there is nothing
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_duration)]
    wait: Duration,
}

pub(super) fn run(
    context: &CommandContext<'_>,
    client: &WorkClient,
    args: &NextArgs,
) -> Result<(), CliError> {
    let request = args.asking.request()?;
    let printer = context.printer;
    match client.next(&request, args.wait, None)? {
        NextWork::Item(taken) if printer.json() => {
            let (item, lease) = (&taken.item, taken.lease_expires_at);
            printer.object(&NextAnswerDocument::taken(item, taken.run_uid, lease))
        }
        NextWork::Item(taken) => {
            let (run, line) = (client.run_of(&taken), first_line(&taken.item));
            printer.heading(taken.item.bead.as_str(), &format!("  {line}"))?;
            let lease = until(taken.lease_expires_at, client.now());
            printer.line(format!("It is {}'s as {run}, {lease}", request.agent))
        }
        NextWork::Nothing(why) if printer.json() => {
            printer.object(&NextAnswerDocument::nothing(why.code(), why.to_string()))
        }
        NextWork::Nothing(why) => {
            printer.done(format!("Nothing to do: {}", local_times(&why.to_string())))
        }
    }
}
