//! Removing beads for good.

use std::collections::BTreeSet;

use gt_core::merging::MergeRequestId;
use gt_core::schedule::Run;
use gt_core::{Bead, BeadId};
use gt_store::{Reader, Writer};

use crate::beads::cancel_before_delete_in;
use crate::convoys::close_bookkeeping;
use crate::lookup::resolve_in;
use crate::tombstones::remember_deletion;
use gt_town::{Result, Town};

/// The effects of a deletion.
#[derive(Debug, Clone, Default)]
pub struct Deletion {
    /// The beads.
    pub beads: Vec<Bead>,
    /// How many dependencies from and to them.
    pub dependencies: usize,
    /// How many labels.
    pub labels: usize,
    /// How many comments.
    pub comments: usize,
    /// Beads that stay and lose a dependency.
    pub bereft: Vec<BeadId>,
    /// The runs that have one of the beads. They are cancelled in the store; the caller ends their processes.
    pub runs: Vec<Run>,
    /// The merge requests of the beads that are not over. They are cancelled.
    pub requests: Vec<MergeRequestId>,
}

/// The effects that [`delete`] would have.
pub fn preview_delete(town: &Town, inputs: &[String], cascade: bool) -> Result<Deletion> {
    town.read(|reader| plan(town, reader, inputs, cascade))
}

/// Deletes beads, with what depends on them if `cascade` says so. All of them or none. A run that has one of
/// them is cancelled.
pub fn delete(town: &Town, inputs: &[String], cascade: bool) -> Result<Deletion> {
    town.write(|writer| delete_in(town, writer, inputs, cascade))
}

/// As [`delete`], inside a transaction.
pub fn delete_in(
    town: &Town,
    writer: &mut Writer<'_>,
    inputs: &[String],
    cascade: bool,
) -> Result<Deletion> {
    let deletion = plan(town, writer, inputs, cascade)?;
    for bead in &deletion.beads {
        cancel_before_delete_in(writer, bead, town.acting_run())?;
        writer.as_consequence(|writer| close_bookkeeping(writer, &bead.id, "was deleted"))?;
        writer.delete_bead(bead)?;
        remember_deletion(writer, bead)?;
    }
    for id in &deletion.bereft {
        writer.touch_bead(id)?;
    }
    Ok(deletion)
}

fn plan(town: &Town, reader: &Reader<'_>, inputs: &[String], cascade: bool) -> Result<Deletion> {
    let mut doomed = BTreeSet::new();
    let mut waiting =
        inputs.iter().map(|input| resolve_in(town, reader, input)).collect::<Result<Vec<_>>>()?;
    while let Some(id) = waiting.pop() {
        if doomed.insert(id.clone()) && cascade {
            waiting.extend(reader.edges_to(&id)?.into_iter().map(|edge| edge.issue));
        }
    }
    let mut deletion = Deletion::default();
    let mut edges = BTreeSet::new();
    let mut bereft = BTreeSet::new();
    for id in &doomed {
        let Some(bead) = reader.bead(id)? else {
            continue;
        };
        for edge in reader.edges_from(id)?.into_iter().chain(reader.edges_to(id)?) {
            if !doomed.contains(&edge.issue) {
                bereft.insert(edge.issue.clone());
            }
            edges.insert((edge.issue, edge.target));
        }
        deletion.labels += reader.labels_in_order(&bead)?.len();
        deletion.comments += reader.comments(id)?.len();
        deletion.runs.extend(reader.live_run(id)?);
        deletion.requests.extend(reader.open_merge_request(id)?.map(|request| request.id));
        deletion.beads.push(bead);
    }
    deletion.beads.sort_by(|a, b| a.id.natural_order(&b.id));
    deletion.dependencies = edges.len();
    deletion.bereft = bereft.into_iter().collect();
    Ok(deletion)
}
