//! Why a bead is where it is.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    DaemonAbsenceDocument, FullRunDocument, NeedsYouDocument, PullRequestDocument,
    StepProgressDocument, UtcTime, WaitReasonDocument,
};

/// Why a bead is where it is.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WhyBeadDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_absence: Option<DaemonAbsenceDocument>,
    pub id: String,
    pub title: String,
    pub status: String,
    pub state: String,
    pub reasons: Vec<RemediedReasonDocument>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub causes: Vec<CauseDocument>,
    pub convoys: Vec<ConvoyReferenceDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<LineDocument>,
    pub holders: Vec<FullRunDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    pub max_attempts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<FullRunDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<StepProgressDocument>,
    pub needs_you: Vec<NeedsYouDocument>,
    /// The commit of the target that has its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed_commit: Option<String>,
}

/// Why a bead does not start, and how to change that.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RemediedReasonDocument {
    pub code: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<UtcTime>,
    pub remedy: String,
    /// The pull request that is waited for; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestDocument>,
}

/// A bead at the end of a chain of blockers.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CauseDocument {
    pub id: String,
    pub title: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    pub reasons: Vec<WaitReasonDocument>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub remedy: String,
}

/// A convoy that tracks a bead.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConvoyReferenceDocument {
    pub id: String,
    pub title: String,
    pub status: String,
}

/// The place of a bead in the queue.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LineDocument {
    pub position: u64,
    pub of: u64,
    pub ahead: Vec<String>,
}

/// The context of a scheduled bead.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ContextDocument {
    pub id: String,
    pub number: u64,
    pub rig: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub origin: String,
    #[schema(value_type = String, format = DateTime)]
    pub enqueued_at: UtcTime,
    pub enqueued_by: String,
    pub failures: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub last_failure: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_attempt_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub closed_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<String>,
}
