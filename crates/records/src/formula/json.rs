//! JSON, with the line of every value.

use serde_json::value::RawValue;

use super::node::{DEPTH_MAX, LineStarts, Node, NodeValue};
use super::toml::SyntaxError;
use crate::read::{RecordFields, list, text as text_value};

pub(super) fn parse(text: &str) -> Result<Node, Vec<SyntaxError>> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let column = error.column();
        vec![(Some(error.line()), format!("not valid JSON at column {column}: {message}"))]
    })?;
    let lines = LineStarts::of(text);
    let root = node(raw, text, &lines, 0).map_err(|error| vec![error])?;
    match root.value {
        NodeValue::Table(_) => Ok(root),
        _ => Err(vec![(Some(1), format!("expected an object, found {}", root.shown()))]),
    }
}

fn node(raw: &RawValue, text: &str, lines: &LineStarts, depth: usize) -> Result<Node, SyntaxError> {
    let json = raw.get();
    // A raw value is a part of the text it was parsed from.
    let place = json.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    let line = lines.line(place);
    let wrong = |message: String| (Some(line), message);
    if depth > DEPTH_MAX {
        return Err(wrong(format!("values nest more than {DEPTH_MAX} levels deep")));
    }
    let value = match json.as_bytes().first() {
        Some(b'{') => {
            let fields = RecordFields::parse(json).map_err(|error| wrong(error.to_string()))?;
            let field = |(name, raw): (std::borrow::Cow<'_, str>, &RawValue)| {
                Ok((name.into_owned(), node(raw, text, lines, depth + 1)?))
            };
            NodeValue::Table(fields.into_entries().map(field).collect::<Result<_, _>>()?)
        }
        Some(b'[') => {
            let elements = list(raw).map_err(|invalid| wrong(invalid.to_string()))?;
            let element = |raw: &RawValue| node(raw, text, lines, depth + 1);
            NodeValue::List(elements.into_iter().map(element).collect::<Result<_, _>>()?)
        }
        Some(b'"') => {
            let text = text_value(raw).map_err(|invalid| wrong(invalid.to_string()))?;
            NodeValue::Text(text.into_owned())
        }
        _ if json == "null" => NodeValue::Null,
        _ if json == "true" || json == "false" => NodeValue::Flag(json == "true"),
        _ => NodeValue::Number(json.to_owned()),
    };
    Ok(Node { line, value })
}
