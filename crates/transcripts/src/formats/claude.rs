//! Claude Code, and Qwen Code, which prints the same.

use std::time::Duration;

use gt_core::cost::UsageWindow;
use serde_json::Value;

use crate::event::{ModelUsage, ToolUse, TranscriptKind, UsageScope};
use crate::input::{about, change, flag, list, parts, percent, text, time};
use crate::sink::EventSink;

pub(super) fn read(line: &Value, sink: &mut EventSink) {
    sink.begin_line(time(line, "timestamp"));
    match text(line, "type") {
        "assistant" => {
            if let Some(message) = line.get("message") {
                add_message(message, sink);
                if matches!(text(line, "error"), "billing_error" | "rate_limit") {
                    let text = parts(message.get("content"));
                    sink.add(TranscriptKind::Limit { until: None, window: None, text });
                }
            }
        }
        "user" => {
            if let Some(message) = line.get("message") {
                heard(message, sink);
            }
        }
        "rate_limit_event" => limit(line, sink),
        "result" => result(line, sink),
        "system" if text(line, "subtype") == "api_retry" => retry(line, sink),
        // The parts of the session, and messages in pieces that come whole as well.
        "system" | "stream_event" => {}
        other => sink.unknown_type("the event", other),
    }
}

/// A request that failed and is tried again.
fn retry(line: &Value, sink: &mut EventSink) {
    let number = |key| line.get(key).and_then(Value::as_u64).unwrap_or(0);
    let seconds = number("retry_delay_ms").div_ceil(1000);
    let (status, error) = (number("error_status"), text(line, "error"));
    let (attempt, most) = (number("attempt"), number("max_retries"));
    sink.add(TranscriptKind::Error(format!(
        "a request failed with {status} {error}; retry {attempt} of {most} in {seconds} s"
    )));
}

fn add_message(message: &Value, sink: &mut EventSink) {
    for part in list(message, "content") {
        match text(part, "type") {
            "text" => sink.add(TranscriptKind::Text(text(part, "text").to_owned())),
            "thinking" => sink.add(TranscriptKind::Thinking(text(part, "thinking").to_owned())),
            "tool_use" | "server_tool_use" => {
                let input = part.get("input").unwrap_or(&Value::Null);
                sink.add(TranscriptKind::ToolCall(ToolUse {
                    id: text(part, "id").to_owned(),
                    tool: text(part, "name").to_owned(),
                    about: about(input),
                    change: change(input),
                }));
            }
            "redacted_thinking" => {}
            other => sink.unknown_type("the part of a message", other),
        }
    }
}

fn heard(message: &Value, sink: &mut EventSink) {
    if let Some(Value::String(prompt)) = message.get("content") {
        return sink.add(TranscriptKind::Prompt(prompt.clone()));
    }
    for part in list(message, "content") {
        match text(part, "type") {
            "text" => sink.add(TranscriptKind::Prompt(text(part, "text").to_owned())),
            "tool_result" => sink.add(TranscriptKind::ToolResult {
                call: text(part, "tool_use_id").to_owned(),
                is_error: flag(part, "is_error"),
                text: parts(part.get("content")),
            }),
            "image" | "document" => {}
            other => sink.unknown_type("the part of a message", other),
        }
    }
}

fn limit(line: &Value, sink: &mut EventSink) {
    let Some(info) = line.get("rate_limit_info") else { return };
    let windows = info.get("unifiedWindows").and_then(Value::as_object);
    let mut told: Vec<UsageWindow> =
        windows.into_iter().flatten().filter_map(|(name, one)| window(name, one)).collect();
    let named = window(text(info, "rateLimitType"), info);
    let is_new = |named: &UsageWindow| told.iter().all(|one| one.name != named.name);
    let is_warned = text(info, "status") == "allowed_warning";
    let says_more = |named: &UsageWindow| named.used_percent.is_some() || is_warned;
    told.extend(named.filter(|named| is_new(named) && says_more(named)));
    for window in told {
        sink.add(TranscriptKind::Window(window));
    }
    if text(info, "status") == "rejected" {
        let kind = text(info, "rateLimitType");
        // The others last a week.
        let window = length(kind).filter(|length| *length < WEEK);
        let (until, text) = (time(info, "resetsAt"), kind.replace('_', " "));
        sink.add(TranscriptKind::Limit { until, window, text });
    }
}

/// A window of the subscription.
fn window(name: &str, told: &Value) -> Option<UsageWindow> {
    Some(UsageWindow {
        name: UsageWindow::name_from(name)?,
        used_percent: percent(told, "utilization", 100.0),
        length: length(name),
        resets_at: time(told, "resetsAt"),
    })
}

const WEEK: Duration = Duration::from_hours(7 * 24);

/// How long a window of this name lasts, if that is known.
fn length(name: &str) -> Option<Duration> {
    match name {
        "five_hour" => Some(Duration::from_hours(5)),
        _ if name.starts_with("seven_day") => Some(WEEK),
        _ => None,
    }
}

fn result(line: &Value, sink: &mut EventSink) {
    match line.get("modelUsage").and_then(Value::as_object) {
        Some(models) if !models.is_empty() => {
            for (model, usage) in models {
                let usage = ModelUsage {
                    model: model.clone(),
                    input: sink.tokens(usage, "inputTokens"),
                    output: sink.tokens(usage, "outputTokens"),
                    cache_read: sink.tokens(usage, "cacheReadInputTokens"),
                    cache_write: sink.tokens(usage, "cacheCreationInputTokens"),
                    reasoning: 0,
                    cost: sink.money(usage, "costUSD"),
                    scope: UsageScope::Session,
                };
                sink.add(TranscriptKind::Usage(usage));
            }
        }
        _ => {
            let cost = sink.money(line, "total_cost_usd");
            let usage = line.get("usage").unwrap_or(&Value::Null);
            let cache_read = sink.tokens(usage, "cache_read_input_tokens");
            let input = sink.tokens(usage, "input_tokens");
            // Qwen Code counts what was read from a cache as input as well, and only Qwen Code has this total.
            let is_contained = usage.get("total_tokens").is_some();
            let usage = ModelUsage {
                model: String::new(),
                input: if is_contained { input.saturating_sub(cache_read) } else { input },
                output: sink.tokens(usage, "output_tokens"),
                cache_read,
                cache_write: sink.tokens(usage, "cache_creation_input_tokens"),
                reasoning: 0,
                cost,
                scope: UsageScope::Session,
            };
            sink.add(TranscriptKind::Usage(usage));
        }
    }
    let error = line.get("error").unwrap_or(&Value::Null);
    let words = [text(line, "result"), text(error, "message")];
    let words = words.into_iter().find(|words| !words.is_empty()).unwrap_or_default();
    if line.get("api_error_status").and_then(Value::as_u64) == Some(429) {
        let text = words.to_owned();
        sink.add(TranscriptKind::Limit { until: None, window: None, text });
    }
    sink.add(TranscriptKind::Result { is_error: flag(line, "is_error"), text: words.to_owned() });
}
