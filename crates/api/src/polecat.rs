//! Polecats, their trees, and what was saved of them.

use gt_core::schedule::{Rescued, Trashed};
use serde::Serialize;

use crate::{TranscriptEventDocument, UtcTime};

/// A polecat.
#[derive(Debug, Clone, Serialize)]
pub struct PolecatDocument {
    pub rig: String,
    pub name: String,
    pub state: String,
    pub host: String,
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub branch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bead: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_alive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpushed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    pub created_at: UtcTime,
    pub updated_at: UtcTime,
}

/// A tree in the trash.
#[derive(Debug, Clone, Serialize)]
pub struct TrashedDocument {
    pub number: u64,
    pub rig: String,
    pub name: String,
    pub host: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub branch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub reason: String,
    pub state: String,
    pub moved_at: UtcTime,
    pub moved_by: String,
    pub purge_at: UtcTime,
    pub due_soon: bool,
}

/// The screen or the output of a worker.
#[derive(Debug, Clone, Serialize)]
pub struct PeekDocument {
    pub run: String,
    pub state: String,
    /// `session` or `log`.
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub output: String,
    /// The events of the output, if it is the one of an agent that prints events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TranscriptEventDocument>,
}

/// A polecat that was taken away.
#[derive(Debug, Clone, Serialize)]
pub struct NukedDocument {
    pub rig: String,
    pub name: String,
    pub dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge_at: Option<UtcTime>,
}

/// Work that was saved of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RescueDocument {
    pub run: String,
    pub bead: String,
    pub rig: String,
    pub host: String,
    pub reference: String,
    pub commit: String,
    pub base: String,
    pub bytes: u64,
    pub left_out: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    pub created_at: UtcTime,
}

/// Saved work that is on a branch again.
#[derive(Debug, Clone, Serialize)]
pub struct RestoredDocument {
    pub run: String,
    pub branch: String,
    pub commit: String,
    pub repository: String,
}

impl From<&Rescued> for RescueDocument {
    fn from(rescued: &Rescued) -> Self {
        Self {
            run: rescued.run.to_string(),
            bead: rescued.run.bead.to_string(),
            rig: rescued.rig.to_string(),
            host: rescued.host.clone(),
            reference: rescued.reference.clone(),
            commit: rescued.commit.clone(),
            base: rescued.base.clone(),
            bytes: rescued.bytes,
            left_out: rescued.left_out.clone(),
            repository: None,
            created_at: rescued.created_at.into(),
        }
    }
}

impl TrashedDocument {
    /// A tree in the trash; whether it is deleted soon.
    pub fn of(trashed: &Trashed, due_soon: bool) -> Self {
        Self {
            number: trashed.number,
            rig: trashed.rig.to_string(),
            name: trashed.name.clone(),
            host: trashed.host.clone(),
            path: trashed.path.clone(),
            branch: trashed.branch.clone(),
            run: trashed.run.as_ref().map(ToString::to_string),
            reason: trashed.reason.clone(),
            state: trashed.state.as_str().to_owned(),
            moved_at: trashed.moved_at.into(),
            moved_by: trashed.moved_by.clone(),
            purge_at: trashed.purge_at.into(),
            due_soon,
        }
    }
}
