//! `bd lint`.

use clap::Args;
use gt_api::LintDocument;
use gt_beads::beads::{LintFinding, lint};
use gt_core::decide::BeadSection;
use gt_town::{BeadFilter, BeadRow};

use super::filters::{statuses, types};
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Cell, Table, plural};
use crate::values::texts;
use gt_beads::lookup::resolve;

/// Find beads that lack what their type should have
#[derive(Debug, Args)]
#[command(
    after_help = "Every bead should have a description; bugs also steps to reproduce, bugs, tasks, features and stories
acceptance criteria, epics success criteria: in the field of that name, or under such a heading in the
description. Exits with 1 if something is missing, unless it prints JSON.

Examples:
  bd lint
  bd lint gt-abc gt-def
  bd lint --type bug --status all --json"
)]
pub(super) struct LintArgs {
    /// Only these beads; all beads that are not closed if none is named
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Only these types, separated by commas
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only these statuses, separated by commas; "all" for every one
    #[arg(short, long)]
    status: Option<String>,
}

pub(super) fn run(context: &CommandContext<'_>, args: &LintArgs) -> Result<(), CliError> {
    let town = context.store_town()?;
    let printer = context.printer;
    let mut ids = Vec::new();
    for input in &args.ids {
        ids.push(resolve(&town, input)?);
    }
    let status = statuses(&town, args.status.as_deref())?;
    let base = if ids.is_empty() { BeadFilter::default() } else { BeadFilter::everything() };
    let filter = BeadFilter {
        ids,
        types: types(&args.types)?,
        status: status.unwrap_or_else(|| base.status.clone()),
        ..base
    };
    let found = if printer.json() {
        let mut sections = printer.sections();
        sections.array("results")?;
        let found = lint(&town, &filter, |findings| {
            findings.iter().try_for_each(|finding| sections.push(&document(finding)))
        })?;
        sections.field("issues", &found.lacking)?;
        sections.field("total", &found.missing)?;
        sections.finish()?;
        found
    } else {
        lint(&town, &filter, |findings| {
            let mut table = Table::new();
            for finding in &findings {
                let (BeadRow { bead, .. }, missing) = finding;
                table.row(vec![
                    Cell::bold(bead.id.as_str()),
                    Cell::new(bead.issue_type.as_str()),
                    Cell::new(format!("lacks {}", names(missing).join(", "))),
                    Cell::new(bead.title.as_str()),
                ]);
            }
            printer.table(table)
        })?
    };
    match found.lacking {
        // The caller reads the numbers.
        _ if printer.json() => Ok(()),
        0 => printer.done(format!("✓ Nothing is missing in {}", plural(found.examined, "bead"))),
        1 => Err(CliError::request("1 bead lacks something")),
        many => Err(CliError::request(format!("{many} beads lack something"))),
    }
}

fn names(missing: &[BeadSection]) -> Vec<&'static str> {
    missing.iter().map(|section| section.heading()).collect()
}

fn document((BeadRow { bead, .. }, missing): &LintFinding) -> LintDocument {
    LintDocument {
        id: bead.id.to_string(),
        title: bead.title.to_string(),
        r#type: bead.issue_type.to_string(),
        missing: texts(names(missing)),
        warnings: missing.len() as u64,
    }
}
