//! `gt deacon feed-stranded`.

use clap::Args;
use gt_api::{FeedDetailDocument, FeedDocument};
use gt_core::time::parse_duration;
use gt_daemon::{daemon, reconcile};
use gt_scheduling::convoy_planning::{FeedAction, FeedDetail, FeedLimits};
use gt_scheduling::queue;

use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::gt::sling::refuse_workers;

/// Schedule tracked beads of convoys that are not scheduled
///
/// Uses the same checks as gt sling. Beads that are scheduled or running are left alone, so a second call at the same time
/// does nothing. Beads that a person unscheduled, ended or has to look at are named and left to people.
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

pub(super) fn run(context: &CommandContext<'_>, args: &FeedStrandedArgs) -> Result<(), CliError> {
    refuse_workers(&context.environment)?;
    let how = FeedLimits { max_feeds: args.max_feeds, cooldown: parse_duration(&args.cooldown)? };
    let town = context.town()?;
    let details = gt_scheduling::convoy_planning::feed(&town, &how)?;
    let contexts: Vec<u64> = details.iter().flat_map(|detail| detail.contexts.clone()).collect();
    if !contexts.is_empty() && !queue::status(&town)?.settings.is_deferred() {
        reconcile::start_contexts(&town, contexts.clone(), &this_program()?)?;
    }
    let printer = context.printer;
    if printer.json() {
        printer.object(&document(&details))?;
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
    if !contexts.is_empty()
        && let Some(warning) = daemon::absence_warning(&town)
    {
        printer.note(warning);
    }
    let failed = details.iter().filter(|detail| detail.action == FeedAction::Error);
    let failed: Vec<&str> = failed.map(|detail| detail.message.as_str()).collect();
    if failed.is_empty() { Ok(()) } else { Err(CliError::AlreadyTold(failed.join("; "))) }
}

fn document(details: &[FeedDetail]) -> FeedDocument {
    let count =
        |action: FeedAction| details.iter().filter(|detail| detail.action == action).count() as u64;
    let told = details.iter().map(|detail| FeedDetailDocument {
        convoy_id: detail.convoy.to_string(),
        action: detail.action.as_str().to_owned(),
        message: detail.message.clone(),
    });
    FeedDocument {
        fed: count(FeedAction::Fed),
        closed: count(FeedAction::Closed),
        skipped: count(FeedAction::Skipped),
        needs_attention: count(FeedAction::NeedsAttention),
        errors: count(FeedAction::Error),
        details: told.collect(),
    }
}
