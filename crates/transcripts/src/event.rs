//! The events of a transcript.

use std::time::Duration;

use gt_core::Timestamp;
use gt_core::cost::UsageWindow;
use gt_core::schedule::Money;

/// One thing that an agent did or said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptEvent {
    /// When, if the agent says so.
    pub at: Option<Timestamp>,
    /// The event itself.
    pub kind: TranscriptKind,
}

/// An action or a message of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TranscriptKind {
    /// The text that the agent was given.
    Prompt(String),
    /// The agent said something.
    Text(String),
    /// The agent thought aloud.
    Thinking(String),
    /// The agent called a tool.
    ToolCall(ToolUse),
    /// A tool answered.
    ToolResult {
        /// The call that it answers; empty if the agent does not name it.
        call: String,
        /// Whether the tool failed.
        is_error: bool,
        /// Its answer.
        text: String,
    },
    /// The agent used tokens of a model.
    Usage(ModelUsage),
    /// The service refuses the agent because a limit is reached.
    Limit {
        /// When the limit is over, if the service says so.
        until: Option<Timestamp>,
        /// How long such a limit lasts at most, if that is known.
        window: Option<Duration>,
        /// The words of the service.
        text: String,
    },
    /// The service tells how much of a window of the subscription is used.
    Window(UsageWindow),
    /// The agent names its session.
    Session(String),
    /// Something went wrong in the agent.
    Error(String),
    /// The agent is done with what it was asked.
    Result {
        /// Whether it ended with an error.
        is_error: bool,
        /// Its last words.
        text: String,
    },
    /// A part of the output that could not be read, in words for people.
    Note(String),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// The name of this call; empty if the agent does not give it one.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The file or the command that the call is about, on one line; empty if it has none.
    pub about: String,
    /// The text that the call replaces and the text that it writes, if it changes a file.
    pub change: Option<(String, String)>,
}

/// The usage of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// The model; empty if the agent does not name it.
    pub model: String,
    /// Tokens that were read and in no cache.
    pub input: u64,
    /// Tokens that were written, without those of thinking if the agent tells them apart.
    pub output: u64,
    /// Tokens that were read from a cache.
    pub cache_read: u64,
    /// Tokens that were put into a cache.
    pub cache_write: u64,
    /// Tokens of thinking, if the agent tells them apart.
    pub reasoning: u64,
    /// The cost, if the agent reports it.
    pub cost: Option<Money>,
    /// The scope of the numbers.
    pub scope: UsageScope,
}

/// The scope of the numbers of a usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UsageScope {
    /// One request: usages of a session are added up.
    #[default]
    Request,
    /// Everything that the session has used so far: the last one counts.
    Session,
}
