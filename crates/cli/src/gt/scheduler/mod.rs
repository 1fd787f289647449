//! `gt scheduler`, and the part of `gt queue` that is the same.

mod adopt;
mod control;
mod list;
mod retry;
mod run;
mod status;
mod until_done;

use clap::{Args, Subcommand};
use gt_api::WaitReasonDocument;
use gt_core::decide::WaitReason;
use gt_scheduling::dispatch::CycleCaller;
use gt_town::Environment;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::local_times;

pub(super) use retry::{RetryOfBeads, retry_and_print};
pub(super) use status::{budget_documents, budget_line, parked_line};

/// Look at the scheduler, and steer it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt scheduler                          # how it stands
  gt scheduler list                     # who waits, and why
  gt scheduler run --dry-run            # what would start now
  gt scheduler pause
  gt scheduler retry gt-abc")]
pub(super) struct SchedulerArgs {
    #[command(subcommand)]
    verb: Option<SchedulerVerb>,
}

#[derive(Debug, Subcommand)]
pub(super) enum SchedulerVerb {
    /// Show the mode, the caps, and how much waits and runs
    Status,
    /// List what waits, by rig, with the reasons
    List,
    Run(run::RunArgs),
    /// Start nothing any more; scheduling goes on, and what runs goes on
    Pause,
    /// Let work start again
    Resume,
    Drain(control::DrainArgs),
    Clear(control::ClearArgs),
    Retry(retry::RetryArgs),
    Adopt(adopt::AdoptArgs),
}

pub(super) fn run(context: &CommandContext<'_>, args: &SchedulerArgs) -> Result<(), CliError> {
    run_verb(context, args.verb.as_ref().unwrap_or(&SchedulerVerb::Status))
}

/// Runs what `gt scheduler` and `gt queue` share.
pub(super) fn run_verb(context: &CommandContext<'_>, verb: &SchedulerVerb) -> Result<(), CliError> {
    match verb {
        SchedulerVerb::Status => status::run(context),
        SchedulerVerb::List => list::run(context),
        SchedulerVerb::Run(args) => run::run(context, args),
        SchedulerVerb::Pause => control::pause(context),
        SchedulerVerb::Resume => control::resume(context),
        SchedulerVerb::Drain(args) => control::drain(context, args),
        SchedulerVerb::Clear(args) => control::clear(context, args),
        SchedulerVerb::Retry(args) => retry::run(context, args),
        SchedulerVerb::Adopt(args) => adopt::run(context, args),
    }
}

/// The caller of this command: a person, or the daemon.
fn caller(environment: &Environment) -> CycleCaller {
    match environment.get("GT_DAEMON") {
        Some(value) if !matches!(value, "0" | "false") => CycleCaller::Daemon,
        _ => CycleCaller::Hand,
    }
}

/// `3/10`: the live runs and the cap.
pub(super) fn capacity(live: u32, cap: Option<u32>) -> String {
    format!("{live}/{}", unlimited(cap))
}

fn unlimited(number: Option<u32>) -> String {
    number.map_or_else(|| "unlimited".to_owned(), |number| number.to_string())
}

/// Why a bead waits, in one line; nothing if only a pause holds it, which is said once for all.
pub(super) fn reason_text(reasons: &[WaitReason]) -> Option<String> {
    let own = reasons.iter().filter(|reason| !matches!(reason, WaitReason::Paused(..)));
    let texts: Vec<String> = own.map(|reason| local_times(&reason.to_string())).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Reasons for programs.
pub(super) fn reason_documents(reasons: &[WaitReason]) -> Vec<WaitReasonDocument> {
    reasons.iter().map(WaitReasonDocument::from).collect()
}
