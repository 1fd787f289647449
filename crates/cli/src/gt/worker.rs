//! `gt worker`: what the scheduler starts around an agent.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gt_core::runtime::Pattern;
use gt_core::schedule::RunId;
use gt_operations::runs::TypedPrompt;
use gt_operations::{landing, runs};

use crate::context::{Context, this_program};
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
        #[arg(required_unless_present = "stand_by")]
        run: Option<String>,
        /// When it has ended, say so and take further runs from standard input, each a line with the run and its agent
        #[arg(long)]
        stay: bool,
        /// Speak into this pipe instead of standard output
        #[arg(long, value_name = "PIPE", conflicts_with = "stay")]
        voice: Option<PathBuf>,
        /// Wait for the run at this pipe: one line with the run and its agent
        #[arg(long, value_name = "PIPE", conflicts_with_all = ["run", "stay", "voice"])]
        stand_by: Option<PathBuf>,
    },
    /// Serve a line from another machine on standard input and output
    #[command(hide = true)]
    Remote {
        /// Carry out one run, and go on when the line breaks
        #[arg(long)]
        keep: bool,
    },
    /// Type the prompt on standard input into the session of a supervisor
    ///
    /// Prints one line: arrived, or why not.
    #[command(hide = true)]
    Type {
        /// The process that the session was started with
        #[arg(long, value_name = "PROCESS")]
        supervisor: u32,
        /// What the screen shows once the prompt can be typed
        #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
        ready: Option<String>,
        /// What the screen shows once it has arrived
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
        /// What git calls the moment
        moment: String,
    },
}

pub(super) fn run(context: &Context<'_>, args: &WorkerArgs) -> Result<(), CliError> {
    match &args.verb {
        WorkerVerb::Exec { run, stay, voice, stand_by } => {
            let done = match (stand_by, run) {
                (Some(pipe), _) => stand_by_at(context, pipe),
                (None, run) => speak(voice.as_deref())
                    .and_then(|()| supervise(context, run.as_deref().unwrap_or_default(), *stay)),
            };
            if let Err(error) = &done {
                // Whoever started us listens; everybody else reads the log that standard error goes to.
                runs::say_failed(&error.chain());
            }
            done
        }
        WorkerVerb::Remote { keep } => {
            let (program, home) = (this_program()?, context.directory.clone());
            let serve = if *keep { runs::keep_run } else { runs::attend_line };
            serve(program, home).map_err(|error| {
                CliError::request(format!("the line from home cannot be served: {error}"))
            })
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
    context: &Context<'_>,
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

/// A person who works in the shared repository is nobody's worker, and is not kept from anything.
fn fence(context: &Context<'_>) -> Result<(), CliError> {
    let Some(run) = context.environment.acting_run() else { return Ok(()) };
    let mut updates = Vec::new();
    std::io::stdin().lock().read_to_end(&mut updates).map_err(|error| {
        CliError::request(format!("cannot read what git wants to change: {error}"))
    })?;
    Ok(landing::fence(&context.town_of_worker()?, &run, &updates)?)
}

fn stand_by_at(context: &Context<'_>, pipe: &Path) -> Result<(), CliError> {
    runs::supervise_on_order(pipe, &this_program()?, || context.town_of_worker())
}

fn supervise(context: &Context<'_>, run: &str, stay: bool) -> Result<(), CliError> {
    let id = RunId::parse(run)?;
    let (town, program) = (context.town_of_worker()?, this_program()?);
    let done = if stay {
        runs::supervise_all(town, &id, &program)
    } else {
        runs::supervise(&town, &id, &program)
    };
    Ok(done?)
}
