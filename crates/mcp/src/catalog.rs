//! The tools of each role, as clients see them.
//!
//! Every session of an agent pays for these texts, so they are short and there are few tools.

use serde_json::{Map, Value, json};

use crate::caller::McpRole;

/// A tool as a client sees it.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// Its name.
    pub name: &'static str,
    /// Its purpose, in a sentence or two.
    pub description: &'static str,
    /// Whether it changes nothing.
    pub is_read_only: bool,
    /// The schema of its arguments.
    pub schema: Map<String, Value>,
}

/// The tools of a role.
pub fn tools_of(role: McpRole) -> Vec<ToolDefinition> {
    match role {
        McpRole::Worker => worker(),
        McpRole::Operator => operator(),
    }
}

fn tool(
    name: &'static str,
    description: &'static str,
    is_read_only: bool,
    properties: &Value,
    required: &[&str],
) -> ToolDefinition {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties.clone());
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    ToolDefinition { name, description, is_read_only, schema }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn plain_text() -> Value {
    json!({"type": "string"})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn choice(choices: &[&str]) -> Value {
    json!({"type": "string", "enum": choices})
}

fn texts(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

/// How much depends on an answer.
pub(crate) const SEVERITIES: &[&str] = &["low", "medium", "high", "critical"];
/// How a run may end.
pub(crate) const ENDINGS: &[&str] = &["completed", "escalated", "deferred"];
/// An action of a worker on messages.
pub(crate) const MAIL_ACTIONS: &[&str] = &["inbox", "send", "reply"];
/// The parts of a status.
pub(crate) const STATUS_VIEWS: &[&str] = &["town", "runs", "convoys", "merge_queue", "cost"];
/// The groupings of costs.
pub(crate) const COST_GROUPINGS: &[&str] =
    &["day", "run", "bead", "convoy", "rig", "account", "model"];
/// The decisions of an operator.
pub(crate) const DECISIONS: &[&str] =
    &["answer", "approve", "reject", "retry", "close", "cancel", "retry_merge", "cancel_merge"];

fn worker() -> Vec<ToolDefinition> {
    vec![
        tool(
            "next",
            "Your task: the bead, the next step, unread messages, how to finish; or why there is nothing to do. Call it first.",
            true,
            &json!({}),
            &[],
        ),
        tool(
            "show",
            "Show a bead with its dependencies and comments; yours unless named.",
            true,
            &json!({"bead": plain_text()}),
            &[],
        ),
        tool(
            "step_done",
            "Tick off steps of your run.",
            false,
            &json!({"steps": texts("names of steps"), "force": flag("although earlier steps are not done")}),
            &["steps"],
        ),
        tool(
            "comment",
            "Comment on a bead; yours unless named.",
            false,
            &json!({"text": plain_text(), "bead": plain_text()}),
            &["text"],
        ),
        tool(
            "create",
            "File a bead for work that you found; a part of your bead unless separate.",
            false,
            &json!({
                "title": plain_text(),
                "description": plain_text(),
                "type": text("task, bug, feature or chore"),
                "priority": {"type": "integer", "minimum": 0, "maximum": 4},
                "separate": flag("not a part of your bead, only discovered from it"),
            }),
            &["title"],
        ),
        tool(
            "ask",
            "Ask a person and wait for the answer. If none comes in time, call again with message to go on waiting.",
            false,
            &json!({
                "question": plain_text(),
                "severity": choice(SEVERITIES),
                "wait_seconds": {"type": "integer", "minimum": 0, "maximum": 600},
                "message": text("the message of an earlier ask"),
            }),
            &[],
        ),
        tool(
            "mail",
            "Read your messages, or write to people and workers.",
            false,
            &json!({
                "action": choice(MAIL_ACTIONS),
                "to": text("send: mayor, <rig>/<name>, or a bead for its worker"),
                "message": text("reply: the message that is answered"),
                "subject": plain_text(),
                "text": plain_text(),
            }),
            &["action"],
        ),
        tool(
            "escalate",
            "Ask for a person without waiting; you go on working.",
            false,
            &json!({"text": plain_text(), "severity": choice(SEVERITIES)}),
            &["text"],
        ),
        tool(
            "handoff",
            "End this session; a fresh one goes on with your run and begins with your note.",
            false,
            &json!({"note": plain_text()}),
            &["note"],
        ),
        tool(
            "done",
            "Finish your run: everything in the tree is committed and brought to the target. Nothing that you do later counts.",
            false,
            &json!({
                "message": text("commit message, or why nothing had to change"),
                "status": choice(ENDINGS),
                "no_changes": flag("nothing has to change; needs message"),
            }),
            &[],
        ),
    ]
}

fn operator() -> Vec<ToolDefinition> {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": 200});
    vec![
        tool(
            "status",
            "How the town stands, or one part of it in detail.",
            true,
            &json!({
                "view": choice(STATUS_VIEWS),
                "rig": plain_text(),
                "by": {"type": "string", "enum": COST_GROUPINGS, "description": "cost: what the lines are about"},
                "since": text("cost: 24h, 7d or a time"),
            }),
            &[],
        ),
        tool(
            "find",
            "Find beads, runs, convoys and merge requests by text; without text, the beads that can be worked on.",
            true,
            &json!({"text": plain_text(), "rig": plain_text(), "limit": limit}),
            &[],
        ),
        tool(
            "show",
            "Show a bead, a run (gt-abc#2), a convoy or a merge request (gt-abc@1).",
            true,
            &json!({"id": plain_text()}),
            &["id"],
        ),
        tool(
            "why",
            "Why a bead is not running, and what changes that.",
            true,
            &json!({"bead": plain_text()}),
            &["bead"],
        ),
        tool(
            "create",
            "Create beads with their dependencies in one transaction: all or none.",
            false,
            &json!({
                "beads": {"type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "key": text("a name for the other beads of this call"),
                        "title": plain_text(),
                        "description": plain_text(),
                        "acceptance": plain_text(),
                        "type": text("task, bug, feature, chore, epic"),
                        "priority": {"type": "integer", "minimum": 0, "maximum": 4},
                        "labels": {"type": "array", "items": plain_text()},
                        "parent": text("key or id"),
                        "deps": texts("keys or ids that it waits for"),
                    },
                    "required": ["title"],
                }},
                "rig": plain_text(),
                "dry_run": flag("check only"),
            }),
            &["beads"],
        ),
        tool(
            "plan",
            "Preview a launch, without effect: waves, what is wrong with it, how long it takes.",
            true,
            &json!({"ids": texts("an epic, a convoy or beads")}),
            &["ids"],
        ),
        tool(
            "sling",
            "Send beads to a rig or an agent: they start when there is room.",
            false,
            &json!({
                "beads": texts("ids"),
                "target": text("a rig or <rig>/<name>; by the prefix unless said"),
                "instructions": plain_text(),
                "review": flag("a person approves before it lands"),
                "dry_run": flag("check only"),
            }),
            &["beads"],
        ),
        tool(
            "launch",
            "Launch an epic, a convoy or beads as one convoy.",
            false,
            &json!({"ids": texts("ids"), "title": plain_text(), "force": flag("despite warnings that stop it")}),
            &["ids"],
        ),
        tool(
            "inbox",
            "Everything that needs a person, with the decision that answers it.",
            true,
            &json!({"rig": plain_text()}),
            &[],
        ),
        tool(
            "decide",
            "Answer a row of the inbox. answer: a message (text). approve, reject (text), retry_merge, cancel_merge: a merge request. retry, close (text), cancel: a bead.",
            false,
            &json!({"action": choice(DECISIONS), "id": plain_text(), "text": plain_text()}),
            &["action", "id"],
        ),
        tool(
            "run_log",
            "What the agent of a run did and said last.",
            true,
            &json!({"run": text("a run, or a bead for its last one"), "lines": limit}),
            &["run"],
        ),
        tool(
            "pause",
            "Pause or resume all starts, a convoy, or the merge queue of a rig. Running work goes on.",
            false,
            &json!({"resume": flag("resume instead"), "convoy": plain_text(), "merge_queue": text("a rig")}),
            &[],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The most tools of a role.
    const TOOLS_MAX: usize = 12;
    /// The most tokens that the definitions of a role may cost.
    const TOKENS_MAX: usize = 2_500;
    /// Tokenisers of current models need about four bytes of English and JSON for each token; three is on the safe side.
    const BYTES_PER_TOKEN: usize = 3;

    /// The definitions as a client receives them, without what a client does not pass to its model.
    fn wire(tool: &ToolDefinition) -> String {
        let definition = json!({
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.schema,
        });
        definition.to_string()
    }

    #[test]
    fn each_role_has_few_tools_and_a_small_schema() {
        for role in [McpRole::Worker, McpRole::Operator] {
            let tools = tools_of(role);
            assert!(tools.len() <= TOOLS_MAX, "{role:?} has {} tools", tools.len());
            let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name).collect();
            assert_eq!(names.len(), tools.len(), "{role:?} has two tools of one name");
            let bytes: usize = tools.iter().map(|tool| wire(tool).len()).sum();
            let tokens = bytes.div_ceil(BYTES_PER_TOKEN);
            assert!(tokens <= TOKENS_MAX, "{role:?}: {bytes} bytes are about {tokens} tokens");
        }
    }

    #[test]
    fn each_required_argument_is_described() {
        for tool in tools_of(McpRole::Worker).into_iter().chain(tools_of(McpRole::Operator)) {
            let properties = tool.schema["properties"].as_object().unwrap();
            let required = tool.schema.get("required").and_then(Value::as_array);
            for name in required.into_iter().flatten() {
                assert!(properties.contains_key(name.as_str().unwrap()), "{}: {name}", tool.name);
            }
        }
    }
}
