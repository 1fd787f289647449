//! `bd create --file` and `bd create --graph`.

use std::collections::BTreeMap;
use std::path::Path;

use gt_api::IdsByKeyDocument;
use gt_beads::beads::{Created, CreatedPlan, PlanOptions, create_all};
use gt_beads::dependencies::Added;
use gt_core::BeadId;
use gt_core::plan::{Plan, Planned, parse_markdown};
use gt_records::{parse_plan_graph, parse_plan_lines};

use super::bead_output;
use super::dep::note_missing;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::output::{Printer, Table, plural};
use crate::values::{source_name, text_of};

/// Where a plan of beads comes from.
pub(super) enum PlanSource {
    /// A file of beads, as Markdown or one JSON object per line.
    File(String),
    /// A JSON object with nodes and edges.
    Graph(String),
}

pub(super) fn run(
    context: &CommandContext<'_>,
    source: &PlanSource,
    options: &PlanOptions,
    silent: bool,
) -> Result<(), CliError> {
    let plan = read(source)?;
    let made = create_all(&context.store_town()?, &plan, options)?;
    let printer = context.printer;
    for added in &made.dependencies {
        note_missing(printer, added);
    }
    if printer.json() {
        return match source {
            PlanSource::Graph(_) => printer.object(&ids_by_key(&plan, &made)),
            PlanSource::File(_) => {
                let mut list = printer.list();
                for Created { bead, labels, .. } in &made.beads {
                    list.push_record(&bead_output::bare(bead, labels))?;
                }
                list.finish()
            }
        };
    }
    if silent || printer.quiet() {
        return made.beads.iter().try_for_each(|made| printer.line(made.bead.id.as_str()));
    }
    if options.dry_run {
        return preview(printer, &made);
    }
    let line = |made: &Created| {
        printer.done(format!("✓ Created issue: {} — {}", made.bead.id, made.bead.title))
    };
    made.beads.iter().try_for_each(line)
}

/// Shows what would be made.
fn preview(printer: &Printer, made: &CreatedPlan) -> Result<(), CliError> {
    printer.done(format!("Would create {}:", plural(made.beads.len() as u64, "bead")))?;
    let mut table = Table::new();
    for Created { bead, labels, .. } in &made.beads {
        table.row(bead_output::cells(bead, labels, ""));
    }
    printer.table(table)?;
    let line = |Added { issue, target, kind, .. }: &Added| {
        printer.done(format!("Would make {issue} depend on {target} ({kind})"))
    };
    made.dependencies.iter().try_for_each(line)
}

fn read(source: &PlanSource) -> Result<Plan, CliError> {
    let path = match source {
        PlanSource::File(path) | PlanSource::Graph(path) => path,
    };
    let (name, text) = (source_name(path), text_of(path)?);
    Ok(match source {
        PlanSource::Graph(_) => parse_plan_graph(name, &text)?,
        PlanSource::File(_) if is_json(path, &text) => parse_plan_lines(name, &text)?,
        PlanSource::File(_) => parse_markdown(name, &text)?,
    })
}

/// Whether a file has JSON lines: its name says so, or, if that says nothing, its first character.
fn is_json(path: &str, text: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("jsonl" | "json") => true,
        Some("md" | "markdown") => false,
        _ => text.trim_start_matches('\u{feff}').trim_start().starts_with('{'),
    }
}

fn ids_by_key<'p>(plan: &'p Plan, made: &'p CreatedPlan) -> IdsByKeyDocument {
    let both = plan.beads().iter().zip(&made.beads);
    let pair = |(planned, made): (&'p Planned, &'p Created)| {
        Some((planned.draft.key.as_deref()?, &made.bead.id))
    };
    let by_key: BTreeMap<&str, &BeadId> = both.filter_map(pair).collect();
    let ids = by_key.into_iter().map(|(key, id)| (key.to_owned(), id.to_string()));
    IdsByKeyDocument { ids: ids.collect() }
}
