//! `gt store vacuum`.

use clap::Args;
use gt_api::VacuumDocument;
use gt_beads::store;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::size;

/// Give back the room of what is gone
///
/// A file is written anew and becomes as small as it can be; commands that write wait meanwhile. On
/// PostgreSQL the room is kept for new rows, and no command waits.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gt store vacuum")]
pub(super) struct VacuumArgs {}

pub(super) fn run(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let sizes = store::vacuum(&town)?;
    if printer.json() {
        let (bytes_before, bytes_after) = (sizes.before, sizes.after);
        return printer.object(&VacuumDocument { bytes_before, bytes_after });
    }
    printer.done(format!("✓ Vacuumed: {} before, {} after", size(sizes.before), size(sizes.after)))
}
