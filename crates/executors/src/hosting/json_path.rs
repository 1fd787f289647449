//! Paths into the JSON that a tool prints.

use gt_core::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// Names of fields separated by dots, and alternatives separated by bars: `detailsUrl|targetUrl`, `author.login`. The
/// first alternative that is there and not empty counts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct JsonPath(Vec<Vec<String>>);

impl TryFrom<String> for JsonPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let split = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
        let paths: Vec<Vec<String>> = text.split('|').map(split).collect();
        if paths.iter().flatten().any(String::is_empty) {
            return Err(format!("\"{text}\" is not a path; write it like author.login|user.name"));
        }
        Ok(Self(paths))
    }
}

impl JsonPath {
    /// The value at this path.
    pub(super) fn value<'v>(&self, from: &'v Value) -> Option<&'v Value> {
        self.0.iter().find_map(|path| {
            let found = path.iter().try_fold(from, |value, name| value.get(name))?;
            let is_empty = found.is_null() || found.as_str() == Some("");
            (!is_empty).then_some(found)
        })
    }

    /// The text, number or truth value at this path, as text.
    pub(super) fn text(&self, from: &Value) -> Option<String> {
        match self.value(from)? {
            Value::String(text) => Some(text.clone()),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
            _ => None,
        }
    }

    /// The whole number at this path; services write some as text.
    pub(super) fn number(&self, from: &Value) -> Option<u64> {
        self.text(from)?.parse().ok()
    }

    /// Whether the value at this path is true.
    pub(super) fn is_true(&self, from: &Value) -> bool {
        self.value(from) == Some(&Value::Bool(true))
    }

    /// The point in time at this path. A time that was never is written as the year 1 and is none.
    pub(super) fn time(&self, from: &Value) -> Option<Timestamp> {
        Timestamp::parse(&self.text(from)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> JsonPath {
        JsonPath::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn values_are_found_by_the_first_alternative_that_is_there() {
        let from =
            json!({"a": {"b": "x"}, "empty": "", "none": null, "n": 7, "iid": "8", "t": true});
        for (text, expected) in [
            ("a.b", Some("x")),
            ("empty|none|missing|a.b", Some("x")),
            ("a.b.c", None),
            ("a", None),
            ("n", Some("7")),
            ("t", Some("true")),
        ] {
            assert_eq!(path(text).text(&from).as_deref(), expected, "{text}");
        }
        assert_eq!((path("n").number(&from), path("iid").number(&from)), (Some(7), Some(8)));
        assert!(path("t").is_true(&from) && !path("n").is_true(&from));
        assert_eq!(path("x").time(&json!({"x": "0001-01-01T00:00:00Z"})), None);
        assert!(path("x").time(&json!({"x": "2026-05-31T12:00:00.239Z"})).is_some());
    }

    #[test]
    fn a_path_with_an_empty_part_is_refused() {
        for text in ["", "a.", "a||b", "|"] {
            assert!(JsonPath::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
