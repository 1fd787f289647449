//! `gt done`.

use clap::Args;
use gt_api::DoneDocument;
use gt_core::schedule::{DoneStatus, RunId};
use gt_daemon::finishing::finish_run;
use gt_execution::landing::{self, DoneRequest, DoneResult, WorkDelivery};
use gt_town::Town;

use crate::context::{CommandContext, this_program};
use crate::error::CliError;
use crate::output::{local_times, short_commit};

/// Finish the work of a run: commit it, accept it, and bring it where it belongs
///
/// A worker says this when its work is done. Everything in its tree is committed and lands on the branch that it began
/// from, unless it was slung otherwise. A person who finishes a run for its worker stands in its tree or names it with
/// --run.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gt done\n  gt done -m \"Let the parser take empty lines\"\n  \
                  gt done --no-changes -m \"The parser takes empty lines already\"\n  gt done --status escalated\n  gt done \
                  --run gt-abc#3"
)]
pub(super) struct DoneArgs {
    /// How the work ends: completed, escalated (a person is needed) or deferred (for later)
    #[arg(long, default_value = "completed", value_name = "completed|escalated|deferred", value_parser = DoneStatus::parse)]
    status: DoneStatus,
    /// The message of the commit of uncommitted changes
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Finish although nothing has changed; --message says why, and the bead is closed with it
    #[arg(long, requires = "message", conflicts_with = "status")]
    no_changes: bool,
    /// The run, or a bead for its live or last run, if this is not said by its worker
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &DoneArgs) -> Result<(), CliError> {
    let own = context.environment.acting_run();
    let town = context.town()?;
    let run = match (&args.run, &own) {
        (Some(named), own) => {
            let run = gt_beads::run_records::resolve(&town, named)?.id;
            if let Some(own) = own.as_ref().filter(|own| **own != run) {
                return Err(CliError::request(format!(
                    "GT_RUN says that this is the worker of {own}, which cannot finish {run}; leave --run out"
                )));
            }
            run
        }
        (None, Some(own)) => own.clone(),
        (None, None) => run_of_person(context, &town)?,
    };
    let request = DoneRequest {
        run: &run,
        said: args.status,
        message: args.message.as_deref(),
        no_changes: args.no_changes,
    };
    let printer = context.printer;
    if own.is_some() {
        gt_execution::trees::use_environment_of_supervisor(&town, &run);
    }
    // Around the worker there may be no origin and no sandbox for checks. Its supervisor lands the work, or the daemon.
    let is_wrapped = context.environment.is_wrapped();
    let program = if is_wrapped { None } else { this_program().ok() };
    let done = finish_run(&town, &request, program.as_deref())?;
    if own.is_none() {
        printer.note(format!("Acting for the worker of {run}"));
    }
    if printer.json() {
        return printer.object(&document(&done));
    }
    printer.done(sentence(&done))
}

/// The run whose worktree holds the working directory of a person. A program without `GT_RUN` may belong to any run, so it
/// is refused.
fn run_of_person(context: &CommandContext<'_>, town: &Town) -> Result<RunId, CliError> {
    let unknown = |why: &str| {
        CliError::request(format!(
            "GT_RUN names no run, so it is unknown which run is done{why}; a worker's shell has it, and a person names \
             the run: gt done --run <bead>#<number> (gt run list shows them)"
        ))
    };
    if !crate::served::stdin_is_terminal() {
        return Err(unknown(""));
    }
    landing::run_at(town, &context.directory)?
        .ok_or_else(|| unknown(", and this is not the tree of a run"))
}

fn sentence(done: &DoneResult) -> String {
    let DoneResult { run, said, delivery } = done;
    let whereabouts = match delivery {
        WorkDelivery::Nothing => "nothing had changed".to_owned(),
        WorkDelivery::Landed { branch, commit } => {
            format!("landed on {branch} as {}", short_commit(commit))
        }
        WorkDelivery::Kept { branch, pushed: true } => format!("pushed as {branch}"),
        WorkDelivery::Kept { branch, pushed: false } => format!("kept on {branch}"),
        WorkDelivery::Merging(request) => local_times(&request.state_reason()),
        WorkDelivery::Saved { branch, left_out, why, .. } => {
            let without = match left_out.len() {
                0 => String::new(),
                left => format!("; {left} of its files are not in it"),
            };
            format!(
                "what is in its tree was not committed ({why}), and is saved as it is: gt rescue show {run}; what \
                 was committed before is on {branch}{without}"
            )
        }
        WorkDelivery::Left { tree, why } => {
            format!("what it did could not be saved and stays in {tree}: {why}")
        }
    };
    match said {
        DoneStatus::Completed => format!("✓ {run} is done: {whereabouts}"),
        DoneStatus::Escalated => format!("✓ {run} is over, and a person is asked: {whereabouts}"),
        DoneStatus::Deferred => {
            format!("✓ {run} is over, and its bead is for later: {whereabouts}")
        }
    }
}

fn document(done: &DoneResult) -> DoneDocument {
    let said = DoneDocument {
        run: done.run.to_string(),
        status: done.said.as_str().to_owned(),
        ..DoneDocument::default()
    };
    let work = |work: &str, branch: &str| DoneDocument {
        work: work.to_owned(),
        branch: Some(branch.to_owned()),
        ..said.clone()
    };
    match &done.delivery {
        WorkDelivery::Nothing => DoneDocument { work: "unchanged".to_owned(), ..said },
        WorkDelivery::Landed { branch, commit } => {
            DoneDocument { commit: Some(commit.clone()), ..work("landed", branch) }
        }
        WorkDelivery::Kept { branch, pushed } => {
            DoneDocument { pushed: Some(*pushed), ..work("kept", branch) }
        }
        WorkDelivery::Merging(request) => DoneDocument {
            request: Some(request.id.to_string()),
            ..work("merging", &request.branch)
        },
        WorkDelivery::Saved { reference, commit, branch, left_out, why } => DoneDocument {
            commit: Some(commit.clone()),
            left_out: Some(left_out.clone()),
            reason: Some(why.clone()),
            reference: Some(reference.clone()),
            ..work("saved", branch)
        },
        WorkDelivery::Left { tree, why } => DoneDocument {
            work: "left".to_owned(),
            reason: Some(why.clone()),
            tree: Some(tree.clone()),
            ..said
        },
    }
}
