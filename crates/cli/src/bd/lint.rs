//! `bd lint`.

use clap::Args;
use gt_operations::BeadFilter;
use gt_operations::beads::{Finding, everything, lint, resolve};
use gt_records::ObjectWriter;

use super::filters::{statuses, types};
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Cell, Table, plural};

/// Find beads that lack what their type should have
#[derive(Debug, Args)]
#[command(
    after_help = "Every bead should have a description; bugs also steps to reproduce, bugs, tasks, features and stories
acceptance criteria, epics success criteria: in the field of that name, or under such a heading in the
description. Exits with 1 if something is missing.

Examples:
  bd lint
  bd lint gt-abc gt-def
  bd lint --type bug --status all --json"
)]
pub(super) struct LintArgs {
    /// Only these beads; whatever is not closed if none is named
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Only these types, separated by commas
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only these statuses, separated by commas; "all" for every one
    #[arg(short, long)]
    status: Option<String>,
}

pub(super) fn run(context: &Context<'_>, args: &LintArgs) -> Result<(), CliError> {
    let town = context.town()?;
    let printer = context.printer;
    let mut ids = Vec::new();
    for input in &args.ids {
        ids.push(resolve(&town, input)?);
    }
    let status = statuses(&town, args.status.as_deref())?;
    let base = if ids.is_empty() { BeadFilter::default() } else { everything() };
    let filter = BeadFilter {
        ids,
        types: types(&args.types)?,
        status: status.unwrap_or_else(|| base.status.clone()),
        ..base
    };
    let found = lint(&town, &filter)?;
    if printer.json() {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.count("total", found.missing() as u64);
        object.count("issues", found.findings.len() as u64);
        object.array("results", |array| {
            for finding in &found.findings {
                array.object(|object| write_finding(object, finding));
            }
        });
        object.finish();
        printer.object(&out)?;
    } else if found.findings.is_empty() {
        printer.done(format!("✓ Nothing is missing in {}", plural(found.examined, "bead")))?;
    } else {
        let mut table = Table::new();
        for finding in &found.findings {
            table.row(vec![
                Cell::bold(finding.id.as_str()),
                Cell::new(finding.issue_type.as_str()),
                Cell::new(format!("lacks {}", names(finding).join(", "))),
                Cell::new(finding.title.as_str()),
            ]);
        }
        printer.table(table)?;
    }
    match found.findings.len() {
        0 => Ok(()),
        1 => Err(CliError::request("1 bead lacks something")),
        many => Err(CliError::request(format!("{many} beads lack something"))),
    }
}

fn names(finding: &Finding) -> Vec<&'static str> {
    finding.missing.iter().map(|section| section.heading()).collect()
}

fn write_finding(object: &mut ObjectWriter<'_>, finding: &Finding) {
    object.text("id", finding.id.as_str());
    object.text("title", finding.title.as_str());
    object.text("type", finding.issue_type.as_str());
    object.array("missing", |array| names(finding).into_iter().for_each(|name| array.text(name)));
    object.count("warnings", finding.missing.len() as u64);
}
