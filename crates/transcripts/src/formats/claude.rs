//! Claude Code, and Qwen Code, which prints the same.

use serde_json::Value;

use crate::event::{ModelUsage, ToolCall, TranscriptEvent, TranscriptKind, UsageScope};
use crate::input::{about, change, list, money, parts, text, time, tokens};

pub(super) fn read(line: &Value, events: &mut Vec<TranscriptEvent>) {
    let at = time(line, "timestamp");
    let mut add = |kind| events.push(TranscriptEvent { at, kind });
    match text(line, "type") {
        "assistant" => {
            if let Some(message) = line.get("message") {
                said(message, &mut add);
            }
            if text(line, "error") == "billing_error" {
                add(TranscriptKind::Limit { until: None, text: parts(line.get("content")) });
            }
        }
        "user" => {
            if let Some(message) = line.get("message") {
                heard(message, &mut add);
            }
        }
        "rate_limit_event" => limit(line, &mut add),
        "result" => result(line, &mut add),
        _ => {}
    }
}

fn said(message: &Value, add: &mut impl FnMut(TranscriptKind)) {
    for part in list(message, "content") {
        match text(part, "type") {
            "text" => add(TranscriptKind::Text(text(part, "text").to_owned())),
            "thinking" => add(TranscriptKind::Thinking(text(part, "thinking").to_owned())),
            "tool_use" | "server_tool_use" => {
                let input = part.get("input").unwrap_or(&Value::Null);
                add(TranscriptKind::ToolCall(ToolCall {
                    id: text(part, "id").to_owned(),
                    tool: text(part, "name").to_owned(),
                    about: about(input),
                    change: change(input),
                }));
            }
            _ => {}
        }
    }
}

fn heard(message: &Value, add: &mut impl FnMut(TranscriptKind)) {
    if let Some(Value::String(prompt)) = message.get("content") {
        return add(TranscriptKind::Prompt(prompt.clone()));
    }
    for part in list(message, "content") {
        match text(part, "type") {
            "text" => add(TranscriptKind::Prompt(text(part, "text").to_owned())),
            "tool_result" => add(TranscriptKind::ToolResult {
                call: text(part, "tool_use_id").to_owned(),
                is_error: part.get("is_error").and_then(Value::as_bool).unwrap_or(false),
                text: parts(part.get("content")),
            }),
            _ => {}
        }
    }
}

fn limit(line: &Value, add: &mut impl FnMut(TranscriptKind)) {
    let Some(info) = line.get("rate_limit_info") else { return };
    if text(info, "status") == "rejected" {
        let text = text(info, "rateLimitType").replace('_', " ");
        add(TranscriptKind::Limit { until: time(info, "resetsAt"), text });
    }
}

fn result(line: &Value, add: &mut impl FnMut(TranscriptKind)) {
    let total = money(line, "total_cost_usd");
    match line.get("modelUsage").and_then(Value::as_object) {
        Some(models) if !models.is_empty() => {
            for (model, usage) in models {
                add(TranscriptKind::Usage(ModelUsage {
                    model: model.clone(),
                    input: tokens(usage, "inputTokens"),
                    output: tokens(usage, "outputTokens"),
                    cache_read: tokens(usage, "cacheReadInputTokens"),
                    cache_write: tokens(usage, "cacheCreationInputTokens"),
                    reasoning: 0,
                    cost: money(usage, "costUSD"),
                    scope: UsageScope::Session,
                }));
            }
        }
        _ => {
            let usage = line.get("usage").unwrap_or(&Value::Null);
            add(TranscriptKind::Usage(ModelUsage {
                model: String::new(),
                input: tokens(usage, "input_tokens"),
                output: tokens(usage, "output_tokens"),
                cache_read: tokens(usage, "cache_read_input_tokens"),
                cache_write: tokens(usage, "cache_creation_input_tokens"),
                reasoning: 0,
                cost: total,
                scope: UsageScope::Session,
            }));
        }
    }
    let is_error = line.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    let words = text(line, "result").to_owned();
    if tokens(line, "api_error_status") == 429 {
        add(TranscriptKind::Limit { until: None, text: words.clone() });
    }
    add(TranscriptKind::Result { is_error, text: words });
}
