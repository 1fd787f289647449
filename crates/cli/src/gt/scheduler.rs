//! `gt scheduler`, as far as the tests of runs need it.

use clap::{Args, Subcommand};
use gt_operations::dispatch::{Pass, pass};
use gt_operations::{queue, schedule};

use crate::context::Context;
use crate::error::CliError;

/// Steer the scheduler
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt scheduler run")]
pub(super) struct SchedulerArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start what can start
    Run,
    /// Stop all starts
    Pause,
    /// Let work start again
    Resume,
    /// Take beads out of the queue
    Clear { beads: Vec<String> },
    /// Try again
    Retry { beads: Vec<String> },
}

pub(super) fn run(context: &Context<'_>, args: &SchedulerArgs) -> Result<(), CliError> {
    let town = context.town()?;
    match &args.verb {
        Verb::Run => {
            let program = std::env::current_exe()?;
            let (_, done) = pass(&town, &Pass::by_hand(&program))?;
            for (bead, error) in &done.errors {
                context.printer.note(format!("{bead}: {error}"));
            }
            for started in &done.dispatched {
                context.printer.done(format!("{} started", started.bead))?;
            }
        }
        Verb::Pause => drop(queue::pause(&town)?),
        Verb::Resume => drop(queue::resume(&town)?),
        Verb::Clear { beads } => drop(queue::clear(&town, beads)?),
        Verb::Retry { beads } => {
            for result in schedule::retry(&town, beads, false)? {
                result?;
            }
        }
    }
    Ok(())
}
