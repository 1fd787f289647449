//! The inbox: what needs a person.

use gt_core::Message;
use gt_core::inbox::{ChangeSize, InboxItem};
use gt_core::message::Severity;
use serde::Serialize;
use utoipa::ToSchema;

use crate::UtcTime;

/// A row of the inbox.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct InboxItemDocument {
    /// The same for as long as the same thing needs a person.
    pub key: String,
    /// The kind of the row.
    #[schema(example = "review")]
    pub code: String,
    /// The kind of the thing that it is about.
    #[schema(example = "merge-request")]
    pub object: String,
    /// The name of the thing.
    #[schema(example = "gt-abc@1")]
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bead: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    /// The title of the bead.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub title: String,
    /// The problem, in a sentence.
    pub what: String,
    /// The remedy, in a sentence.
    pub remedy: String,
    /// The commands that answer it.
    pub commands: Vec<String>,
    /// Since when it needs a person; left out if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<UtcTime>,
    /// The words of git, of a check, of a worker or of the origin.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub detail: String,
    /// The check that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeSizeDocument>,
    /// The beads that wait for this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub blocks: Vec<String>,
    /// The processes that are left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub processes: Vec<i32>,
    /// The message that asks, if a message does.
    #[serde(flatten)]
    pub message: Option<InboxMessageDocument>,
}

/// The size of a change.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChangeSizeDocument {
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
}

/// The message behind a row of the inbox.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct InboxMessageDocument {
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    pub from: String,
    pub to: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub subject: String,
    pub body: String,
    pub receipt: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UtcTime,
}

impl From<&InboxItem> for InboxItemDocument {
    fn from(item: &InboxItem) -> Self {
        let context = &item.context;
        // The body of a message is a field of its own.
        let detail = if context.message.is_some() { String::new() } else { context.detail.clone() };
        Self {
            key: item.key(),
            code: item.kind.as_str().to_owned(),
            object: item.object.kind().to_owned(),
            id: item.object.to_string(),
            bead: item.bead.as_ref().map(ToString::to_string),
            rig: item.rig.as_ref().map(ToString::to_string),
            title: item.title.clone(),
            what: item.what.clone(),
            remedy: item.remedy.clone(),
            commands: item.commands.clone(),
            since: item.since.map(UtcTime),
            detail,
            check: context.check.clone(),
            change: context.change.map(ChangeSizeDocument::from),
            blocks: context.blocks.iter().map(ToString::to_string).collect(),
            processes: context.processes.clone(),
            message: context.message.as_ref().map(InboxMessageDocument::from),
        }
    }
}

impl From<ChangeSize> for ChangeSizeDocument {
    fn from(size: ChangeSize) -> Self {
        let ChangeSize { files, insertions, deletions } = size;
        Self { files, insertions, deletions }
    }
}

impl From<&Message> for InboxMessageDocument {
    fn from(message: &Message) -> Self {
        Self {
            kind: message.kind.as_str().to_owned(),
            severity: message.kind.severity().map(|severity| Severity::as_str(severity).to_owned()),
            from: message.from.to_string(),
            to: message.to.to_string(),
            subject: message.subject.clone(),
            body: message.body.clone(),
            receipt: message.receipt().as_str().to_owned(),
            created_at: message.created_at.into(),
        }
    }
}
