//! One bead with everything about it.

use gt_core::merging::MergeRequest;
use gt_core::{Bead, Comment, Context, Dependency, DependencyType};
use gt_records::{BeadView, Counts};
use gt_store::{BeadRow, Reader};

use super::contexts::context_row;
use crate::lookup::{NamedRecord, resolve_shown_in};
use crate::merge_requests::landed_request_in;
use gt_town::{Result, Town};

/// A bead with everything about it.
#[derive(Debug, Clone)]
pub struct BeadDetails {
    /// The bead and what stands around it.
    pub row: BeadRow,
    /// Its dependencies, with the beads where they exist.
    pub dependencies: Vec<(Dependency, Option<Bead>)>,
    /// The beads that depend on it.
    pub dependents: Vec<(Dependency, Bead)>,
    /// Its comments.
    pub comments: Vec<Comment>,
    /// How many events tell of it.
    pub events: u64,
    /// The last merge request that brought its work to a target branch.
    pub landed: Option<MergeRequest>,
}

impl BeadDetails {
    /// Its parts.
    pub fn children(&self) -> impl Iterator<Item = &(Dependency, Bead)> {
        self.dependents.iter().filter(|(edge, _)| edge.kind == DependencyType::ParentChild)
    }

    /// How many parts it has, and how many of them are closed.
    pub fn children_counts(&self) -> (usize, usize) {
        let closed = self.children().filter(|(_, bead)| bead.closed_at.is_some()).count();
        (self.children().count(), closed)
    }
}

/// A bead as lists show it; the counts are of dependencies that block.
pub fn listed(row: &BeadRow) -> BeadView<'_> {
    let counts = Counts {
        dependencies: row.dependencies_blocking(),
        dependents: row.dependents_blocked,
        comments: row.comments,
    };
    BeadView {
        bead: &row.bead,
        labels: &row.labels,
        dependencies: &row.dependencies,
        comments: &[],
        counts: Some(counts),
        parent: row.parent(),
    }
}

fn show_context(reader: &Reader<'_>, context: &Context) -> Result<BeadDetails> {
    let row = context_row(context);
    let mut dependencies = Vec::new();
    for edge in &row.dependencies {
        dependencies.push((edge.clone(), reader.bead(&edge.target)?));
    }
    let (dependents, comments) = (Vec::new(), Vec::new());
    Ok(BeadDetails { row, dependencies, dependents, comments, events: 0, landed: None })
}

/// The beads that each of `inputs` means, all from one state of the town.
pub fn show(town: &Town, inputs: &[String]) -> Result<Vec<Result<BeadDetails>>> {
    town.read(|reader| {
        let one = |input: &String| -> Result<BeadDetails> {
            let id = match resolve_shown_in(town, reader, input)? {
                NamedRecord::Bead(id) => id,
                NamedRecord::Context(context) => return show_context(reader, &context),
            };
            let row = reader.bead_rows(std::slice::from_ref(&id))?.into_iter().next();
            let row = row.ok_or_else(|| gt_town::OperationError::NoBead(input.clone()))?;
            let with_bead = |edge: &Dependency| Ok((edge.clone(), reader.bead(&edge.target)?));
            let mut dependencies =
                row.dependencies.iter().map(with_bead).collect::<Result<Vec<_>>>()?;
            dependencies.sort_by(|(a, _), (b, _)| a.target.natural_order(&b.target));
            let mut dependents = Vec::new();
            for edge in reader.edges_to(&id)? {
                if let Some(bead) = reader.bead(&edge.issue)? {
                    dependents.push((edge, bead));
                }
            }
            let comments = reader.comments(&id)?;
            let events = reader.event_count(&id)?;
            let landed = landed_request_in(reader, &id)?;
            Ok(BeadDetails { row, dependencies, dependents, comments, events, landed })
        };
        Ok(inputs.iter().map(one).collect())
    })
}
