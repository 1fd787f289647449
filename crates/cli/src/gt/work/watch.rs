//! `gt work watch`.

use std::collections::HashMap;

use clap::Args;
use gt_core::BeadId;
use gt_core::work::{ItemRef, Version, WorkFilter, WorkItem};
use gt_operations::EventFilter;
use gt_operations::events::Follower;
use gt_records::work_item_json;

use super::door::Door;
use super::first_line;
use super::list::WhichArgs;
use crate::bd::News;
use crate::context::Context;
use crate::error::CliError;
use crate::output::clock_time;

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

pub(super) fn run(context: &Context<'_>, door: &Door, args: &WatchArgs) -> Result<(), CliError> {
    let filter = args.which.filter(door)?;
    let (town, printer) = (door.town(), context.printer);
    let mut follower = Follower::from_now(town, EventFilter::default())?;
    let mut news_of = News::new(context, town, true);
    let mut shown: HashMap<BeadId, Version> = HashMap::new();
    printer.note("note: watching; what changes is shown here");
    loop {
        let Some(news) = news_of.next(&mut follower)? else { continue };
        if news.is_empty() {
            news_of.wait()?;
            continue;
        }
        let mut changed: Vec<BeadId> = Vec::new();
        for bead in news.into_iter().filter_map(|event| event.bead) {
            if !changed.contains(&bead) {
                changed.push(bead);
            }
        }
        for bead in changed {
            // It may be gone, or be something else than a work item.
            let Ok(details) = door.item(&ItemRef::Bead(bead.clone())) else { continue };
            let item = details.item;
            let is_new = shown.insert(bead, item.version()) != Some(item.version());
            if !is_new || !is_wanted(&filter, &item) {
                continue;
            }
            if printer.json() {
                printer.json_line(&work_item_json(&item))?;
            } else {
                printer.line(line(&item))?;
            }
        }
    }
}

fn line(item: &WorkItem) -> String {
    let agent = item.agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
    let at = clock_time(item.updated_at);
    format!("[{at}] {} {}{agent} · {}", item.bead, item.status, first_line(item))
}

/// Whether somebody who watches with this filter wants to see an item.
fn is_wanted(filter: &WorkFilter, item: &WorkItem) -> bool {
    let text = filter.text.as_ref().map(|text| text.to_lowercase());
    filter.wanted().contains(&item.status)
        && filter.agent.as_ref().is_none_or(|agent| item.agent.as_ref() == Some(agent))
        && filter.kind.as_ref().is_none_or(|kind| item.kind == *kind)
        && filter.created_by.as_ref().is_none_or(|by| item.created_by == *by)
        && filter.since.is_none_or(|since| item.created_at > since)
        && text.is_none_or(|text| item.description.to_lowercase().contains(&text))
}
