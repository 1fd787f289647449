//! A table as a list of fields that are taken out one by one.

use gt_core::bead::check_text;
use gt_core::formula::{FormulaProblem, SourceLocation, WordSet};
use gt_core::similar_names::closest;
use gt_core::{Carried, Invalid, Json};

use super::node::{Node, NodeValue};
use crate::read::shown;

/// Everything that was found while reading.
#[derive(Debug, Default)]
pub(crate) struct ReadProblems {
    pub(crate) problems: Vec<FormulaProblem>,
    pub(crate) warnings: Vec<FormulaProblem>,
}

/// The fields of one table. Each reader takes the fields it knows; the fields left at the end are unknown.
pub(crate) struct FieldTable {
    fields: Vec<(String, Node)>,
    /// How messages name it, such as `step "build"`.
    pub(crate) subject: String,
    pub(crate) source: SourceLocation,
}

impl FieldTable {
    /// The fields of a node that should be a table.
    pub(crate) fn of(
        node: Node,
        subject: String,
        file: &SourceLocation,
        found: &mut ReadProblems,
    ) -> Self {
        let source = file.at(Some(node.line));
        let fields = if let NodeValue::Table(fields) = node.value {
            fields
        } else {
            let message = format!("expected a table, found {}", node.shown());
            found.problems.push(FormulaProblem::new(&source, &subject, message));
            Vec::new()
        };
        Self { fields, subject, source }
    }

    /// Takes a field; `null` counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<Node> {
        let place = self.fields.iter().position(|(key, _)| key == name)?;
        let (_, node) = self.fields.remove(place);
        (!matches!(node.value, NodeValue::Null)).then_some(node)
    }

    /// The line of a field that has not been taken yet.
    pub(crate) fn line_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, node)| node.line)
    }

    /// Notes that something is wrong with a field of this table.
    pub(crate) fn wrong(&self, name: &str, node: &Node, message: &str, found: &mut ReadProblems) {
        let source = self.source.at(Some(node.line));
        found.problems.push(FormulaProblem::new(
            &source,
            &self.subject,
            format!("{name}: {message}"),
        ));
    }

    fn expected(&self, name: &str, what: &str, node: &Node, found: &mut ReadProblems) {
        self.wrong(name, node, &format!("expected {what}, found {}", node.shown()), found);
    }

    /// Takes a text; absent is the same as empty.
    pub(crate) fn text(&mut self, name: &str, found: &mut ReadProblems) -> String {
        let Some(node) = self.take(name) else { return String::new() };
        match &node.value {
            NodeValue::Text(text) => match check_text(name, text) {
                Ok(()) => return text.clone(),
                Err(Invalid(message)) => self.wrong(name, &node, &message, found),
            },
            _ => self.expected(name, "a text", &node, found),
        }
        String::new()
    }

    /// Takes a text, which may be empty.
    pub(crate) fn given_text(&mut self, name: &str, found: &mut ReadProblems) -> Option<String> {
        let is_there = self
            .fields
            .iter()
            .any(|(key, node)| key == name && !matches!(node.value, NodeValue::Null));
        let problems = found.problems.len();
        let text = self.text(name, found);
        (is_there && found.problems.len() == problems).then_some(text)
    }

    /// Takes a text; empty is the same as absent.
    pub(crate) fn some_text(&mut self, name: &str, found: &mut ReadProblems) -> Option<String> {
        Some(self.text(name, found)).filter(|text| !text.is_empty())
    }

    /// Takes a text and makes something of it.
    pub(crate) fn parsed<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, Invalid>,
        found: &mut ReadProblems,
    ) -> Option<T> {
        let node = self.fields.iter().find(|(key, _)| key == name).map(|(_, node)| node.clone())?;
        let text = self.some_text(name, found)?;
        parse(&text).map_err(|Invalid(message)| self.wrong(name, &node, &message, found)).ok()
    }

    /// Takes one of a closed set of words.
    pub(crate) fn word<T: WordSet>(&mut self, name: &str, found: &mut ReadProblems) -> Option<T> {
        self.parsed(name, T::parse, found)
    }

    /// Takes a yes or no.
    pub(crate) fn flag(&mut self, name: &str, found: &mut ReadProblems) -> Option<bool> {
        let node = self.take(name)?;
        if let NodeValue::Flag(flag) = node.value {
            return Some(flag);
        }
        self.expected(name, "true or false", &node, found);
        None
    }

    /// Takes a whole number.
    pub(crate) fn number(&mut self, name: &str, found: &mut ReadProblems) -> Option<i64> {
        let node = self.take(name)?;
        let number = match &node.value {
            NodeValue::Number(text) => text.parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.expected(name, "a whole number", &node, found);
        }
        number
    }

    /// Takes a list.
    pub(crate) fn list(&mut self, name: &str, found: &mut ReadProblems) -> Vec<Node> {
        let Some(node) = self.take(name) else { return Vec::new() };
        if let NodeValue::List(nodes) = node.value {
            return nodes;
        }
        self.expected(name, "a list", &node, found);
        Vec::new()
    }

    /// Takes a list of texts.
    pub(crate) fn texts(&mut self, name: &str, found: &mut ReadProblems) -> Vec<String> {
        let mut texts = Vec::new();
        for node in self.list(name, found) {
            match &node.value {
                NodeValue::Text(text) if check_text(name, text).is_ok() => texts.push(text.clone()),
                _ => self.expected(name, "a list of texts", &node, found),
            }
        }
        texts
    }

    /// Takes a list of any values, kept as they are.
    pub(crate) fn any_list(&mut self, name: &str, found: &mut ReadProblems) -> Vec<Json> {
        self.list(name, found).iter().map(Node::json).collect()
    }

    /// Takes a table of names and simple values.
    pub(crate) fn bindings(
        &mut self,
        name: &str,
        found: &mut ReadProblems,
    ) -> Vec<(String, String)> {
        let Some(node) = self.take(name) else { return Vec::new() };
        let NodeValue::Table(fields) = &node.value else {
            self.expected(name, "a table", &node, found);
            return Vec::new();
        };
        let mut bindings = Vec::new();
        for (key, value) in fields {
            match value.scalar() {
                Some(text) => bindings.push((key.clone(), text)),
                None => self.expected(&format!("{name}.{key}"), "a text", value, found),
            }
        }
        bindings
    }

    /// Refuses the unknown fields, where there is no place to keep them.
    pub(crate) fn refuse_rest(self, found: &mut ReadProblems) {
        for (name, node) in &self.fields {
            self.wrong(&shown(name), node, "is not known here; remove it", found);
        }
    }

    /// Warns of the unknown fields, each with the closest known name.
    pub(crate) fn warn_of_rest(self, known: &[&str], found: &mut ReadProblems) {
        for (name, node) in &self.fields {
            let source = self.source.at(Some(node.line));
            let hint = match closest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("known: {}", known.join(", ")),
            };
            let message = format!("the key {} is not known and not used; {hint}", shown(name));
            found.warnings.push(FormulaProblem::new(&source, &self.subject, message));
        }
    }

    /// The unknown fields, with a warning for each.
    pub(crate) fn carried(self, found: &mut ReadProblems) -> Carried {
        let keep = |(name, node): (String, Node)| {
            let source = self.source.at(Some(node.line));
            let message = format!("the key {} is not known; it is kept, not used", shown(&name));
            found.warnings.push(FormulaProblem::new(&source, &self.subject, message));
            (name, node.json())
        };
        self.fields.into_iter().map(keep).collect()
    }
}
