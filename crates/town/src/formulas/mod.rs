//! Formulas: finding, reading and cooking them. Nothing here writes.

mod built_in;
mod shelf;

pub use shelf::{Cooking, Listed, Loaded, Place, Shelf, Tier};
