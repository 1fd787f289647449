//! `gt worker`: the processes that the scheduler starts around an agent.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use gt_core::runtime::Pattern;
use gt_core::schedule::RunId;
use gt_execution::runs;
use gt_execution::runs::{CallRunner, TypedPrompt};

use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::served::{self, CommandService};

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
        /// Speak into this pipe instead of standard output
        #[arg(long, value_name = "PIPE")]
        voice: Option<PathBuf>,
    },
    /// Type the prompt on standard input into the session of a supervisor
    ///
    /// Prints one line: arrived, or why not.
    #[command(hide = true)]
    Type {
        /// The process that the session was started with
        #[arg(long, value_name = "PROCESS")]
        supervisor: u32,
        /// The text on the screen once the prompt can be typed
        #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
        ready: Option<String>,
        /// The text on the screen once the prompt has arrived
        #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
        confirm: String,
    },
    /// Hold a session open until the run with this lock is over
    #[command(hide = true)]
    Hold {
        /// The lock file of the run
        lock: PathBuf,
    },
    /// Answer git, which asks before references change
    #[command(hide = true)]
    Fence {
        /// The state of the transaction, as git names it
        moment: String,
    },
}

pub(super) fn run(context: &CommandContext<'_>, args: &WorkerArgs) -> Result<(), CliError> {
    match &args.verb {
        WorkerVerb::Exec { run, voice } => {
            let done = speak(voice.as_deref()).and_then(|()| supervise(context, run));
            if let Err(error) = &done {
                // The process that started us listens; standard error goes to a log.
                if error.is_store_away() {
                    runs::say_away(&error.chain());
                } else {
                    runs::say_failed(&error.chain());
                }
            }
            done
        }
        WorkerVerb::Type { supervisor, ready, confirm } => {
            let typed = type_prompt(context, *supervisor, ready.as_deref(), confirm);
            let said = typed.map_or_else(|error| error.chain(), |()| runs::ARRIVED.to_owned());
            context.printer.data(said.replace('\n', " "))
        }
        WorkerVerb::Hold { lock } => runs::wait_until_unlocked(lock).map_err(|error| {
            CliError::request(format!("cannot wait for {}: {error}", lock.display()))
        }),
        WorkerVerb::Fence { .. } => fence(context),
    }
}

fn type_prompt(
    context: &CommandContext<'_>,
    supervisor: u32,
    ready: Option<&str>,
    confirm: &str,
) -> Result<(), CliError> {
    let mut text = Vec::new();
    std::io::stdin().lock().read_to_end(&mut text).map_err(|error| {
        CliError::request(format!("cannot read the prompt that is to be typed: {error}"))
    })?;
    let ready = ready.map(Pattern::parse).transpose()?;
    let confirm = Pattern::parse(confirm)?;
    let prompt = TypedPrompt { supervisor, text: &text, ready: ready.as_ref(), confirm: &confirm };
    Ok(runs::type_prompt(&context.town_of_worker()?, &prompt)?)
}

fn speak(voice: Option<&Path>) -> Result<(), CliError> {
    let Some(pipe) = voice else { return Ok(()) };
    runs::speak_into(pipe).map_err(|error| {
        CliError::request(format!("cannot speak into {}: {error}", pipe.display()))
    })
}

/// Refuses ref updates that are not a worker's to make. A person who works in the shared repository is no worker, so no
/// update of theirs is refused.
fn fence(context: &CommandContext<'_>) -> Result<(), CliError> {
    let Some(run) = context.environment.acting_run() else { return Ok(()) };
    let mut updates = Vec::new();
    served::stdin().read_to_end(&mut updates).map_err(|error| {
        CliError::request(format!("cannot read what git wants to change: {error}"))
    })?;
    Ok(gt_execution::trees::fence(&context.town_of_worker()?, &run, &updates)?)
}

fn supervise(context: &CommandContext<'_>, run: &str) -> Result<(), CliError> {
    let id = RunId::parse(run)?;
    let (town, program) = (context.town_of_worker()?, this_program()?);
    let runner: Arc<dyn CallRunner> = Arc::new(CommandService::new(&town, &context.environment));
    runs::supervise(&town, &id, &program, &runner)?;
    if town.has_directory() {
        // Work that does not land now stays in the merge queue for the next pass.
        let is_attended = gt_daemon::daemon::is_running(&town);
        let _ = gt_execution::merge_queue::land_own_of(&town, &program, &id, is_attended);
    }
    Ok(())
}
