//! `gt done`.

use std::io::IsTerminal as _;

use clap::Args;
use gt_core::schedule::{RunId, Said};
use gt_operations::landing::{self, Done, DoneRequest, Fate};
use gt_operations::{Town, runs};
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;
use crate::output::short_commit;

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
    #[arg(long, default_value = "completed", value_name = "completed|escalated|deferred", value_parser = Said::parse)]
    status: Said,
    /// What the commit of what is not committed yet says
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Finish although nothing has changed; --message says why, and the bead is closed with it
    #[arg(long, requires = "message", conflicts_with = "status")]
    no_changes: bool,
    /// The run, or a bead for its live or last run, if this is not said by its worker
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

pub(super) fn run(context: &Context<'_>, args: &DoneArgs) -> Result<(), CliError> {
    let own = context.environment.acting_run();
    let town = context.town()?;
    let run = match (&args.run, &own) {
        (Some(named), own) => {
            let run = runs::resolve(&town, named)?.id;
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
        landing::use_environment_of_supervisor(&town, &run);
    }
    let done = landing::done(&town, &request)?;
    if own.is_none() {
        printer.note(format!("Acting for the worker of {run}"));
    }
    if printer.json() {
        return printer.object(&json(&done));
    }
    printer.done(sentence(&done))
}

/// The run in whose tree a person stands. A program that has lost its environment is no person, and may be anybody's.
fn run_of_person(context: &Context<'_>, town: &Town) -> Result<RunId, CliError> {
    let unknown = |why: &str| {
        CliError::request(format!(
            "GT_RUN names no run, so nobody knows whose work is done{why}; a worker's shell has it, and a person names \
             the run: gt done --run <bead>#<number> (gt run list shows them)"
        ))
    };
    if !std::io::stdin().is_terminal() {
        return Err(unknown(""));
    }
    landing::run_at(town, &context.directory)?
        .ok_or_else(|| unknown(", and this is not the tree of a run"))
}

fn sentence(done: &Done) -> String {
    let Done { run, said, fate } = done;
    let whereabouts = match fate {
        Fate::Nothing => "nothing had changed".to_owned(),
        Fate::Landed { branch, commit } => {
            format!("landed on {branch} as {}", short_commit(commit))
        }
        Fate::Kept { branch, pushed: true } => format!("pushed as {branch}"),
        Fate::Kept { branch, pushed: false } => format!("kept on {branch}"),
        Fate::Merging { branch } => format!("{branch} waits to be merged"),
        Fate::Saved { branch, left_out, why, .. } => {
            let without = match left_out.len() {
                0 => String::new(),
                left => format!("; {left} of its files are not in it"),
            };
            format!(
                "what is in its tree was not committed ({why}), and is saved as it is: gt rescue show {run}; what \
                 was committed before is on {branch}{without}"
            )
        }
        Fate::Left { tree, why } => {
            format!("what it did could not be saved and stays in {tree}: {why}")
        }
    };
    match said {
        Said::Completed => format!("✓ {run} is done: {whereabouts}"),
        Said::Escalated => format!("✓ {run} is over, and a person is asked: {whereabouts}"),
        Said::Deferred => format!("✓ {run} is over, and its bead is for later: {whereabouts}"),
    }
}

fn json(done: &Done) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("run", &done.run.to_string());
    object.text("status", done.said.as_str());
    match &done.fate {
        Fate::Nothing => object.text("work", "unchanged"),
        Fate::Landed { branch, commit } => {
            object.text("work", "landed");
            object.text("branch", branch);
            object.text("commit", commit);
        }
        Fate::Kept { branch, pushed } => {
            object.text("work", "kept");
            object.text("branch", branch);
            object.flag("pushed", *pushed);
        }
        Fate::Merging { branch } => {
            object.text("work", "merging");
            object.text("branch", branch);
        }
        Fate::Saved { reference, commit, branch, left_out, why } => {
            object.text("work", "saved");
            object.text("branch", branch);
            object.text("commit", commit);
            object.array("left_out", |array| {
                for left in left_out {
                    array.text(left);
                }
            });
            object.text("reason", why);
            object.text("reference", reference);
        }
        Fate::Left { tree, why } => {
            object.text("work", "left");
            object.text("reason", why);
            object.text("tree", tree);
        }
    }
    object.finish();
    out
}
