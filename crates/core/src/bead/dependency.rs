//! Edges between beads.

use std::fmt;

use super::text::check_name;
use super::{BeadId, Carried};
use crate::{Invalid, Json, Timestamp};

/// The relation of one bead to another. Only three types ever hold a bead up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DependencyType {
    /// The target must be done first.
    Blocks,
    /// The target must be over first, however it ended.
    ConditionalBlocks,
    /// The target and its children must be done first.
    WaitsFor,
    /// The bead is a part of the target. Never blocks.
    ParentChild,
    /// A convoy follows the target. Never blocks.
    Tracks,
    /// Anything else. Never blocks.
    Other(String),
}

/// Well-known names that `create --deps` accepts besides the ones with a variant.
const WELL_KNOWN: [&str; 14] = [
    "related",
    "discovered-from",
    "replies-to",
    "relates-to",
    "duplicates",
    "supersedes",
    "authored-by",
    "assigned-to",
    "approved-by",
    "attests",
    "until",
    "caused-by",
    "validates",
    "delegated-from",
];

impl DependencyType {
    /// The types that can hold a bead up.
    pub const BLOCKING: [Self; 3] = [Self::Blocks, Self::ConditionalBlocks, Self::WaitsFor];

    /// The names of the types that are known.
    pub fn known_names() -> impl Iterator<Item = &'static str> {
        let own = ["blocks", "conditional-blocks", "waits-for", "parent-child", "tracks"];
        own.into_iter().chain(WELL_KNOWN)
    }

    /// Reads a type; any short text is one.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        check_name("dependency type", text)?;
        Ok(Self::trusted(text))
    }

    /// A type that was valid when it was stored.
    pub fn trusted(text: &str) -> Self {
        match text {
            "blocks" => Self::Blocks,
            "conditional-blocks" => Self::ConditionalBlocks,
            "waits-for" => Self::WaitsFor,
            "parent-child" => Self::ParentChild,
            "tracks" => Self::Tracks,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Blocks => "blocks",
            Self::ConditionalBlocks => "conditional-blocks",
            Self::WaitsFor => "waits-for",
            Self::ParentChild => "parent-child",
            Self::Tracks => "tracks",
            Self::Other(name) => name,
        }
    }

    /// Whether an edge of this type can hold a bead up.
    pub fn can_block(&self) -> bool {
        Self::BLOCKING.contains(self)
    }

    /// Whether this is one of the standard types, and not a custom one.
    pub fn is_well_known(&self) -> bool {
        match self {
            Self::Other(name) => WELL_KNOWN.contains(&name.as_str()),
            _ => true,
        }
    }
}

impl fmt::Display for DependencyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many children of its target a `waits-for` edge waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Every one.
    AllChildren,
    /// The first one.
    AnyChildren,
}

impl Gate {
    /// The gate that the metadata of an edge names.
    pub fn of_metadata(metadata: &str) -> Self {
        // Nearly no edge names one, and every edge is asked.
        if !metadata.contains("any-children") {
            return Self::AllChildren;
        }
        let named = Json::parse(metadata).ok().and_then(|json| json.string_field("gate"));
        match named.as_deref() {
            Some("any-children") => Self::AnyChildren,
            _ => Self::AllChildren,
        }
    }
}

/// `issue` depends on `target`. At most one edge per pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The bead that depends.
    pub issue: BeadId,
    /// The bead it depends on; it need not exist (yet).
    pub target: BeadId,
    /// The relation.
    pub kind: DependencyType,
    /// When the edge was made.
    pub created_at: Timestamp,
    /// The actor that made it; empty if unknown.
    pub created_by: String,
    /// Text that holds JSON, as the record format has it; empty for none.
    pub metadata: String,
    /// The conversation it belongs to; empty for none.
    pub thread_id: String,
    /// Fields of an imported edge that mean nothing to us.
    pub carried: Carried,
}

impl Dependency {
    /// The gate named in this edge's metadata.
    pub fn gate(&self) -> Gate {
        Gate::of_metadata(&self.metadata)
    }
}
