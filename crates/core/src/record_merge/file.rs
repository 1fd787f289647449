//! A file of records: one JSON object for each line.

use std::collections::BTreeMap;

use serde_json::Value;

use super::record::FieldMap;

/// The longest part of a line that a message shows, in characters.
const SHOWN_CHARS: usize = 40;

/// Why files cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeProblem {
    /// Git could not merge it before, and it was not put right since.
    #[error("{side}, line {line} is a conflict marker of git; put the file right first")]
    Marker {
        /// Which of the files.
        side: &'static str,
        /// The number of the line, from 1.
        line: usize,
    },
    /// A bead or memory stands there twice.
    #[error("{side} has {name} twice, on lines {first} and {second}; remove one of them first")]
    Twice {
        /// Which of the files.
        side: &'static str,
        /// Its id or key.
        name: String,
        /// The number of its first line.
        first: usize,
        /// The number of its second line.
        second: usize,
    },
    /// A line is cut off, or is no record.
    #[error("{side}, line {line} is no record ({why}): {shown}")]
    Unreadable {
        /// Which of the files.
        side: &'static str,
        /// The number of the line, from 1.
        line: usize,
        /// The fault in it.
        why: String,
        /// How it begins.
        shown: String,
    },
}

/// The name of a record, in the order of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RecordKey {
    /// The first line of some files, which names their format.
    Header(String),
    /// A bead, by its id.
    Bead(String),
    /// A memory, by its key.
    Memory(String),
}

impl RecordKey {
    fn of(fields: &FieldMap) -> Option<Self> {
        let text = |name: &str| match fields.value(name) {
            Some(Value::String(text)) if !text.is_empty() => Some(text),
            _ => None,
        };
        if let Some(schema) = text("_schema") {
            return Some(Self::Header(schema));
        }
        if text("_type").as_deref() == Some("memory") {
            return text("key").map(Self::Memory);
        }
        text("id").map(Self::Bead)
    }

    fn name(&self) -> &str {
        match self {
            Self::Header(name) | Self::Bead(name) | Self::Memory(name) => name,
        }
    }
}

/// The records of a file, by their names.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordFile(BTreeMap<RecordKey, FieldMap>);

impl RecordFile {
    pub(super) fn read(side: &'static str, text: &str) -> Result<Self, MergeProblem> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut records = BTreeMap::new();
        let mut lines: BTreeMap<RecordKey, usize> = BTreeMap::new();
        for (index, content) in text.lines().enumerate() {
            let line = index + 1;
            if content.trim().is_empty() {
                continue;
            }
            if ["<<<<<<<", "|||||||", "=======", ">>>>>>>"]
                .iter()
                .any(|mark| content.starts_with(mark))
            {
                return Err(MergeProblem::Marker { side, line });
            }
            let unreadable = |why: String| MergeProblem::Unreadable {
                side,
                line,
                why,
                shown: content
                    .chars()
                    .take(SHOWN_CHARS)
                    .collect::<String>()
                    .escape_debug()
                    .to_string(),
            };
            let fields = FieldMap::parse(content).map_err(unreadable)?;
            let key = RecordKey::of(&fields);
            let key = key.ok_or_else(|| unreadable("it has neither an id nor a key".to_owned()))?;
            if let Some(first) = lines.insert(key.clone(), line) {
                let name = key.name().to_owned();
                return Err(MergeProblem::Twice { side, name, first, second: line });
            }
            records.insert(key, fields);
        }
        Ok(Self(records))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &RecordKey> {
        self.0.keys()
    }

    pub(super) fn get(&self, key: &RecordKey) -> Option<&FieldMap> {
        self.0.get(key)
    }

    pub(super) fn put(&mut self, key: RecordKey, fields: FieldMap) {
        self.0.insert(key, fields);
    }

    /// Keeps the value of a memory that lost, under a key beside its own.
    pub(super) fn put_spare_memory(&mut self, name: &str, like: &FieldMap, value: &Value) {
        let key = format!("{name}~merged");
        let mut spare = like.clone();
        spare.set("key", &Value::String(key.clone()));
        spare.set("value", value);
        self.0.entry(RecordKey::Memory(key)).or_insert(spare);
    }

    /// The file, with a line for each record.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for fields in self.0.values() {
            text.push_str(&fields.line());
            text.push('\n');
        }
        text
    }
}
