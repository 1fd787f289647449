//! `bd info`.

use clap::Args;
use gt_api::{InfoDocument, SchemaDocument};
use gt_beads::beads::statistics;
use gt_beads::store::SCHEMA_LEVEL;
use gt_core::{IssueType, Status};

use crate::context::CommandContext;
use crate::error::CliError;
use crate::values::texts;

/// Say where the beads are kept, and how many there are
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  bd info --json")]
pub(super) struct InfoArgs {
    /// Also the level of the schema, the types and the statuses
    #[arg(long)]
    schema: bool,
}

pub(super) fn run(context: &CommandContext<'_>, args: &InfoArgs) -> Result<(), CliError> {
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
            schema: args.schema.then(|| SchemaDocument {
                level: SCHEMA_LEVEL,
                issue_types: texts(IssueType::BUILT_IN),
                statuses: texts(&Status::BUILT_IN),
            }),
        });
    }
    printer.line(format!("Town {}", town.root().display()))?;
    printer.line(format!("Store {place}"))?;
    printer.line(format!("Beads {total}"))?;
    if args.schema {
        printer.line(format!("Schema level {SCHEMA_LEVEL}"))?;
    }
    printer.line(format!("You are {}", town.actor().name))
}
