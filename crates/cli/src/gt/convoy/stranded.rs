//! `gt convoy stranded`.

use clap::Args;
use gt_api::StrandedDocument;
use gt_scheduling::convoy_planning::StrandedConvoy;

use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table};
use crate::values::texts;

/// Show convoys of which something is not scheduled, for no reason
///
/// The daemon schedules it by itself within half a minute, and gt deacon feed-stranded at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy stranded\n  gt convoy stranded --json")]
pub(super) struct StrandedArgs {}

pub(super) fn run(context: &CommandContext<'_>, _: &StrandedArgs) -> Result<(), CliError> {
    let found = gt_scheduling::convoy_planning::stranded(&context.town()?)?;
    let printer = context.printer;
    if printer.json() {
        let mut list = printer.list();
        for stranded in &found {
            list.push(&document(stranded))?;
        }
        return list.finish();
    }
    if found.is_empty() {
        return printer.done("Nothing is stranded");
    }
    let mut table = Table::with_header(&["CONVOY", "READY", "WAITING", "TITLE"]);
    for StrandedConvoy { convoy, ready, waiting } in &found {
        let names = |beads: &[gt_core::BeadId]| {
            beads.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        table.row(vec![
            Cell::bold(convoy.bead.id.as_str()),
            Cell::new(names(ready)),
            Cell::new(names(waiting)),
            Cell::new(convoy.bead.title.as_str()),
        ]);
    }
    printer.table(table)?;
    printer.note("Next: gt deacon feed-stranded schedules them");
    Ok(())
}

fn document(stranded: &StrandedConvoy) -> StrandedDocument {
    let convoy = &stranded.convoy;
    StrandedDocument {
        id: convoy.bead.id.to_string(),
        title: convoy.bead.title.to_string(),
        tracked_count: convoy.members.total,
        ready_count: stranded.ready.len() as u64,
        ready_issues: texts(&stranded.ready),
        waiting_issues: texts(&stranded.waiting),
        created_at: convoy.bead.created_at.into(),
        base_branch: convoy.metadata_text("base_branch").unwrap_or_default(),
    }
}
