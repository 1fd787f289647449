//! A dependency as a person writes it beside a new bead.

use super::DependencyType;
use crate::Invalid;

/// The direction in which a new bead is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The new bead depends on the other.
    DependsOn,
    /// The other depends on the new bead.
    DependedOnBy,
}

/// A dependency to make together with a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDependency {
    /// The type of the dependency.
    pub kind: DependencyType,
    /// The direction.
    pub direction: Direction,
    /// The other bead.
    pub other: String,
    /// The edge's metadata; empty for none.
    pub metadata: String,
}

impl NewDependency {
    /// The new bead waits for `other`.
    pub fn blocked_by(other: impl Into<String>) -> Self {
        Self {
            kind: DependencyType::Blocks,
            direction: Direction::DependsOn,
            other: other.into(),
            metadata: String::new(),
        }
    }

    /// Reads `ID`, `type:ID`, or `blocks:ID`, which is the other way round: ID depends on the new bead.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let (kind, other) = text.split_once(':').unwrap_or(("blocked-by", text));
        let (name, direction) = match kind {
            "blocks" => ("blocks", Direction::DependedOnBy),
            "blocked-by" | "depends-on" => ("blocks", Direction::DependsOn),
            other => (other, Direction::DependsOn),
        };
        let kind = DependencyType::parse(name)?;
        if !kind.is_well_known() {
            return Err(Invalid(format!(
                "\"{}\" is not a known dependency type; use blocks, waits-for, related, \
                 discovered-from, … or add it afterwards with bd dep add --type {name}",
                name.escape_debug()
            )));
        }
        let other = other.trim();
        if other.is_empty() {
            return Err(Invalid(format!("\"{}\" names no bead", text.escape_debug())));
        }
        Ok(Self { kind, direction, other: other.to_owned(), metadata: String::new() })
    }
}
