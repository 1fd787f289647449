//! opencode.

use serde_json::Value;

use crate::event::{ModelUsage, ToolUse, TranscriptKind, UsageScope};
use crate::input::{about, change, from_millis, parts, text};
use crate::sink::EventSink;

pub(super) fn read(line: &Value, sink: &mut EventSink) {
    sink.begin_line(line.get("timestamp").and_then(Value::as_i64).and_then(from_millis));
    let part = line.get("part").unwrap_or(&Value::Null);
    match text(line, "type") {
        "text" => sink.add(TranscriptKind::Text(text(part, "text").to_owned())),
        "reasoning" => sink.add(TranscriptKind::Thinking(text(part, "text").to_owned())),
        "tool_use" => used_tool(part, sink),
        "step_finish" => {
            let counts = part.get("tokens").unwrap_or(&Value::Null);
            let cache = counts.get("cache").unwrap_or(&Value::Null);
            let usage = ModelUsage {
                input: sink.tokens(counts, "input"),
                output: sink.tokens(counts, "output"),
                cache_read: sink.tokens(cache, "read"),
                cache_write: sink.tokens(cache, "write"),
                reasoning: sink.tokens(counts, "reasoning"),
                cost: sink.money(part, "cost"),
                scope: UsageScope::Request,
                ..ModelUsage::default()
            };
            sink.add(TranscriptKind::Usage(usage));
        }
        "error" => {
            let error = line.get("error").unwrap_or(&Value::Null);
            let data = error.get("data").unwrap_or(&Value::Null);
            let words = [text(data, "message"), text(error, "message"), text(error, "name")];
            let words = words.into_iter().find(|words| !words.is_empty()).unwrap_or_default();
            sink.add(TranscriptKind::Error(words.to_owned()));
        }
        "step_start" => {}
        other => sink.unknown_type("the event", other),
    }
}

fn used_tool(part: &Value, sink: &mut EventSink) {
    let state = part.get("state").unwrap_or(&Value::Null);
    let input = state.get("input").unwrap_or(&Value::Null);
    let id = text(part, "callID").to_owned();
    sink.add(TranscriptKind::ToolCall(ToolUse {
        id: id.clone(),
        tool: text(part, "tool").to_owned(),
        about: about(input),
        change: change(input),
    }));
    let is_refused = text(state, "status") == "error";
    let exit = state.get("metadata").and_then(|metadata| metadata.get("exit"));
    let is_error = is_refused || exit.and_then(Value::as_i64).is_some_and(|code| code != 0);
    let answer = if is_refused { "error" } else { "output" };
    sink.add(TranscriptKind::ToolResult { call: id, is_error, text: parts(state.get(answer)) });
}
