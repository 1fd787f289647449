//! Why a line was refused.

use gt_core::Invalid;

/// A line that is not a record we can keep.
///
/// The message names the field, because the line it came from may be megabytes long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", shown_path(path))]
pub struct RecordError {
    /// Such as `dependencies[2].created_at`; empty when the whole line is meant.
    path: String,
    problem: String,
}

impl RecordError {
    /// A problem with the line as a whole.
    pub(crate) fn line(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    /// A line that is no JSON. It is one line by definition, so only the column helps to find the spot.
    pub(crate) fn syntax(error: &serde_json::Error) -> Self {
        let problem = error.to_string();
        Self::line(format!(
            "not valid JSON: {}",
            problem.replace(" at line 1 column ", " at column ")
        ))
    }

    /// A problem with one field.
    pub(crate) fn field(name: &str, Invalid(problem): Invalid) -> Self {
        Self { path: name.to_owned(), problem }
    }

    /// A field that a record cannot do without.
    pub(crate) fn missing(name: &str) -> Self {
        Self::field(name, Invalid::new("missing"))
    }

    /// The same problem, seen from the object that holds `element` number `index` of `list`.
    pub(crate) fn inside(self, list: &str, index: usize) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { path: format!("{list}[{index}]{dot}{}", self.path), problem: self.problem }
    }
}

fn shown_path(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("field \"{}\": ", path.escape_debug()) }
}
