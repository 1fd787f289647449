//! The arguments of a tool, read strictly: a name or a type that the schema does not have is an error.

use serde_json::{Map, Value};

use crate::answers::ToolFailure;

/// The arguments that are not read yet.
#[derive(Debug)]
pub(crate) struct ToolArguments {
    left: Map<String, Value>,
}

impl ToolArguments {
    pub(crate) fn new(given: Option<Map<String, Value>>) -> Self {
        Self { left: given.unwrap_or_default() }
    }

    /// A text; nothing if it is absent, null or blank.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ToolFailure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
            Some(other) => Err(wrong_type(name, "a text", &other)),
        }
    }

    /// A text that must be there.
    pub(crate) fn required_text(&mut self, name: &str) -> Result<String, ToolFailure> {
        self.text(name)?.ok_or_else(|| missing(name))
    }

    /// One of these words; nothing if it is absent.
    pub(crate) fn choice(
        &mut self,
        name: &str,
        choices: &[&'static str],
    ) -> Result<Option<&'static str>, ToolFailure> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = choices.iter().find(|choice| **choice == text);
        found.copied().map(Some).ok_or_else(|| {
            let choices = choices.join(", ");
            ToolFailure::new(format!("{name} is \"{text}\"; it is one of {choices}"))
        })
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, ToolFailure> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong_type(name, "true or false", &other)),
        }
    }

    /// A number from 0 to `most`.
    pub(crate) fn number(&mut self, name: &str, most: u64) -> Result<Option<u64>, ToolFailure> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_u64() {
            Some(number) if number <= most => Ok(Some(number)),
            _ if value.is_number() => Err(ToolFailure::new(format!(
                "{name} is {value}; it is a whole number from 0 to {most}"
            ))),
            _ => Err(wrong_type(name, &format!("a number from 0 to {most}"), &value)),
        }
    }

    /// Texts; a single text counts as a list of one.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, ToolFailure> {
        let wrong = |other: &Value| wrong_type(name, "a list of texts", other);
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(list)) => {
                let text = |value: Value| match value {
                    Value::String(text) => Ok(text),
                    other => Err(wrong(&other)),
                };
                list.into_iter().map(text).collect()
            }
            Some(other) => Err(wrong(&other)),
        }
    }

    /// Texts, at least one.
    pub(crate) fn required_texts(&mut self, name: &str) -> Result<Vec<String>, ToolFailure> {
        let texts = self.texts(name)?;
        if texts.is_empty() { Err(missing(name)) } else { Ok(texts) }
    }

    /// Objects, at least one.
    pub(crate) fn required_objects(&mut self, name: &str) -> Result<Vec<Value>, ToolFailure> {
        match self.take(name) {
            Some(Value::Array(list)) if list.iter().all(Value::is_object) && !list.is_empty() => {
                Ok(list)
            }
            None => Err(missing(name)),
            Some(other) => Err(wrong_type(name, "a list of objects, at least one", &other)),
        }
    }

    /// Refuses arguments that the tool does not have.
    pub(crate) fn finish(&self) -> Result<(), ToolFailure> {
        let Some(name) = self.left.keys().next() else { return Ok(()) };
        Err(ToolFailure::new(format!(
            "this tool has no argument \"{}\"; its schema lists them",
            name.escape_debug()
        )))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }
}

fn missing(name: &str) -> ToolFailure {
    ToolFailure::new(format!("{name} is missing"))
}

fn wrong_type(name: &str, expected: &str, given: &Value) -> ToolFailure {
    let kind = match given {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    ToolFailure::new(format!("{name} is {expected}, and {kind} was given"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: &Value) -> ToolArguments {
        ToolArguments::new(value.as_object().cloned())
    }

    #[test]
    fn wrong_types_and_unknown_names_are_refused_by_name() {
        let mut given = arguments(&json!({"bead": 7, "limit": -1, "force": "yes", "ids": [1]}));
        let said = |failure: ToolFailure| failure.to_string();
        assert!(said(given.text("bead").unwrap_err()).contains("bead is a text"));
        assert!(said(given.number("limit", 50).unwrap_err()).contains("limit is -1; it is"));
        assert!(said(given.flag("force").unwrap_err()).contains("force is true or false"));
        assert!(said(given.texts("ids").unwrap_err()).contains("ids is a list of texts"));
        let left = arguments(&json!({"colour": 1}));
        assert!(said(left.finish().unwrap_err()).contains("no argument \"colour\""));
    }

    #[test]
    fn null_and_blank_count_as_absent_and_one_text_as_a_list() {
        let mut given = arguments(&json!({"a": null, "b": "  ", "c": "x"}));
        assert_eq!(given.text("a").unwrap(), None);
        assert_eq!(given.text("b").unwrap(), None);
        assert_eq!(given.texts("c").unwrap(), ["x"]);
        given.finish().unwrap();
    }
}
