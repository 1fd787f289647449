//! `gt scheduler list`: who waits, as the next cycle of the daemon would see them, whoever looks.

use std::collections::BTreeMap;

use gt_core::decide::WaitReason;
use gt_operations::daemon::{self, DaemonAbsence};
use gt_operations::dispatch::Caller;
use gt_operations::queue::{Queued, list, status};
use gt_records::ObjectWriter;

use super::super::daemon::{print_daemon_absence, write_daemon_absence};
use super::{reason_text, write_reasons};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Printer;

pub(super) fn run(context: &Context<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    let queued = list(&town, Caller::Daemon)?;
    let absence = daemon::absence(&town, &status(&town)?);
    let printer = context.printer;
    if printer.json() {
        let mut list = printer.list();
        for entry in &queued {
            list.push(&json(entry, absence))?;
        }
        return list.finish();
    }
    print_daemon_absence(printer, absence)?;
    text(printer, &queued)
}

fn text(printer: &Printer, queued: &[Queued]) -> Result<(), CliError> {
    printer.line(format!("Queued beads: {}", queued.len()))?;
    let mut rigs: BTreeMap<&str, Vec<&Queued>> = BTreeMap::new();
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
            printer.line(format!("  {}  {}{why}", entry.context.bead, title(entry)))?;
        }
    }
    let mut reasons = queued.iter().flat_map(|entry| &entry.reasons);
    if let Some(pause) = reasons.find(|reason| matches!(reason, WaitReason::Paused(..))) {
        printer.note(format!("Nothing starts: {pause}"));
    }
    Ok(())
}

fn title(entry: &Queued) -> &str {
    entry.row.as_ref().map_or("", |row| row.bead.title.as_str())
}

/// A scheduled bead as JSON.
pub(super) fn json(entry: &Queued, absence: Option<DaemonAbsence>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    if entry.is_ready() {
        write_daemon_absence(&mut object, absence);
    }
    let context = &entry.context;
    object.text("id", context.bead.as_str());
    object.text("title", title(entry));
    object.text("status", entry.row.as_ref().map_or("deleted", |row| row.bead.status.as_str()));
    object.text("target_rig", context.rig.as_str());
    object.flag_if_set("blocked", !entry.is_ready());
    object.text("context", context.id.as_str());
    object.number("priority", context.priority.number());
    object.timestamp("enqueued_at", context.enqueued_at);
    object.text("enqueued_by", &context.enqueued_by);
    object.flag_if_set("gated", context.gated);
    if context.failures > 0 {
        object.count("dispatch_failures", context.failures.into());
        object.text("last_failure", &context.last_failure);
    }
    if let Some(reason) = entry.reasons.first() {
        object.text("reason", &reason.to_string());
    }
    write_reasons(&mut object, &entry.reasons);
    object.finish();
    out
}
