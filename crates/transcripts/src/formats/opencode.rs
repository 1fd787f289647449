//! opencode.

use serde_json::Value;

use crate::event::{ModelUsage, ToolCall, TranscriptEvent, TranscriptKind, UsageScope};
use crate::input::{about, change, from_seconds, money, parts, text, tokens};

pub(super) fn read(line: &Value, events: &mut Vec<TranscriptEvent>) {
    let at = line.get("timestamp").and_then(Value::as_i64);
    let at = at.and_then(|millis| from_seconds(millis / 1000));
    let mut add = |kind| events.push(TranscriptEvent { at, kind });
    let part = line.get("part").unwrap_or(&Value::Null);
    match text(line, "type") {
        "text" => add(TranscriptKind::Text(text(part, "text").to_owned())),
        "reasoning" => add(TranscriptKind::Thinking(text(part, "text").to_owned())),
        "tool_use" => {
            let state = part.get("state").unwrap_or(&Value::Null);
            let input = state.get("input").unwrap_or(&Value::Null);
            let id = text(part, "callID").to_owned();
            add(TranscriptKind::ToolCall(ToolCall {
                id: id.clone(),
                tool: text(part, "tool").to_owned(),
                about: about(input),
                change: change(input),
            }));
            let is_error = text(state, "status") == "error";
            let answer = if is_error { "error" } else { "output" };
            add(TranscriptKind::ToolResult { call: id, is_error, text: parts(state.get(answer)) });
        }
        "step_finish" => {
            let counts = part.get("tokens").unwrap_or(&Value::Null);
            let cache = counts.get("cache").unwrap_or(&Value::Null);
            add(TranscriptKind::Usage(ModelUsage {
                input: tokens(counts, "input"),
                output: tokens(counts, "output"),
                cache_read: tokens(cache, "read"),
                cache_write: tokens(cache, "write"),
                reasoning: tokens(counts, "reasoning"),
                cost: money(part, "cost"),
                scope: UsageScope::Request,
                ..ModelUsage::default()
            }));
        }
        "error" => {
            let error = line.get("error").unwrap_or(&Value::Null);
            let data = error.get("data").unwrap_or(&Value::Null);
            let words = [text(data, "message"), text(error, "message"), text(error, "name")];
            let words = words.into_iter().find(|words| !words.is_empty()).unwrap_or_default();
            add(TranscriptKind::Error(words.to_owned()));
        }
        _ => {}
    }
}
