//! Tests of the operations on beads, over a store of each engine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod containers;
mod towns;
