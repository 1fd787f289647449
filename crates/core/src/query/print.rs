//! A query as text again.

use std::fmt;

use super::expression::{Expression, FieldCondition, Query, TextTest, TimeTest};
use super::field::{Field, name_of};

/// The expression, in a form that reads back as the same.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.fmt(f)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(condition) => condition.fmt(f),
            Self::Not(inner) => {
                f.write_str("NOT ")?;
                inner.fmt_part(f)
            }
            Self::All(parts) => join(f, parts, " AND "),
            Self::Any(parts) => join(f, parts, " OR "),
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, parts: &[Expression], between: &str) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        part.fmt_part(f)?;
    }
    Ok(())
}

impl Expression {
    /// As a part of another, where a list needs parentheses to stay a list of its own.
    fn fmt_part(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(_) | Self::Not(_) => write!(f, "{self}"),
            Self::All(_) | Self::Any(_) => write!(f, "({self})"),
        }
    }
}

impl fmt::Display for FieldCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { field, test } => {
                let name = name_of(&Field::Text(field.clone()));
                match test {
                    TextTest::Empty => write!(f, "{name}=none"),
                    TextTest::Is(value) => write!(f, "{name}={}", PrintedValue(value)),
                    TextTest::Like(pattern) => write!(f, "{name}={pattern}"),
                    TextTest::Contains(value) => write!(f, "{name}~{}", PrintedValue(value)),
                }
            }
            Self::Number { field, test } => {
                let name = name_of(&Field::Number(*field));
                match test {
                    None => write!(f, "{name}=none"),
                    Some((comparison, value)) => write!(f, "{name}{}{value}", comparison.as_str()),
                }
            }
            Self::Time { field, test } => {
                let name = name_of(&Field::Time(*field));
                match test {
                    TimeTest::Empty => write!(f, "{name}=none"),
                    TimeTest::At(comparison, at) => write!(f, "{name}{}{at}", comparison.as_str()),
                    TimeTest::Day(day) => {
                        let date = day.to_string();
                        write!(f, "{name}={}", date.split('T').next().unwrap_or_default())
                    }
                }
            }
            Self::Flag(flag) => f.write_str(&name_of(&Field::Flag(*flag))),
        }
    }
}

/// A value, in quotation marks if it would mean something else without them.
struct PrintedValue<'a>(&'a str);

impl fmt::Display for PrintedValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/@+#".contains(c);
        if !self.0.is_empty() && self.0.chars().all(plain) && !self.0.eq_ignore_ascii_case("none") {
            return f.write_str(self.0);
        }
        let escaped = self.0.replace('\\', "\\\\").replace('"', "\\\"");
        write!(f, "\"{escaped}\"")
    }
}
