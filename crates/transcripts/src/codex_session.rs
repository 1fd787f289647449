//! The file in which Codex records a session: its usage so far, and the windows of the subscription.

use std::time::Duration;

use gt_core::Timestamp;
use gt_core::cost::{SeenWindow, UsageWindow};
use serde_json::Value;

use crate::event::{ModelUsage, UsageScope};
use crate::input::{percent, text, time};
use crate::sink::EventSink;

/// The facts in the lines of a session file so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodexSession {
    model: String,
    usage: ModelUsage,
    windows: Vec<SeenWindow>,
}

impl CodexSession {
    /// Reads one line, without its end. A line that tells neither of usage nor of windows changes nothing.
    pub fn read_line(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<Value>(line) else { return };
        let Some(payload) = line.get("payload") else { return };
        match (text(&line, "type"), text(payload, "type")) {
            ("turn_context", _) if !text(payload, "model").is_empty() => {
                text(payload, "model").clone_into(&mut self.model);
            }
            ("event_msg", "token_count") => self.token_count(payload, time(&line, "timestamp")),
            _ => {}
        }
    }

    fn token_count(&mut self, payload: &Value, at: Option<Timestamp>) {
        let total = payload.get("info").and_then(|info| info.get("total_token_usage"));
        if let Some(total) = total {
            let usage = ModelUsage { scope: UsageScope::Session, ..usage_of_turn(total) };
            let sum = |usage: &ModelUsage| {
                let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
                parts.into_iter().fold(usage.reasoning, u64::saturating_add)
            };
            // A resumed session may begin to count anew.
            if sum(&usage) >= sum(&self.usage) {
                self.usage = usage;
            }
        }
        let Some(seen_at) = at else { return };
        let windows = payload.get("rate_limits").and_then(Value::as_object);
        for (name, told) in windows.into_iter().flatten() {
            let Some(window) = window_of(name, told, seen_at) else { continue };
            self.windows.retain(|seen| seen.window.name != window.name);
            self.windows.push(SeenWindow { window, seen_at });
        }
    }

    /// The usage of the session so far; nothing if none was told. A session that changed its model counts for the last one.
    pub fn usage(&self) -> Option<ModelUsage> {
        let usage = ModelUsage { model: self.model.clone(), ..self.usage.clone() };
        (self.usage != ModelUsage::default()).then_some(usage)
    }

    /// The windows of the subscription, as they were told last.
    pub fn windows(&self) -> &[SeenWindow] {
        &self.windows
    }
}

/// The usage in the words of Codex. Its numbers of input and output contain their special parts.
pub(crate) fn usage_of_turn(usage: &Value) -> ModelUsage {
    read_usage(usage, &mut EventSink::default())
}

/// The same, with notes about numbers that cannot be used.
pub(crate) fn read_usage(usage: &Value, sink: &mut EventSink) -> ModelUsage {
    let cache_read = sink.tokens(usage, "cached_input_tokens");
    let cache_write = sink.tokens(usage, "cache_write_input_tokens");
    let reasoning = sink.tokens(usage, "reasoning_output_tokens");
    let input = sink.tokens(usage, "input_tokens");
    ModelUsage {
        input: input.saturating_sub(cache_read).saturating_sub(cache_write),
        output: sink.tokens(usage, "output_tokens").saturating_sub(reasoning),
        cache_read,
        cache_write,
        reasoning,
        ..ModelUsage::default()
    }
}

fn window_of(name: &str, told: &Value, seen_at: Timestamp) -> Option<UsageWindow> {
    let number = |key: &str| told.get(key).and_then(Value::as_u64);
    let used_percent = Some(percent(told, "used_percent", 1.0)?);
    let length = number("window_minutes").filter(|minutes| (1..=60 * 24 * 366).contains(minutes));
    let in_seconds = number("resets_in_seconds").filter(|seconds| *seconds <= 3600 * 24 * 366);
    let after = in_seconds.map(|seconds| seen_at.plus(Duration::from_secs(seconds)));
    Some(UsageWindow {
        name: UsageWindow::name_from(name)?,
        used_percent,
        length: length.map(|minutes| Duration::from_secs(minutes * 60)),
        resets_at: time(told, "resets_at").or(after),
    })
}
