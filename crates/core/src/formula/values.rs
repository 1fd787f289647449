//! The values of variables.

use std::collections::BTreeMap;

use super::problem::{listed, shown};
use super::{Formula, FormulaProblem, Variable, VariableKind};

/// The value of each variable of a formula, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VariableValues(BTreeMap<String, String>);

impl VariableValues {
    /// The given values, else the defaults. Values that their variable does not allow are problems.
    pub(super) fn of(
        formula: &Formula,
        given: &BTreeMap<String, String>,
    ) -> (Self, Vec<FormulaProblem>) {
        let mut problems = Vec::new();
        let mut values = BTreeMap::new();
        for variable in &formula.variables {
            if let Some(value) = given.get(&variable.name) {
                if let Err(message) = variable.check(value) {
                    problems.push(FormulaProblem::new(
                        &variable.source,
                        variable.subject(),
                        message,
                    ));
                }
                values.insert(variable.name.clone(), value.clone());
            } else if let Some(default) = &variable.default {
                values.insert(variable.name.clone(), default.clone());
            }
        }
        (Self(values), problems)
    }

    /// The value of a variable that has one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl Variable {
    /// Its name in messages.
    pub(super) fn subject(&self) -> String {
        format!("variable {}", shown(&self.name))
    }

    /// The problem of a variable without a value.
    pub(super) fn missing(&self) -> FormulaProblem {
        let what = if self.description.is_empty() {
            String::new()
        } else {
            format!(" ({})", self.description.lines().next().unwrap_or_default())
        };
        let message = format!("has no value{what}; give one with --var {}=…", self.name);
        FormulaProblem::new(&self.source, self.subject(), message)
    }

    /// Whether the variable may have this value; if not, why.
    pub(super) fn check(&self, value: &str) -> Result<(), String> {
        let value_shown = shown(value);
        match self.kind {
            Some(VariableKind::Integer) if value.parse::<i64>().is_err() => {
                return Err(format!("{value_shown} is not a whole number"));
            }
            Some(VariableKind::Boolean)
                if !BOOLEANS.iter().any(|word| value.eq_ignore_ascii_case(word)) =>
            {
                return Err(format!("{value_shown} is neither true nor false"));
            }
            _ => {}
        }
        if !self.allowed.is_empty() && !self.allowed.iter().any(|allowed| allowed == value) {
            let allowed = listed(self.allowed.iter().map(String::as_str));
            return Err(format!("{value_shown} is not one of its values; choose from: {allowed}"));
        }
        // A pattern that is none is reported once, by validation.
        if let Some(pattern) = &self.pattern
            && let Ok(expression) = regex_lite::Regex::new(pattern)
            && !expression.is_match(value)
        {
            return Err(format!("{value_shown} does not match the pattern {}", shown(pattern)));
        }
        Ok(())
    }
}

/// The words for yes and no.
const BOOLEANS: [&str; 8] = ["true", "false", "yes", "no", "1", "0", "on", "off"];
