//! `gt store backup`.

use std::path::PathBuf;

use clap::Args;
use gt_api::BackupDocument;
use gt_beads::store::{self, IfFileExists};
use gt_town::IfAbsent;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{plural, progress_bar, size};

/// Write the whole store to a file, while others go on working
///
/// The file is a SQLite store that gt can open, also if the town uses PostgreSQL. It is a snapshot of one moment, is
/// checked after it was written, and appears only when it is complete.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt store backup
  gt store backup /mnt/backups/town.db --force")]
pub(super) struct BackupArgs {
    /// The file [default: .gt/backups/gt-<time>.db in the town]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Replace an older backup
    #[arg(long)]
    force: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &BackupArgs) -> Result<(), CliError> {
    let town = context.town_or_database(IfAbsent::Refuse)?;
    let printer = context.printer;
    let path = args.file.as_ref().map(|file| context.directory.join(file));
    let existing = if args.force { IfFileExists::Replace } else { IfFileExists::Keep };
    let bar = progress_bar("backing up", 0);
    let backup = store::backup(&town, path.as_deref(), existing, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let backup = backup?;
    let (beads, events) = (backup.totals.beads, backup.totals.events);
    if printer.json() {
        return printer.object(&BackupDocument {
            path: backup.path.display().to_string(),
            beads,
            events,
            bytes: backup.bytes,
        });
    }
    printer.done(format!(
        "✓ Backed up {} and {} to {} ({})",
        plural(beads, "bead"),
        plural(events, "event"),
        backup.path.display(),
        size(backup.bytes)
    ))
}
