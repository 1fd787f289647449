//! `bd rename` and `bd rename-prefix`.

use clap::Args;
use gt_api::{RenamedBeadDocument, RenamedPrefixDocument};
use gt_beads::beads_directory;
use gt_beads::renaming::{rename, rename_prefix};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;

/// How many ids a preview shows.
const SHOWN_MAX: usize = 5;

/// Give a bead another id; texts that mention it follow
///
/// A bead that has had a run keeps its id, because branches and logs are named after it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd rename gt-w382l gt-login")]
pub(super) struct RenameArgs {
    /// Its id, or a part of it
    #[arg(value_name = "ID")]
    old: String,
    /// The new id, with the same prefix
    #[arg(value_name = "NEW-ID")]
    new: String,
}

/// Give the beads of a rig another prefix, all of them or none
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  bd rename-prefix kw --dry-run\n  bd rename-prefix kw")]
pub(super) struct RenamePrefixArgs {
    /// The new prefix; a hyphen at its end is left out
    #[arg(value_name = "PREFIX")]
    prefix: String,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    #[arg(long, hide = true)]
    repair: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &RenameArgs) -> Result<(), CliError> {
    let renamed = rename(&context.store_town()?, &args.old, &args.new)?;
    let printer = context.printer;
    let (old, new) = (renamed.old.to_string(), renamed.new.to_string());
    if printer.json() {
        let references_updated = renamed.rewritten;
        let document = RenamedBeadDocument { old_id: old, new_id: new, references_updated };
        return printer.object(&document);
    }
    printer.done(format!("✓ Renamed {old} to {new}"))?;
    match renamed.rewritten {
        0 => Ok(()),
        count => printer.done(format!("  {} that mentioned it changed", plural(count, "bead"))),
    }
}

pub(super) fn run_prefix(
    context: &CommandContext<'_>,
    args: &RenamePrefixArgs,
) -> Result<(), CliError> {
    let town = context.store_town()?;
    let renamed = rename_prefix(&town, &args.prefix, args.dry_run)?;
    let (old, new) = (&renamed.rig.prefix, &renamed.new);
    if !args.dry_run && town.has_directory() && renamed.rig.path == "." {
        beads_directory::set_prefix(town.root(), new.as_str())?;
    }
    let count = renamed.beads.len() as u64;
    let printer = context.printer;
    if printer.json() {
        return printer.object(&RenamedPrefixDocument {
            old_prefix: old.to_string(),
            new_prefix: new.to_string(),
            issues_count: count,
            dry_run: args.dry_run,
        });
    }
    let beads = plural(count, "bead");
    if !args.dry_run {
        return printer.done(format!("✓ Renamed {beads} from {old} to {new}"));
    }
    printer.done(format!("Would rename {beads} from {old} to {new}"))?;
    for (before, after) in renamed.beads.iter().take(SHOWN_MAX) {
        printer.done(format!("  {before} to {after}"))?;
    }
    Ok(())
}
