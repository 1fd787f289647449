//! A bead as `bd show --json` prints it.

use std::collections::HashMap;

use gt_core::{Bead, BeadId, DependencyType};
use gt_records::{BeadView, write_bead, write_comment};
use gt_town::{Result, Town};

use super::{BeadDetails, labels_of};

/// A bead with the type of the edge that led to it.
pub fn linked(bead: &Bead, labels: &[String], kind: &DependencyType) -> String {
    let mut out = String::new();
    write_bead(&mut out, &BeadView { labels, ..BeadView::bare(bead) }, |object| {
        object.text("dependency_type", kind.as_str());
    });
    out
}

/// The labels of beads that are shown beside another.
#[derive(Debug)]
pub struct LabelsOf(HashMap<BeadId, Vec<String>>);

impl LabelsOf {
    /// Reads the labels of these.
    pub fn read<'b>(town: &Town, beads: impl Iterator<Item = &'b Bead>) -> Result<Self> {
        let ids: Vec<BeadId> = beads.map(|bead| bead.id.clone()).collect();
        Ok(Self(labels_of(town, &ids)?))
    }

    /// The labels of one of them.
    pub fn of(&self, bead: &Bead) -> &[String] {
        self.0.get(&bead.id).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The parts of a bead that `show` includes.
#[derive(Debug, Clone, Copy)]
pub struct ShownBeadParts<'a> {
    /// The bead and everything around it.
    pub about: &'a BeadDetails,
    /// The labels of the beads that it depends on, and of those that depend on it.
    pub labels: &'a LabelsOf,
    /// Name the beads that depend on it even if there are none.
    pub dependents: bool,
    /// Name its comments even if there are none.
    pub comments: bool,
    /// With the fields that a reader rarely needs.
    pub long: bool,
}

impl ShownBeadParts<'_> {
    /// The bead with full records of what it depends on; the counts are of all dependencies.
    pub fn json(&self) -> String {
        let shown = self.about;
        let row = &shown.row;
        let mut out = String::new();
        let view = BeadView { labels: &row.labels, ..BeadView::bare(&row.bead) };
        write_bead(&mut out, &view, |object| {
            if !shown.dependencies.is_empty() {
                object.array("dependencies", |array| {
                    for (edge, bead) in &shown.dependencies {
                        match bead {
                            Some(bead) => {
                                array.raw(&linked(bead, self.labels.of(bead), &edge.kind));
                            }
                            None => array.object(|object| {
                                object.text("id", edge.target.as_str());
                                object.text("dependency_type", edge.kind.as_str());
                            }),
                        }
                    }
                });
            }
            if self.dependents || !shown.dependents.is_empty() {
                object.array("dependents", |array| {
                    for (edge, bead) in &shown.dependents {
                        array.raw(&linked(bead, self.labels.of(bead), &edge.kind));
                    }
                });
            }
            if row.bead.issue_type.is_epic() {
                let (total, closed) = shown.children_counts();
                object.count("epic_total_children", total as u64);
                object.count("epic_closed_children", closed as u64);
                object.flag("epic_closeable", total > 0 && total == closed);
            }
            if self.comments || !shown.comments.is_empty() {
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
