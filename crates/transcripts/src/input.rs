//! Reading values that an agent may spell in another way tomorrow.

use gt_core::schedule::Money;
use gt_core::{Timestamp, words};
use serde_json::Value;

/// The text at a key; empty if there is none.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a key; empty if there is none.
pub(crate) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether the value at a key is true.
pub(crate) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// A value as an amount of money, also if it is written as text.
pub(crate) fn money(value: &Value) -> Option<Money> {
    match value {
        Value::Number(number) => rounded(number.as_f64()?),
        Value::String(text) => Money::parse(text.trim()),
        _ => None,
    }
}

/// An amount to the micro-dollar. Agents add up binary fractions, so 0.00544 comes as 0.0054399999999999995.
fn rounded(number: f64) -> Option<Money> {
    (0.0..1e9).contains(&number).then(|| Money::parse(&format!("{number:.6}")))?
}

/// The number at a key as whole percents, rounded down; nothing if it is no share.
pub(crate) fn percent(value: &Value, key: &str, per_percent: f64) -> Option<u32> {
    let percent = value.get(key)?.as_f64()? * per_percent;
    // More than all of it may be used, if the service lets it. Binary fractions may be a little too small.
    let whole = (percent + 1e-6).floor();
    (0.0..10_000.0).contains(&whole).then(|| format!("{whole:.0}").parse().ok())?
}

/// A time in seconds since 1970, or as a date.
pub(crate) fn time(value: &Value, key: &str) -> Option<Timestamp> {
    match value.get(key)? {
        Value::Number(number) => from_millis(number.as_i64()?.checked_mul(1_000)?),
        Value::String(text) => Timestamp::parse(text).ok(),
        _ => None,
    }
}

/// So many milliseconds after 1970.
pub(crate) fn from_millis(millis: i64) -> Option<Timestamp> {
    millis.checked_mul(1_000_000).map(Timestamp::from_nanos)
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
        "command",
        "cmd",
        "file_path",
        "filePath",
        "path",
        "absolute_path",
        "notebook_path",
        "pattern",
        "query",
        "url",
        "description",
        "prompt",
    ];
    let named = KEYS.iter().map(|key| parts(input.get(key))).find(|found| !found.is_empty());
    one_line(&named.unwrap_or_default())
}

/// A command on one line, without the shell that it is given to.
pub(crate) fn shell_command(command: &str) -> String {
    let words = words::split(command).unwrap_or_default();
    match words.as_slice() {
        [shell, flag, inner] if shell.text.ends_with("sh") && flag.text.ends_with('c') => {
            one_line(&inner.text)
        }
        _ => one_line(command),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The texts that a call replaces and writes.
pub(crate) fn change(input: &Value) -> Option<(String, String)> {
    let first = |keys: &[&str]| keys.iter().map(|key| text(input, key)).find(|it| !it.is_empty());
    let new = first(&["new_string", "newString", "content", "file_text", "new_str"])?;
    let old = first(&["old_string", "oldString", "old_str"]).unwrap_or_default();
    Some((old.to_owned(), new.to_owned()))
}
