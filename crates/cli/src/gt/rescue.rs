//! `gt rescue`: the saved work of runs that did not end well.

use std::path::Path;

use clap::{Args, Subcommand};
use gt_api::{RescueDocument, RestoredDocument};
use gt_core::schedule::Rescued;
use gt_execution::trees::{self, RestoredRescue};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, ago, moment, plural, short_commit, size};

/// See what was saved of runs that did not end well, and go on from it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt rescue list
  gt rescue show gt-abc
  gt rescue restore gt-abc#2 --branch second-try")]
pub(super) struct RescueArgs {
    #[command(subcommand)]
    verb: RescueVerb,
}

#[derive(Debug, Subcommand)]
enum RescueVerb {
    /// List everything that was saved, the last first
    List,
    /// Show what was saved of a run, what was left out, and how to look at it
    #[command(after_help = "Examples:\n  gt rescue show gt-abc\n  gt rescue show gt-abc#2 --json")]
    Show(ShowArgs),
    /// Make a branch of what was saved, in the shared repository of the rig
    #[command(
        after_help = "Examples:\n  gt rescue restore gt-abc\n  gt rescue restore gt-abc#2 --branch second-try"
    )]
    Restore(RestoreArgs),
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// A run such as gt-abc#2, or a bead for the last of its runs of which something was saved
    run: String,
}

#[derive(Debug, Args)]
struct RestoreArgs {
    /// A run such as gt-abc#2, or a bead for the last of its runs of which something was saved
    run: String,
    /// The name of the branch; by default rescue/<bead>/<number>
    #[arg(long)]
    branch: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &RescueArgs) -> Result<(), CliError> {
    match &args.verb {
        RescueVerb::List => list(context),
        RescueVerb::Show(args) => show(context, args),
        RescueVerb::Restore(args) => restore(context, args),
    }
}

fn list(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let rescues = trees::rescues(&town)?;
    if printer.json() {
        let mut list = printer.list();
        for rescued in &rescues {
            list.push(&document(rescued, None))?;
        }
        return list.finish();
    }
    if rescues.is_empty() {
        return printer.done("Nothing had to be saved");
    }
    let mut table = Table::with_header(&["RUN", "RIG", "SAVED", "COMMIT", "LEFT OUT"]);
    for rescued in &rescues {
        table.row(vec![
            Cell::new(rescued.run.to_string()),
            Cell::new(rescued.rig.as_str()),
            Cell::new(ago(rescued.created_at, town.now())),
            Cell::new(short_commit(&rescued.commit)),
            Cell::new(match rescued.left_out.len() {
                0 => String::new(),
                count => plural(count as u64, "file"),
            }),
        ]);
    }
    printer.table(table)
}

fn show(context: &CommandContext<'_>, args: &ShowArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let rescued = trees::rescue_show(&town, &args.run)?;
    let repository = trees::rescue_repository(&town, &rescued)?;
    if printer.json() {
        return printer.object(&document(&rescued, Some(&repository)));
    }
    let git = format!("git -C {}", repository.display());
    printer.heading(&rescued.run.to_string(), &format!("  saved from {}", rescued.rig))?;
    let mut table = Table::wrapped();
    for (name, value) in [
        ("commit", short_commit(&rescued.commit).to_owned()),
        ("reference", rescued.reference.clone()),
        ("began from", short_commit(&rescued.base).to_owned()),
        ("saved", moment(rescued.created_at)),
        ("uncommitted", size(rescued.bytes)),
        ("look at it", format!("{git} show {}", rescued.reference)),
        ("all of it", format!("{git} diff {} {}", short_commit(&rescued.base), rescued.reference)),
        ("go on from it", format!("gt rescue restore {}", rescued.run)),
    ] {
        table.row(vec![Cell::bold(name), Cell::new(value)]);
    }
    for left in &rescued.left_out {
        table.row(vec![Cell::bold("left out"), Cell::new(left.as_str())]);
    }
    printer.table(table)
}

fn restore(context: &CommandContext<'_>, args: &RestoreArgs) -> Result<(), CliError> {
    let restored = trees::restore_rescue(&context.town()?, &args.run, args.branch.as_deref())?;
    let RestoredRescue { rescued, branch, repository } = &restored;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&RestoredDocument {
            run: rescued.run.to_string(),
            branch: branch.clone(),
            commit: rescued.commit.clone(),
            repository: repository.display().to_string(),
        });
    }
    printer.done(format!(
        "✓ The branch {branch} has what was saved of {}, in {}",
        rescued.run,
        repository.display()
    ))?;
    printer.done(format!("Next: git fetch {} {branch}, in a clone of yours", repository.display()))
}

fn document(rescued: &Rescued, repository: Option<&Path>) -> RescueDocument {
    let repository = repository.map(|repository| repository.display().to_string());
    RescueDocument { repository, ..rescued.into() }
}
