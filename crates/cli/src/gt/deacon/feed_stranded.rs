//! `gt deacon feed-stranded`.

use clap::Args;
use gt_core::time::parse_duration;
use gt_operations::convoys::{self, Feed, FeedAction, FeedDetail};
use gt_operations::dispatch::{Pass, pass};
use gt_operations::{daemon, queue};
use gt_records::ObjectWriter;

use crate::context::{Context, this_program};
use crate::error::CliError;
use crate::gt::sling::refuse_workers;

/// Schedule what convoys track and nobody has scheduled
///
/// Goes through the same door as everything else: what is scheduled or runs already is left alone, and whoever comes second
/// does nothing. What a person took out of the queue, ended or has to look at is named and left to people.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 1 if something went wrong.

Examples:
  gt deacon feed-stranded
  gt deacon feed-stranded --max-feeds 10 --cooldown 0s
  gt deacon feed-stranded --json")]
pub(super) struct FeedStrandedArgs {
    /// How many convoys are fed at most
    #[arg(long, value_name = "N", default_value_t = 3)]
    max_feeds: u32,
    /// How long after it was fed a convoy may be fed again
    #[arg(long, value_name = "TIME", default_value = "10m")]
    cooldown: String,
}

pub(super) fn run(context: &Context<'_>, args: &FeedStrandedArgs) -> Result<(), CliError> {
    refuse_workers(&context.environment)?;
    let how = Feed { max_feeds: args.max_feeds, cooldown: parse_duration(&args.cooldown)? };
    let town = context.town()?;
    let details = convoys::feed(&town, &how)?;
    let contexts: Vec<u64> = details.iter().flat_map(|detail| detail.contexts.clone()).collect();
    if !contexts.is_empty() && !queue::status(&town)?.settings.is_deferred() {
        let program = this_program()?;
        pass(&town, Pass { only: Some(contexts.clone()), ..Pass::by_hand(&program) })?;
    }
    let printer = context.printer;
    if printer.json() {
        printer.object(&json(&details))?;
    } else if details.is_empty() {
        printer.done("Nothing is stranded")?;
    } else {
        for detail in &details {
            let sign = match detail.action {
                FeedAction::Fed | FeedAction::Closed => "✓",
                FeedAction::Skipped => "-",
                FeedAction::NeedsAttention => "!",
                FeedAction::Error => "✗",
            };
            printer.line(format!("{sign} {}: {}", detail.convoy, detail.message))?;
        }
    }
    if !contexts.is_empty() && !daemon::is_running(&town) {
        printer.note(daemon::NOT_RUNNING);
    }
    let failed = details.iter().filter(|detail| detail.action == FeedAction::Error);
    let failed: Vec<&str> = failed.map(|detail| detail.message.as_str()).collect();
    if failed.is_empty() { Ok(()) } else { Err(CliError::AlreadyTold(failed.join("; "))) }
}

fn json(details: &[FeedDetail]) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    for (name, action) in [
        ("fed", FeedAction::Fed),
        ("closed", FeedAction::Closed),
        ("skipped", FeedAction::Skipped),
        ("needs_attention", FeedAction::NeedsAttention),
        ("errors", FeedAction::Error),
    ] {
        let count = details.iter().filter(|detail| detail.action == action).count();
        object.count(name, count as u64);
    }
    object.array("details", |array| {
        for detail in details {
            array.object(|object| {
                object.text("convoy_id", detail.convoy.as_str());
                object.text("action", detail.action.as_str());
                object.text("message", &detail.message);
            });
        }
    });
    object.finish();
    out
}
