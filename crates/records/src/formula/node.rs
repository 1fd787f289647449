//! A value of a formula file, in either format.

use gt_core::Json;

use crate::read::shown;

/// How deep values may nest. Formulas are far flatter; the bound makes recursion over the tree safe.
pub(crate) const DEPTH_MAX: usize = 64;

/// One value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The line, counted from 1.
    pub(crate) line: usize,
    pub(crate) value: NodeValue,
}

#[derive(Debug, Clone)]
pub(crate) enum NodeValue {
    Null,
    Text(String),
    Flag(bool),
    /// A number as JSON spells it.
    Number(String),
    List(Vec<Node>),
    /// Fields in the order of the file.
    Table(Vec<(String, Node)>),
}

impl Node {
    /// The value as JSON.
    pub(crate) fn json(&self) -> Json {
        match &self.value {
            NodeValue::Null => Json::trusted("null".to_owned()),
            NodeValue::Text(text) => Json::string(text),
            NodeValue::Flag(flag) => Json::trusted(flag.to_string()),
            NodeValue::Number(number) => Json::trusted(number.clone()),
            NodeValue::List(nodes) => {
                let nodes: Vec<String> = nodes.iter().map(|node| node.json().to_string()).collect();
                Json::trusted(format!("[{}]", nodes.join(",")))
            }
            NodeValue::Table(fields) => {
                let fields: Vec<(String, Json)> =
                    fields.iter().map(|(name, node)| (name.clone(), node.json())).collect();
                Json::object(&fields)
            }
        }
    }

    /// The value in a message.
    pub(crate) fn shown(&self) -> String {
        match &self.value {
            NodeValue::List(_) => "a list".to_owned(),
            NodeValue::Table(_) => "a table".to_owned(),
            _ => shown(self.json().as_str()),
        }
    }

    /// A text, number or flag as text.
    pub(crate) fn scalar(&self) -> Option<String> {
        match &self.value {
            NodeValue::Text(text) | NodeValue::Number(text) => Some(text.clone()),
            NodeValue::Flag(flag) => Some(flag.to_string()),
            NodeValue::Null | NodeValue::List(_) | NodeValue::Table(_) => None,
        }
    }
}

/// Which line a place in a text is on.
pub(crate) struct LineStarts {
    /// Where each line begins.
    starts: Vec<usize>,
}

impl LineStarts {
    pub(crate) fn of(text: &str) -> Self {
        let later = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(later).collect() }
    }

    /// The line of a place, counted from 1.
    pub(crate) fn line(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place)
    }

    /// Line and column, both from 1; the column counts bytes.
    pub(crate) fn line_and_column(&self, place: usize) -> (usize, usize) {
        let line = self.line(place);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        (line, place - start + 1)
    }
}
