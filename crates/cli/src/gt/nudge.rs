//! `gt nudge`.

use clap::Args;
use gt_api::NudgeDocument;
use gt_beads::messages::{self, MessageToSend};
use gt_core::Message;
use gt_core::message::Receipt;
use gt_core::time::parse_duration;
use gt_execution::runs::message_delivery::NudgeDelivery;

use super::mail::{role, words};
use crate::context::CommandContext;
use crate::error::CliError;

/// Send a message to a worker while it works
///
/// It is kept until it was seen: a worker gets it in its session if it has one, else with its next gt prime, gt hook or gt mail inbox.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: with --wait, 0 when it was seen, 1 if the time was up or no worker is left to see it.

Examples:
  gt nudge gt-abc \"The fixture moved to tests/data\"
  gt nudge gastown/polecats/toast \"How far are you?\" --wait --timeout 5m
  gt nudge gt-abc - < hint.txt"
)]
pub(super) struct NudgeArgs {
    /// The recipient: a bead or run for its worker, or an address
    #[arg(value_name = "ADDRESS")]
    to: String,
    /// The message (- is standard input)
    #[arg(required = true, num_args = 1.., value_name = "MESSAGE")]
    message: Vec<String>,
    /// Return only when it was seen
    #[arg(short, long)]
    wait: bool,
    /// With --wait, at most this long, such as 90s or 30m
    #[arg(short, long, value_name = "TIME", requires = "wait")]
    timeout: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &NudgeArgs) -> Result<(), CliError> {
    let timeout = args.timeout.as_deref().map(parse_duration).transpose()?;
    let body = words(&args.message.join(" "))?;
    let town = context.town()?;
    let printer = context.printer;
    let letter = MessageToSend { subject: None, body, nudge: true };
    let mut message = messages::send(&town, role(context), &args.to, &letter)?;
    let delivery = gt_execution::runs::message_delivery::deliver(&town, &message)?;
    if args.wait {
        if !printer.json() {
            printer.done(format!("{}; waiting until it is seen", how_far(&message, &delivery)))?;
            printer.flush()?;
        }
        message = messages::wait_until_seen(&town, message.id, timeout)?;
    }
    if !args.wait {
        message = messages::show(&town, &message.id.to_string())?;
    }
    if printer.json() {
        printer.object(&document(&message, &delivery))?;
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
            "✓ {}; gt mail show {id} says when it is seen",
            how_far(&message, &delivery)
        )),
    }
}

/// How far a message has come, in words.
pub(super) fn how_far(message: &Message, delivery: &NudgeDelivery) -> String {
    let Message { id, to, .. } = message;
    match delivery {
        NudgeDelivery::Session(session) => {
            format!("{id} is delivered into the session {session} of {to}")
        }
        NudgeDelivery::Waits(why) => {
            format!(
                "{id} is queued for {to}, who will see it at the next gt hook or gt prime ({why})"
            )
        }
    }
}

fn document(message: &Message, delivery: &NudgeDelivery) -> NudgeDocument {
    let (session, waits_because) = match delivery {
        NudgeDelivery::Session(session) => (Some(session.clone()), None),
        NudgeDelivery::Waits(why) => (None, Some(why.clone())),
    };
    NudgeDocument { message: message.into(), session, waits_because }
}
