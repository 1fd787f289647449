//! The definition of a check, and how the setting `rig.<rig>.checks` keeps it.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::PathPattern;
use crate::Invalid;
use crate::hexadecimal::digits_of;
use crate::time::{format_duration, parse_duration};

/// The time limit of a check that names none.
pub const CHECK_TIMEOUT_DEFAULT: Duration = Duration::from_mins(10);

/// The most times that a failing check is run again.
pub const CHECK_RETRIES_MAX: u32 = 3;

/// The longest time limit, and the shortest.
const TIMEOUT_MAX: Duration = Duration::from_hours(24);
const TIMEOUT_MIN: Duration = Duration::from_millis(100);

/// Longest name, and longest command, in bytes.
const NAME_BYTES_MAX: usize = 50;
const COMMAND_BYTES_MAX: usize = 10_000;

/// Most checks of a rig.
const CHECKS_MAX: usize = 100;

/// A named command that must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckDefinition {
    /// Its name, unique in its rig.
    pub name: String,
    /// The command, for `sh -c`.
    pub command: String,
    /// How long one run of it may take.
    pub timeout: Duration,
    /// How often it is run again after a failure.
    pub retries: u32,
    /// The paths that its result depends on; all if there are none.
    pub paths: Vec<PathPattern>,
}

impl CheckDefinition {
    /// Checks a definition that a person gave.
    pub fn new(
        name: &str,
        command: &str,
        timeout: Duration,
        retries: u32,
        paths: Vec<PathPattern>,
    ) -> Result<Self, Invalid> {
        let shown = || name.chars().take(60).collect::<String>().escape_debug().to_string();
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        if !is_name {
            return Err(Invalid(format!(
                "\"{}\" is not the name of a check; use letters, digits, - and _, at most {NAME_BYTES_MAX}",
                shown()
            )));
        }
        let command = command.trim();
        if command.is_empty() || command.contains('\0') || command.len() > COMMAND_BYTES_MAX {
            return Err(Invalid(format!(
                "the check {name} needs a command of 1 to {COMMAND_BYTES_MAX} bytes without NUL, such as \"npm test\""
            )));
        }
        if !(TIMEOUT_MIN..=TIMEOUT_MAX).contains(&timeout) {
            return Err(Invalid(format!(
                "the time limit of the check {name} is {}; use {} to {}",
                format_duration(timeout),
                format_duration(TIMEOUT_MIN),
                format_duration(TIMEOUT_MAX)
            )));
        }
        if retries > CHECK_RETRIES_MAX {
            return Err(Invalid(format!(
                "the check {name} is to be run again {retries} times; use 0 to {CHECK_RETRIES_MAX}"
            )));
        }
        Ok(Self { name: name.to_owned(), command: command.to_owned(), timeout, retries, paths })
    }

    /// A hash that changes with every part of the definition.
    pub fn hash(&self) -> String {
        let json = serde_json::to_string(&DefinitionDocument::from(self)).unwrap_or_default();
        digits_of(&Sha256::digest(json.as_bytes()))
    }

    /// Whether its result depends on a path.
    pub fn concerns(&self, path: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|pattern| pattern.matches(path))
    }

    /// The command line that adds it to a rig.
    pub fn add_command(&self, rig: &str) -> String {
        let mut line = format!("gt rig check add {rig} {} {}", self.name, quoted(&self.command));
        // Writing to a text does not fail.
        if self.timeout != CHECK_TIMEOUT_DEFAULT {
            let _ = write!(line, " --timeout {}", format_duration(self.timeout));
        }
        if self.retries > 0 {
            let _ = write!(line, " --retry {}", self.retries);
        }
        for pattern in &self.paths {
            let _ = write!(line, " --paths {}", quoted(pattern.as_str()));
        }
        line
    }
}

/// A word for the shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    if text.chars().all(is_plain) && !text.is_empty() {
        return text.to_owned();
    }
    if !text.contains(['"', '$', '`', '\\', '!', '*', '?']) {
        return format!("\"{text}\"");
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The key under which a pass of a check is kept: equal keys mean that the same command has passed on the same contents.
/// `contents` is the tree, or its entries that the check concerns; `setup` is how the tree was set up.
pub fn check_cache_key(check: &CheckDefinition, contents: &str, setup: &str) -> String {
    hash_parts([check.hash().as_bytes(), contents.as_bytes(), setup.as_bytes()])
}

/// A hash of a list of parts. Two lists that are the same bytes in a row have different ones.
pub fn hash_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    digits_of(&hash.finalize())
}

/// A definition as the setting keeps it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefinitionDocument {
    name: String,
    command: String,
    #[serde(default)]
    timeout: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    retry: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl From<&CheckDefinition> for DefinitionDocument {
    fn from(check: &CheckDefinition) -> Self {
        Self {
            name: check.name.clone(),
            command: check.command.clone(),
            timeout: Some(format_duration(check.timeout)),
            retry: check.retries,
            paths: check.paths.iter().map(PathPattern::to_string).collect(),
        }
    }
}

/// Reads the checks of a rig in their order: a JSON array, or nothing.
pub fn parse_checks(text: &str) -> Result<Vec<CheckDefinition>, Invalid> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let documents: Vec<DefinitionDocument> = serde_json::from_str(text).map_err(|error| {
        Invalid(format!(
            "not a list of checks ({error}); use gt rig check add <rig> <name> <command>"
        ))
    })?;
    if documents.len() > CHECKS_MAX {
        return Err(Invalid(format!("a rig has at most {CHECKS_MAX} checks")));
    }
    let mut checks: Vec<CheckDefinition> = Vec::new();
    for document in documents {
        let timeout = document.timeout.as_deref().map(parse_duration).transpose()?;
        let paths = document.paths.iter().map(|path| PathPattern::parse(path));
        let check = CheckDefinition::new(
            &document.name,
            &document.command,
            timeout.unwrap_or(CHECK_TIMEOUT_DEFAULT),
            document.retry,
            paths.collect::<Result<_, _>>()?,
        )?;
        if checks.iter().any(|other| other.name == check.name) {
            return Err(Invalid(format!("two checks are called {}; rename one", check.name)));
        }
        checks.push(check);
    }
    Ok(checks)
}

/// Writes checks as [`parse_checks`] reads them.
pub fn write_checks(checks: &[CheckDefinition]) -> String {
    if checks.is_empty() {
        return String::new();
    }
    let documents: Vec<DefinitionDocument> = checks.iter().map(DefinitionDocument::from).collect();
    serde_json::to_string(&documents).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(name: &str, command: &str) -> CheckDefinition {
        CheckDefinition::new(name, command, CHECK_TIMEOUT_DEFAULT, 0, Vec::new()).unwrap()
    }

    #[test]
    fn wrong_definitions_are_refused_with_the_limit() {
        let new = |name: &str, command: &str, timeout: u64, retries| {
            CheckDefinition::new(name, command, Duration::from_secs(timeout), retries, Vec::new())
                .unwrap_err()
                .0
        };
        assert!(new("a b", "true", 1, 0).contains("letters, digits"));
        assert!(new("", "true", 1, 0).contains("letters, digits"));
        assert!(new("-a", "true", 1, 0).contains("letters, digits"));
        assert!(new("test", " ", 1, 0).contains("npm test"));
        assert!(new("test", "true", 0, 0).contains("100ms to 1d"));
        assert!(new("test", "true", 1, 4).contains("0 to 3"));
        for wrong in [
            "{}",
            "[{\"name\":\"a\"}]",
            "[1]",
            "npm test",
            "[{\"name\":\"a\",\"command\":\"b\",\"x\":1}]",
        ] {
            assert!(parse_checks(wrong).unwrap_err().0.contains("gt rig check add"), "{wrong}");
        }
        let twice = "[{\"name\":\"a\",\"command\":\"b\"},{\"name\":\"a\",\"command\":\"c\"}]";
        assert!(parse_checks(twice).unwrap_err().0.contains("two checks"));
    }

    #[test]
    fn the_command_line_that_adds_a_check_can_be_pasted() {
        let mut one = check("test", "npm test");
        assert_eq!(one.add_command("web"), "gt rig check add web test \"npm test\"");
        one.command = "echo \"it's $HOME\"".to_owned();
        one.timeout = Duration::from_secs(90);
        one.retries = 1;
        one.paths = vec![PathPattern::parse("src/**").unwrap()];
        assert_eq!(
            one.add_command("web"),
            "gt rig check add web test 'echo \"it'\\''s $HOME\"' --timeout 1m30s --retry 1 --paths 'src/**'"
        );
    }

    #[test]
    fn hashes_stay_the_same_over_releases() {
        let hash = check("test", "npm test").hash();
        assert_eq!(hash, "3b3d0089eab6a051b3663d5ad45157cfcbf94d9ed189e90cd6203b0db74e1daa");
    }

    fn definitions() -> impl Strategy<Value = CheckDefinition> {
        let paths = prop::collection::vec("[a-z]{1,4}(/[a-z*]{1,3})?", 0..3);
        ("[a-z0-9][a-z0-9_-]{0,9}", ".{0,20}[a-z]", 1_u64..90_000, 0..=CHECK_RETRIES_MAX, paths)
            .prop_filter_map("no NUL", |(name, command, seconds, retries, paths)| {
                let paths = paths.iter().map(|path| PathPattern::parse(path).unwrap()).collect();
                let timeout = Duration::from_secs(seconds.min(86_400));
                CheckDefinition::new(&name, &command, timeout, retries, paths).ok()
            })
    }

    proptest! {
        #[test]
        fn written_checks_read_back(one in definitions(), other in definitions()) {
            let checks = if one.name == other.name { vec![one] } else { vec![one, other] };
            let text = write_checks(&checks);
            prop_assert_eq!(&parse_checks(&text).unwrap(), &checks);
            prop_assert_eq!(write_checks(&parse_checks(&text).unwrap()), text);
        }

        #[test]
        fn the_hash_tells_definitions_apart(one in definitions(), other in definitions()) {
            prop_assert_eq!(one == other, one.hash() == other.hash());
            prop_assert_eq!(one == other, check_cache_key(&one, "t", "s") == check_cache_key(&other, "t", "s"));
            prop_assert_ne!(check_cache_key(&one, "ab", "c"), check_cache_key(&one, "a", "bc"));
        }

        #[test]
        fn a_quoted_word_reads_back(text in "[ -~]{1,20}") {
            let words = crate::words::split(&quoted(&text)).unwrap();
            prop_assert_eq!(words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>(), vec![text.as_str()]);
        }
    }
}
