//! Events.

use gt_core::Event;
use serde::{Deserialize, Serialize};

use crate::{RawJson, UtcTime};

/// An event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventDocument {
    pub number: u64,
    pub event_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub actor: String,
    pub created_at: UtcTime,
    pub payload: RawJson,
}

impl From<&Event> for EventDocument {
    fn from(event: &Event) -> Self {
        Self {
            number: event.number,
            event_type: event.kind.as_str().to_owned(),
            issue_id: event.bead.as_ref().map(ToString::to_string),
            rig: event.rig.as_ref().map(ToString::to_string),
            run: event.run.clone(),
            actor: event.actor.clone(),
            created_at: event.at.into(),
            payload: RawJson::from(&event.payload),
        }
    }
}
