//! Messages, and what waits for a person.

use gt_core::Message;
use gt_core::message::Severity;
use serde::Serialize;
use utoipa::ToSchema;

use crate::UtcTime;

/// A message.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MessageDocument {
    pub id: String,
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    pub from: String,
    pub to: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub subject: String,
    pub body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bead: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    pub receipt: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UtcTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub delivered_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub seen_at: Option<UtcTime>,
}

/// A message that was put before an agent at work.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct NudgeDocument {
    #[serde(flatten)]
    pub message: MessageDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_because: Option<String>,
}

/// Something that waits for a person.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct NeedDocument {
    pub code: String,
    pub what: String,
    pub remedy: String,
}

/// Something that waits for a person, of any kind.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum NeedsYouDocument {
    Need(NeedDocument),
    Message(Box<MessageDocument>),
}

impl From<&Message> for MessageDocument {
    fn from(message: &Message) -> Self {
        Self {
            id: message.id.to_string(),
            kind: message.kind.as_str().to_owned(),
            severity: message.kind.severity().map(|severity| Severity::as_str(severity).to_owned()),
            from: message.from.to_string(),
            to: message.to.to_string(),
            subject: message.subject.clone(),
            body: message.body.clone(),
            bead: message.bead.as_ref().map(ToString::to_string),
            reply_to: message.reply_to.map(|answered| answered.to_string()),
            receipt: message.receipt().as_str().to_owned(),
            created_at: message.created_at.into(),
            delivered_at: message.delivered_at.map(UtcTime),
            seen_at: message.seen_at.map(UtcTime),
        }
    }
}
