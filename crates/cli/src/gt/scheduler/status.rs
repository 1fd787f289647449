//! `gt scheduler status`.

use gt_api::{BudgetDocument, QueuedDocument, RigQueueDocument, SchedulerStatusDocument};
use gt_core::decide::{Budget, Slots};
use gt_daemon::daemon::{self, DaemonAbsence};
use gt_daemon::views::{absence_document, parked_documents};
use gt_scheduling::dispatch::CycleCaller;
use gt_scheduling::dispatch::Parked;
use gt_scheduling::queue::{QueueStatus, list, status};
use gt_town::Town;

use super::super::daemon::print_daemon_absence;
use super::{capacity, list::document as queued_document, unlimited};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, ago, local_times, moment};

pub(super) fn run(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.town()?;
    let status = status(&town)?;
    let absence = daemon::absence(&town, &status)?;
    if context.printer.json() {
        let beads = list(&town, CycleCaller::Daemon)?;
        let beads = beads.iter().map(|bead| queued_document(bead, absence)).collect();
        return context.printer.object(&document(&status, absence, beads));
    }
    print_daemon_absence(context.printer, absence)?;
    text(context.printer, &town, &status)
}

/// The number of slots that are free, if there is a cap.
pub(super) fn free(slots: Slots) -> Option<u32> {
    match slots {
        Slots::Unlimited => None,
        Slots::Free(free) => Some(free),
    }
}

fn text(printer: &Printer, town: &Town, status: &QueueStatus) -> Result<(), CliError> {
    printer.line(format!("Queued: {} total, {} ready", status.queued, status.ready))?;
    printer.line(format!(
        "Running: {} polecats, {} slots free",
        capacity(status.live, status.cap),
        unlimited(free(status.slots()))
    ))?;
    printer.line(if status.settings.is_deferred() {
        "Mode: deferred; what is slung waits for a slot".to_owned()
    } else {
        let gate = if status.settings.queue_enabled { "a slot" } else { "gt queue run" };
        format!("Mode: direct; what is slung starts at once, what is queued waits for {gate}")
    })?;
    if let Some(pause) = &status.paused {
        printer.line(format!(
            "Paused: by {} since {}; gt scheduler resume lets work start again",
            pause.by,
            moment(pause.at)
        ))?;
    }
    for parked in &status.parked {
        printer.paragraph(parked_line(parked))?;
    }
    for budget in &status.budgets {
        printer.line(budget_line(budget))?;
    }
    for reason in &status.short {
        printer.line(format!("Waits for {}", local_times(&reason.to_string())))?;
    }
    if let Some((at, count)) = status.last_dispatch {
        printer.line(format!("Last dispatch: {count}, {}", ago(at, town.now())))?;
    }
    if status.rigs.is_empty() {
        return Ok(());
    }
    let mut table = Table::with_header(&["RIG", "STATE", "QUEUED", "READY", "RUNNING", "CAP"]);
    for (name, rig) in &status.rigs {
        table.row(vec![
            Cell::new(name),
            Cell::new(rig.state.map_or("gone", |state| state.as_str())),
            Cell::new(rig.queued.to_string()),
            Cell::new(rig.ready.to_string()),
            Cell::new(rig.running.to_string()),
            Cell::new(unlimited(rig.cap)),
        ]);
    }
    printer.line("")?;
    printer.table(table)
}

/// The used part of a budget, and the end of a spent one.
pub(in super::super) fn budget_line(budget: &Budget) -> String {
    let until = budget
        .until
        .filter(|_| budget.is_spent())
        .map(|until| format!("; until {}", moment(until)));
    let until = until.unwrap_or_default();
    format!("Budget: {budget}{until}")
}

/// Budgets for programs.
pub(in super::super) fn budget_documents(budgets: &[Budget]) -> Vec<BudgetDocument> {
    budgets.iter().map(BudgetDocument::from).collect()
}

/// The line about one parked or limited account or runtime, with its end and the reason.
pub(in super::super) fn parked_line(parked: &Parked) -> String {
    let Parked { park, hold } = parked;
    let word = if park.is_limit() { "Limited" } else { "Parked" };
    let (kind, name) = (park.means.kind.as_str(), &park.means.name);
    let hold = local_times(&hold.to_string());
    format!(
        "{word}: {kind} {name} {hold} ({}); gt deacon resume {kind} {name} ends it",
        park.reason
    )
}

fn document(
    status: &QueueStatus,
    absence: Option<DaemonAbsence>,
    beads: Vec<QueuedDocument>,
) -> SchedulerStatusDocument {
    let (settings, paused) = (&status.settings, status.paused.as_ref());
    let rigs = status.rigs.iter().map(|(name, rig)| RigQueueDocument {
        name: name.clone(),
        state: rig.state.map_or("gone", |state| state.as_str()).to_owned(),
        queued: rig.queued,
        ready: rig.ready,
        running: rig.running.into(),
        max_polecats: rig.cap.map(Into::into),
    });
    SchedulerStatusDocument {
        daemon_absence: absence_document(absence),
        mode: if settings.is_deferred() { "deferred" } else { "direct" }.to_owned(),
        paused: paused.is_some(),
        paused_by: paused.map(|pause| pause.by.clone()),
        paused_at: paused.map(|pause| pause.at.into()),
        last_dispatch_at: status.last_dispatch.map(|(at, _)| at.into()),
        last_dispatch_count: status.last_dispatch.map(|(_, count)| count),
        queued_total: status.queued,
        queued_ready: status.ready,
        active_polecats: status.live.into(),
        max_polecats: settings.max_polecats.map_or(-1, i64::from),
        queue_max_polecats: settings.queue_max_polecats.unwrap_or(0).into(),
        queue_enabled: settings.queue_enabled,
        capacity: status.cap.map(Into::into),
        free_slots: free(status.slots()).map(Into::into),
        parked: parked_documents(&status.parked),
        budgets: budget_documents(&status.budgets),
        reasons: super::reason_documents(&status.short),
        rigs: rigs.collect(),
        beads,
    }
}
