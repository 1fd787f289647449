//! How clients name things: by a UUID, or by the id that people use.

use std::fmt;

use crate::schedule::RunId;
use crate::{BeadId, Invalid, RigSlug, Uid};

/// A work item as a client names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemRef {
    /// By its UUID.
    Uid(Uid),
    /// By the id of its bead.
    Bead(BeadId),
}

impl ItemRef {
    /// Reads a UUID or the id of a bead.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if let Some(uid) = uid(text) {
            return Ok(Self::Uid(uid));
        }
        match BeadId::parse(text) {
            Ok(bead) if !is_like_a_uuid(text) => Ok(Self::Bead(bead)),
            _ => Err(malformed("a work item", text, "a UUID or the id of a bead")),
        }
    }
}

impl fmt::Display for ItemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uid(uid) => uid.fmt(f),
            Self::Bead(bead) => bead.fmt(f),
        }
    }
}

impl From<BeadId> for ItemRef {
    fn from(bead: BeadId) -> Self {
        Self::Bead(bead)
    }
}

/// A project as a client names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectRef {
    /// By its UUID.
    Uid(Uid),
    /// By the name of its rig.
    Rig(RigSlug),
}

impl ProjectRef {
    /// Reads a UUID or the name of a rig.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if let Some(uid) = uid(text) {
            return Ok(Self::Uid(uid));
        }
        match RigSlug::parse(text) {
            Ok(slug) if !is_like_a_uuid(text) => Ok(Self::Rig(slug)),
            _ => Err(malformed("a project", text, "a UUID or the name of a rig")),
        }
    }
}

impl fmt::Display for ProjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uid(uid) => uid.fmt(f),
            Self::Rig(slug) => slug.fmt(f),
        }
    }
}

/// A run as a client names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRef {
    /// By its UUID.
    Uid(Uid),
    /// By its name.
    Id(RunId),
}

impl RunRef {
    /// Reads a UUID or `<bead>#<epoch>`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if let Some(uid) = uid(text) {
            return Ok(Self::Uid(uid));
        }
        let id = RunId::parse(text);
        id.map(Self::Id).map_err(|_| malformed("a run", text, "a UUID or <bead>#<number>"))
    }

    /// Whether this is the run that goes by these names.
    pub fn is(&self, id: &RunId, uid: Uid) -> bool {
        match self {
            Self::Uid(own) => *own == uid,
            Self::Id(own) => own == id,
        }
    }
}

impl fmt::Display for RunRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uid(uid) => uid.fmt(f),
            Self::Id(id) => id.fmt(f),
        }
    }
}

/// A UUID in its usual spelling. Others, without hyphens or in braces, could also be the name of something else.
fn uid(text: &str) -> Option<Uid> {
    is_like_a_uuid(text).then(|| Uid::parse(text)).flatten()
}

/// Whether this was meant as a UUID: it has the length and the hyphens of one.
fn is_like_a_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36 && [8, 13, 18, 23].iter().all(|at| bytes[*at] == b'-')
}

fn malformed(what: &str, text: &str, right: &str) -> Invalid {
    let shown: String = text.chars().take(60).collect();
    Invalid(format!("\"{}\" does not name {what}; give {right}", shown.escape_debug()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UID: &str = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b";

    #[test]
    fn things_are_named_by_uuid_or_by_their_usual_id() {
        assert!(matches!(ItemRef::parse(UID), Ok(ItemRef::Uid(_))));
        assert!(matches!(ItemRef::parse("wq-abc"), Ok(ItemRef::Bead(_))));
        assert!(matches!(ProjectRef::parse(UID), Ok(ProjectRef::Uid(_))));
        assert!(matches!(ProjectRef::parse("web"), Ok(ProjectRef::Rig(_))));
        assert!(matches!(RunRef::parse(UID), Ok(RunRef::Uid(_))));
        assert!(matches!(RunRef::parse("wq-abc#2"), Ok(RunRef::Id(_))));
        let almost = UID.replace('a', "z");
        for wrong in ["", "abc", "a b", "/", &almost] {
            assert!(ItemRef::parse(wrong).is_err(), "{wrong}");
            assert!(RunRef::parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "a b", "/", "inbox", &almost] {
            assert!(ProjectRef::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_reference_reads_back(text in ".{0,60}") {
            if let Ok(item) = ItemRef::parse(&text) {
                prop_assert_eq!(ItemRef::parse(&item.to_string()).unwrap(), item);
            }
            if let Ok(project) = ProjectRef::parse(&text) {
                prop_assert_eq!(ProjectRef::parse(&project.to_string()).unwrap(), project);
            }
            if let Ok(run) = RunRef::parse(&text) {
                prop_assert_eq!(RunRef::parse(&run.to_string()).unwrap(), run);
            }
        }
    }
}
