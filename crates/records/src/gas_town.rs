//! The registry of rigs and the pause state of a Gas Town directory.

use gt_core::{Json, Timestamp};
use serde_json::Value;

use crate::read::shown;

/// A rig as the registry (or its own file) describes it; empty where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RigEntry {
    /// Its name.
    pub name: String,
    /// The repository of its code.
    pub repo: String,
    /// The prefix of its beads' ids.
    pub prefix: String,
    /// The branch that work lands on.
    pub default_branch: String,
    /// When it was added.
    pub added_at: Option<Timestamp>,
}

impl RigEntry {
    /// An entry of the registry, or a rig's own file, as JSON.
    pub fn parse(name: &str, json: &Value) -> Self {
        let text = |value: &Value, keys: &[&str]| {
            let found = keys.iter().find_map(|key| value.get(key)?.as_str());
            found.unwrap_or_default().trim().to_owned()
        };
        let beads = json.get("beads").or_else(|| json.get("beads_config")).unwrap_or(&Value::Null);
        let added_at = text(json, &["added_at", "created_at"]);
        let repo = text(json, &["git_url", "repo", "url"]);
        let prefix = text(beads, &["prefix"]);
        Self {
            name: name.to_owned(),
            repo: if repo.is_empty() { text(json, &["local_repo"]) } else { repo },
            prefix: if prefix.is_empty() { text(json, &["prefix"]) } else { prefix },
            default_branch: text(json, &["default_branch"]),
            added_at: Timestamp::parse(&added_at).ok().filter(|at| at.as_nanos() > 0),
        }
    }

    /// This entry, with the values of `other` for its missing fields.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let either = |a: String, b: String| if a.is_empty() { b } else { a };
        Self {
            name: self.name,
            repo: either(self.repo, other.repo),
            prefix: either(self.prefix, other.prefix),
            default_branch: either(self.default_branch, other.default_branch),
            added_at: self.added_at.or(other.added_at),
        }
    }
}

/// The rigs in the registry, by name; nothing if it is no registry.
pub fn rig_entries(json: &Value) -> Option<Vec<RigEntry>> {
    let rigs = json.get("rigs")?.as_object()?;
    let mut entries: Vec<RigEntry> =
        rigs.iter().map(|(name, entry)| RigEntry::parse(name, entry)).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Some(entries)
}

/// The actor that paused a Gas Town and since when, by its pause state; `None` if it is not paused. Either may
/// be missing.
pub fn pause_of(state: &Json) -> Option<(String, Option<Timestamp>)> {
    let value: Value = serde_json::from_str(state.as_str()).unwrap_or(Value::Null);
    if !is_paused(&value) {
        return None;
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    Some((shown(text("paused_by")), Timestamp::parse(text("paused_at")).ok()))
}

/// Whether a pause state says that the town is paused. A value that is not a plain no counts as a yes: work that starts
/// against the wish of a person does more harm than work that waits for `gt scheduler resume`.
fn is_paused(state: &Value) -> bool {
    let is_no = |text: &str| {
        let text = text.trim().to_ascii_lowercase();
        ["", "false", "no", "off", "n", "0"].contains(&text.as_str())
    };
    match state.get("paused") {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !is_no(text),
        Some(_) => true,
    }
}

/// A pause state in words.
pub fn pause_remark(state: &Json) -> String {
    let value: Value = serde_json::from_str(state.as_str()).unwrap_or(Value::Null);
    if !is_paused(&value) {
        return "not paused".to_owned();
    }
    let part = |word: &str, key: &str| {
        let text = value.get(key).and_then(Value::as_str).unwrap_or_default();
        if text.is_empty() { String::new() } else { format!(" {word} {}", shown(text)) }
    };
    format!("paused{}{}", part("by", "paused_by"), part("since", "paused_at"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rigs_are_read_from_registry_and_file() {
        let registry = json!({"version": 1, "rigs": {
            "web": {"git_url": "https://example.com/web.git", "added_at": "2026-01-01T00:00:00Z",
                    "beads": {"repo": "local", "prefix": "we"}},
            "api": {"git_url": "", "local_repo": "/src/api", "added_at": "0001-01-01T00:00:00Z"},
        }});
        let entries = rig_entries(&registry).unwrap();
        assert_eq!(entries[0].name, "api");
        assert_eq!((entries[0].repo.as_str(), entries[0].added_at), ("/src/api", None));
        let own = json!({"type": "rig", "git_url": "other", "default_branch": "trunk", "beads": {"prefix": "ap"}});
        let api = entries[0].clone().or(RigEntry::parse("api", &own));
        assert_eq!((api.prefix.as_str(), api.default_branch.as_str()), ("ap", "trunk"));
        assert_eq!(api.repo, "/src/api");
        assert_eq!(rig_entries(&json!({"rigs": []})), None);
    }

    #[test]
    fn a_pause_is_told_in_words() {
        let remark = |text: &str| pause_remark(&Json::trusted(text.to_owned()));
        assert_eq!(
            remark(r#"{"paused":true,"paused_by":"mayor/","paused_at":"2026-02-19T10:00:00Z"}"#),
            "paused by mayor/ since 2026-02-19T10:00:00Z"
        );
        assert_eq!(remark(r#"{"paused":true}"#), "paused");
        assert_eq!(remark(r#"{"paused":true,"paused_by":"a\nb"}"#), "paused by a b");
        assert_eq!(remark("{}"), "not paused");
        for yes in ["true", "\"yes\"", "\"True\"", "1", "{\"by\":\"mayor\"}"] {
            let state = Json::trusted(format!("{{\"paused\":{yes}}}"));
            assert!(pause_of(&state).is_some() && pause_remark(&state) == "paused", "{yes}");
        }
        for no in ["false", "null", "\"no\"", "\" False\"", "\"\"", "0", "0.0"] {
            let state = Json::trusted(format!("{{\"paused\":{no}}}"));
            assert!(pause_of(&state).is_none() && pause_remark(&state) == "not paused", "{no}");
        }
    }
}
