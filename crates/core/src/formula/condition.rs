//! Whether a step is to be done at all.

use std::borrow::Cow;
use std::fmt;

use super::problem::shown;
use super::template::is_variable_name;
use crate::Invalid;

/// A test of one variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableCondition {
    operand: Operand,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operand {
    Variable(String),
    /// The value that a loop variable had when the loop was unrolled.
    Value(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Holds,
    Fails,
    Equals(String),
    Differs(String),
}

impl VariableCondition {
    /// Reads `{{v}}`, `!{{v}}`, `{{v}} == x` or `{{v}} != x`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || {
            Invalid(format!(
                "the condition {} is not understood; write {{{{name}}}}, !{{{{name}}}}, {{{{name}}}} \
                 == value or {{{{name}}}} != value",
                shown(text)
            ))
        };
        let trimmed = text.trim();
        let (negated, rest) = match trimmed.strip_prefix('!') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, trimmed),
        };
        let (name, rest) =
            rest.strip_prefix("{{").and_then(|rest| rest.split_once("}}")).ok_or_else(invalid)?;
        let name = name.trim();
        if !is_variable_name(name) {
            return Err(invalid());
        }
        let rest = rest.trim();
        let test = if rest.is_empty() {
            if negated { Test::Fails } else { Test::Holds }
        } else if negated {
            return Err(invalid());
        } else if let Some(value) = rest.strip_prefix("==") {
            Test::Equals(unquoted(value))
        } else if let Some(value) = rest.strip_prefix("!=") {
            Test::Differs(unquoted(value))
        } else {
            return Err(invalid());
        };
        Ok(Self { operand: Operand::Variable(name.to_owned()), test })
    }

    /// The variable it looks at, unless that is settled.
    pub fn variable(&self) -> Option<&str> {
        match &self.operand {
            Operand::Variable(name) => Some(name),
            Operand::Value(_) => None,
        }
    }

    /// The same with `variable` settled.
    #[must_use]
    pub fn with_value(&self, variable: &str, value: &str) -> Self {
        if self.variable() == Some(variable) {
            return Self { operand: Operand::Value(value.to_owned()), test: self.test.clone() };
        }
        self.clone()
    }

    /// Whether it holds; a variable without a value counts as empty.
    pub fn holds<'v>(&self, value: impl FnOnce(&str) -> Option<&'v str>) -> bool {
        let actual = match &self.operand {
            Operand::Variable(name) => value(name).unwrap_or_default(),
            Operand::Value(value) => value,
        };
        match &self.test {
            Test::Holds => is_true(actual),
            Test::Fails => !is_true(actual),
            Test::Equals(expected) => actual == expected,
            Test::Differs(expected) => actual != expected,
        }
    }
}

/// Everything but emptiness and the words for no.
fn is_true(value: &str) -> bool {
    !["", "false", "0", "no", "off"].iter().any(|no| value.eq_ignore_ascii_case(no))
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inside = ['"', '\'']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote).and_then(|rest| rest.strip_suffix(*quote)));
    inside.unwrap_or(text).to_owned()
}

/// The value so that [`unquoted`] gives it back: in quotes where something would be taken off it.
fn quoted(value: &str) -> Cow<'_, str> {
    if unquoted(value) == value { value.into() } else { format!("\"{value}\"").into() }
}

impl fmt::Display for VariableCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = match &self.operand {
            Operand::Variable(name) => format!("{{{{{name}}}}}"),
            Operand::Value(value) => value.clone(),
        };
        match &self.test {
            Test::Holds => f.write_str(&operand),
            Test::Fails => write!(f, "!{operand}"),
            Test::Equals(value) => write!(f, "{operand} == {}", quoted(value)),
            Test::Differs(value) => write!(f, "{operand} != {}", quoted(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn conditions_test_one_variable() {
        let value = |name: &str| (name == "v").then_some("yes");
        for (text, expected) in [
            ("{{v}}", true),
            ("!{{v}}", false),
            ("{{v}} == yes", true),
            ("{{v}}==\"yes\"", true),
            ("{{v}} != 'yes'", false),
            ("{{unset}}", false),
            ("!{{unset}}", true),
            ("{{unset}} == ", true),
        ] {
            assert_eq!(VariableCondition::parse(text).unwrap().holds(value), expected, "{text}");
        }
        for no in ["false", "0", "No", "OFF", ""] {
            assert!(!VariableCondition::parse("{{v}}").unwrap().holds(|_| Some(no)), "{no}");
        }
    }

    #[test]
    fn a_value_keeps_its_quotes_and_spaces_when_printed() {
        for (text, printed) in [
            ("{{v}}==\"yes\"", "{{v}} == yes"),
            ("{{v}} == \" yes \"", "{{v}} == \" yes \""),
            ("{{v}} != \"'x'\"", "{{v}} != \"'x'\""),
        ] {
            let condition = VariableCondition::parse(text).unwrap();
            assert_eq!(condition.to_string(), printed);
            assert_eq!(VariableCondition::parse(printed), Ok(condition));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "v", "{{v}} > 3", "{{v}} and {{w}}", "!{{v}} == x", "{{a b}}"] {
            assert!(VariableCondition::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_condition_reads_back(text in "!?\\{\\{[a-c]\\}\\}( (==|!=) [a-z]{1,3})?|.{0,20}") {
            if let Ok(condition) = VariableCondition::parse(&text) {
                prop_assert_eq!(VariableCondition::parse(&condition.to_string()), Ok(condition));
            }
        }
    }
}
