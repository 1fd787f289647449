//! Free text from outside.

use std::fmt;

use crate::{Invalid, limits};

/// One line of 1 to 500 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Title(String);

impl Title {
    /// Checks `text`. Surrounding white space is not part of a title.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Invalid::new("a title cannot be empty"));
        }
        if text.len() > limits::TITLE_BYTES_MAX {
            return Err(Invalid(format!(
                "a title has at most {} bytes, this one has {}; put the rest into the description",
                limits::TITLE_BYTES_MAX,
                text.len()
            )));
        }
        if let Some(control) = text.chars().find(|c| c.is_control()) {
            return Err(Invalid(format!(
                "a title is one line without control characters; this one has {}",
                control.escape_debug()
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// A title that came with an imported record: only text that no store can hold is refused.
    pub fn imported(text: &str) -> Result<Self, Invalid> {
        check_text("title", text)?;
        match text.len() {
            0 => Err(Invalid::new("a title cannot be empty")),
            1..=limits::TITLE_BYTES_MAX => Ok(Self(text.to_owned())),
            length => Err(Invalid(format!(
                "a title has at most {} bytes, this one has {length}",
                limits::TITLE_BYTES_MAX
            ))),
        }
    }

    /// Wraps text that was a valid title when it was stored.
    pub fn trusted(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses the one character that not every store can hold.
pub fn check_text(field: &str, text: &str) -> Result<(), Invalid> {
    if text.contains('\0') {
        return Err(Invalid(format!("the {field} contains a NUL character")));
    }
    Ok(())
}

/// Checks a short name, such as an issue type or a dependency type.
pub fn check_name(what: &str, name: &str) -> Result<(), Invalid> {
    if name.is_empty() || name.len() > limits::NAME_BYTES_MAX || name.chars().any(char::is_control)
    {
        let shown: String = name.chars().take(60).collect();
        return Err(Invalid(format!(
            "\"{}\" is not a valid {what}; use 1 to {} printable characters",
            shown.escape_debug(),
            limits::NAME_BYTES_MAX
        )));
    }
    Ok(())
}

/// Checks a label, an assignee or an actor.
pub fn check_label(what: &str, text: &str) -> Result<(), Invalid> {
    if text.trim().is_empty() {
        return Err(Invalid(format!("\"\" is not a valid {what}: it cannot be empty")));
    }
    if text.len() > limits::LABEL_BYTES_MAX || text.chars().any(char::is_control) {
        let shown: String = text.chars().take(60).collect();
        return Err(Invalid(format!(
            "\"{}\" is not a valid {what}; use 1 to {} printable characters",
            shown.escape_debug(),
            limits::LABEL_BYTES_MAX
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_line() {
        assert_eq!(Title::parse("  Fix it 🔧 \n").unwrap().as_str(), "Fix it 🔧");
        assert!(Title::parse("שלום עולם").is_ok());
        for bad in ["", "  ", "a\nb", "a\0b", "a\x1b[31mb", &"x".repeat(501)] {
            assert!(Title::parse(bad).is_err(), "{bad:?}");
        }
    }
}
