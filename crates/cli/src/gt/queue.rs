//! `gt queue`: the same as `gt scheduler`, and a way to put beads in line.

use clap::{Args, Subcommand as _};
use gt_core::similar_names::closest;
use gt_scheduling::queue::{QueueStatus, status};
use gt_town::OperationError;

use super::daemon::note_daemon_absence;
use super::scheduler::{self, SchedulerVerb};
use super::sling::{SlingFlags, sling_words};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, moment, plural};
use gt_beads::lookup::resolve;

/// Put beads in line, and look after the line
///
/// Without anything the queue in numbers. With beads, epics or convoys these are queued: they wait for a slot. What is
/// queued while the town has no cap waits for gt queue run too, or until the queue is enabled; a cap that is set later does
/// not start it.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  gt queue                              # the queue in numbers
  gt queue gt-abc gt-def                # put beads in line; their rigs are known from their prefixes
  gt queue gt-epic-123                  # everything below an epic
  gt queue mol-review --on gt-abc       # a formula on a bead
  gt queue list                         # who waits, and why
  gt queue run                          # start what may start

The queue is enabled with gt config set queue.enabled true, the cap with
gt config set scheduler.max_polecats 5."
)]
pub(super) struct QueueArgs {
    #[command(subcommand)]
    verb: Option<SchedulerVerb>,
    /// Beads, epics or convoys, or a formula with --on; a rig or <rig>/<name> may be the last
    #[arg(value_name = "BEAD|FORMULA|TARGET")]
    words: Vec<String>,
    #[command(flatten)]
    flags: SlingFlags,
}

pub(super) fn run(context: &CommandContext<'_>, args: &QueueArgs) -> Result<(), CliError> {
    match &args.verb {
        Some(verb) => scheduler::run_verb(context, verb),
        None if args.words.is_empty() && !args.flags.any() => numbers(context),
        None => {
            // With --on it is a formula.
            if args.flags.names_nothing() {
                refuse_mistyped_verb(context, &args.words)?;
            }
            sling_words(context, &args.words, &args.flags, true)
        }
    }
}

/// Says what was perhaps meant by a first word that is no bead and nearly a verb.
fn refuse_mistyped_verb(context: &CommandContext<'_>, words: &[String]) -> Result<(), CliError> {
    let Some(first) = words.first() else { return Ok(()) };
    let verbs = SchedulerVerb::augment_subcommands(clap::Command::new("queue"));
    let names = verbs.get_subcommands().map(clap::Command::get_name);
    let Some(meant) = closest(first, names) else { return Ok(()) };
    match resolve(&context.town()?, first) {
        Err(OperationError::NoBead(name)) => Err(CliError::request(format!(
            "no issue found matching \"{name}\"; did you mean gt queue {meant}?"
        ))),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn numbers(context: &CommandContext<'_>) -> Result<(), CliError> {
    if context.printer.json() {
        return scheduler::run_verb(context, &SchedulerVerb::Status);
    }
    let town = context.town()?;
    print(context.printer, &status(&town)?)?;
    note_daemon_absence(context.printer, &town);
    Ok(())
}

fn print(printer: &Printer, status: &QueueStatus) -> Result<(), CliError> {
    printer.line("Queue Status:")?;
    printer.line("")?;
    printer.line(format!("  Pending:  {}", plural(status.queued, "bead")))?;
    printer.line(format!("  Running:  {}", plural(status.live.into(), "polecat")))?;
    printer.line(format!("  Capacity: {}", scheduler::capacity(status.live, status.cap)))?;
    if let Some(pause) = &status.paused {
        printer.line(format!("  Paused:   by {} since {}", pause.by, moment(pause.at)))?;
    }
    let mut rigs: Vec<_> = status.rigs.iter().filter(|(_, rig)| rig.queued > 0).collect();
    rigs.sort_by(|a, b| b.1.queued.cmp(&a.1.queued).then_with(|| a.0.cmp(b.0)));
    if !rigs.is_empty() {
        printer.line("")?;
        printer.line("  By rig:")?;
        for (name, rig) in rigs {
            printer.line(format!("    {name}: {}", rig.queued))?;
        }
    }
    Ok(())
}
