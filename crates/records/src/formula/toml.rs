//! TOML, with the line of every value.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::{DEPTH_MAX, LineStarts, Node, NodeValue};

/// A syntax error: its line and its text.
pub(crate) type SyntaxError = (Option<usize>, String);

pub(crate) fn parse(text: &str) -> Result<Node, Vec<SyntaxError>> {
    let lines = LineStarts::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let told = |error: &toml::de::Error| {
            let message = error.message().replace(char::is_control, " ");
            match error.span() {
                Some(span) => {
                    let (line, column) = lines.line_and_column(span.start);
                    (Some(line), format!("not valid TOML at column {column}: {message}"))
                }
                None => (None, format!("not valid TOML: {message}")),
            }
        };
        return Err(errors.iter().map(told).collect());
    }
    let fields = table_fields(table.get_ref(), &lines, 0).map_err(|error| vec![error])?;
    Ok(Node { line: 1, value: NodeValue::Table(fields) })
}

type TomlFields = Vec<(String, Node)>;

fn table_fields(
    table: &DeTable<'_>,
    lines: &LineStarts,
    depth: usize,
) -> Result<TomlFields, SyntaxError> {
    let mut entries: Vec<_> = table.iter().collect();
    // The parser sorts by name; people expect the order they wrote.
    entries.sort_by_key(|(key, _)| key.span().start);
    let field = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let name: &std::borrow::Cow<'_, str> = key.get_ref();
        Ok((name.to_string(), node(value, key.span().start, lines, depth + 1)?))
    };
    entries.into_iter().map(field).collect()
}

fn node(
    value: &Spanned<DeValue<'_>>,
    start: usize,
    lines: &LineStarts,
    depth: usize,
) -> Result<Node, SyntaxError> {
    let line = lines.line(start);
    if depth > DEPTH_MAX {
        return Err((Some(line), format!("values nest more than {DEPTH_MAX} levels deep")));
    }
    let value = match value.get_ref() {
        DeValue::String(text) => NodeValue::Text(text.to_string()),
        DeValue::Boolean(flag) => NodeValue::Flag(*flag),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => NodeValue::Number(number.to_string()),
            Err(_) => return Err((Some(line), format!("the number {number} is too big"))),
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => NodeValue::Number(number.to_string()),
            // JSON has no word for it.
            _ => NodeValue::Text(number.to_string()),
        },
        DeValue::Datetime(instant) => NodeValue::Text(instant.to_string()),
        DeValue::Array(values) => {
            let element = |value: &Spanned<_>| node(value, value.span().start, lines, depth + 1);
            NodeValue::List(values.iter().map(element).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => NodeValue::Table(table_fields(table, lines, depth)?),
    };
    Ok(Node { line, value })
}
