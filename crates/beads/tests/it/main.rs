//! Tests of the operations on beads, over a store of each engine.

mod containers;
mod towns;
