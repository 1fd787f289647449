//! How beads look, as JSON and as text.

use comfy_table::Color;
use gt_beads::beads::{self, Mention, show};
use gt_core::{Bead, BeadId, DependencyType, Outcome};
use gt_records::{BeadView, ObjectWriter, write_bead, write_comment};
use gt_town::{BeadRow, Town};

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

/// A bead with the type of the edge that led to it.
pub(super) fn linked(bead: &Bead, kind: &DependencyType) -> String {
    let mut out = String::new();
    write_bead(&mut out, &BeadView::bare(bead), |object| {
        object.text("dependency_type", kind.as_str());
    });
    out
}

/// A bead that speaks of another, and in which fields.
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

/// The parts of a bead that `show` includes.
pub(super) struct ShownBeadParts<'a> {
    pub(super) about: &'a gt_beads::beads::BeadDetails,
    pub(super) dependents: bool,
    pub(super) comments: bool,
    pub(super) long: bool,
}

impl ShownBeadParts<'_> {
    /// The bead with full records of what it depends on; the counts are of all dependencies.
    pub(super) fn json(&self) -> String {
        let shown = self.about;
        let row = &shown.row;
        let mut out = String::new();
        let view = BeadView { labels: &row.labels, ..BeadView::bare(&row.bead) };
        write_bead(&mut out, &view, |object| {
            if !shown.dependencies.is_empty() {
                object.array("dependencies", |array| {
                    for (edge, bead) in &shown.dependencies {
                        match bead {
                            Some(bead) => array.raw(&linked(bead, &edge.kind)),
                            None => array.object(|object| {
                                object.text("id", edge.target.as_str());
                                object.text("dependency_type", edge.kind.as_str());
                            }),
                        }
                    }
                });
            }
            if self.dependents {
                object.array("dependents", |array| {
                    for (edge, bead) in &shown.dependents {
                        array.object(|object| {
                            object.text("id", bead.id.as_str());
                            object.text("title", bead.title.as_str());
                            object.text("status", bead.status.as_str());
                            object.number("priority", bead.priority.number());
                            object.text("issue_type", bead.issue_type.as_str());
                            object.text("dependency_type", edge.kind.as_str());
                        });
                    }
                });
                if row.bead.issue_type.is_epic() {
                    let (total, closed) = shown.children_counts();
                    object.count("epic_total_children", total as u64);
                    object.count("epic_closed_children", closed as u64);
                    object.flag("epic_closeable", total > 0 && total == closed);
                }
            }
            if self.comments {
                object.array("comments", |array| {
                    for comment in &shown.comments {
                        write_comment(array.element(), comment);
                    }
                });
            }
            if self.long {
                object.text("uid", &row.bead.uid.to_string());
                if let Some(rig) = &row.bead.rig {
                    object.text("rig", rig.as_str());
                }
                object.count("open_blockers", u64::from(row.bead.open_blockers));
                object.count("event_count", shown.events);
            }
            object.count("dependency_count", row.dependencies.len() as u64);
            object.count("dependent_count", row.dependents);
            object.count("comment_count", row.comments);
            if let Some(parent) = row.parent() {
                object.text("parent", parent.as_str());
            }
            if let Some(landed) = &shown.landed {
                object.text("landed_commit", &landed.landed);
            }
        });
        out
    }
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

/// Notes that a bead depends on one that does not exist here, which need not be a mistake.
pub(super) fn note_absent(printer: &Printer, id: &BeadId) {
    printer.note(format!("note: {id} does not exist here; it counts from the day it appears"));
}
