//! `gt daemon status`.

use clap::Args;
use gt_api::NotRunningDocument;
use gt_core::Timestamp;
use gt_daemon::daemon::{self, DaemonPresence, DaemonReport, LatencyReport};
use gt_scheduling::queue;

use super::who;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, span};

/// A daemon that has said nothing for longer than this does not move, in seconds.
const SILENT_AFTER_SECONDS: u64 = 30;

/// Show whether it runs and how it is
///
/// Exit code 1 if no daemon runs.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt daemon status --json")]
pub(super) struct StatusArgs {}

pub(super) fn run(context: &CommandContext<'_>) -> Result<(), CliError> {
    let root = context.root()?;
    let presence = daemon::presence(&root)?;
    let printer = context.printer;
    let DaemonPresence::Running { pid, since, report } = presence else {
        if printer.json() {
            printer.object(&NotRunningDocument { running: false })?;
        } else {
            printer.line("The daemon is not running; gt up starts it")?;
        }
        return Err(CliError::Said(1));
    };
    let town = context.town();
    let live = town.as_ref().ok().and_then(|town| Some(queue::status(town).ok()?.live));
    if printer.json() {
        let mut fields = match report.as_deref().map(serde_json::to_value) {
            Some(Ok(serde_json::Value::Object(fields))) => fields,
            _ => serde_json::Map::new(),
        };
        fields.insert("running".to_owned(), true.into());
        fields.insert("pid".to_owned(), pid.into());
        fields.insert("since".to_owned(), since.into());
        fields.insert("live_runs".to_owned(), live.into());
        fields.insert("log".to_owned(), daemon::log_path(&root).display().to_string().into());
        return printer.object(&fields);
    }
    printer.line(format!("The daemon runs{}", who(pid, &since)))?;
    if let Some(live) = live {
        printer.line(format!("Live runs: {live}"))?;
    }
    match report {
        None => printer.line("It has not said yet how it is")?,
        Some(report) => {
            let now = town.ok().map(|town| town.now());
            text(printer, &report, now)?;
        }
    }
    printer.line(format!("Log: {} (gt daemon logs)", daemon::log_path(&root).display()))
}

fn text(printer: &Printer, report: &DaemonReport, now: Option<Timestamp>) -> Result<(), CliError> {
    let seen = Timestamp::parse(&report.seen_at).ok();
    if let (Some(now), Some(seen)) = (now, seen)
        && now.since(seen).as_secs() > SILENT_AFTER_SECONDS
    {
        printer.line(format!(
            "It has not moved for {}: it is stopped or stuck, or its disk is full; to kill it does no harm",
            span(now.since(seen))
        ))?;
    }
    if !report.ready {
        printer.line("It is still looking at everything for the first time")?;
    }
    if !report.bell {
        printer.line("Commands cannot ring at its door, so it looks once a second")?;
    }
    printer.line(format!(
        "Last event seen: {}; workers adopted at its start: {}; watched: {}",
        report.last_event, report.adopted, report.watched
    ))?;
    printer.line(format!(
        "Full scans: {}, which found {} that no event had announced",
        report.scans, report.scan_findings
    ))?;
    latency(printer, "Close → start", &report.close_to_start)?;
    latency(printer, "End → start", &report.end_to_start)?;
    let mut table = Table::with_header(&["RECONCILER", "ROUNDS", "DONE", "ERRORS", "LAST ERROR"]);
    for (name, duty) in &report.reconcilers {
        table.row(vec![
            Cell::new(name),
            Cell::new(duty.rounds.to_string()),
            Cell::new(duty.done.to_string()),
            Cell::new(duty.errors.to_string()),
            Cell::new(&duty.last_error),
        ]);
    }
    printer.table(table)
}

fn latency(printer: &Printer, name: &str, times: &LatencyReport) -> Result<(), CliError> {
    if times.count == 0 {
        return Ok(());
    }
    printer.line(format!(
        "{name}: {} times, median {:.1} ms, 90 % {:.1} ms, 99 % {:.1} ms, longest {:.1} ms",
        times.count, times.p50_ms, times.p90_ms, times.p99_ms, times.max_ms
    ))
}
