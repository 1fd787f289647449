//! The beads of a convoy as a graph.

use gt_core::BeadId;
use gt_core::convoy_graph::{GraphEdge, GraphLayout, GraphNode, layout};

use super::stage::places;
use super::status::{ConvoyStatus, status};
use gt_town::{Result, Town};

/// A convoy and the drawing of its beads: all of them, also those that are done.
pub fn graph(town: &Town, input: &str) -> Result<(ConvoyStatus, GraphLayout)> {
    let status = status(town, input)?;
    let rows: Vec<_> = status.tracked.iter().map(|one| one.row.clone()).collect();
    let ids: Vec<BeadId> = rows.iter().map(|row| row.bead.id.clone()).collect();
    let edges = town.read(|reader| Ok(reader.edges_that_can_block(&ids)?))?;
    let places = places(&rows);
    let edges: Vec<GraphEdge> = edges
        .iter()
        .filter_map(|(bead, blocker)| {
            Some(GraphEdge { from: *places.get(blocker)?, to: *places.get(bead)? })
        })
        .collect();
    let nodes = status.tracked.iter().enumerate().map(|(at, one)| GraphNode {
        id: one.row.bead.id.clone(),
        title: one.row.bead.title.to_string(),
        state: one.state,
        merge_state: one.merge_state().map(str::to_owned),
        is_critical: status.critical_path.contains(&at),
    });
    let drawn = layout(nodes.collect(), &edges);
    Ok((status, drawn))
}
