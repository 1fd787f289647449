//! Settings as text that a person edits: one `name = value` per line.

use std::collections::BTreeMap;

use super::keys::{SettingName, lookup};
use crate::Invalid;

/// The settings in such a text, their values checked and spelled as they are kept.
pub fn parse_text(text: &str) -> Result<BTreeMap<SettingName, String>, Invalid> {
    let mut found = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let in_line = |why: String| Invalid(format!("line {}: {why}", at + 1));
        let (name, value) = line.split_once('=').ok_or_else(|| {
            let shown: String = line.chars().take(60).collect();
            in_line(format!("\"{}\" is not of the form name = value", shown.escape_debug()))
        })?;
        let (name, value) =
            checked(name.trim(), value.trim()).map_err(|Invalid(why)| in_line(why))?;
        found.insert(name, value);
    }
    Ok(found)
}

/// The full name of a setting and its value as it is kept.
pub fn checked(name: &str, value: &str) -> Result<(SettingName, String), Invalid> {
    let (setting, name) = lookup(name)?;
    let value =
        setting.kind.canonical(value).map_err(|Invalid(why)| Invalid(format!("{name}: {why}")))?;
    Ok((name, value))
}
