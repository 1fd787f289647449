//! A candidate: a commit that the queue builds on top of the target from requests.

use super::request::MergeRequestId;
use crate::schedule::names;
use crate::{Invalid, RigSlug, Timestamp};

names! {
    /// How far a candidate is.
    CandidateState, "a state of a candidate" {
        /// It is being pushed; only the answer of the origin ends this.
        Landing = "landing",
        /// The target has it.
        Landed = "landed",
        /// The origin does not have it, and it is not pushed any more.
        Dropped = "dropped",
    }
}

/// One request in a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidatePart {
    /// The request.
    pub request: MergeRequestId,
    /// Its accepted commit.
    pub before: String,
    /// The commit that it became. The commit before it, if the target had everything already.
    pub after: String,
}

/// A commit that was built from requests and is about to be pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its number, given when it is recorded.
    pub number: u64,
    /// The rig.
    pub rig: RigSlug,
    /// The branch that it is for.
    pub target: String,
    /// The commit of the target that it was built on.
    pub base: String,
    /// The commit.
    pub tip: String,
    /// The tree of the commit: what the checks have seen.
    pub tree: String,
    /// How far it is.
    pub state: CandidateState,
    /// The process that built it.
    pub builder: String,
    /// The requests in it, in their order.
    pub parts: Vec<CandidatePart>,
    /// When its intent was recorded.
    pub created_at: Timestamp,
    /// When its state changed last.
    pub changed_at: Timestamp,
}
