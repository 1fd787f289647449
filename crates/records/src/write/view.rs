//! The parts of a bead that are written.

use gt_core::{Bead, BeadId, Comment, Dependency};

/// Numbers that lists show beside a bead. Commands count dependencies differently, so the
/// caller counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many beads it depends on.
    pub dependencies: u64,
    /// How many beads depend on it.
    pub dependents: u64,
    /// How many comments it has.
    pub comments: u64,
}

/// A bead together with as much of its surroundings as a command wants to print.
#[derive(Debug, Clone, Copy)]
pub struct BeadView<'a> {
    /// The bead.
    pub bead: &'a Bead,
    /// Its labels; empty ones are not written.
    pub labels: &'a [String],
    /// Its edges; empty ones are not written.
    pub dependencies: &'a [Dependency],
    /// Its comments; empty ones are not written.
    pub comments: &'a [Comment],
    /// Its counts; without them the record is a plain issue.
    pub counts: Option<Counts>,
    /// The bead it is a part of.
    pub parent: Option<&'a BeadId>,
}

impl<'a> BeadView<'a> {
    /// The bead alone, for a caller that fills in the rest.
    pub fn bare(bead: &'a Bead) -> Self {
        Self { bead, labels: &[], dependencies: &[], comments: &[], counts: None, parent: None }
    }
}
