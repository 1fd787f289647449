//! Types of beads.

use std::fmt;

use super::text::check_name;
use crate::{ExecutorKind, Invalid};

/// The type of a bead. Free text; some values have a meaning here.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IssueType(String);

/// Never offered as work by `ready` unless asked for by name.
const NOT_WORK: [&str; 8] =
    ["merge-request", "gate", "molecule", "message", "agent", "role", "rig", "sling-context"];
/// The types that are dispatched where a worker is started for a bead.
const SLINGABLE: [&str; 5] = ["task", "bug", "feature", "chore", ""];
/// The types that are never given to agents that ask for work.
const NOT_PULLED: [&str; 11] = [
    "epic",
    "convoy",
    "molecule",
    "gate",
    "message",
    "event",
    "agent",
    "role",
    "rig",
    "merge-request",
    "sling-context",
];
const INFRASTRUCTURE: [&str; 4] = ["agent", "rig", "role", "message"];
const ALIASES: [(&str, &str); 10] = [
    ("enhancement", "feature"),
    ("feat", "feature"),
    ("dec", "decision"),
    ("adr", "decision"),
    ("investigation", "spike"),
    ("timebox", "spike"),
    ("user-story", "story"),
    ("ms", "milestone"),
    ("mr", "merge-request"),
    ("mol", "molecule"),
];

impl IssueType {
    /// The types that never appear in `ready` by themselves, for the store's index; convoys do not either,
    /// but the index does not know them.
    pub const NOT_WORK: &[&str] = &NOT_WORK;
    /// The types hidden from `list` by themselves.
    pub const HIDDEN: &[&str] = &["gate", "agent", "rig", "role", "message", Self::SLING_CONTEXT];
    /// The types that have a meaning here or in the tools around it. A team names its own in `types.custom`.
    pub const BUILT_IN: &[&str] = &[
        "task",
        "bug",
        "feature",
        "chore",
        "epic",
        "decision",
        "spike",
        "story",
        "milestone",
        "convoy",
        "molecule",
        "gate",
        "merge-request",
        "message",
        "event",
        "agent",
        "role",
        "rig",
        "slot",
        "queue",
        "swarm",
        "wisp",
        "formula",
        Self::SLING_CONTEXT,
    ];
    /// The type that contexts are shown with.
    pub const SLING_CONTEXT: &str = "sling-context";

    /// Reads a type as a person writes it: in any case, and aliases become the name they stand for.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.to_ascii_lowercase();
        let text = text.as_str();
        let name = ALIASES.iter().find(|(alias, _)| *alias == text).map_or(text, |(_, name)| name);
        check_name("issue type", name)?;
        Ok(Self(name.to_owned()))
    }

    /// Wraps text that was a valid type when it was stored.
    pub fn trusted(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is one of the [built-in](Self::BUILT_IN) types, or none at all.
    pub fn is_built_in(&self) -> bool {
        self.0.is_empty() || Self::BUILT_IN.contains(&self.as_str())
    }

    /// Whether `ready` offers beads of this type.
    pub fn is_work(&self) -> bool {
        !NOT_WORK.contains(&self.as_str()) && !self.is_convoy()
    }

    /// Whether beads of this type are dispatched to workers, in a rig whose runs are carried out like
    /// this.
    pub fn is_slingable(&self, executor: ExecutorKind) -> bool {
        match executor {
            ExecutorKind::Pull => !NOT_PULLED.contains(&self.as_str()),
            ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh | ExecutorKind::None => {
                SLINGABLE.contains(&self.as_str())
            }
        }
    }

    /// Whether this is a convoy, which tracks others.
    pub fn is_convoy(&self) -> bool {
        self.0 == "convoy"
    }

    /// Whether beads of this type are machinery that is always ephemeral.
    pub fn is_infrastructure(&self) -> bool {
        INFRASTRUCTURE.contains(&self.as_str())
    }

    /// Whether this is an epic, whose children must close before it does.
    pub fn is_epic(&self) -> bool {
        self.0 == "epic"
    }

    /// Whether this closes by itself when its last child closes.
    pub fn is_molecule(&self) -> bool {
        self.0 == "molecule"
    }
}

impl Default for IssueType {
    fn default() -> Self {
        Self("task".to_owned())
    }
}

impl fmt::Display for IssueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
