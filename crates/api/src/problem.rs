//! Why something was not done.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not done (RFC 9457).
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProblemDocument {
    /// Always `about:blank`: `code` tells problems apart.
    #[schema(required)]
    #[serde(default)]
    pub r#type: String,
    /// The meaning of the status.
    #[schema(required)]
    #[serde(default)]
    pub title: String,
    #[schema(required)]
    #[serde(default)]
    pub status: u16,
    /// The failure, the object it concerns, and the next step.
    pub detail: String,
    /// The kind of problem, in a word for programs.
    #[schema(required)]
    #[serde(default)]
    pub code: String,
    /// The fields that are wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<FieldError>>,
    /// Where the item can go from where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// The item that the agent has already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The run that has the item now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The version that the item is at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The id of the request, which is in the log too.
    #[schema(required)]
    #[serde(default)]
    pub request_id: String,
}

/// Something that is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    pub field: String,
    pub detail: String,
}

/// The output of a command that failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ErrorDocument {
    pub error: String,
}
