//! `gt why`.

use clap::Args;
use gt_core::decide::{ConvoyState, WaitReason};
use gt_core::schedule::{Context as SlingContext, Run};
use gt_core::{Bead, ExecutorKind, Outcome, Timestamp};
use gt_daemon::views;
use gt_scheduling::queue::{self, WhyAnswer, WhyHeadline};

use super::daemon::print_daemon_absence;
use super::mail::print_needs_you;
use super::run::lasted;
use super::status::print_needs;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Printer, Table, ago, local_times, run_state_colour, short_commit};

/// Say why a bead is not running: every reason, and what takes it away
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt why gt-abc\n  gt why gt-abc --json\n  gt why hq-ctx-0001f")]
pub(super) struct WhyArgs {
    /// A bead, or the context that it is scheduled as
    bead: String,
}

pub(super) fn run(context: &CommandContext<'_>, args: &WhyArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let why = queue::why(&town, &args.bead)?;
    let absence = views::absence_for(&town, &why)?;
    if printer.json() {
        return printer.object(&views::why_document(&why, absence));
    }
    print_daemon_absence(printer, absence)?;
    let now = town.now();
    printer.heading(why.bead.id.as_str(), &format!("  {}", why.bead.title.as_str()))?;
    printer.heading(&headline(&why, now), "")?;
    print_reasons(printer, &why)?;
    print_root_cause(printer, &why)?;
    print_needs(printer, &why.needs)?;
    print_line(printer, &why)?;
    print_holders(printer, &why, now)?;
    print_needs_you(printer, &why.needs_you)?;
    print_history(printer, &why, now)
}

/// The answer in one line.
fn headline(why: &WhyAnswer, now: Timestamp) -> String {
    let run = why.run.as_ref();
    match (why.headline(), run) {
        (WhyHeadline::Running | WhyHeadline::Starting, Some(run))
            if run.executor == ExecutorKind::None =>
        {
            format!("is with {} as {}", run.agent, run.id)
        }
        (WhyHeadline::Running, Some(run)) => {
            let steps = why.progress.map(|progress| format!(", steps {progress}"));
            let steps = steps.unwrap_or_default();
            format!("is running as {} for {}{steps}", run.id, lasted(run, now))
        }
        (WhyHeadline::Starting, Some(run)) => format!("is being started as {}", run.id),
        (WhyHeadline::Running | WhyHeadline::Starting, None) => "is running".to_owned(),
        (WhyHeadline::Landing, _) => "is done, and has not landed:".to_owned(),
        (WhyHeadline::Next, _) => {
            "starts with the next cycle; gt scheduler run starts it now".to_owned()
        }
        (WhyHeadline::Over, _) => {
            let how = match why.bead.outcome {
                Some(Outcome::Failed) => "failed",
                Some(Outcome::Cancelled) => "cancelled",
                Some(Outcome::Success) | None => "done",
            };
            let reason = &why.bead.close_reason;
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            let landed = why.landed.as_ref().map(|request| {
                format!(", landed on {} as {}", request.target, short_commit(&request.landed))
            });
            // A run that has landed its work says so in its reason.
            let landed = landed.filter(|landed| !reason.contains(landed.as_str()));
            format!("is over: {how}{reason}{}", landed.unwrap_or_default())
        }
        (WhyHeadline::Waiting, _) => format!("waits, for {}:", these(why)),
        (WhyHeadline::Idle, _) if is_only_unscheduled(why) => "is not scheduled".to_owned(),
        (WhyHeadline::Idle, _) => format!("does not run, for {}:", these(why)),
    }
}

fn these(why: &WhyAnswer) -> String {
    match why.reasons.len() {
        1 => "this reason".to_owned(),
        count => format!("these {count} reasons"),
    }
}

fn is_only_unscheduled(why: &WhyAnswer) -> bool {
    matches!(why.reasons.as_slice(), [WaitReason::NotScheduled])
}

/// Every reason, with what would take it away; without those that the headline says already.
fn print_reasons(printer: &Printer, why: &WhyAnswer) -> Result<(), CliError> {
    let is_told = match why.headline() {
        WhyHeadline::Running | WhyHeadline::Starting | WhyHeadline::Next | WhyHeadline::Over => {
            true
        }
        WhyHeadline::Landing | WhyHeadline::Waiting => false,
        WhyHeadline::Idle => is_only_unscheduled(why),
    };
    for (reason, remedy) in why.reasons.iter().zip(&why.remedies) {
        if !is_told {
            printer.line("")?;
            printer.paragraph(format!("• {}", local_times(&reason.to_string())))?;
        }
        printer.paragraph(format!("  → {remedy}"))?;
    }
    Ok(())
}

/// The chain of blockers and the bead at its end, with what moves that one.
fn print_root_cause(printer: &Printer, why: &WhyAnswer) -> Result<(), CliError> {
    let Some(root) = why.causes.last() else { return Ok(()) };
    printer.line("")?;
    printer.heading("Root cause", "")?;
    if why.causes.len() > 1 {
        let ids = why.causes.iter().map(|cause| cause.bead.id.as_str());
        let chain: Vec<&str> = std::iter::once(why.bead.id.as_str()).chain(ids).collect();
        printer.paragraph(format!("  {}", chain.join(" waits for ")))?;
    }
    let status = match root.bead.outcome {
        Some(Outcome::Failed) => "failed",
        _ => root.bead.status.as_str(),
    };
    let reason = match (root.reasons.first(), root.bead.outcome) {
        (_, Some(Outcome::Failed)) => root.bead.close_reason.clone(),
        (Some(reason), _) => local_times(&reason.to_string()),
        (None, _) => "the next cycle starts it".to_owned(),
    };
    printer.paragraph(format!(
        "  {} \"{}\" ({status}): {reason}",
        root.bead.id,
        root.bead.title.as_str()
    ))?;
    if root.remedy.is_empty() {
        Ok(())
    } else {
        printer.paragraph(format!("  → {}", root.remedy))
    }
}

/// Its place in line, and who is before it.
fn print_line(printer: &Printer, why: &WhyAnswer) -> Result<(), CliError> {
    let Some(outlook) = &why.outlook else { return Ok(()) };
    printer.line("")?;
    printer.heading("In line", &format!("  {} of {}", outlook.position, outlook.of))?;
    if outlook.ahead.is_empty() {
        return Ok(());
    }
    let ahead: Vec<&str> = outlook.ahead.iter().map(gt_core::BeadId::as_str).collect();
    let more = outlook.position - 1 - ahead.len();
    let more = if more > 0 { format!("{more} more, then ") } else { String::new() };
    printer.line(format!("  after {more}{}", ahead.join(", ")))
}

/// How many holders of slots are named; gt run list shows all of them.
const HOLDERS_NAMED: usize = 10;

/// Prints the runs that hold the slots for which the bead waits.
fn print_holders(printer: &Printer, why: &WhyAnswer, now: Timestamp) -> Result<(), CliError> {
    if why.holders.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    printer.heading("Slots are held by", "")?;
    let mut table = Table::new();
    for run in why.holders.iter().take(HOLDERS_NAMED) {
        table.row(vec![
            Cell::bold(format!("  {}", run.id)),
            Cell::coloured(run.state.as_str(), Some(run_state_colour(run.state))),
            Cell::new(lasted(run, now)),
            Cell::new(run.agent.as_str()),
        ]);
    }
    printer.table(table)?;
    match why.holders.len().saturating_sub(HOLDERS_NAMED) {
        0 => Ok(()),
        more => printer.line(format!("  and {more} more (gt run list)")),
    }
}

/// How it was scheduled, and what came of it so far.
fn print_history(printer: &Printer, why: &WhyAnswer, now: Timestamp) -> Result<(), CliError> {
    let mut table = Table::wrapped();
    let mut row = |name: &str, value: String| {
        table.row(vec![Cell::bold(name), Cell::new(value)]);
    };
    if let Some(context) = &why.context {
        row("Scheduled", scheduled(context, now));
        if context.failures > 0 {
            row(
                "Failed starts",
                format!("{}, the last: {}", context.failures, context.last_failure),
            );
        }
        if context.attempts > 0 {
            row("Runs before", format!("{} of {}", context.attempts, why.max_attempts));
        }
    }
    if let Some(run) = &why.run {
        row(if run.state.is_live() { "Run" } else { "Last run" }, told(run, now));
        if let Some(progress) = why.progress {
            row("Steps", format!("{progress} done (gt step list --run {})", run.id));
        }
    }
    if !why.convoys.is_empty() {
        let named = why.convoys.iter();
        let named = named.map(|convoy| format!("{} ({})", convoy.id, convoy_state(convoy)));
        row("Convoys", named.collect::<Vec<_>>().join(", "));
    }
    if why.context.is_none() && why.run.is_none() && why.convoys.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    printer.table(table)
}

/// The state of a convoy in a word.
fn convoy_state(convoy: &Bead) -> &str {
    match ConvoyState::of(convoy) {
        ConvoyState::Landed => "landed",
        ConvoyState::Staged | ConvoyState::Open | ConvoyState::Closed => convoy.status.as_str(),
    }
}

fn scheduled(context: &SlingContext, now: Timestamp) -> String {
    let since = ago(context.enqueued_at, now);
    let place = context.place.as_ref().map_or_else(|| context.rig.to_string(), ToString::to_string);
    let over = context.closed.as_ref().map(|closed| {
        format!("; {} {}", closed.reason.as_str().replace('-', " "), ago(closed.at, now))
    });
    format!(
        "{} {since} by {} for {place}{}",
        context.id,
        context.enqueued_by,
        over.unwrap_or_default()
    )
}

fn told(run: &Run, now: Timestamp) -> String {
    let reason = local_times(&run.explanation());
    let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
    let when = ago(run.ended_at.unwrap_or(run.created_at), now);
    // What an agent prints that asked for its work is not kept.
    let more = match run.executor {
        ExecutorKind::Pull => format!("gt work show {}", run.id.bead),
        _ => format!("gt run log {}", run.id),
    };
    format!("{} {} {when}{reason} ({more})", run.id, run.state_name())
}
