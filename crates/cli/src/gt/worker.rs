//! `gt worker`: what the scheduler starts around an agent.

use clap::{Args, Subcommand};
use gt_core::schedule::RunId;
use gt_operations::runs;

use crate::context::Context;
use crate::error::CliError;

/// The process around an agent; the scheduler starts it, people do not
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt worker exec gt-abc#3")]
pub(super) struct WorkerArgs {
    #[command(subcommand)]
    verb: WorkerVerb,
}

#[derive(Debug, Subcommand)]
enum WorkerVerb {
    /// Take a run that is starting, carry it out, and write down how it ended
    ///
    /// Prints one line: started, or why not ("busy: …", "failed: …"). A run that is not starting any more is
    /// refused, and then nothing is executed.
    Exec {
        /// The run, such as gt-abc#3
        run: String,
        /// When it has ended, say so and take further runs from standard input, each a line with the run and its agent
        #[arg(long)]
        stay: bool,
    },
}

pub(super) fn run(context: &Context<'_>, args: &WorkerArgs) -> Result<(), CliError> {
    let WorkerVerb::Exec { run, stay } = &args.verb;
    let done = supervise(context, run, *stay);
    if let Err(error) = &done {
        // Whoever started us listens; everybody else reads the log that standard error goes to.
        runs::say_failed(&error.chain());
    }
    done
}

fn supervise(context: &Context<'_>, run: &str, stay: bool) -> Result<(), CliError> {
    let id = RunId::parse(run)?;
    let town = context.town_of_worker()?;
    let done = if stay { runs::supervise_all(town, &id) } else { runs::supervise(&town, &id) };
    Ok(done?)
}
