//! Requests to the work queue. Clients write these; the server reads a request field by field, so that it can report
//! every wrong field at once. A test compares the fields that it knows with those described here.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{Clearable, RawJson, WorkItemDocument, WorkOutcome, WorkStatusName};

/// A work item to be submitted. It is queued, whether or not it has an agent.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkDocument {
    /// The kind of work.
    #[schema(min_length = 1, max_length = 50)]
    pub r#type: String,
    #[schema(min_length = 1)]
    pub description: String,
    /// 1 (highest) to 5; 3 if nothing is said.
    #[schema(minimum = 1, maximum = 5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    #[schema(format = "uuid")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Any JSON object.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_agent: Option<String>,
    /// The submitter; else the name of the token, else `api`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The items that must be done first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<String>>,
}

/// One item, or several: all of them or none.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum SubmissionDocument {
    One(Box<NewWorkDocument>),
    Many(Vec<NewWorkDocument>),
}

/// The result of a submission: one item, or as many as were sent.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum SubmittedDocument {
    One(Box<WorkItemDocument>),
    Many(Vec<WorkItemDocument>),
}

/// A change to a work item.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkChangeDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<WorkStatusName>,
    /// Needed with completed and failed, and has to fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<WorkOutcome>,
    /// In place of the old ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[schema(min_length = 1, max_length = 50)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    #[schema(min_length = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[schema(minimum = 1, maximum = 5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Needed to dispatch an item without an agent.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Clearable::is_kept")]
    pub assigned_agent: Clearable<String>,
    #[schema(value_type = Option<String>, format = "uuid")]
    #[serde(skip_serializing_if = "Clearable::is_kept")]
    pub project_id: Clearable<String>,
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Clearable::is_kept")]
    pub payload: Clearable<RawJson>,
    /// Refuse this unless that run still has it.
    #[schema(format = "uuid")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

/// An agent that asks for work.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NextDocument {
    #[schema(min_length = 1)]
    pub agent: String,
    /// Only these kinds of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// Only work of this project.
    #[schema(format = "uuid")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// How long to wait for work if there is none.
    #[schema(minimum = 0, maximum = 60)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_s: Option<i64>,
    /// How long it is the agent's without another word; 300 if nothing is said.
    #[schema(minimum = 30, maximum = 3600)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_s: Option<i64>,
}

/// A heartbeat of an agent.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatDocument {
    #[schema(format = "uuid")]
    pub run_id: String,
    /// How long it is the agent's from now on; as long as before if nothing is said.
    #[schema(minimum = 30, maximum = 3600)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_s: Option<i64>,
    /// Only if no lease exists yet: of several agents that adopt the same run, one gets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopt: Option<bool>,
}

/// An agent that gives its work back.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseDocument {
    #[schema(format = "uuid")]
    pub run_id: String,
}

/// A look at all work that agents have. There is nothing to say.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StaleCheckDocument {}
