//! `gt host`.

use clap::{Args, Subcommand};
use gt_api::{AdoptedHostDocument, HostDocument};
use gt_town::hosts;

use crate::context::CommandContext;
use crate::error::CliError;

/// This directory among all that work on the same town
#[derive(Debug, Args)]
pub(super) struct HostArgs {
    #[command(subcommand)]
    verb: HostVerb,
}

#[derive(Debug, Subcommand)]
enum HostVerb {
    /// Show the identity of this directory, and where its files come from
    #[command(after_help = "Example:\n  gt host show")]
    Show,
    /// Take over the runs of the directory that these files come from
    ///
    /// A directory that was copied or moved is a new host. It does not judge the runs of the old one, which may be alive
    /// there. If the old place is gone for good (a disk that was moved, a backup that was restored), this command takes its
    /// live runs over, and the next cycle finds out which of them are lost.
    #[command(after_help = "Examples:\n  gt host adopt\n  gt host adopt --force")]
    Adopt {
        /// Take the runs over although the old place may be there
        #[arg(long)]
        force: bool,
    },
}

pub(super) fn run(context: &CommandContext<'_>, args: &HostArgs) -> Result<(), CliError> {
    match args.verb {
        HostVerb::Show => show(context),
        HostVerb::Adopt { force } => adopt(context, force),
    }
}

fn show(context: &CommandContext<'_>) -> Result<(), CliError> {
    let shown = hosts::show(&context.town()?)?;
    let printer = context.printer;
    if printer.json() {
        let former = shown.former.as_ref();
        return printer.object(&HostDocument {
            host: shown.host,
            former: former.map(|former| former.id.clone()),
            former_path: former.map(|former| former.path.clone()),
        });
    }
    printer.line(&shown.host)?;
    if let Some(former) = &shown.former {
        printer.line(format!("Its files come from {} ({})", former.path, former.id))?;
    }
    Ok(())
}

fn adopt(context: &CommandContext<'_>, force: bool) -> Result<(), CliError> {
    let adopted = hosts::adopt(&context.town()?, force)?;
    let printer = context.printer;
    if printer.json() {
        return printer
            .object(&AdoptedHostDocument { adopted: adopted.former, runs: adopted.runs });
    }
    printer.done(format!("✓ Adopted the host {} with {} live runs", adopted.former, adopted.runs))
}
