//! How beads look, as JSON and as text.

use comfy_table::Color;
use gt_beads::beads::{self, ClosedBead, Mention, show};
pub(super) use gt_beads::beads::{LabelsOf, ShownBeadParts, linked};
use gt_core::{Bead, BeadId, Outcome};
use gt_records::{BeadView, ObjectWriter, write_bead};
use gt_town::{BeadRow, OperationError, Town};

use crate::error::CliError;
use crate::output::{Cell, Printer, Table, status_colour};

/// A bead by itself.
pub(super) fn bare(bead: &Bead, labels: &[String]) -> String {
    let mut out = String::new();
    write_bead(&mut out, &BeadView { labels, ..BeadView::bare(bead) }, |_| {});
    out
}

/// A bead as lists show it; the counts are of dependencies that block.
pub(super) fn listed(row: &BeadRow, more: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut out = String::new();
    write_bead(&mut out, &beads::listed(row), more);
    out
}

/// A bead that mentions another, and in which fields.
pub(super) fn mentioning(mention: &Mention) -> String {
    let mut out = String::new();
    write_bead(&mut out, &BeadView::bare(&mention.bead), |object| {
        object.text("dependency_type", "mentions");
        object.array("mentioned_in", |array| {
            mention.fields.iter().for_each(|field| array.text(field));
        });
    });
    out
}

/// Adds `"blocked_by": [ids]` and how many.
pub(super) fn blocked_by(object: &mut ObjectWriter<'_>, ids: &[BeadId]) {
    object.count("blocked_by_count", ids.len() as u64);
    object.array("blocked_by", |array| {
        for id in ids {
            array.text(id.as_str());
        }
    });
}

/// A page of beads as a table. The last column may carry a remark.
pub(super) fn print_rows<'r>(
    printer: &Printer,
    rows: impl IntoIterator<Item = (&'r BeadRow, String)>,
) -> Result<(), CliError> {
    let mut table = Table::new();
    for (row, remark) in rows {
        table.row(cells(&row.bead, &row.labels, &remark));
    }
    printer.table(table)
}

/// A bead as a row of a table.
pub(super) fn cells(bead: &Bead, labels: &[String], remark: &str) -> Vec<Cell> {
    let mut title = bead.title.to_string();
    if !labels.is_empty() {
        title = format!("{title} [{}]", labels.join(", "));
    }
    if !bead.assignee.is_empty() {
        title = format!("{title} @{}", bead.assignee);
    }
    if !remark.is_empty() {
        title = format!("{title} — {remark}");
    }
    vec![
        Cell::bold(bead.id.as_str()),
        Cell::new(bead.priority.to_string()),
        Cell::new(bead.issue_type.as_str()),
        state_cell(bead),
        Cell::new(title),
    ]
}

/// The status, and the outcome of a bead that was closed as failed.
fn state_cell(bead: &Bead) -> Cell {
    match bead.outcome {
        Some(Outcome::Failed) => Cell::coloured("closed (failed)", Some(Color::Red)),
        _ => Cell::coloured(bead.status.as_str(), status_colour(&bead.status)),
    }
}

/// Prints these beads as they are now, as a JSON array.
pub(super) fn print_json(printer: &Printer, town: &Town, ids: &[String]) -> Result<(), CliError> {
    let mut list = printer.list();
    for shown in show(town, ids)?.into_iter().filter_map(Result::ok) {
        list.push_record(&bare(&shown.row.bead, &shown.row.labels))?;
    }
    list.finish()
}

/// Prints the beads that were closed, and the refusals of the others; `done` is the participle.
pub(super) fn print_closed(
    printer: &Printer,
    town: &Town,
    results: Vec<Result<ClosedBead, OperationError>>,
    done: &str,
) -> Result<(), CliError> {
    let (mut closed, mut refused) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(one) => closed.push(one.bead.id.to_string()),
            Err(error) => refused.push(printer.part_failed(&error.into())),
        }
    }
    if printer.json() && !closed.is_empty() {
        print_json(printer, town, &closed)?;
    }
    for id in &closed {
        printer.done(format!("✓ {done} {id}"))?;
    }
    if refused.is_empty() { Ok(()) } else { Err(CliError::AlreadyTold(refused.join("; "))) }
}

/// Notes that a bead depends on one that does not exist here, which need not be a mistake.
pub(super) fn note_absent(printer: &Printer, id: &BeadId) {
    printer.note(format!("note: {id} does not exist here; it counts from the day it appears"));
}
