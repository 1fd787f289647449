//! An error in a query, with its place.

/// Why a query was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct QueryError {
    /// The whole query.
    text: String,
    /// Where it goes wrong, counted in characters from 1.
    column: usize,
    /// The expected text.
    message: String,
}

impl QueryError {
    pub(super) fn new(text: &str, column: usize, message: impl Into<String>) -> Self {
        // The query is quoted in many places; none of it may move the reader's cursor.
        let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let message = message.into().chars().map(visible).collect();
        Self { text: text.to_owned(), column, message }
    }

    /// Where it goes wrong, counted in characters from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The query, and a caret under the place where it goes wrong.
    pub fn detail_lines(&self) -> [String; 2] {
        let one_line = |c: char| if c.is_control() { ' ' } else { c };
        let margin = " ".repeat(self.column.saturating_sub(1));
        [self.text.chars().map(one_line).collect(), format!("{margin}^")]
    }
}
