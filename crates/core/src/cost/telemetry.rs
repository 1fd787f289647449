//! The usage in the telemetry that agents send: log records of OpenTelemetry (OTLP), as JSON.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::TokenCounts;
use crate::Invalid;
use crate::schedule::Money;

/// The attribute by which the telemetry of a run names it.
pub const RUN_ATTRIBUTE: &str = "gt.run";

/// One request of an agent to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestUsage {
    /// Tells a record from others: a sender that got no answer sends it again.
    pub identity: u64,
    /// The model; empty if it is not named.
    pub model: String,
    /// The tokens.
    pub tokens: TokenCounts,
    /// The cost, if the agent reports it.
    pub cost: Option<Money>,
}

/// The usage in a message of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TelemetryUsage {
    /// The requests.
    pub requests: Vec<RequestUsage>,
    /// How many records are about usage and have a number that cannot be read.
    pub unreadable: u64,
    /// How many records are about usage and name another run.
    pub of_other_runs: u64,
}

/// Reads the body of a message to `/v1/logs` for this run. Records that are not about a request are left out. An agent that names
/// no run is trusted: not every agent repeats the attributes that it is given.
pub fn usage_in_logs(body: &[u8], run: &str) -> Result<TelemetryUsage, Invalid> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Invalid::new(format!("this is no JSON: {error}")))?;
    let mut usage = TelemetryUsage::default();
    for resource in list(&body, "resourceLogs") {
        let of_resource = resource.get("resource").and_then(named_run);
        for scope in list(resource, "scopeLogs") {
            for record in list(scope, "logRecords") {
                let is_of_run = named_run(record).or(of_resource).is_none_or(|named| named == run);
                match request_of(record) {
                    Some(_) if !is_of_run => usage.of_other_runs += 1,
                    Some(Ok(request)) => usage.requests.push(request),
                    Some(Err(())) => usage.unreadable += 1,
                    None => {}
                }
            }
        }
    }
    Ok(usage)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The value of an attribute of a record or a resource.
fn attribute<'v>(of: &'v Value, name: &str) -> Option<&'v Value> {
    let is_named = |pair: &&Value| pair.get("key").and_then(Value::as_str) == Some(name);
    list(of, "attributes").iter().find(is_named).and_then(|pair| pair.get("value"))
}

/// The run that a record or a resource names.
fn named_run(of: &Value) -> Option<&str> {
    attribute(of, RUN_ATTRIBUTE)?.get("stringValue")?.as_str()
}

/// The request that a record is about. Claude Code sends `api_request`; Codex sends a `sse_event` at the end of each answer.
fn request_of(record: &Value) -> Option<Result<RequestUsage, ()>> {
    let attribute = |name: &str| attribute(record, name);
    let text = |name: &str| {
        let value = attribute(name).and_then(|value| value.get("stringValue"));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let event = text("event.name");
    let is_claude = matches!(event, "api_request" | "claude_code.api_request");
    let is_codex = event == "codex.sse_event" && text("event.kind") == "response.completed";
    if !is_claude && !is_codex {
        return None;
    }
    let count = |name: &str| attribute(name).map_or(Ok(0), whole);
    let counts = || -> Result<TokenCounts, ()> {
        if is_claude {
            return Ok(TokenCounts {
                input: count("input_tokens")?,
                output: count("output_tokens")?,
                cache_read: count("cache_read_tokens")?,
                cache_write: count("cache_creation_tokens")?,
                reasoning: 0,
            });
        }
        let (cache_read, reasoning) =
            (count("cached_token_count")?, count("reasoning_token_count")?);
        Ok(TokenCounts {
            // These contain the others.
            input: count("input_token_count")?.saturating_sub(cache_read),
            output: count("output_token_count")?.saturating_sub(reasoning),
            cache_read,
            cache_write: 0,
            reasoning,
        })
    };
    let cost = attribute("cost_usd").map(amount).transpose();
    let (Ok(tokens), Ok(cost)) = (counts(), cost) else { return Some(Err(())) };
    let mut identity = DefaultHasher::new();
    record.to_string().hash(&mut identity);
    let model = text("model").to_owned();
    Some(Ok(RequestUsage { identity: identity.finish(), model, tokens, cost }))
}

/// The number in a value: `{"intValue": "12"}`, also as a number, a text or with a fraction.
fn number(value: &Value) -> Result<f64, ()> {
    let inner = ["intValue", "doubleValue", "stringValue"].iter().find_map(|kind| value.get(kind));
    let number = match inner {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite() && *number >= 0.0).ok_or(())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in the range")]
fn whole(value: &Value) -> Result<u64, ()> {
    let number = number(value)?;
    if number > 1e15 { Err(()) } else { Ok(number.round() as u64) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in the range")]
fn amount(value: &Value) -> Result<Money, ()> {
    let millionths = number(value)? * 1e6;
    if millionths > 1e15 { Err(()) } else { Ok(Money(millionths.round() as u64)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const RUN: &str = "we-1#2";

    fn body(attributes: &[(&str, Value)]) -> Vec<u8> {
        body_of(&[], attributes)
    }

    fn body_of(resource: &[(&str, Value)], record: &[(&str, Value)]) -> Vec<u8> {
        let attributes = |of: &[(&str, Value)]| -> Vec<Value> {
            of.iter().map(|(key, value)| json!({"key": key, "value": value})).collect()
        };
        let record = json!({"timeUnixNano": "1", "attributes": attributes(record)});
        let resource = json!({"attributes": attributes(resource)});
        json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}]})
            .to_string()
            .into()
    }

    fn text(text: &str) -> Value {
        json!({"stringValue": text})
    }

    #[test]
    fn a_request_of_claude_is_read_whatever_its_numbers_look_like() {
        let usage = usage_in_logs(
            &body(&[
                ("event.name", text("api_request")),
                ("model", text("claude-opus-4-5")),
                ("input_tokens", json!({"intValue": "12"})),
                ("output_tokens", json!({"intValue": 7})),
                ("cache_read_tokens", text("100")),
                ("cost_usd", json!({"doubleValue": 0.012_345_6})),
            ]),
            RUN,
        )
        .unwrap();
        let request = &usage.requests[0];
        let tokens =
            TokenCounts { input: 12, output: 7, cache_read: 100, ..TokenCounts::default() };
        assert_eq!((request.tokens, request.cost), (tokens, Some(Money(12_346))));
        assert_eq!((request.model.as_str(), usage.unreadable), ("claude-opus-4-5", 0));
    }

    #[test]
    fn the_numbers_of_codex_contain_each_other() {
        let usage = usage_in_logs(
            &body(&[
                ("event.name", text("codex.sse_event")),
                ("event.kind", text("response.completed")),
                ("input_token_count", text("120")),
                ("cached_token_count", text("100")),
                ("output_token_count", text("30")),
                ("reasoning_token_count", text("10")),
            ]),
            RUN,
        )
        .unwrap();
        let tokens =
            TokenCounts { input: 20, output: 20, cache_read: 100, cache_write: 0, reasoning: 10 };
        assert_eq!(usage.requests[0].tokens, tokens);
    }

    #[test]
    fn negative_and_absurd_numbers_are_counted_and_nothing_else() {
        for wrong in
            [json!({"intValue": "-5"}), text("many"), json!({"doubleValue": 1e300}), json!({})]
        {
            let event = ("event.name", text("api_request"));
            let usage = usage_in_logs(&body(&[event, ("input_tokens", wrong)]), RUN).unwrap();
            assert_eq!((usage.requests.len(), usage.unreadable), (0, 1));
        }
        let other = usage_in_logs(&body(&[("event.name", text("tool_result"))]), RUN).unwrap();
        assert_eq!(other, TelemetryUsage::default());
    }

    #[test]
    fn a_record_that_names_another_run_does_not_count() {
        let request = ("event.name", text("api_request"));
        let named = |run: &str| ("gt.run", text(run));
        let read = |body: Vec<u8>| {
            let usage = usage_in_logs(&body, RUN).unwrap();
            (usage.requests.len(), usage.of_other_runs)
        };
        assert_eq!(read(body_of(&[named(RUN)], std::slice::from_ref(&request))), (1, 0));
        for other in ["we-1#1", "we-12#2", ""] {
            assert_eq!(read(body_of(&[named(other)], std::slice::from_ref(&request))), (0, 1));
            assert_eq!(read(body(&[request.clone(), named(other)])), (0, 1));
            assert_eq!(read(body_of(&[named(RUN)], &[request.clone(), named(other)])), (0, 1));
        }
        // A record of another run that is not about usage is nothing to tell of.
        assert_eq!(read(body_of(&[named("we-9#1")], &[])), (0, 0));
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(message in ".{0,60}") {
            let _ = usage_in_logs(message.as_bytes(), RUN);
            let _ = usage_in_logs(&body(&[("event.name", text("api_request")), ("input_tokens", text(&message))]), RUN);
        }
    }
}
