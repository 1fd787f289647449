//! Whether a person has to approve the work on a bead before it lands: required anywhere wins.

use std::fmt;

use gt_core::schedule::{Context, Merge};
use gt_core::{Bead, BeadId, DependencyType, Json, Status};
use gt_store::Reader;

use gt_town::{OperationError, Result};

/// The metadata field of a bead or a convoy that requires a review.
pub const REVIEW: &str = "review";

/// The value of that field that requires one.
pub const REVIEW_REQUIRED: &str = "required";

/// The value of that field that leaves it to others.
pub const REVIEW_OPTIONAL: &str = "optional";

/// Whether the metadata of a bead or a convoy requires a review.
pub fn metadata_requires_review(bead: &Bead) -> bool {
    let said = bead.metadata.as_ref().and_then(|metadata| Json::string_field(metadata, REVIEW));
    said.as_deref() == Some(REVIEW_REQUIRED)
}

/// The object that requires a review of the work on a bead. The rig is asked by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewSource {
    /// Its sling.
    Sling,
    /// Its own metadata.
    Bead(BeadId),
    /// The metadata of an open convoy that tracks it.
    Convoy(BeadId),
}

impl fmt::Display for ReviewSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sling => write!(f, "its sling asks for it"),
            Self::Bead(bead) => write!(f, "{bead} asks for it: {REVIEW}={REVIEW_REQUIRED}"),
            Self::Convoy(convoy) => {
                write!(f, "its convoy {convoy} asks for it: {REVIEW}={REVIEW_REQUIRED}")
            }
        }
    }
}

/// Refuses to ask for a review of work that does not land: nothing would wait for it.
pub fn refuse_review_of_local(review: bool, merge: Option<Merge>) -> Result<()> {
    if review && merge == Some(Merge::Local) {
        return Err(OperationError::rejected(
            "with --merge local the work stays on its branch and its bead closes, so --review has nothing to hold back; \
             leave out one of them",
        ));
    }
    Ok(())
}

/// Whether the sling, the bead or an open convoy that tracks it requires a review. The rig is asked by the caller.
pub fn is_review_required(
    reader: &Reader<'_>,
    bead: &BeadId,
    context: Option<&Context>,
) -> Result<bool> {
    Ok(review_source(reader, bead, context)?.is_some())
}

/// The first of those that requires a review.
pub fn review_source(
    reader: &Reader<'_>,
    bead: &BeadId,
    context: Option<&Context>,
) -> Result<Option<ReviewSource>> {
    if context.is_some_and(|context| context.parameters.review || context.parameters.review_only) {
        return Ok(Some(ReviewSource::Sling));
    }
    if reader.bead(bead)?.is_some_and(|bead| metadata_requires_review(&bead)) {
        return Ok(Some(ReviewSource::Bead(bead.clone())));
    }
    for edge in reader.edges_to(bead)? {
        if edge.kind != DependencyType::Tracks {
            continue;
        }
        let convoy = reader.bead(&edge.issue)?;
        let is_open = |convoy: &Bead| convoy.status != Status::Closed;
        if convoy.is_some_and(|convoy| is_open(&convoy) && metadata_requires_review(&convoy)) {
            return Ok(Some(ReviewSource::Convoy(edge.issue)));
        }
    }
    Ok(None)
}
