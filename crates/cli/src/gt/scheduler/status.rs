//! `gt scheduler status`.

use gt_core::decide::{Budget, BudgetKind, Hold, Slots};
use gt_core::schedule::Money;
use gt_operations::Town;
use gt_operations::daemon::{self, DaemonAbsence};
use gt_operations::dispatch::Caller;
use gt_operations::queue::{QueueStatus, list, status};
use gt_operations::recovery::Parked;
use gt_records::ObjectWriter;

use super::super::daemon::{print_daemon_absence, write_daemon_absence};
use super::{capacity, list::json as bead_json, unlimited};
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, ago, local_times, moment};

pub(super) fn run(context: &Context<'_>) -> Result<(), CliError> {
    let town = context.town()?;
    let status = status(&town)?;
    let absence = daemon::absence(&town, &status);
    if context.printer.json() {
        let beads = list(&town, Caller::Daemon)?;
        let beads: Vec<String> = beads.iter().map(|bead| bead_json(bead, absence)).collect();
        return context.printer.object(&json(&status, absence, &beads));
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
        printer.line(parked_line(parked))?;
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

/// What was used of a budget, and until when nothing is left.
pub(in super::super) fn budget_line(budget: &Budget) -> String {
    let until =
        if budget.is_spent() { format!("; until {}", moment(budget.until)) } else { String::new() };
    format!("Budget: {budget}{until}")
}

/// The field `budgets`.
pub(in super::super) fn write_budgets(object: &mut ObjectWriter<'_>, budgets: &[Budget]) {
    object.array("budgets", |array| {
        for budget in budgets {
            array.object(|object| {
                object.text("setting", budget.kind.setting());
                if let Some(rig) = &budget.rig {
                    object.text("rig", rig.as_str());
                }
                if budget.kind == BudgetKind::CostPerDay {
                    object.text("limit", &Money(budget.limit).to_string());
                    object.text("used", &Money(budget.used).to_string());
                } else {
                    object.count("limit", budget.limit);
                    object.count("used", budget.used);
                }
                if budget.is_spent() {
                    object.timestamp("until", budget.until);
                }
            });
        }
    });
}

/// What is parked, how long, and why.
pub(in super::super) fn parked_line(parked: &Parked) -> String {
    let Parked { park, hold } = parked;
    let word = if park.is_limit() { "Limited" } else { "Parked" };
    let (kind, name) = (park.means.kind.as_str(), &park.means.name);
    format!(
        "{word}: {kind} {name} {hold} ({}); gt deacon resume {kind} {name} ends it",
        park.reason
    )
}

/// The field `parked`.
pub(in super::super) fn write_parked(object: &mut ObjectWriter<'_>, parked: &[Parked]) {
    object.array("parked", |array| {
        for Parked { park, hold } in parked {
            array.object(|object| {
                object.text("kind", park.means.kind.as_str());
                object.text("name", &park.means.name);
                object.flag("limit", park.is_limit());
                object.text("reason", &park.reason);
                if let Some(closed) = park.closed {
                    object.timestamp("since", closed.since);
                    object.timestamp("until", closed.until);
                }
                match hold {
                    Hold::Trial(run) => object.text("trial", &run.to_string()),
                    Hold::Ramp(most, next) => {
                        object.count("max_runs", (*most).into());
                        object.timestamp("more_at", *next);
                    }
                    Hold::Until(_) | Hold::Once => {}
                }
            });
        }
    });
}

fn json(status: &QueueStatus, absence: Option<DaemonAbsence>, beads: &[String]) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    write_daemon_absence(&mut object, absence);
    let settings = &status.settings;
    object.text("mode", if settings.is_deferred() { "deferred" } else { "direct" });
    object.flag("paused", status.paused.is_some());
    if let Some(pause) = &status.paused {
        object.text("paused_by", &pause.by);
        object.timestamp("paused_at", pause.at);
    }
    if let Some((at, count)) = status.last_dispatch {
        object.timestamp("last_dispatch_at", at);
        object.count("last_dispatch_count", count);
    }
    object.count("queued_total", status.queued);
    object.count("queued_ready", status.ready);
    object.count("active_polecats", status.live.into());
    object.number("max_polecats", settings.max_polecats.map_or(-1, i64::from));
    object.count("queue_max_polecats", settings.queue_max_polecats.unwrap_or(0).into());
    object.flag("queue_enabled", settings.queue_enabled);
    write_limit(&mut object, "capacity", status.cap);
    write_limit(&mut object, "free_slots", free(status.slots()));
    write_parked(&mut object, &status.parked);
    write_budgets(&mut object, &status.budgets);
    super::write_reasons(&mut object, &status.short);
    object.array("rigs", |array| {
        for (name, rig) in &status.rigs {
            array.object(|object| {
                object.text("name", name);
                object.text("state", rig.state.map_or("gone", |state| state.as_str()));
                object.count("queued", rig.queued);
                object.count("ready", rig.ready);
                object.count("running", rig.running.into());
                write_limit(object, "max_polecats", rig.cap);
            });
        }
    });
    object.array("beads", |array| beads.iter().for_each(|bead| array.raw(bead)));
    object.finish();
    out
}

/// A number; null for no limit.
pub(super) fn write_limit(object: &mut ObjectWriter<'_>, name: &str, limit: Option<u32>) {
    match limit {
        Some(limit) => object.count(name, limit.into()),
        None => object.raw(name, "null"),
    }
}
