//! The place of each bead in a drawing: a column for each layer, and as few crossing lines as a few sweeps give.

use std::collections::HashMap;

use crate::BeadId;

use super::TrackedState;

/// A bead of a convoy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNode {
    /// The bead.
    pub id: BeadId,
    /// Its title.
    pub title: String,
    /// Where it stands.
    pub state: TrackedState,
    /// Where its finished work stands in the merge queue.
    pub merge_state: Option<String>,
    /// Whether it is on the longest chain of what is left.
    pub is_critical: bool,
}

impl GraphNode {
    /// Where it stands, in a word: a review says more than that it waits.
    pub fn word(&self) -> &str {
        match (self.state, &self.merge_state) {
            (TrackedState::Waiting, Some(state)) => state,
            (state, _) => state.as_str(),
        }
    }
}

/// One bead waits, or has waited, for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphEdge {
    /// The place of the bead that comes first.
    pub from: usize,
    /// The place of the bead that waits for it.
    pub to: usize,
}

/// A bead at its place in the drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedNode {
    /// The bead.
    pub node: GraphNode,
    /// The column, from 0: the length of the longest chain of beads before it.
    pub layer: usize,
    /// The row in its column, from 0.
    pub row: usize,
}

/// A line of the drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedEdge {
    /// The beads that it connects.
    pub edge: GraphEdge,
    /// The row in each column between them that is left free for it, so that it meets no bead.
    pub via: Vec<usize>,
}

/// The beads of a convoy at their places, and the lines between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphLayout {
    /// The beads, in the order in which they were given.
    pub nodes: Vec<PlacedNode>,
    /// The lines, sorted.
    pub edges: Vec<PlacedEdge>,
    /// How many columns there are.
    pub layers: usize,
    /// How many rows the longest column has.
    pub rows: usize,
}

/// How often the rows are ordered by their neighbours, from left to right and back.
const SWEEPS: usize = 4;

/// Places beads in layers: each stands to the right of all that it waits for. Beads that wait for each other in a circle
/// stand in the layer of the last that can be placed.
pub fn layout(nodes: Vec<GraphNode>, edges: &[GraphEdge]) -> GraphLayout {
    let is_valid = |edge: &&GraphEdge| {
        edge.from != edge.to && edge.from < nodes.len() && edge.to < nodes.len()
    };
    let mut edges: Vec<GraphEdge> = edges.iter().filter(is_valid).copied().collect();
    edges.sort_unstable();
    edges.dedup();
    let layers = layers(nodes.len(), &edges);
    let mut columns: Vec<Vec<usize>> =
        vec![Vec::new(); layers.iter().max().map_or(0, |max| max + 1)];
    for (at, layer) in layers.iter().enumerate() {
        columns[*layer].push(at);
    }
    // A line over several columns has a place in each, as a bead has. These places are numbered after the beads.
    let mut count = nodes.len();
    let mut steps: Vec<GraphEdge> = Vec::new();
    let mut ways: Vec<Vec<usize>> = Vec::new();
    for edge in &edges {
        let between = (layers[edge.from] + 1)..layers[edge.to].max(layers[edge.from] + 1);
        let way: Vec<usize> = (count..count + between.len()).collect();
        count += between.len();
        let stops = [&[edge.from][..], &way, &[edge.to]].concat();
        steps.extend(stops.windows(2).map(|pair| GraphEdge { from: pair[0], to: pair[1] }));
        for (layer, at) in between.zip(&way) {
            columns[layer].push(*at);
        }
        ways.push(way);
    }
    for sweep in 0..SWEEPS {
        order_columns(&mut columns, &steps, sweep % 2 == 0);
    }
    let mut rows = vec![0; count];
    for column in &columns {
        for (row, at) in column.iter().enumerate() {
            rows[*at] = row;
        }
    }
    let placed = nodes.into_iter().enumerate();
    let placed = placed.map(|(at, node)| PlacedNode { node, layer: layers[at], row: rows[at] });
    let lines = edges.into_iter().zip(ways);
    GraphLayout {
        nodes: placed.collect(),
        edges: lines
            .map(|(edge, way)| PlacedEdge { edge, via: way.iter().map(|at| rows[*at]).collect() })
            .collect(),
        layers: columns.len(),
        rows: columns.iter().map(Vec::len).max().unwrap_or(0),
    }
}

/// The layer of each bead: the length of the longest chain before it. Beads of a circle, and those behind one, are left
/// where the beads before them put them.
fn layers(count: usize, edges: &[GraphEdge]) -> Vec<usize> {
    let mut layers = vec![0; count];
    let mut waits_for = vec![0_usize; count];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    for edge in edges {
        waits_for[edge.to] += 1;
        after[edge.from].push(edge.to);
    }
    let mut ready: Vec<usize> = (0..count).filter(|at| waits_for[*at] == 0).collect();
    while let Some(at) = ready.pop() {
        for next in &after[at] {
            layers[*next] = layers[*next].max(layers[at] + 1);
            waits_for[*next] -= 1;
            if waits_for[*next] == 0 {
                ready.push(*next);
            }
        }
    }
    layers
}

/// Orders each column by the middle of the rows of its neighbours in the column before it, or after it.
fn order_columns(columns: &mut [Vec<usize>], edges: &[GraphEdge], to_the_right: bool) {
    let mut neighbours: HashMap<usize, Vec<usize>> = HashMap::new();
    for edge in edges {
        let (at, other) = if to_the_right { (edge.to, edge.from) } else { (edge.from, edge.to) };
        neighbours.entry(at).or_default().push(other);
    }
    let mut rows: HashMap<usize, usize> = HashMap::new();
    let mut order = |column: &mut Vec<usize>| {
        let mut keyed: Vec<(f64, usize)> = column
            .iter()
            .enumerate()
            .map(|(row, at)| (middle(neighbours.get(at), &rows).unwrap_or(as_row(row)), *at))
            .collect();
        keyed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        *column = keyed.into_iter().map(|(_, at)| at).collect();
        rows.extend(column.iter().enumerate().map(|(row, at)| (*at, row)));
    };
    if to_the_right {
        columns.iter_mut().for_each(&mut order);
    } else {
        columns.iter_mut().rev().for_each(&mut order);
    }
}

fn middle(neighbours: Option<&Vec<usize>>, rows: &HashMap<usize, usize>) -> Option<f64> {
    let placed = neighbours?.iter().filter_map(|at| rows.get(at));
    let placed: Vec<f64> = placed.map(|row| as_row(*row)).collect();
    if placed.is_empty() {
        return None;
    }
    Some(placed.iter().sum::<f64>() / as_row(placed.len()))
}

#[expect(clippy::cast_precision_loss, reason = "a convoy has far fewer beads than 2^52")]
fn as_row(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn node(id: &str, state: TrackedState) -> GraphNode {
        let title = format!("Title of {id}");
        GraphNode {
            id: BeadId::parse(id).unwrap(),
            title,
            state,
            merge_state: None,
            is_critical: false,
        }
    }

    fn nodes(count: usize) -> Vec<GraphNode> {
        (0..count).map(|number| node(&format!("we-{number}"), TrackedState::Queued)).collect()
    }

    fn edge((from, to): (usize, usize)) -> GraphEdge {
        GraphEdge { from, to }
    }

    #[test]
    fn each_bead_stands_behind_all_that_it_waits_for() {
        // 0 before 1 and 2, both before 3; 4 alone.
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)].map(edge);
        let drawn = layout(nodes(5), &edges);
        let places: Vec<usize> = drawn.nodes.iter().map(|one| one.layer).collect();
        assert_eq!(places, [0, 1, 1, 2, 0]);
        // The line from 0 to 3 has a row of its own beside 1 and 2.
        assert_eq!((drawn.layers, drawn.rows), (3, 3));
        let via: Vec<usize> = drawn.edges.iter().map(|line| line.via.len()).collect();
        assert_eq!(via, [0, 0, 1, 0, 0]);
    }

    #[test]
    fn lines_do_not_cross_where_another_order_avoids_it() {
        let drawn = layout(nodes(4), &[(0, 3), (1, 2)].map(edge));
        let row = |at: usize| drawn.nodes[at].row;
        assert_eq!(row(0) < row(1), row(3) < row(2));
    }

    proptest! {
        #[test]
        fn every_bead_has_a_place_of_its_own(
            count in 0_usize..30,
            edges in prop::collection::vec((0_usize..32, 0_usize..32), 0..80),
        ) {
            let edges: Vec<GraphEdge> = edges.into_iter().map(edge).collect();
            let drawn = layout(nodes(count), &edges);
            prop_assert_eq!(drawn.nodes.len(), count);
            let mut places: Vec<_> = drawn.nodes.iter().map(|one| (one.layer, one.row)).collect();
            places.sort_unstable();
            places.dedup();
            prop_assert_eq!(places.len(), count);
            prop_assert!(places.iter().all(|(layer, row)| *layer < drawn.layers && *row < drawn.rows));
            // Without circles every line leads to the right, and past every bead.
            if edges.iter().all(|edge| edge.from < edge.to) {
                for PlacedEdge { edge, via } in &drawn.edges {
                    let (from, to) = (&drawn.nodes[edge.from], &drawn.nodes[edge.to]);
                    prop_assert_eq!(from.layer + via.len() + 1, to.layer);
                    let stops = (from.layer + 1..).zip(via.iter().copied());
                    prop_assert!(stops.into_iter().all(|stop| !places.contains(&stop)));
                }
            }
        }
    }
}
