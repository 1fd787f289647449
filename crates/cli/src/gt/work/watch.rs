//! `gt work watch`.

use std::collections::HashMap;
use std::time::Duration;

use clap::Args;
use gt_api::WorkItemDocument;
use gt_core::BeadId;
use gt_core::work::{ItemRef, Version, WorkFilter, WorkItem};
use gt_workqueue::work::{WorkClient, WorkWatch};

use super::first_line;
use super::list::WhichArgs;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::moment;

/// Show work items as they change, until interrupted
#[derive(Debug, Args)]
#[command(after_help = "With --json it prints a line for each change: the item as it is then.

Examples:
  gt work watch
  gt work watch --status blocked,failed --json
  gt work watch --agent steve-w")]
pub(super) struct WatchArgs {
    #[command(flatten)]
    which: WhichArgs,
}

/// How long one wait for an event lasts; in between it is checked whether the reader of the output has gone.
const OUTPUT_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// The pause between two tries to reach a queue that is away.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn run(
    context: &CommandContext<'_>,
    client: &WorkClient,
    args: &WatchArgs,
) -> Result<(), CliError> {
    let (filter, project) = (args.which.filter(client)?, args.which.project(client)?);
    let printer = context.printer;
    let mut watch = WorkWatch::from_now(client)?;
    let mut shown: HashMap<BeadId, Version> = HashMap::new();
    let mut is_away = false;
    printer.note("note: watching; what changes is shown here");
    loop {
        printer.wait(Duration::ZERO)?;
        let seen = match watch.next_within(OUTPUT_CHECK_INTERVAL) {
            Ok(seen) => seen,
            Err(error) if error.may_pass() => {
                if !std::mem::replace(&mut is_away, true) {
                    let error = CliError::from(error);
                    printer.note(format!("note: {}; waiting for it", error.chain()));
                }
                printer.wait(RECONNECT_INTERVAL)?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        is_away = false;
        if seen.missed {
            printer
                .note("note: some changes were missed; gt work list shows how everything is now");
        }
        for bead in seen.changed {
            // It may be gone, or be something else than a work item.
            let Ok(details) = client.item(&ItemRef::Bead(bead.clone())) else { continue };
            let item = details.item;
            let is_new = shown.insert(bead, item.version()) != Some(item.version());
            let is_here = project.as_ref().is_none_or(|project| item.project == Some(project.uid));
            if !is_new || !is_here || !is_wanted(&filter, &item) {
                continue;
            }
            if printer.json() {
                printer.json_line(&WorkItemDocument::from(&item))?;
            } else {
                printer.line(line(&item))?;
            }
        }
    }
}

fn line(item: &WorkItem) -> String {
    let agent = item.agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
    let at = moment(item.updated_at);
    format!("[{at}] {} {}{agent} · {}", item.bead, item.status, first_line(item))
}

/// Whether an item matches the filter of the watch.
fn is_wanted(filter: &WorkFilter, item: &WorkItem) -> bool {
    let text = filter.text.as_ref().map(|text| text.to_lowercase());
    filter.wanted().contains(&item.status)
        && filter.agent.as_ref().is_none_or(|agent| item.agent.as_ref() == Some(agent))
        && filter.kind.as_ref().is_none_or(|kind| item.kind == *kind)
        && filter.created_by.as_ref().is_none_or(|by| item.created_by == *by)
        && filter.since.is_none_or(|since| item.completed_at.unwrap_or(item.created_at) > since)
        && text.is_none_or(|text| item.description.to_lowercase().contains(&text))
}
