//! `gt convoy stranded`.

use clap::Args;
use gt_operations::convoys::{self, StrandedConvoy};
use gt_records::ObjectWriter;

use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Table};

/// Show convoys of which something is not scheduled, for no reason
///
/// The daemon schedules it by itself within half a minute, and gt deacon feed-stranded at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy stranded\n  gt convoy stranded --json")]
pub(super) struct StrandedArgs {}

pub(super) fn run(context: &Context<'_>, _: &StrandedArgs) -> Result<(), CliError> {
    let found = convoys::stranded(&context.town()?)?;
    let printer = context.printer;
    if printer.json() {
        let mut list = printer.list();
        for stranded in &found {
            list.push(&json(stranded))?;
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

fn json(stranded: &StrandedConvoy) -> String {
    let convoy = &stranded.convoy;
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.text("id", convoy.bead.id.as_str());
    object.text("title", convoy.bead.title.as_str());
    object.count("tracked_count", convoy.members.total);
    object.count("ready_count", stranded.ready.len() as u64);
    for (name, beads) in [("ready_issues", &stranded.ready), ("waiting_issues", &stranded.waiting)]
    {
        object.array(name, |array| beads.iter().for_each(|bead| array.text(bead.as_str())));
    }
    object.timestamp("created_at", convoy.bead.created_at);
    object.text_unless_empty("base_branch", &convoy.said("base_branch").unwrap_or_default());
    object.finish();
    out
}
