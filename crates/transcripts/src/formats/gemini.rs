//! Gemini CLI.

use serde_json::Value;

use crate::event::{ModelUsage, ToolUse, TranscriptKind, UsageScope};
use crate::input::{about, change, flag, parts, text, time};
use crate::sink::EventSink;

pub(super) fn read(line: &Value, sink: &mut EventSink) {
    sink.begin_line(time(line, "timestamp"));
    match text(line, "type") {
        "message" => {
            let said = text(line, "content");
            match text(line, "role") {
                "user" => sink.add(TranscriptKind::Prompt(said.to_owned())),
                _ if flag(line, "delta") => sink.add_piece(said),
                _ => sink.add(TranscriptKind::Text(said.to_owned())),
            }
        }
        "tool_use" => {
            let input = line.get("parameters").unwrap_or(&Value::Null);
            sink.add(TranscriptKind::ToolCall(ToolUse {
                id: text(line, "tool_id").to_owned(),
                tool: text(line, "tool_name").to_owned(),
                about: about(input),
                change: change(input),
            }));
        }
        "tool_result" => {
            let error = line.get("error").map(|error| text(error, "message")).unwrap_or_default();
            let output = parts(line.get("output"));
            sink.add(TranscriptKind::ToolResult {
                call: text(line, "tool_id").to_owned(),
                is_error: text(line, "status") == "error",
                text: if output.is_empty() { error.to_owned() } else { output },
            });
        }
        "error" => sink.add(TranscriptKind::Error(text(line, "message").to_owned())),
        "result" => {
            let stats = line.get("stats").unwrap_or(&Value::Null);
            let models = stats.get("models").and_then(Value::as_object);
            match models.filter(|models| !models.is_empty()) {
                Some(models) => models.iter().for_each(|(model, of_model)| {
                    add_usage(model, of_model.get("tokens").unwrap_or(of_model), sink);
                }),
                None => add_usage("", stats, sink),
            }
            let error = line.get("error").map(|error| text(error, "message")).unwrap_or_default();
            let is_error = text(line, "status") == "error";
            sink.add(TranscriptKind::Result { is_error, text: error.to_owned() });
        }
        "init" => {}
        other => sink.unknown_type("the event", other),
    }
}

fn add_usage(model: &str, counts: &Value, sink: &mut EventSink) {
    let mut first = |keys: [&str; 2]| keys.map(|key| sink.tokens(counts, key)).into_iter().max();
    let cached = first(["cached", "cached_tokens"]).unwrap_or(0);
    let usage = ModelUsage {
        model: model.to_owned(),
        input: first(["input_tokens", "prompt"]).unwrap_or(0).saturating_sub(cached),
        output: first(["output_tokens", "candidates"]).unwrap_or(0),
        cache_read: cached,
        reasoning: first(["thoughts", "thoughts_tokens"]).unwrap_or(0),
        scope: UsageScope::Session,
        ..ModelUsage::default()
    };
    sink.add(TranscriptKind::Usage(usage));
}
