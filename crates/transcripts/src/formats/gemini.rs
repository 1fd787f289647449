//! Gemini CLI.

use serde_json::Value;

use crate::event::{ModelUsage, ToolCall, TranscriptEvent, TranscriptKind, UsageScope};
use crate::input::{about, change, parts, text, time, tokens};

pub(super) fn read(line: &Value, events: &mut Vec<TranscriptEvent>) {
    let at = time(line, "timestamp");
    let mut add = |kind| events.push(TranscriptEvent { at, kind });
    match text(line, "type") {
        "message" => {
            let said = text(line, "content").to_owned();
            add(match text(line, "role") {
                "user" => TranscriptKind::Prompt(said),
                _ => TranscriptKind::Text(said),
            });
        }
        "tool_use" => {
            let input = line.get("parameters").unwrap_or(&Value::Null);
            add(TranscriptKind::ToolCall(ToolCall {
                id: text(line, "tool_id").to_owned(),
                tool: text(line, "tool_name").to_owned(),
                about: about(input),
                change: change(input),
            }));
        }
        "tool_result" => add(TranscriptKind::ToolResult {
            call: text(line, "tool_id").to_owned(),
            is_error: text(line, "status") == "error",
            text: parts(line.get("output")),
        }),
        "error" => add(TranscriptKind::Error(text(line, "message").to_owned())),
        "result" => {
            let stats = line.get("stats").unwrap_or(&Value::Null);
            let models = stats.get("models").and_then(Value::as_object);
            match models.filter(|models| !models.is_empty()) {
                Some(models) => models.iter().for_each(|(model, of_model)| {
                    add(TranscriptKind::Usage(usage(model, of_model.get("tokens").unwrap_or(of_model))));
                }),
                None => add(TranscriptKind::Usage(usage("", stats))),
            }
            let is_error = text(line, "status") == "error";
            let error = line.get("error").map(|error| text(error, "message")).unwrap_or_default();
            add(TranscriptKind::Result { is_error, text: error.to_owned() });
        }
        _ => {}
    }
}

fn usage(model: &str, counts: &Value) -> ModelUsage {
    let first = |keys: &[&str]| keys.iter().map(|key| tokens(counts, key)).max().unwrap_or(0);
    let cached = first(&["cached", "cached_tokens"]);
    ModelUsage {
        model: model.to_owned(),
        input: first(&["input_tokens", "prompt"]).saturating_sub(cached),
        output: first(&["output_tokens", "candidates"]),
        cache_read: cached,
        reasoning: first(&["thoughts", "thoughts_tokens"]),
        scope: UsageScope::Session,
        ..ModelUsage::default()
    }
}
