//! JSON as opaque, valid, compact text.

use std::fmt;

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::Invalid;

/// Valid JSON text without insignificant white space. Key order and the spelling of numbers are kept,
/// which is why this is text and not a parsed tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(String);

impl Json {
    /// Checks that `text` is one JSON value and removes the white space between its tokens.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        serde_json::from_str::<&RawValue>(text)
            .map_err(|error| Invalid(format!("not valid JSON: {error}")))?;
        let json = Self(compact(text));
        json.check_keys()?;
        Ok(json)
    }

    /// Refuses an object with a key that is no text: an escape may stand for half of a character only.
    /// A field of such an object could not be changed without losing others.
    pub fn check_keys(&self) -> Result<(), Invalid> {
        // Nothing else keeps the fields of an object from being read, and hardly any key has an escape.
        if self.0.starts_with('{') && self.0.contains("\\u") && self.fields().is_none() {
            return Err(Invalid::new("a key in it has a broken \\u escape"));
        }
        Ok(())
    }

    /// How deeply its arrays and objects are nested; 0 for a plain value.
    pub fn depth(&self) -> usize {
        let (mut depth, mut deepest) = (0_usize, 0);
        let (mut in_string, mut escaped) = (false, false);
        for byte in self.0.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'[' | b'{' => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        deepest
    }

    /// Wraps text that is already known to be valid and compact, such as the result of [`Json::as_str`].
    pub fn trusted(text: String) -> Self {
        Self(text)
    }

    /// The compact text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A JSON string holding `text`.
    pub fn string(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string())
    }

    /// The top-level fields in their order, or nothing when this is not an object.
    pub fn fields(&self) -> Option<Vec<(String, Self)>> {
        let fields = object_fields(&self.0).ok()?.into_iter();
        Some(fields.map(|(key, value)| (key, Self(compact(value.get())))).collect())
    }

    /// The elements in their order, or nothing when this is not an array.
    pub fn elements(&self) -> Option<Vec<Self>> {
        let raw: Vec<&RawValue> = serde_json::from_str(&self.0).ok()?;
        Some(raw.into_iter().map(|value| Self(value.get().to_owned())).collect())
    }

    /// An object of these fields, in this order.
    pub fn object(fields: &[(String, Self)]) -> Self {
        let mut text = String::from("{");
        for (index, (key, value)) in fields.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(Self::string(key).as_str());
            text.push(':');
            text.push_str(value.as_str());
        }
        text.push('}');
        Self(text)
    }

    /// An array of these elements.
    pub fn array(elements: &[Self]) -> Self {
        let elements: Vec<&str> = elements.iter().map(Self::as_str).collect();
        Self(format!("[{}]", elements.join(",")))
    }

    /// The text, or nothing when this is not a string.
    pub fn to_text(&self) -> Option<String> {
        serde_json::from_str(&self.0).ok()
    }

    /// This object with `key` set, in its old place or at the end; a value that is not an object is
    /// replaced by one.
    #[must_use]
    pub fn with(&self, key: &str, value: &Self) -> Self {
        let mut fields = self.fields().unwrap_or_default();
        match fields.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value.clone(),
            None => fields.push((key.to_owned(), value.clone())),
        }
        Self::object(&fields)
    }

    /// This object without `key`.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let mut fields = self.fields().unwrap_or_default();
        fields.retain(|(name, _)| name != key);
        Self::object(&fields)
    }

    /// The string under a top-level `key`, if there is one.
    pub fn string_field(&self, key: &str) -> Option<String> {
        let (_, value) = self.fields()?.into_iter().find(|(name, _)| name == key)?;
        value.to_text()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(compact(raw.get())))
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The fields of a JSON object in their order, as they are spelled; a repeated key keeps its last value.
pub(crate) fn object_fields(text: &str) -> serde_json::Result<Vec<(String, &RawValue)>> {
    struct FieldsVisitor;
    impl<'de> serde::de::Visitor<'de> for FieldsVisitor {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut fields: Self::Value = Vec::new();
            while let Some((key, value)) = map.next_entry()? {
                match fields.iter_mut().find(|(name, _)| *name == key) {
                    Some((_, old)) => *old = value,
                    None => fields.push((key, value)),
                }
            }
            Ok(fields)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let fields = serde::Deserializer::deserialize_map(&mut deserializer, FieldsVisitor)?;
    deserializer.end()?;
    Ok(fields)
}

/// Removes white space outside strings; `text` must be valid JSON.
pub fn compact(text: &str) -> String {
    if !text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        return text.to_owned();
    }
    let mut compact = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        if in_string {
            compact.push(c);
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
        } else if !c.is_ascii_whitespace() {
            in_string = c == '"';
            compact.push(c);
        }
    }
    compact
}

/// The same JSON, in whose strings every escape that stands for half of a character stands for an unknown character instead.
pub fn without_broken_escapes(json: &str) -> String {
    const UNKNOWN: &str = "\\ufffd";
    let half = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok().filter(|code| (0xD800..0xE000).contains(code))
    };
    let mut kept = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let pair = |first: u32| first < 0xDC00 && half(&from[6..]).is_some_and(|low| low >= 0xDC00);
        let (written, length) = match half(from) {
            Some(first) if pair(first) => (&from[..12], 12),
            Some(_) => (UNKNOWN, 6),
            None => {
                let escape = from.chars().take(2).map(char::len_utf8).sum();
                (&from[..escape], escape)
            }
        };
        kept.push_str(written);
        rest = &from[length..];
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compacting_keeps_strings_numbers_and_order() {
        let json = Json::parse(" { \"b\" : 1.50 , \"a\" : [ \" x \\\" y \", null ] }\n").unwrap();
        assert_eq!(json.as_str(), r#"{"b":1.50,"a":[" x \" y ",null]}"#);
        assert_eq!(
            compact(" { \"b \\\" \\\\\" :\t[ 1.50 , null ],\n\"ä\": {} }"),
            r#"{"b \" \\":[1.50,null],"ä":{}}"#
        );
    }

    #[test]
    fn depth_counts_nested_arrays_and_objects_outside_strings() {
        for (text, depth) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a":[1,{"b":[]}],"c":{}}"#, 4),
            (r#"{"[[[":"\\\"{{{"}"#, 1),
            (r#"["\\",[]]"#, 2),
        ] {
            assert_eq!(Json::parse(text).unwrap().depth(), depth, "{text}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(Json::trusted(deep).depth(), 100_000);
    }

    #[test]
    fn half_a_character_becomes_an_unknown_one() {
        for (json, expected) in [
            (r#""a\ud800b""#, r#""a\ufffdb""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\\ud800 \u00e4""#, r#""\\ud800 \u00e4""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
        ] {
            assert_eq!(without_broken_escapes(json), expected);
        }
    }

    #[test]
    fn an_object_is_edited_in_place() {
        let json = Json::parse(r#"{"b":1,"a":2}"#).unwrap();
        assert_eq!(json.with("b", &Json::string("x")).as_str(), r#"{"b":"x","a":2}"#);
        assert_eq!(json.with("c", &Json::string("x")).as_str(), r#"{"b":1,"a":2,"c":"x"}"#);
        assert_eq!(json.without("b").as_str(), r#"{"a":2}"#);
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in ["", "{", "nul", "{} {}", "{'a':1}", r#"{"\ud800":1,"b":2}"#] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
    }
}
