//! Transcripts: what an agent did and said.

use gt_transcripts::{ModelUsage, TranscriptEvent, TranscriptKind, UsageScope};
use serde::Serialize;
use utoipa::ToSchema;

use crate::UtcTime;

/// One thing that an agent did or said.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct TranscriptEventDocument {
    /// `prompt`, `text`, `thinking`, `tool_call`, `tool_result`, `usage`, `limit`, `window`, `session`, `error`, `result` or `note`.
    #[schema(example = "tool_call")]
    pub kind: &'static str,
    /// When; left out if the agent does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<UtcTime>,
    /// The words of the agent, of a tool or of the service. A note says what could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The tool of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Bash")]
    pub tool: Option<String>,
    /// The file or the command of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "cargo test")]
    pub about: Option<String>,
    /// The name of a call, also in its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The text that a call replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_text: Option<String>,
    /// The text that a call writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_text: Option<String>,
    /// Whether a tool or the agent failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// When a limit is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ModelUsageDocument>,
}

/// The usage of one model.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ModelUsageDocument {
    /// The model; empty if the agent does not name it.
    pub model: String,
    /// Tokens that were read and in no cache.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Tokens of thinking, if the agent tells them apart.
    pub reasoning: u64,
    /// The cost in dollars, if the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// `request`: usages are added up; `session`: the last one counts.
    #[schema(example = "session")]
    pub scope: &'static str,
}

impl From<&TranscriptEvent> for TranscriptEventDocument {
    fn from(event: &TranscriptEvent) -> Self {
        let named = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let words =
            |kind, text: &String| Self { kind, text: Some(text.clone()), ..Self::default() };
        let document = match &event.kind {
            TranscriptKind::Prompt(text) => words("prompt", text),
            TranscriptKind::Text(text) => words("text", text),
            TranscriptKind::Thinking(text) => words("thinking", text),
            TranscriptKind::ToolCall(call) => {
                let (old_text, new_text) = call.change.clone().unzip();
                Self {
                    kind: "tool_call",
                    tool: Some(call.tool.clone()),
                    about: named(&call.about),
                    call: named(&call.id),
                    old_text,
                    new_text,
                    ..Self::default()
                }
            }
            TranscriptKind::ToolResult { call, is_error, text } => {
                Self { call: named(call), is_error: Some(*is_error), ..words("tool_result", text) }
            }
            TranscriptKind::Usage(usage) => {
                Self { kind: "usage", usage: Some(usage.into()), ..Self::default() }
            }
            TranscriptKind::Limit { until, text, .. } => {
                Self { until: until.map(UtcTime), ..words("limit", text) }
            }
            TranscriptKind::Window(window) => {
                let document = words("window", &window.to_string());
                Self { until: window.resets_at.map(UtcTime), ..document }
            }
            TranscriptKind::Session(name) => words("session", name),
            TranscriptKind::Error(text) => words("error", text),
            TranscriptKind::Result { is_error, text } => {
                Self { is_error: Some(*is_error), ..words("result", text) }
            }
            TranscriptKind::Note(text) => words("note", text),
        };
        Self { at: event.at.map(UtcTime), ..document }
    }
}

impl From<&ModelUsage> for ModelUsageDocument {
    fn from(usage: &ModelUsage) -> Self {
        Self {
            model: usage.model.clone(),
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            reasoning: usage.reasoning,
            cost: usage.cost.map(|cost| cost.to_string()),
            scope: match usage.scope {
                UsageScope::Request => "request",
                UsageScope::Session => "session",
            },
        }
    }
}
