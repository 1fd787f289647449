//! The answers of tools: a few lines, and the next step.

use std::fmt;

use gt_core::{Bead, Invalid};
use gt_town::{OperationError, with_causes};

/// The longest answer; the rest is left out, and said so.
const ANSWER_BYTES_MAX: usize = 24 * 1024;

/// Why a tool did not do what it was asked for, in a sentence that its caller reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolFailure(String);

impl ToolFailure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<OperationError> for ToolFailure {
    fn from(error: OperationError) -> Self {
        Self(with_causes(&error))
    }
}

impl From<Invalid> for ToolFailure {
    fn from(invalid: Invalid) -> Self {
        Self(invalid.to_string())
    }
}

/// The answer of a tool.
pub(crate) type ToolAnswer = Result<String, ToolFailure>;

/// The lines of an answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerLines(String);

impl AnswerLines {
    pub(crate) fn push(&mut self, line: impl AsRef<str>) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(line.as_ref().trim_end());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lines, and what to do next.
    pub(crate) fn next(mut self, step: impl AsRef<str>) -> String {
        self.push(format!("Next: {}", step.as_ref()));
        self.done()
    }

    pub(crate) fn done(self) -> String {
        shortened(self.0)
    }
}

/// The answer without what is too long.
pub(crate) fn shortened(mut text: String) -> String {
    if text.len() <= ANSWER_BYTES_MAX {
        return text;
    }
    let cut = text.floor_char_boundary(ANSWER_BYTES_MAX);
    let left_out = text.len() - cut;
    text.truncate(cut);
    format!("{text}\n({left_out} bytes are left out)")
}

/// A bead in a line.
pub(crate) fn bead_line(bead: &Bead) -> String {
    let line = format!(
        "{} [{}, P{}, {}] {}",
        bead.id,
        bead.status,
        bead.priority.number(),
        bead.issue_type,
        bead.title
    );
    if bead.assignee.is_empty() { line } else { format!("{line} (assigned to {})", bead.assignee) }
}

/// A number and its noun.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_cut_between_characters_and_says_so() {
        let long = "ä".repeat(ANSWER_BYTES_MAX);
        let cut = shortened(long);
        assert!(cut.len() < ANSWER_BYTES_MAX + 64);
        assert!(cut.ends_with("bytes are left out)"));
    }
}
