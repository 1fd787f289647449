//! The promises that several targets share.

use std::fmt::{Debug, Display};

/// The input as text; input that is not UTF-8 is refused before any parser of text sees it.
pub(crate) fn text(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}

/// Two texts for parsers that take two: the text before the first NUL, and the text behind it.
pub(crate) fn two_texts(input: &[u8]) -> Option<(&str, &str)> {
    let text = text(input)?;
    Some(text.split_once('\0').unwrap_or((text, "")))
}

/// A message that people see says something, on one line, without controlling their terminal.
#[track_caller]
pub(crate) fn tells_on_one_line(message: &impl Display) {
    let message = message.to_string();
    assert!(!message.is_empty(), "an error without words");
    assert!(!message.chars().any(char::is_control), "control characters in {message:?}");
}

/// The value, or nothing after a look at the error.
#[track_caller]
pub(crate) fn accepted<T, E: Display>(parsed: Result<T, E>) -> Option<T> {
    parsed.inspect_err(tells_on_one_line).ok()
}

/// The printed form of a value parses back to the same value.
#[track_caller]
pub(crate) fn reads_back<T: PartialEq + Debug, E: Debug>(
    value: &T,
    printed: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) {
    match parse(printed) {
        Ok(again) => assert_eq!(&again, value, "{printed:?} reads back differently"),
        Err(error) => panic!("{printed:?} does not read back: {error:?}"),
    }
}

/// A parser that gives back the text it took.
#[track_caller]
pub(crate) fn keeps<T, E: Display>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
    shown: impl FnOnce(&T) -> String,
) {
    if let Some(value) = accepted(parse(text)) {
        assert_eq!(shown(&value), text);
    }
}

/// Text that must be one JSON value on one line.
#[track_caller]
pub(crate) fn is_json_line(text: &str) {
    assert!(!text.contains(['\n', '\r']), "more than one line: {text:?}");
    if let Err(error) = serde_json::from_str::<&serde_json::value::RawValue>(text) {
        panic!("not JSON ({error}): {text}");
    }
}
