//! From raw JSON values to the types of fields.

use std::borrow::Cow;

use gt_core::json::{compact, without_broken_escapes};
use gt_core::limits::LOOKED_UP_BYTES_MAX;
use gt_core::{Invalid, Json, Timestamp, bead::check_text};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::tokens::contains_nul;

/// A string that is only copied when it contains escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct BorrowedText<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// How tools written in Go spell "never".
const GO_ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// Most characters of a refused value that an error repeats.
const SHOWN_CHARACTERS_MAX: usize = 60;

/// The head of a refused value, fit for a terminal.
pub(crate) fn shown(json: &str) -> String {
    let mut head: String = json
        .chars()
        .take(SHOWN_CHARACTERS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if head.len() < json.len() {
        head.push('…');
    }
    head
}

fn expected(what: &str, raw: &RawValue) -> Invalid {
    Invalid(format!("expected {what}, found {}", shown(raw.get())))
}

/// A string.
pub(crate) fn text(raw: &RawValue) -> Result<Cow<'_, str>, Invalid> {
    if !raw.get().starts_with('"') {
        return Err(expected("a text", raw));
    }
    // A string may be valid JSON and still no text: half of a surrogate pair.
    let BorrowedText(text) = serde_json::from_str(raw.get())
        .map_err(|_| expected("a text without broken \\u escapes", raw))?;
    check_text("text", &text)?;
    Ok(text)
}

/// A string as far as it can be read, or any other value as it is spelled.
pub(crate) fn any_text(raw: &RawValue) -> String {
    if !raw.get().starts_with('"') {
        return compact(raw.get());
    }
    let whole = without_broken_escapes(raw.get());
    serde_json::from_str(&whole).unwrap_or_else(|_| raw.get().to_owned())
}

/// A string that beads are found by.
pub(crate) fn lookup_key(raw: &RawValue) -> Result<Cow<'_, str>, Invalid> {
    let text = text(raw)?;
    if text.len() > LOOKED_UP_BYTES_MAX {
        return Err(Invalid(format!(
            "{} bytes are too many here; at most {LOOKED_UP_BYTES_MAX} can be looked up",
            text.len()
        )));
    }
    Ok(text)
}

/// `true` or `false`.
pub(crate) fn flag(raw: &RawValue) -> Result<bool, Invalid> {
    match raw.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(expected("true or false", raw)),
    }
}

/// An integer without fraction or exponent.
pub(crate) fn whole_number(raw: &RawValue) -> Result<i64, Invalid> {
    raw.get().parse().map_err(|_| expected("a whole number", raw))
}

/// A number, also one that is written as text or with a fraction of zero.
pub(crate) fn loose_number(raw: &RawValue) -> Option<i64> {
    let text = raw.get().trim_matches('"').trim();
    let text = text.strip_prefix(['P', 'p']).unwrap_or(text);
    let text = text
        .split_once('.')
        .filter(|(_, f)| f.bytes().all(|b| b == b'0'))
        .map_or(text, |(whole, _)| whole);
    text.parse().ok()
}

/// An instant, or none where Go wrote its zero.
pub(crate) fn timestamp(raw: &RawValue) -> Result<Option<Timestamp>, Invalid> {
    if !raw.get().starts_with('"') {
        return Err(expected("a timestamp", raw));
    }
    let text = text(raw)?;
    if text == GO_ZERO_TIME {
        return Ok(None);
    }
    Timestamp::parse(&text).map(Some)
}

/// Any value, kept as it is spelled.
pub(crate) fn json(raw: &RawValue) -> Result<Json, Invalid> {
    if contains_nul(raw.get()) {
        return Err(Invalid::new("a text in it contains a NUL character"));
    }
    let json = Json::trusted(compact(raw.get()));
    json.check_keys()?;
    Ok(json)
}

/// The elements of an array.
pub(crate) fn list(raw: &RawValue) -> Result<Vec<&RawValue>, Invalid> {
    serde_json::from_str(raw.get()).map_err(|_| expected("a list", raw))
}
