//! An error in a formula, with its place.

use std::fmt;
use std::sync::Arc;

/// Where something was read.
///
/// It is only the place of a thing: two steps that differ only in it are equal, and so
/// are all sources.
#[derive(Debug, Clone, Default)]
pub struct SourceLocation {
    /// The file as a person would name it; empty when there is none.
    pub file: Arc<str>,
    /// The line, from 1, where the format can tell.
    pub line: Option<usize>,
}

impl PartialEq for SourceLocation {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SourceLocation {}

impl SourceLocation {
    /// A whole file.
    pub fn file(name: &str) -> Self {
        Self { file: name.into(), line: None }
    }

    /// A line of the same file.
    #[must_use]
    pub fn at(&self, line: Option<usize>) -> Self {
        Self { file: Arc::clone(&self.file), line }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_ref(), self.line) {
            ("", None) => Ok(()),
            ("", Some(line)) => write!(f, "line {line}"),
            (file, None) => f.write_str(file),
            (file, Some(line)) => write!(f, "{file}:{line}"),
        }
    }
}

/// One thing that is wrong with a formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormulaProblem {
    /// The place.
    pub source: SourceLocation,
    /// With what, such as `step "build"`; empty when the whole formula is meant.
    pub subject: String,
    /// The error, and how to fix it.
    pub message: String,
}

impl FormulaProblem {
    /// A problem with the thing called `subject`.
    pub fn new(
        source: &SourceLocation,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { source: source.clone(), subject: subject.into(), message: message.into() }
    }
}

impl fmt::Display for FormulaProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.source.to_string();
        for part in [&source, &self.subject] {
            if !part.is_empty() {
                write!(f, "{part}: ")?;
            }
        }
        f.write_str(&self.message)
    }
}

/// Text of others in a message, short and on one line.
pub(super) fn shown(text: &str) -> String {
    const SHOWN_CHARACTERS_MAX: usize = 60;
    let head: String = text.chars().take(SHOWN_CHARACTERS_MAX).collect();
    let more = if head.len() < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", head.escape_debug())
}

/// Names for a message: all of few, the first of many.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const LISTED_MAX: usize = 12;
    let mut names: Vec<&str> = names.into_iter().take(LISTED_MAX + 1).collect();
    let more = names.len() > LISTED_MAX;
    names.truncate(LISTED_MAX);
    match (names.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, false) => names.join(", "),
        (false, true) => format!("{}, …", names.join(", ")),
    }
}
