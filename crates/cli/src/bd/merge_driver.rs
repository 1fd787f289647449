//! `bd merge-driver`.

use std::path::PathBuf;

use clap::Args;
use gt_beads::interchange::{install_merge_driver, merge_jsonl};

use super::no_op;
use crate::context::CommandContext;
use crate::error::CliError;

/// Merge .beads/issues.jsonl for git, field by field
///
/// Git calls this with three versions of the file. Where both sides changed one field of a bead, the bead that was updated later
/// wins, between equal times the greater value; the value that lost becomes a comment on the bead. Needs no town.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bd merge-driver --install                # in each clone; the attribute goes with the repository
  bd merge-driver base.jsonl ours.jsonl theirs.jsonl")]
pub(super) struct MergeDriverArgs {
    /// Have git call this for .beads/issues.jsonl: writes .gitattributes and the configuration of this clone
    #[arg(long, conflicts_with_all = ["base", "ours", "theirs", "name"])]
    install: bool,
    /// The common ancestor (%O)
    #[arg(required_unless_present = "install")]
    base: Option<PathBuf>,
    /// Our version, which the result replaces (%A)
    #[arg(required_unless_present = "install")]
    ours: Option<PathBuf>,
    /// Their version (%B)
    #[arg(required_unless_present = "install")]
    theirs: Option<PathBuf>,
    /// The name of the file in messages (%P)
    name: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &MergeDriverArgs) -> Result<(), CliError> {
    let (Some(base), Some(ours), Some(theirs)) = (&args.base, &args.ours, &args.theirs) else {
        return install(context);
    };
    let here = |path: &PathBuf| context.directory.join(path);
    let name = args.name.clone().unwrap_or_else(|| ours.display().to_string());
    Ok(merge_jsonl(&here(base), &here(ours), &here(theirs), &name)?)
}

/// Has git call the driver in this clone.
pub(super) fn install(context: &CommandContext<'_>) -> Result<(), CliError> {
    let (path, is_new) = install_merge_driver(&context.directory)?;
    no_op::say(
        context,
        &[],
        "✓ Git merges .beads/issues.jsonl of this clone with bd merge-driver",
    )?;
    if is_new {
        context.printer.note(format!(
            "Commit {}: other clones need it too, and call bd merge-driver --install",
            path.display()
        ));
    }
    Ok(())
}
