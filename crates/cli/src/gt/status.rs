//! `gt status`.

use clap::Args;
use gt_core::Message;
use gt_operations::recovery::{self, Need};
use gt_operations::{EventFilter, beads, events, messages, outbox, queue, rigs, worker};
use gt_records::{ObjectWriter, event_json};

use super::mail::{print_asking, write_message};
use super::prime::{print_running, write_running};
use super::scheduler::{budget_line, parked_line, write_budgets, write_parked};
use crate::bd::event_line;
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, plural};

const EVENTS_SHOWN: usize = 5;
const NEEDS_SHOWN: usize = 10;

/// Show how the town stands
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt status --json")]
pub(super) struct StatusArgs {}

pub(super) fn run(context: &Context<'_>) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let numbers = beads::statistics(&town)?;
    let ready = beads::ready_count(&town)?;
    let rigs = rigs::list(&town)?;
    let scheduler = queue::status(&town)?;
    let recent = events::latest(&town, &EventFilter::default(), EVENTS_SHOWN)?;
    let notices = outbox::unsent(&town)?;
    let running = worker::running(&town)?;
    let needs_you = messages::needs_you(&town)?;
    let needs = recovery::needs_you(&town)?;
    let active = numbers.with_status("in_progress") + numbers.with_status("hooked");
    if printer.json() {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("town", &town.root().display().to_string());
        object.object("beads", |object| {
            object.number("total", numbers.total());
            for (status, count) in &numbers.by_status {
                object.number(status, *count);
            }
        });
        object.count("ready", ready);
        object.number("waiting", numbers.blocked);
        object.number("active", active);
        object.object("notices", |object| {
            object.count("waiting", notices.waiting);
            object.count("given_up", notices.given_up);
        });
        object.object("scheduler", |object| {
            object.flag("paused", scheduler.paused.is_some());
            object.count("queued_total", scheduler.queued);
            object.count("queued_ready", scheduler.ready);
            object.count("active_polecats", scheduler.live.into());
            write_parked(object, &scheduler.parked);
            write_budgets(object, &scheduler.budgets);
        });
        object.array("needs_you", |array| {
            for need in &needs {
                array.object(|object| write_need(object, need));
            }
            for message in &needs_you {
                array.object(|object| {
                    object.text("code", "help-wanted");
                    write_message(object, message);
                });
            }
        });
        write_running(&mut object, &running);
        object.array("rigs", |array| {
            for (rig, counts) in &rigs {
                array.object(|object| {
                    object.text("name", rig.slug.as_str());
                    object.text("prefix", rig.prefix.as_str());
                    object.text("state", rig.state.as_str());
                    object.object("beads", |object| {
                        for (status, count) in counts {
                            object.number(status, *count);
                        }
                    });
                });
            }
        });
        object.array("recent_events", |array| {
            for event in &recent {
                array.raw(&event_json(event));
            }
        });
        object.finish();
        return printer.object(&out);
    }
    printer.line(format!("Town {}", town.root().display()))?;
    lead(printer, &needs, &needs_you)?;
    printer.line(format!(
        "{}: {ready} ready, {active} in progress, {} waiting, {} closed",
        plural(u64::try_from(numbers.total()).unwrap_or(0), "bead"),
        numbers.blocked,
        numbers.with_status("closed")
    ))?;
    let paused = scheduler.paused.as_ref().map(|pause| format!(", paused by {}", pause.by));
    printer.line(format!(
        "Scheduler: {} queued, {} ready, {} polecats running{}",
        scheduler.queued,
        scheduler.ready,
        super::scheduler::capacity(scheduler.live, scheduler.cap),
        paused.unwrap_or_default()
    ))?;
    for parked in scheduler.parked.iter().filter(|parked| parked.park.is_limit()) {
        printer.line(parked_line(parked))?;
    }
    for budget in &scheduler.budgets {
        printer.line(budget_line(budget))?;
    }
    for reason in &scheduler.short {
        printer.line(format!("Waits for {reason}"))?;
    }
    if notices.waiting + notices.given_up > 0 {
        printer.line(format!(
            "Notices: {} waiting to be sent, {} given up (gt outbox list)",
            notices.waiting, notices.given_up
        ))?;
    }
    print_running(printer, &town, &running)?;
    if rigs.is_empty() {
        printer.line("No rigs yet; add one with gt rig add <name> <git-url-or-path>")?;
    } else {
        let mut table = Table::with_header(&["RIG", "PREFIX", "STATE", "BEADS NOT CLOSED"]);
        for (rig, counts) in &rigs {
            let open = counts.iter().filter(|(status, _)| status != "closed");
            let open: i64 = open.map(|(_, count)| count).sum();
            table.row(vec![
                Cell::new(rig.slug.as_str()),
                Cell::new(rig.prefix.as_str()),
                Cell::new(rig.state.as_str()),
                Cell::new(open.to_string()),
            ]);
        }
        printer.line("")?;
        printer.table(table)?;
    }
    if !recent.is_empty() {
        printer.line("")?;
        printer.line("Lately")?;
        recent.iter().try_for_each(|event| printer.line(event_line(event)))?;
    }
    Ok(())
}

/// What waits for a person comes before everything else.
fn lead(printer: &Printer, needs: &[Need], asking: &[Message]) -> Result<(), CliError> {
    if needs.is_empty() && asking.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    print_needs(printer, needs)?;
    if needs.is_empty() {
        printer.heading("Needs you", "")?;
    }
    print_asking(printer, asking)?;
    printer.line("")
}

/// Something that waits for a person, for programs.
pub(super) fn write_need(object: &mut ObjectWriter<'_>, need: &Need) {
    object.text("code", need.code());
    object.text("what", &need.what());
    object.text("remedy", &need.remedy());
}

/// What waits for a person.
pub(super) fn print_needs(printer: &Printer, needs: &[Need]) -> Result<(), CliError> {
    if needs.is_empty() {
        return Ok(());
    }
    printer.heading("Needs you", "")?;
    for need in needs.iter().take(NEEDS_SHOWN) {
        printer.line(format!("  {}; {}", need.what(), need.remedy()))?;
    }
    match needs.len().saturating_sub(NEEDS_SHOWN) {
        0 => Ok(()),
        more => printer.line(format!("  and {more} more (gt status --json)")),
    }
}
