//! `gt nudge`.

use clap::Args;
use gt_core::message::Receipt;
use gt_core::time::parse_duration;
use gt_operations::messages::{self, Letter};

use super::mail::{message_json, role, words};
use crate::context::Context;
use crate::error::CliError;

/// Put a message before somebody who is at work
///
/// It is kept until it was seen: a worker gets it in its session if it has one, else with its next gt prime, gt hook or gt mail inbox.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: with --wait, 0 when it was seen, 1 if the time was up or nobody is left to see it.

Examples:
  gt nudge gt-abc \"The fixture moved to tests/data\"
  gt nudge gastown/polecats/toast \"How far are you?\" --wait --timeout 5m
  gt nudge gt-abc - < hint.txt"
)]
pub(super) struct NudgeArgs {
    /// To whom: a bead or run for whoever works on it, or an address
    #[arg(value_name = "ADDRESS")]
    to: String,
    /// What to say (- is standard input)
    #[arg(required = true, num_args = 1.., value_name = "MESSAGE")]
    message: Vec<String>,
    /// Return only when it was seen
    #[arg(short, long)]
    wait: bool,
    /// With --wait, at most this long, such as 90s or 30m
    #[arg(short, long, value_name = "TIME", requires = "wait")]
    timeout: Option<String>,
}

pub(super) fn run(context: &Context<'_>, args: &NudgeArgs) -> Result<(), CliError> {
    let timeout = args.timeout.as_deref().map(parse_duration).transpose()?;
    let body = words(&args.message.join(" "))?;
    let town = context.town()?;
    let printer = context.printer;
    let letter = Letter { subject: None, body, nudge: true };
    let mut message = messages::send(&town, role(context), &args.to, &letter)?;
    if args.wait {
        if !printer.json() {
            printer.done(format!(
                "{} is queued for {}; waiting until it is seen",
                message.id, message.to
            ))?;
            printer.flush()?;
        }
        message = messages::wait_until_seen(&town, message.id, timeout)?;
    }
    if printer.json() {
        printer.object(&message_json(&message))?;
    }
    let id = message.id;
    match (args.wait, message.receipt()) {
        (_, Receipt::Seen) => printer.done(format!("✓ {} has seen {id}", message.to)),
        (true, receipt @ (Receipt::Queued | Receipt::Delivered)) => {
            Err(CliError::request(format!(
                "the time is up: {id} is {}, and {} has not seen it; it stays there, and gt mail show {id} says when it is \
             seen",
                receipt.as_str(),
                message.to
            )))
        }
        (false, Receipt::Queued | Receipt::Delivered) => printer.done(format!(
            "✓ Queued {id} for {}; gt mail show {id} says when it is seen",
            message.to
        )),
    }
}
