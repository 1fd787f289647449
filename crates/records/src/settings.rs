//! The JSON files that older programs kept settings in.

use gt_core::Invalid;
use gt_core::settings::lookup;
use serde_json::Value;

/// The contents of such a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonSettings {
    /// The settings we know, by name, with their unchecked values.
    pub known: Vec<(String, String)>,
    /// The names of all else that is set there.
    pub unknown: Vec<String>,
}

/// The settings in a JSON file, nested or flat. Every name begins with `base`, if there is one.
///
/// The message of an error goes on where the name of the file ends.
pub fn json_settings(text: &str, base: &str) -> Result<JsonSettings, Invalid> {
    let json: Value =
        serde_json::from_str(text).map_err(|error| Invalid(format!("is not JSON: {error}")))?;
    if !json.is_object() {
        return Err(Invalid::new("is not a JSON object"));
    }
    let mut found = JsonSettings::default();
    found.collect(&json, base)?;
    Ok(found)
}

impl JsonSettings {
    /// Values nest at most as deep as the JSON parser lets them.
    fn collect(&mut self, json: &Value, path: &str) -> Result<(), Invalid> {
        match json {
            Value::Array(_) | Value::Object(_) if lookup(path).is_ok() => {
                return Err(Invalid(format!("is not understood: {path} is not a single value")));
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    self.collect(value, &path)?;
                }
            }
            Value::Null => {}
            value if lookup(path).is_ok() => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.known.push((path.to_owned(), text));
            }
            // The type and version of the file are not settings.
            _ if matches!(path.rsplit('.').next(), Some("type" | "version")) => {}
            _ => self.unknown.push(path.to_owned()),
        }
        Ok(())
    }
}
