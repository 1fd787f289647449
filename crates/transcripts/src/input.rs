//! Reading values that an agent may spell in another way tomorrow.

use gt_core::Timestamp;
use gt_core::schedule::Money;
use serde_json::Value;

/// The most tokens that one report may name. A number above is a mistake of the agent, and counts as nothing.
const TOKENS_MAX: u64 = 10_000_000_000;

/// The text at a key; empty if there is none.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a key; empty if there is none.
pub(crate) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The number of tokens at a key, also if it is written as text; 0 if there is none, or an absurd one.
pub(crate) fn tokens(value: &Value, key: &str) -> u64 {
    let number = match value.get(key) {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| *number <= TOKENS_MAX).unwrap_or(0)
}

/// The amount of money at a key, also if it is written as text.
pub(crate) fn money(value: &Value, key: &str) -> Option<Money> {
    match value.get(key)? {
        // Its digits as they were sent: a binary fraction would change the amount.
        Value::Number(number) => plain_decimal(&number.to_string()),
        Value::String(text) => Money::parse(text.trim()),
        _ => None,
    }
}

/// Reads a number that may have an exponent.
fn plain_decimal(text: &str) -> Option<Money> {
    if !text.contains(['e', 'E']) {
        return Money::parse(text);
    }
    let number: f64 = text.parse().ok()?;
    (0.0..1e9).contains(&number).then(|| Money::parse(&format!("{number:.6}")))?
}

/// A time in seconds since 1970, or as a date.
pub(crate) fn time(value: &Value, key: &str) -> Option<Timestamp> {
    match value.get(key)? {
        Value::Number(number) => from_seconds(number.as_i64()?),
        Value::String(text) => Timestamp::parse(text).ok(),
        _ => None,
    }
}

/// So many seconds after 1970.
pub(crate) fn from_seconds(seconds: i64) -> Option<Timestamp> {
    seconds.checked_mul(1_000_000_000).map(Timestamp::from_nanos)
}

/// A text that may be a list of parts with texts, as answers of tools are.
pub(crate) fn parts(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().map(|part| text(part, "text")).collect();
            texts.join("\n").trim().to_owned()
        }
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// The file or command of a call of a tool, on one line.
pub(crate) fn about(input: &Value) -> String {
    const KEYS: [&str; 12] = [
        "command", "cmd", "file_path", "filePath", "path", "absolute_path", "notebook_path", "pattern",
        "query", "url", "description", "prompt",
    ];
    let named = KEYS.iter().map(|key| parts(input.get(key))).find(|found| !found.is_empty());
    let line = named.unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The texts that a call replaces and writes.
pub(crate) fn change(input: &Value) -> Option<(String, String)> {
    let first = |keys: &[&str]| keys.iter().map(|key| text(input, key)).find(|it| !it.is_empty());
    let new = first(&["new_string", "newString", "content", "file_text", "new_str"])?;
    let old = first(&["old_string", "oldString", "old_str"]).unwrap_or_default();
    Some((old.to_owned(), new.to_owned()))
}
