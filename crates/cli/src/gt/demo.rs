//! `gt demo`.

use std::time::Duration;

use clap::Args;
use gt_api::{DemoDocument, LatencyDocument, RawJson};
use gt_core::Timestamp;
use gt_daemon::daemon::LatencyReport;
use gt_daemon::demo::{
    DemoEvent, DemoEventKind, DemoOutcome, DemoPlan, DemoProgress, DemoResult, RunningDemo,
};

use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::output::{Printer, local_times, plural, short_commit};

/// How often the demo reads the state of its town.
const STATE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// See a whole town at work, in seconds
///
/// Makes a throw-away town with two repositories and an epic of eleven beads that depend on each other, stages and launches
/// it as a convoy, and lets scripted workers do it: one crashes, one reaches a usage limit, one breaks a check, two conflict,
/// and one is reviewed. Shows what happens until everything has landed. No account, no key, nothing outside of a temporary
/// directory.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 if everything landed, else 1.

Examples:
  gt demo
  gt demo --keep        # look around in the town afterwards")]
pub(super) struct DemoArgs {
    /// Keep the town, to look around in it
    #[arg(long)]
    keep: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &DemoArgs) -> Result<(), CliError> {
    let printer = context.printer;
    if !printer.json() {
        printer.done("Making a town with two repositories …")?;
        printer.flush()?;
    }
    let mut performance = RunningDemo::begin(&context.environment, &this_program()?)?;
    if !printer.json() {
        let (beads, rigs, cap) = performance.size();
        printer.done(format!(
            "{beads} beads in {rigs} rigs, room for {cap} workers at once; its daemon does the rest"
        ))?;
        let DemoPlan { convoy, waves } = performance.plan();
        let sizes: Vec<String> = waves.iter().map(ToString::to_string).collect();
        printer.done(format!(
            "Staged and launched as {convoy}, in {}: {}",
            plural(waves.len() as u64, "wave"),
            sizes.join(", then ")
        ))?;
        printer.done("")?;
    }
    let mut began = None;
    let progress = loop {
        let (moments, progress) = performance.advance()?;
        for moment in moments {
            let began = *began.get_or_insert(moment.at);
            if !printer.json() {
                printer.done(line(began, &moment))?;
            }
        }
        if progress != DemoProgress::GoesOn {
            break progress;
        }
        printer.wait(STATE_POLL_INTERVAL)?;
    };
    let ended = performance.end(args.keep)?;
    if printer.json() {
        printer.object(&document(&ended))?;
    } else {
        print_result(printer, &ended)?;
    }
    match progress {
        DemoProgress::Over if ended.outcome.landed == ended.outcome.beads => Ok(()),
        DemoProgress::Interrupted => Err(CliError::request("the demonstration was interrupted")),
        DemoProgress::Over | DemoProgress::GoesOn | DemoProgress::Stuck => {
            Err(CliError::request(format!(
                "only {} of {} beads landed; gt demo --keep leaves the town for a closer look",
                ended.outcome.landed, ended.outcome.beads
            )))
        }
    }
}

fn line(began: Timestamp, moment: &DemoEvent) -> String {
    let DemoEvent { at, bead, title, scene } = moment;
    let (mark, what) = match scene {
        DemoEventKind::Began { agent, earlier: 0 } => ("▶", format!("{title} ({agent})")),
        DemoEventKind::Began { agent, .. } => ("▶", format!("resumed by {agent}")),
        DemoEventKind::Landed { commit } => ("✓", format!("landed as {}", short_commit(commit))),
        DemoEventKind::SentBack { reason } => ("✗", format!("{reason}; a worker repairs it")),
        DemoEventKind::ReviewWanted => ("?", "its checks pass, and a person reviews it".to_owned()),
        DemoEventKind::Approved => ("✓", "approved by demo".to_owned()),
        DemoEventKind::Stumbled { reason } => {
            ("✗", format!("{}; nothing is lost", local_times(reason)))
        }
        DemoEventKind::Limited { until } => {
            ("⏸", format!("a usage limit, until {}", local_times(until)))
        }
    };
    format!("{:>6.2}s  {mark} {bead:<13} {what}", at.since(began).as_secs_f64())
}

fn print_result(printer: &Printer, ended: &DemoResult) -> Result<(), CliError> {
    let DemoResult { outcome, end_to_start, close_to_start, plan, convoy_landed, kept } = ended;
    let DemoOutcome { beads, landed, runs, most_at_once, cap, recovered, took } = outcome;
    printer.done("")?;
    printer.done(format!(
        "{landed} of {beads} beads landed in {:.1} s, in {}; never more than {most_at_once} of {cap} at once",
        seconds(*took),
        plural(*runs as u64, "run")
    ))?;
    if *convoy_landed {
        printer.done(format!(
            "{} has landed, in {}",
            plan.convoy,
            plural(plan.waves.len() as u64, "wave")
        ))?;
    }
    for (bead, after) in recovered {
        printer.done(format!(
            "{bead} stumbled and was taken up again after {:.1} s",
            seconds(*after)
        ))?;
    }
    for (what, latency) in
        [("a close to the next start", close_to_start), ("an end to the next start", end_to_start)]
    {
        if latency.count > 0 {
            printer.done(format!(
                "From {what}: {:.0} ms (median of {}, at most {:.0} ms)",
                latency.p50_ms, latency.count, latency.max_ms
            ))?;
        }
    }
    printer.done("")?;
    match kept {
        Some(root) => {
            printer.done(format!("Look around: cd {}", root.display()))?;
            printer.done(format!(
                "  gt convoy status {} · gt status · gt feed · gt run list · gt run log api-search",
                plan.convoy
            ))?;
            printer.done("Nothing runs there any more; remove the directory when you have seen enough")
        }
        None => printer.done(
            "Your own town: gt install ~/town && cd ~/town && gt rig add <name> <git-url-or-path>, then gt up",
        ),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a demonstration takes less than centuries")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

fn document(ended: &DemoResult) -> DemoDocument {
    let DemoResult { outcome, end_to_start, close_to_start, plan, convoy_landed, kept } = ended;
    DemoDocument {
        beads: outcome.beads as u64,
        landed: outcome.landed as u64,
        runs: outcome.runs as u64,
        most_at_once: outcome.most_at_once as u64,
        cap: outcome.cap as u64,
        took_ms: outcome.took,
        convoy: plan.convoy.to_string(),
        convoy_landed: *convoy_landed,
        waves: plan.waves.iter().map(|beads| *beads as u64).collect(),
        recovered_ms: outcome.recovered.iter().map(|(bead, ms)| (bead.clone(), *ms)).collect(),
        close_to_start: latency(close_to_start),
        end_to_start: latency(end_to_start),
        root: kept.as_ref().map(|root| root.display().to_string()),
    }
}

fn latency(latency: &LatencyReport) -> LatencyDocument {
    LatencyDocument {
        count: latency.count,
        max_ms: RawJson::decimal(latency.max_ms, 3),
        p50_ms: RawJson::decimal(latency.p50_ms, 3),
    }
}
