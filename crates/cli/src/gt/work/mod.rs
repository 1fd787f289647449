//! `gt work`: the work queue, for those who submit, take and watch work.

mod add;
mod client;
mod dispatch;
mod heartbeat;
mod list;
mod next;
mod poll;
mod request_args;
mod show;
mod stale_check;
mod update;
mod watch;

use clap::{Args, Subcommand};
use comfy_table::Color;
use gt_api::WorkItemDocument;
use gt_core::Timestamp;
use gt_core::work::{WorkItem, WorkStatus};

use self::client::WorkClientArgs;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, ago, span};

/// Submit, take, report and watch work
#[derive(Debug, Args)]
#[command(
    after_help = "A work item is queued, dispatched, in_progress, blocked, and at last completed, failed or cancelled.

Examples:
  gt work add code_review \"Review PR #3\" --agent steve-w --priority 2
  gt work dispatch wq-abc steve-w
  gt work next --agent steve-w
  gt work update wq-abc --status completed --notes \"merged\"
  gt work list --status blocked
  gt work watch
  gt work poll --agent steve-w -- ./review.sh {}

The queue is that of the town around, or of a server:
  gt work list --url https://queue.example --token-file ~/.queue-token
  GT_WORK_URL=http://127.0.0.1:8080 gt work watch"
)]
pub(super) struct WorkArgs {
    #[command(flatten)]
    client: WorkClientArgs,
    #[command(subcommand)]
    verb: WorkVerb,
}

#[derive(Debug, Subcommand)]
enum WorkVerb {
    Add(add::AddArgs),
    Dispatch(dispatch::DispatchArgs),
    Update(update::UpdateArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Next(next::NextArgs),
    Poll(poll::PollArgs),
    Heartbeat(heartbeat::HeartbeatArgs),
    StaleCheck(stale_check::StaleCheckArgs),
    Watch(watch::WatchArgs),
}

pub(super) fn run(context: &CommandContext<'_>, args: &WorkArgs) -> Result<(), CliError> {
    let client = args.client.open(context)?;
    match &args.verb {
        WorkVerb::Add(args) => add::run(context, &client, args),
        WorkVerb::Dispatch(args) => dispatch::run(context, &client, args),
        WorkVerb::Update(args) => update::run(context, &client, args),
        WorkVerb::List(args) => list::run(context, &client, args),
        WorkVerb::Show(args) => show::run(context, &client, args),
        WorkVerb::Next(args) => next::run(context, &client, args),
        WorkVerb::Poll(args) => poll::run(context, &client, args),
        WorkVerb::Heartbeat(args) => heartbeat::run(context, &client, args),
        WorkVerb::StaleCheck(args) => stale_check::run(context, &client, args),
        WorkVerb::Watch(args) => watch::run(context, &client, args),
    }
}

/// Prints an item that was just changed: all of it for programs, its new state for people.
fn print_item(printer: &Printer, item: &WorkItem, done: &str) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&WorkItemDocument::from(item));
    }
    printer.done(format!("✓ {done}"))
}

/// The colour that goes with a status.
fn colour(status: WorkStatus) -> Option<Color> {
    match status {
        WorkStatus::Queued => None,
        WorkStatus::Dispatched | WorkStatus::InProgress => Some(Color::Yellow),
        WorkStatus::Blocked | WorkStatus::Failed => Some(Color::Red),
        WorkStatus::Completed => Some(Color::Green),
        WorkStatus::Cancelled => Some(Color::DarkGrey),
    }
}

/// The first line of what is to be done.
fn first_line(item: &WorkItem) -> &str {
    item.description.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// The end of the lease of an item.
fn until(lease: Timestamp, now: Timestamp) -> String {
    if lease <= now {
        return format!("ended {}", ago(lease, now));
    }
    format!("for another {}", span(lease.since(now)))
}
