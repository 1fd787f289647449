//! `gt polecat nuke`, `gt polecat undelete` and `gt polecat purge`.

use clap::Args;
use gt_api::NukedDocument;
use gt_core::schedule::{Polecat, Trashed};
use gt_execution::trees;

use super::super::for_each_argument::{ResultPrinting, do_each};
use super::list::trashed_document;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{moment, plural};

/// Take polecats out of service
///
/// Their trees are moved to the trash of the rig with everything that is in them, and come back with gt polecat
/// undelete. Refused while a polecat works.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gt polecat nuke gastown/nux\n  gt polecat nuke gastown/nux gastown/slit --dry-run"
)]
pub(super) struct NukeArgs {
    /// The polecats: <rig>/<name>
    #[arg(required = true)]
    polecats: Vec<String>,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
}

/// Bring a tree back that was moved away
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gt polecat list --trash\n  gt polecat undelete gastown/nux\n  gt polecat undelete '#3'"
)]
pub(super) struct UndeleteArgs {
    /// The polecat, for its last tree: <rig>/<name>; or the number of a tree: #3
    tree: String,
}

/// Delete the trees that were moved away longer ago than trash.keep
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt polecat purge --dry-run\n  gt polecat purge")]
pub(super) struct PurgeArgs {
    /// Only say what would be deleted
    #[arg(long)]
    dry_run: bool,
}

/// The result of removing one polecat.
struct RemovedPolecat {
    polecat: Polecat,
    trashed: Option<Trashed>,
    dry_run: bool,
}

impl RemovedPolecat {
    fn sentence(&self) -> String {
        let name = format!("{}/{}", self.polecat.rig, self.polecat.name);
        match (&self.trashed, self.dry_run) {
            (_, true) => format!("{name} would be taken away; its tree would go to the trash"),
            (None, false) => format!("✓ {name} is gone; it had no tree"),
            (Some(trashed), false) => format!(
                "✓ {name} is gone; its tree is in {} until {}. gt polecat undelete '#{}' brings it back",
                trashed.path,
                moment(trashed.purge_at),
                trashed.number
            ),
        }
    }

    fn document(&self) -> NukedDocument {
        let trashed = self.trashed.as_ref();
        NukedDocument {
            rig: self.polecat.rig.to_string(),
            name: self.polecat.name.clone(),
            dry_run: self.dry_run,
            number: trashed.map(|trashed| trashed.number),
            path: trashed.map(|trashed| trashed.path.clone()),
            purge_at: trashed.map(|trashed| trashed.purge_at.into()),
        }
    }
}

pub(super) fn nuke(context: &CommandContext<'_>, args: &NukeArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let dry_run = args.dry_run;
    let act = |input: &str| {
        let (polecat, trashed) = trees::nuke(&town, input, dry_run)?;
        Ok(RemovedPolecat { polecat, trashed, dry_run })
    };
    let telling = ResultPrinting {
        sentence: RemovedPolecat::sentence,
        document: RemovedPolecat::document,
        done: "taken out of service",
    };
    // One that is gone already is no reason to keep the others.
    do_each(context.printer, &args.polecats, |_| Ok(()), act, &telling)
}

pub(super) fn undelete(context: &CommandContext<'_>, args: &UndeleteArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let trashed = trees::undelete(&town, &args.tree)?;
    if context.printer.json() {
        return context.printer.object(&trashed_document(&trashed, town.now()));
    }
    let name = format!("{}/{}", trashed.rig, trashed.name);
    context.printer.done(format!(
        "✓ {name} has its tree back, as it was. A run that gets it moves it away again, unless it is clean"
    ))
}

pub(super) fn purge(context: &CommandContext<'_>, args: &PurgeArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let gone = trees::purge(&town, args.dry_run)?;
    if printer.json() {
        let mut list = printer.list();
        for one in &gone {
            list.push(&trashed_document(one, town.now()))?;
        }
        return list.finish();
    }
    for one in &gone {
        let how = if args.dry_run { "would be deleted" } else { "is deleted" };
        printer.done(format!(
            "#{} {}/{} {how} ({}, moved {})",
            one.number,
            one.rig,
            one.name,
            one.path,
            moment(one.moved_at)
        ))?;
    }
    if args.dry_run {
        return printer.done(format!("{} would be deleted", plural(gone.len() as u64, "tree")));
    }
    printer.done(format!("✓ {} deleted", plural(gone.len() as u64, "tree")))
}
