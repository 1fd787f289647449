//! The server about itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::UtcTime;

/// How the server is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct HealthDocument {
    /// `ok`.
    #[schema(required)]
    #[serde(default)]
    pub status: String,
    #[schema(required)]
    #[serde(default)]
    pub version: String,
    /// The number of the last event.
    pub last_event: u64,
}

/// A line of the access log.
#[derive(Debug, Clone, Serialize)]
pub struct AccessLogDocument<'a> {
    pub time: UtcTime,
    pub request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub caller: &'a str,
    pub method: &'a str,
    pub path: &'a str,
    pub status: u16,
    pub duration_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
}

/// A server that has begun to listen.
#[derive(Debug, Clone, Serialize)]
pub struct ListeningDocument {
    pub addresses: Vec<String>,
    /// The file or the database that it serves.
    pub store: String,
    pub pid: u32,
}
