//! `bd info`.

use clap::Args;
use gt_operations::beads::statistics;
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;

/// Say where the beads are kept, and how many there are
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd info --json")]
pub(super) struct InfoArgs {}

pub(super) fn run(context: &Context<'_>) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let place = town.store_place();
    let total = statistics(&town)?.total();
    if printer.json() {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("town", &town.root().display().to_string());
        object.text("database_path", &place);
        object.number("issue_count", total);
        object.text("actor", &town.actor().name);
        object.finish();
        return printer.object(&out);
    }
    printer.line(format!("Town {}", town.root().display()))?;
    printer.line(format!("Store {place}"))?;
    printer.line(format!("Beads {total}"))?;
    printer.line(format!("You are {}", town.actor().name))
}
