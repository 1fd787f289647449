//! Codex.

use serde_json::Value;

use crate::event::{ModelUsage, ToolCall, TranscriptEvent, TranscriptKind, UsageScope};
use crate::input::{about, list, parts, text, tokens};

pub(super) fn read(line: &Value, events: &mut Vec<TranscriptEvent>) {
    let mut add = |kind| events.push(TranscriptEvent::new(kind));
    match text(line, "type") {
        "item.started" => {
            if let Some(item) = line.get("item") {
                began(item, &mut add);
            }
        }
        "item.completed" => {
            if let Some(item) = line.get("item") {
                completed(item, &mut add);
            }
        }
        "turn.completed" => {
            let usage = line.get("usage").unwrap_or(&Value::Null);
            let cached = tokens(usage, "cached_input_tokens");
            let reasoning = tokens(usage, "reasoning_output_tokens");
            add(TranscriptKind::Usage(ModelUsage {
                // Both numbers contain their special part.
                input: tokens(usage, "input_tokens").saturating_sub(cached),
                output: tokens(usage, "output_tokens").saturating_sub(reasoning),
                cache_read: cached,
                reasoning,
                scope: UsageScope::Request,
                ..ModelUsage::default()
            }));
        }
        "turn.failed" => {
            let error = line.get("error").unwrap_or(&Value::Null);
            add(TranscriptKind::Result { is_error: true, text: text(error, "message").to_owned() });
        }
        "error" => add(TranscriptKind::Error(text(line, "message").to_owned())),
        _ => {}
    }
}

fn began(item: &Value, add: &mut impl FnMut(TranscriptKind)) {
    let call = |tool: &str, about| ToolCall {
        id: text(item, "id").to_owned(),
        tool: tool.to_owned(),
        about,
        change: None,
    };
    match text(item, "type") {
        "command_execution" => add(TranscriptKind::ToolCall(call("shell", about(item)))),
        "mcp_tool_call" => add(TranscriptKind::ToolCall(call(text(item, "tool"), about(item)))),
        "web_search" => add(TranscriptKind::ToolCall(call("search", about(item)))),
        _ => {}
    }
}

fn completed(item: &Value, add: &mut impl FnMut(TranscriptKind)) {
    let id = text(item, "id").to_owned();
    match text(item, "type") {
        "agent_message" => add(TranscriptKind::Text(text(item, "text").to_owned())),
        "reasoning" => add(TranscriptKind::Thinking(text(item, "text").to_owned())),
        "command_execution" => add(TranscriptKind::ToolResult {
            call: id,
            is_error: item.get("exit_code").and_then(Value::as_i64).is_some_and(|code| code != 0),
            text: text(item, "aggregated_output").to_owned(),
        }),
        "file_change" => {
            for file in list(item, "changes") {
                add(TranscriptKind::ToolCall(ToolCall {
                    id: id.clone(),
                    tool: text(file, "kind").to_owned(),
                    about: text(file, "path").to_owned(),
                    change: None,
                }));
            }
        }
        "mcp_tool_call" => add(TranscriptKind::ToolResult {
            call: id,
            is_error: text(item, "status") == "failed",
            text: parts(item.get("result").and_then(|result| result.get("content"))),
        }),
        "error" => add(TranscriptKind::Error(text(item, "message").to_owned())),
        _ => {}
    }
}
