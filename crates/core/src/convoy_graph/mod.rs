//! The beads of a convoy as a graph: what waits for what, drawn in layers.

mod layout;
mod state;
mod svg;

pub use layout::{GraphEdge, GraphLayout, GraphNode, PlacedEdge, PlacedNode, layout};
pub use state::TrackedState;
pub use svg::svg;
