//! goose.

use serde_json::Value;

use crate::event::{ModelUsage, ToolUse, TranscriptKind, UsageScope};
use crate::input::{about, change, flag, from_millis, parts, text};
use crate::sink::EventSink;

/// The message of goose when a call of its model fails.
const FAILURE: &str = "Ran into this error:";

pub(super) fn read(line: &Value, sink: &mut EventSink) {
    let message = line.get("message").unwrap_or(&Value::Null);
    let seconds = message.get("created").and_then(Value::as_i64);
    sink.begin_line(seconds.and_then(|seconds| from_millis(seconds.saturating_mul(1_000))));
    match text(line, "type") {
        "message" => {
            let is_model = text(message, "role") == "assistant";
            let content = message.get("content").and_then(Value::as_array);
            content.into_iter().flatten().for_each(|part| add_message_part(part, is_model, sink));
        }
        "complete" => {
            // Totals of the session. The model has no name here.
            let usage = ModelUsage {
                input: sink.tokens(line, "input_tokens"),
                output: sink.tokens(line, "output_tokens"),
                scope: UsageScope::Session,
                ..ModelUsage::default()
            };
            if usage.input > 0 || usage.output > 0 {
                sink.add(TranscriptKind::Usage(usage));
            }
        }
        "error" => sink.add(TranscriptKind::Error(text(line, "error").to_owned())),
        "notification" => {}
        other => sink.unknown_type("the event", other),
    }
}

fn add_message_part(part: &Value, is_model: bool, sink: &mut EventSink) {
    match text(part, "type") {
        "text" => {
            let words = text(part, "text");
            if !is_model {
                sink.add(TranscriptKind::Prompt(words.to_owned()));
            } else if words.starts_with(FAILURE) {
                sink.add(TranscriptKind::Error(words.to_owned()));
            } else {
                // A message of a model that streams comes in pieces, one line each.
                sink.add_piece(words);
            }
        }
        "thinking" => sink.add(TranscriptKind::Thinking(text(part, "thinking").to_owned())),
        "toolRequest" => {
            let call = part.get("toolCall").and_then(|call| call.get("value"));
            let call = call.unwrap_or(&Value::Null);
            let input = call.get("arguments").unwrap_or(&Value::Null);
            sink.add(TranscriptKind::ToolCall(ToolUse {
                id: text(part, "id").to_owned(),
                tool: text(call, "name").to_owned(),
                about: about(input),
                change: change(input),
            }));
        }
        "toolResponse" => {
            let result = part.get("toolResult").unwrap_or(&Value::Null);
            let value = result.get("value").unwrap_or(&Value::Null);
            let is_refused = text(result, "status") == "error";
            let answer = if is_refused { result.get("error") } else { value.get("content") };
            sink.add(TranscriptKind::ToolResult {
                call: text(part, "id").to_owned(),
                is_error: is_refused || flag(value, "isError"),
                text: parts(answer),
            });
        }
        other => sink.unknown_type("the part of a message", other),
    }
}
