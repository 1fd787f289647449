//! `gt work next`.

use std::time::Duration;

use clap::Args;
use gt_core::time::parse_duration;
use gt_core::work::{Lease, ProjectRef, work_type};
use gt_operations::work::{Door, Next, NextRequest};
use gt_records::{no_work_json, taken_json};

use super::{first_line, until};
use crate::context::Context;
use crate::error::CliError;
use crate::values::comma_separated;

/// Take the next thing to do, if there is one
#[derive(Debug, Args)]
#[command(
    after_help = "What was dispatched to the agent comes first, then the most urgent and oldest of what is ready. Whoever \
takes something has it for the time of its lease; gt work heartbeat renews that.

Examples:
  gt work next --agent steve-w
  gt work next --agent steve-w --type code_review,bug_fix --wait 30s
  gt work next --agent steve-w --project web --lease 10m --json"
)]
pub(super) struct NextArgs {
    /// Who asks
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// Only these kinds of work; several are separated by commas
    #[arg(long = "type", value_name = "TYPES")]
    kinds: Vec<String>,
    /// Only work of this project: a UUID or the name of a rig
    #[arg(long, value_name = "PROJECT", value_parser = ProjectRef::parse)]
    project: Option<ProjectRef>,
    /// How long it is the agent's without another word, from 30s to 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = lease)]
    lease: Lease,
    /// How long to wait if there is nothing
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_duration)]
    wait: Duration,
}

/// Reads a lease.
pub(super) fn lease(text: &str) -> Result<Lease, gt_core::Invalid> {
    Lease::of_seconds(i64::try_from(parse_duration(text)?.as_secs()).unwrap_or(i64::MAX))
}

pub(super) fn run(context: &Context<'_>, door: &Door, args: &NextArgs) -> Result<(), CliError> {
    let kinds = comma_separated(&args.kinds);
    let kinds = kinds.iter().map(|kind| work_type(kind)).collect::<Result<Vec<_>, _>>()?;
    let request = NextRequest {
        agent: args.agent.clone(),
        kinds,
        project: args.project.clone(),
        lease: args.lease,
    };
    let printer = context.printer;
    match door.next(&request, args.wait, None)? {
        Next::Item(taken) if printer.json() => {
            printer.object(&taken_json(&taken.item, taken.run_uid, taken.lease_expires_at))
        }
        Next::Item(taken) => {
            let (run, line) = (door.run_of(&taken), first_line(&taken.item));
            printer.heading(taken.item.bead.as_str(), &format!("  {line}"))?;
            let lease = until(taken.lease_expires_at, door.now());
            printer.line(format!("It is {}'s as {run}, {lease}", args.agent))
        }
        Next::Nothing(why) if printer.json() => {
            printer.object(&no_work_json(why.code(), &why.to_string()))
        }
        Next::Nothing(why) => printer.done(format!("Nothing to do: {why}")),
    }
}
