//! `bd info`.

use clap::Args;
use gt_api::InfoDocument;
use gt_beads::beads::statistics;

use crate::context::CommandContext;
use crate::error::CliError;

/// Say where the beads are kept, and how many there are
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd info --json")]
pub(super) struct InfoArgs {}

pub(super) fn run(context: &CommandContext<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let place = town.store_place();
    let total = statistics(&town)?.total();
    if printer.json() {
        return printer.object(&InfoDocument {
            town: town.root().display().to_string(),
            database_path: place,
            issue_count: total,
            actor: town.actor().name.clone(),
        });
    }
    printer.line(format!("Town {}", town.root().display()))?;
    printer.line(format!("Store {place}"))?;
    printer.line(format!("Beads {total}"))?;
    printer.line(format!("You are {}", town.actor().name))
}
