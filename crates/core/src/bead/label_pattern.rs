//! Patterns of labels.

use regex_lite::Regex;

use crate::Invalid;

/// A pattern that a label matches as a whole, or an expression that it matches anywhere.
#[derive(Debug, Clone)]
pub struct LabelPattern(Regex);

impl LabelPattern {
    /// A pattern such as `tech-*`: `*` stands for any characters, `?` for one.
    pub fn glob(text: &str) -> Result<Self, Invalid> {
        let literal = regex_lite::escape(text).replace("\\*", ".*").replace("\\?", ".");
        Self::compile(text, &format!("^{literal}$"))
    }

    /// A regular expression.
    pub fn expression(text: &str) -> Result<Self, Invalid> {
        Self::compile(text, text)
    }

    fn compile(shown: &str, expression: &str) -> Result<Self, Invalid> {
        Regex::new(expression).map(Self).map_err(|error| {
            Invalid(format!("\"{}\" is not a pattern of labels: {error}", shown.escape_debug()))
        })
    }

    /// Whether this label matches.
    pub fn matches(&self, label: &str) -> bool {
        self.0.is_match(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_labels_and_expressions_any_part() {
        let glob = LabelPattern::glob("tech-*").unwrap();
        assert!(glob.matches("tech-debt") && !glob.matches("high-tech-debt"));
        assert!(LabelPattern::glob("p?").unwrap().matches("p1"));
        assert!(!LabelPattern::glob("a.b").unwrap().matches("axb"));
        let expression = LabelPattern::expression("^tech-(debt|spike)$").unwrap();
        assert!(expression.matches("tech-spike") && !expression.matches("tech-x"));
        assert!(LabelPattern::expression("[").is_err());
    }
}
