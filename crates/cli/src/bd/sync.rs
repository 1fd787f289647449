//! `bd sync`, and the git hooks that call it.

use std::ffi::OsString;

use clap::Args;
use gt_api::SyncDocument;
use gt_beads::interchange::{JsonlWrite, is_automatic, jsonl_path, sync_jsonl, write_jsonl};
use gt_town::Town;

use super::no_op;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::plural;

/// Bring .beads/issues.jsonl and the store together, where export.auto is on
///
/// Changes that git brought into the file are taken over: of each bead the newer version counts. Then the file is written again.
/// Without export.auto there is nothing to do: every change is in the town's store at once.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  bd config set export.auto true\n  bd sync\n  git pull && bd sync"
)]
pub(super) struct SyncArgs {
    /// Flags of the original
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &SyncArgs) -> Result<(), CliError> {
    let Some(town) = town_with_file(context) else {
        return no_op::say(
            context,
            &args.rest,
            "Nothing to sync: every change is in the town's store at once; bd export writes it as JSONL, and \
             bd config set export.auto true keeps .beads/issues.jsonl current",
        );
    };
    sync(context, &town)
}

/// Whether the town around keeps the file current.
pub(super) fn keeps_file(context: &CommandContext<'_>) -> bool {
    town_with_file(context).is_some()
}

/// The town, if it keeps the file current.
fn town_with_file(context: &CommandContext<'_>) -> Option<Town> {
    let town = context.store_town().ok().filter(Town::has_directory)?;
    let is_on = town.read(is_automatic).unwrap_or_default();
    is_on.then_some(town)
}

fn sync(context: &CommandContext<'_>, town: &Town) -> Result<(), CliError> {
    let path = jsonl_path(town)?;
    let (came_in, written) = sync_jsonl(town, &path)?;
    let count = match written {
        JsonlWrite::Written(count) => Some(count),
        JsonlWrite::Unchanged => None,
    };
    let (created, updated, deleted, kept) = came_in
        .as_ref()
        .map(|summary| (summary.created, summary.updated, summary.deleted, summary.skipped))
        .unwrap_or_default();
    let printer = context.printer;
    if printer.json() {
        return printer.object(&SyncDocument {
            path: path.display().to_string(),
            created,
            updated,
            deleted,
            kept,
            written: count.is_some(),
        });
    }
    if came_in.is_some() {
        let (created, updated) = (plural(created, "new bead"), plural(updated, "changed bead"));
        printer.done(format!("✓ Took over {created} and {updated} of {}", path.display()))?;
        if deleted > 0 {
            let beads = plural(deleted, "bead");
            printer.done(format!("✓ Deleted {beads} that another clone has deleted"))?;
        }
        if kept > 0 {
            let older = plural(kept, "bead");
            let are = if kept == 1 { "is" } else { "are" };
            printer
                .note(format!("{older} of the file {are} older than the store, which keeps its own; bd show and bd history tell more"));
        }
    }
    match count {
        Some(count) => {
            printer.done(format!("✓ Wrote {} to {}", plural(count, "bead"), path.display()))
        }
        None => printer.done(format!("{} is current", path.display())),
    }
}

/// The first look at the file, when `export.auto` was set: a file that is there already is taken over, because it would never be
/// overwritten otherwise. The setting stays whatever becomes of that, so that a problem is a note.
pub(super) fn begin(context: &CommandContext<'_>, town: &Town) {
    if !town.has_directory() || !town.read(is_automatic).unwrap_or_default() {
        return;
    }
    let printer = context.printer;
    let path = match jsonl_path(town) {
        Ok(path) => path,
        Err(error) => return printer.note(format!("bd sync: {error}")),
    };
    match sync_jsonl(town, &path) {
        Ok((Some(summary), _)) => {
            let (created, updated) =
                (plural(summary.created, "new bead"), plural(summary.updated, "changed bead"));
            printer.note(format!("took over {created} and {updated} of {}", path.display()));
        }
        Ok((None, _)) => {}
        Err(error) => printer.note(format!("bd sync: {error}")),
    }
}

/// The work of the git hook of this name. Before a commit the file gets what the last commands changed; after git has changed
/// files, the file is taken over. A hook must not stop git, so that a problem is a note.
pub(super) fn called_by_git(context: &CommandContext<'_>, hook: &str) {
    let takes_over = matches!(hook, "post-merge" | "post-checkout" | "post-rewrite");
    if !takes_over && hook != "pre-commit" {
        return;
    }
    let Some(town) = town_with_file(context) else { return };
    let done = if takes_over {
        sync(context, &town)
    } else {
        jsonl_path(&town)
            .and_then(|path| write_jsonl(&town, &path))
            .map(drop)
            .map_err(CliError::from)
    };
    if let Err(error) = done {
        context.printer.note(format!("bd sync: {error}"));
    }
}
