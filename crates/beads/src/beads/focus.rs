//! The bead that an actor is at, and the conversation that a bead belongs to.

use gt_core::{BeadId, DependencyType, Status};
use gt_store::{BeadFilter, BeadOrder, Reader, StatusFilter};

use crate::events::last_touched;
use crate::lookup::resolve_in;
use gt_town::{Result, Town};

/// The bead that the actor has in progress (the one that changed last, of several) or else the one that they changed last.
pub fn current_bead(town: &Town) -> Result<BeadId> {
    let own = BeadFilter {
        status: StatusFilter::OneOf(vec![Status::InProgress, Status::Hooked]),
        assignee: Some(town.actor().name.clone()),
        order: BeadOrder::Updated,
        limit: Some(1),
        ..BeadFilter::everything()
    };
    let found = town.read(|reader| Ok(reader.find(&own)?))?;
    found.into_iter().next().map_or_else(|| last_touched(town), Ok)
}

/// The beads of the conversations that `inputs` belong to, oldest first.
pub fn thread(town: &Town, inputs: &[String]) -> Result<Vec<String>> {
    town.read(|reader| {
        let mut found: Vec<BeadId> = Vec::new();
        let mut waiting = Vec::new();
        for input in inputs {
            waiting.push(resolve_in(town, reader, input)?);
        }
        while let Some(id) = waiting.pop() {
            if !found.contains(&id) {
                waiting.extend(replies(reader, &id)?);
                found.push(id);
            }
        }
        let mut rows = reader.bead_rows(&found)?;
        rows.sort_by_key(|row| row.bead.created_at);
        Ok(rows.into_iter().map(|row| row.bead.id.to_string()).collect())
    })
}

/// The beads that a bead answers, and those that answer it.
fn replies(reader: &Reader<'_>, id: &BeadId) -> Result<Vec<BeadId>> {
    let kind = DependencyType::trusted("replies-to");
    let answered = reader.edges_from(id)?.into_iter().filter(|edge| edge.kind == kind);
    let answering = reader.edges_to(id)?.into_iter().filter(|edge| edge.kind == kind);
    Ok(answered.map(|edge| edge.target).chain(answering.map(|edge| edge.issue)).collect())
}
