//! Facts that agents keep from one session to the next, each under a name.

use gt_core::Json;
use gt_store::SettingScope;
use gt_town::settings::{check_free, get_free, list_free, put_free};
use gt_town::{OperationError, Result, Town};

/// A name has at most this many words of its text.
const NAME_WORDS_MAX: usize = 8;
const NAME_BYTES_MAX: usize = 60;

/// A fact under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFact {
    /// Its name.
    pub key: String,
    /// The text.
    pub text: String,
}

/// A memory that was kept, and whether it replaced one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMemory {
    /// The memory.
    pub memory: KeptFact,
    /// Whether there was one of this name before.
    pub replaced: bool,
}

/// Keeps a text, under a name made of its first words unless one is given.
pub fn remember(town: &Town, text: &str, key: Option<&str>) -> Result<KeptMemory> {
    let text = text.trim();
    if text.is_empty() {
        return Err(OperationError::rejected("a memory cannot be empty"));
    }
    let key = key.map_or_else(|| name_of(text), str::to_owned);
    if key.is_empty() {
        return Err(OperationError::rejected(
            "this text gives no name; give one with --key <name>",
        ));
    }
    let stored = Json::string(text);
    check_free(SettingScope::Memory, &key, text)?;
    let replaced = get_free(town, SettingScope::Memory, &key)?.is_some();
    put_free(town, SettingScope::Memory, &key, Some(stored.as_str()))?;
    Ok(KeptMemory { memory: KeptFact { key, text: text.to_owned() }, replaced })
}

/// The memories whose name or text has `search` in it, by name; all of them without one.
pub fn memories(town: &Town, search: Option<&str>) -> Result<Vec<KeptFact>> {
    let search = search.unwrap_or_default().to_lowercase();
    let all = list_free(town, SettingScope::Memory)?.into_iter();
    let all = all.map(|(key, stored)| KeptFact { key, text: text_of(stored) });
    let has = |text: &str| text.to_lowercase().contains(&search);
    let mut found: Vec<KeptFact> = all.filter(|m| has(&m.key) || has(&m.text)).collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(found)
}

/// The memory of this name.
pub fn recall(town: &Town, key: &str) -> Result<Option<KeptFact>> {
    let stored = get_free(town, SettingScope::Memory, key)?;
    Ok(stored.map(|stored| KeptFact { key: key.to_owned(), text: text_of(stored) }))
}

/// Removes the memory of this name, and gives it back.
pub fn forget(town: &Town, key: &str) -> Result<Option<KeptFact>> {
    let memory = recall(town, key)?;
    if memory.is_some() {
        put_free(town, SettingScope::Memory, key, None)?;
    }
    Ok(memory)
}

/// A memory is stored as JSON, because an imported one may be no text.
fn text_of(stored: String) -> String {
    serde_json::from_str::<String>(&stored).unwrap_or(stored)
}

/// A name from the first words of a text.
fn name_of(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = words.take(NAME_WORDS_MAX).collect::<Vec<_>>().join("-");
    name.truncate(NAME_BYTES_MAX);
    name.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_of_a_memory_name_it() {
        for (text, name) in [
            ("Always run tests with -race", "always-run-tests-with-race"),
            ("a b c d e f g h i j", "a-b-c-d-e-f-g-h"),
            ("  JWT, not sessions!  ", "jwt-not-sessions"),
            ("שלום", ""),
        ] {
            assert_eq!(name_of(text), name, "{text}");
        }
        assert!(name_of(&"x".repeat(200)).len() <= NAME_BYTES_MAX);
    }

    #[test]
    fn memories_that_are_no_text_are_shown_as_json() {
        assert_eq!(text_of("\"a \\\"b\\\"\"".to_owned()), "a \"b\"");
        assert_eq!(text_of("{\"a\":1}".to_owned()), "{\"a\":1}");
    }
}
