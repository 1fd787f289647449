//! The daemon, its service and its notices.

use gt_core::schedule::Notice;
use serde::Serialize;

use crate::{OrderedMap, RawJson, UtcTime};

/// A daemon that was started.
#[derive(Debug, Clone, Serialize)]
pub struct DaemonStartedDocument {
    pub started: bool,
    pub ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u64>,
    pub log: String,
}

/// A daemon that was stopped.
#[derive(Debug, Clone, Serialize)]
pub struct DaemonStoppedDocument {
    pub stopped: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_runs: Option<u64>,
}

/// No daemon.
#[derive(Debug, Clone, Serialize)]
pub struct NotRunningDocument {
    pub running: bool,
}

/// A unit for systemd.
#[derive(Debug, Clone, Serialize)]
pub struct UnitDocument {
    pub written: bool,
    pub name: String,
    pub path: String,
    pub text: String,
}

/// A notice in the outbox.
#[derive(Debug, Clone, Serialize)]
pub struct NoticeDocument {
    pub key: String,
    pub channel: String,
    pub state: String,
    pub attempts: i64,
    pub last_error: String,
    pub created_at: UtcTime,
    pub next_attempt_at: UtcTime,
    pub payload: RawJson,
}

/// Notices that were tried again.
#[derive(Debug, Clone, Serialize)]
pub struct DeliveredDocument {
    pub sent: u64,
    pub failed: u64,
    pub waiting: u64,
}

/// Channels that were tried.
#[derive(Debug, Clone, Serialize)]
pub struct ToldDocument {
    pub told: Vec<String>,
}

/// A demonstration.
#[derive(Debug, Clone, Serialize)]
pub struct DemoDocument {
    pub beads: u64,
    pub landed: u64,
    pub runs: u64,
    pub most_at_once: u64,
    pub cap: u64,
    pub took_ms: u64,
    pub convoy: String,
    pub convoy_landed: bool,
    pub waves: Vec<u64>,
    pub recovered_ms: OrderedMap<u64>,
    pub close_to_start: LatencyDocument,
    pub end_to_start: LatencyDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// How long something took.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyDocument {
    pub count: u64,
    pub max_ms: RawJson,
    pub p50_ms: RawJson,
}

impl From<&Notice> for NoticeDocument {
    fn from(notice: &Notice) -> Self {
        Self {
            key: notice.key.clone(),
            channel: notice.channel.as_str().to_owned(),
            state: notice.state.as_str().to_owned(),
            attempts: notice.attempts.into(),
            last_error: notice.last_error.clone(),
            created_at: notice.created_at.into(),
            next_attempt_at: notice.next_attempt_at.into(),
            payload: RawJson::from(&notice.payload),
        }
    }
}
