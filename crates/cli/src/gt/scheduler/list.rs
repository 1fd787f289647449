//! `gt scheduler list`: the queued beads, in the order in which the next cycle of the daemon would see them.

use std::collections::BTreeMap;

use gt_api::QueuedDocument;
use gt_core::decide::WaitReason;
use gt_daemon::daemon::{self, DaemonAbsence};
use gt_daemon::views::absence_document;
use gt_scheduling::dispatch::CycleCaller;
use gt_scheduling::queue::{QueuedBead, list, status};

use super::super::daemon::print_daemon_absence;
use super::{reason_documents, reason_text};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::Printer;

pub(super) fn run(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    let queued = list(&town, CycleCaller::Daemon)?;
    let absence = daemon::absence(&town, &status(&town)?)?;
    let printer = context.printer;
    if printer.json() {
        let mut list = printer.list();
        for entry in &queued {
            list.push(&document(entry, absence))?;
        }
        return list.finish();
    }
    print_daemon_absence(printer, absence)?;
    text(printer, &queued)
}

fn text(printer: &Printer, queued: &[QueuedBead]) -> Result<(), CliError> {
    printer.line(format!("Queued beads: {}", queued.len()))?;
    let mut rigs: BTreeMap<&str, Vec<&QueuedBead>> = BTreeMap::new();
    for entry in queued {
        rigs.entry(entry.context.rig.as_str()).or_default().push(entry);
    }
    let mut rigs: Vec<_> = rigs.into_iter().collect();
    rigs.sort_by_key(|(_, entries)| std::cmp::Reverse(entries.len()));
    for (rig, entries) in rigs {
        printer.line("")?;
        printer.line(format!("{rig} ({}):", entries.len()))?;
        for entry in entries {
            let why = reason_text(&entry.reasons).map(|why| format!("  ({why})"));
            let why = why.unwrap_or_default();
            printer.paragraph(format!("  {}  {}{why}", entry.context.bead, title(entry)))?;
        }
    }
    let mut reasons = queued.iter().flat_map(|entry| &entry.reasons);
    if let Some(pause) = reasons.find(|reason| matches!(reason, WaitReason::Paused(..))) {
        printer.note(format!("Nothing starts: {pause}"));
    }
    Ok(())
}

fn title(entry: &QueuedBead) -> &str {
    entry.row.as_ref().map_or("", |row| row.bead.title.as_str())
}

/// A scheduled bead, for programs.
pub(super) fn document(entry: &QueuedBead, absence: Option<DaemonAbsence>) -> QueuedDocument {
    let context = &entry.context;
    let has_failed = context.failures > 0;
    QueuedDocument {
        daemon_absence: absence_document(absence).filter(|_| entry.is_ready()),
        id: context.bead.to_string(),
        title: title(entry).to_owned(),
        status: entry.row.as_ref().map_or("deleted", |row| row.bead.status.as_str()).to_owned(),
        target_rig: context.rig.to_string(),
        blocked: !entry.is_ready(),
        context: context.id.to_string(),
        priority: context.priority.number(),
        enqueued_at: context.enqueued_at.into(),
        enqueued_by: context.enqueued_by.clone(),
        gated: context.gated,
        dispatch_failures: has_failed.then(|| context.failures.into()),
        last_failure: has_failed.then(|| context.last_failure.clone()),
        reason: entry.reasons.first().map(ToString::to_string),
        reasons: reason_documents(&entry.reasons),
    }
}
