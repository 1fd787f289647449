//! Patterns that are looked for in the output of programs.

use std::fmt;

use regex_lite::{Regex, RegexBuilder};

use crate::Invalid;

/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1_000;

/// Most memory that a pattern may take when it is prepared, in bytes. Time grows with it.
const PREPARED_BYTES_MAX: usize = 1 << 18;

/// A regular expression that does not mind capitals. Two are equal if they are written the same.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// Reads a regular expression.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let shown: String = text.chars().take(60).collect();
        let invalid =
            |why: &str| Invalid(format!("\"{}\" is not a pattern: {why}", shown.escape_debug()));
        if text.is_empty() {
            return Err(Invalid::new("a pattern must not be empty"));
        }
        if text.len() > PATTERN_BYTES_MAX {
            return Err(invalid(&format!("it is longer than {PATTERN_BYTES_MAX} bytes")));
        }
        let mut builder = RegexBuilder::new(text);
        let regex = builder.case_insensitive(true).size_limit(PREPARED_BYTES_MAX).build();
        let regex = regex.map_err(|error| {
            let why = error.to_string();
            invalid(why.replace(char::is_control, " ").trim())
        })?;
        if regex.is_match("") {
            return Err(invalid("it fits everything, even nothing"));
        }
        Ok(Self { text: text.to_owned(), regex })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a text has something that it fits.
    pub fn is_in(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The part of a text that a named group of it fits.
    pub fn group_in<'t>(&self, text: &'t str, group: &str) -> Option<&'t str> {
        Some(self.regex.captures(text)?.name(group)?.as_str())
    }

    pub(super) fn regex(&self) -> &Regex {
        &self.regex
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
