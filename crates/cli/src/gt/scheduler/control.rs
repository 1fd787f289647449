//! `gt scheduler pause`, `resume`, `drain` and `clear`.

use std::time::Duration;

use clap::Args;
use gt_api::{ClearedDocument, DrainDocument, PauseDocument};
use gt_core::Invalid;
use gt_core::schedule::{Run, RunId};
use gt_core::time::parse_duration;
use gt_scheduling::processes::LocalProcesses;
use gt_scheduling::queue::{self, Pause};

use super::super::daemon::note_daemon_absence;
use super::run::note_unrecovered;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, is_confirmed, moment, plural};
use crate::values::texts;

/// Start nothing any more, and wait until nothing runs
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt scheduler drain --timeout 10m && gt scheduler resume")]
pub(in crate::gt) struct DrainArgs {
    /// Wait at most this long (30s, 5m); the exit code is 1 if that was not enough
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
}

/// Take beads out of the queue without starting them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt scheduler clear                    # everything
  gt scheduler clear --bead gt-abc")]
pub(in crate::gt) struct ClearArgs {
    /// Only this bead (can be repeated)
    #[arg(long = "bead", value_name = "ID")]
    beads: Vec<String>,
    /// Do not ask before more than 10 beads are taken out of the queue
    #[arg(short, long)]
    yes: bool,
}

fn duration(text: &str) -> Result<Duration, Invalid> {
    parse_duration(text)
}

pub(super) fn pause(context: &CommandContext<'_>) -> Result<(), CliError> {
    let (pause, changed) = queue::pause(&context.store_town()?)?;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&PauseDocument {
            changed,
            paused: true,
            paused_by: Some(pause.by),
            paused_at: Some(pause.at.into()),
        });
    }
    printer.done(if changed {
        "✓ Paused: nothing starts until gt scheduler resume; what runs goes on".to_owned()
    } else {
        format!("Paused already by {} since {}; nothing to do", pause.by, moment(pause.at))
    })
}

pub(super) fn resume(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    print_resumed(context.printer, queue::resume(&town)?)?;
    note_daemon_absence(context.printer, &town);
    Ok(())
}

fn print_resumed(printer: &Printer, was: Option<Pause>) -> Result<(), CliError> {
    if printer.json() {
        return printer.object(&PauseDocument {
            changed: was.is_some(),
            paused: false,
            paused_by: None,
            paused_at: None,
        });
    }
    printer.done(match was {
        Some(pause) => {
            format!("✓ Resumed: it was paused by {} since {}", pause.by, moment(pause.at))
        }
        None => "Not paused; nothing to do".to_owned(),
    })
}

pub(super) fn drain(context: &CommandContext<'_>, args: &DrainArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let tell = |running: &[Run], errors: &[(RunId, String)]| {
        note_unrecovered(printer, errors);
        if !running.is_empty() {
            printer.note(format!("Waiting for {}", names(running)));
        }
    };
    let drained =
        gt_execution::drain::drain(&town, &LocalProcesses::of(&town)?, args.timeout, tell)?;
    if printer.json() {
        printer.object(&DrainDocument {
            drained: drained.running.is_empty(),
            paused: true,
            paused_by: drained.pause.by.clone(),
            paused_at: drained.pause.at.into(),
            running: texts(drained.running.iter().map(|run| &run.id)),
        })?;
    }
    if !drained.running.is_empty() {
        return Err(CliError::request(format!(
            "the time is over, and {} has not ended; nothing new starts until gt scheduler resume",
            names(&drained.running)
        )));
    }
    printer.done("✓ Drained: nothing runs, and nothing starts until gt scheduler resume")
}

/// `2 runs (gt-abc#1, gt-def#3)`.
fn names(running: &[Run]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> = running.iter().take(SHOWN).map(|run| run.id.to_string()).collect();
    if running.len() > SHOWN {
        names.push("…".to_owned());
    }
    format!("{} ({})", plural(running.len() as u64, "run"), names.join(", "))
}

/// How many beads a person on a terminal takes out of the queue without being asked.
const CLEARED_UNASKED_MAX: u64 = 10;

pub(super) fn clear(context: &CommandContext<'_>, args: &ClearArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    if args.beads.is_empty() && !args.yes && printer.is_terminal() && !printer.json() {
        let queued = queue::status(&town)?.queued;
        let question = format!("Take all {} out of the queue?", plural(queued, "bead"));
        if queued > CLEARED_UNASKED_MAX && !is_confirmed(printer, &question)? {
            return printer.done("Nothing was changed");
        }
    }
    let cleared = queue::clear(&town, &args.beads)?;
    if printer.json() {
        return printer.object(&ClearedDocument {
            cleared: cleared.cleared.len() as u64,
            beads: texts(&cleared.cleared),
            starting: texts(&cleared.starting),
        });
    }
    printer.done(format!("Cleared {} bead(s) from queue", cleared.cleared.len()))?;
    for bead in &cleared.starting {
        printer.note(format!("{bead} is being started; gt run cancel {bead} ends it"));
    }
    Ok(())
}
