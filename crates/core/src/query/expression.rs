//! A query as data.

use super::field::{Flag, NumberField, TextField, TimeField};
use crate::Timestamp;

/// A query, and when it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The condition on a bead.
    pub expression: Expression,
    /// When it was asked, which readiness depends on.
    pub now: Timestamp,
}

/// Something that is true or false of a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// One condition.
    Is(FieldCondition),
    /// The contrary.
    Not(Box<Self>),
    /// Every one of these, which are at least two.
    All(Vec<Self>),
    /// At least one of these, which are at least two.
    Any(Vec<Self>),
}

/// One field and its test. "Is not" is the negation of "is", and a list of values is any of
/// several conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldCondition {
    /// A text or a name.
    Text {
        /// The field.
        field: TextField,
        /// The test.
        test: TextTest,
    },
    /// A number compared with another; none if the bead is to have no such number.
    Number {
        /// The field.
        field: NumberField,
        /// The test.
        test: Option<(Comparison, i64)>,
    },
    /// A time.
    Time {
        /// The field.
        field: TimeField,
        /// The test.
        test: TimeTest,
    },
    /// A property that a bead has or has not.
    Flag(Flag),
}

/// A test of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextTest {
    /// There is none.
    Empty,
    /// It is exactly this, which is not empty.
    Is(String),
    /// It matches this, where `*` stands for anything.
    Like(String),
    /// It contains this, which is not empty.
    Contains(String),
}

/// A test of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeTest {
    /// There is none.
    Empty,
    /// It compares with this instant.
    At(Comparison, Timestamp),
    /// It lies within the day that begins at this instant, which is a midnight.
    Day(Timestamp),
}

/// How two values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Both are the same.
    Equal,
    /// Less, or earlier.
    Less,
    /// Not more, or not later.
    AtMost,
    /// More, or later.
    Greater,
    /// Not less, or not earlier.
    AtLeast,
}

impl Comparison {
    /// The way it is written, here and in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}

impl Query {
    /// Whether any condition of the query is one that `wanted` recognises.
    pub fn mentions(&self, wanted: impl Fn(&FieldCondition) -> bool) -> bool {
        self.expression.any(&wanted)
    }

    /// Shows every name that is asked for exactly to `each`, which may replace it by the name that is
    /// meant.
    pub fn resolve_names<E>(
        &mut self,
        mut each: impl FnMut(&TextField, &mut String) -> Result<(), E>,
    ) -> Result<(), E> {
        self.expression.resolve_names(&mut each)
    }
}

impl Expression {
    fn any(&self, wanted: &impl Fn(&FieldCondition) -> bool) -> bool {
        match self {
            Self::Is(condition) => wanted(condition),
            Self::Not(inner) => inner.any(wanted),
            Self::All(parts) | Self::Any(parts) => parts.iter().any(|part| part.any(wanted)),
        }
    }

    fn resolve_names<E>(
        &mut self,
        each: &mut impl FnMut(&TextField, &mut String) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Self::Is(FieldCondition::Text { field, test: TextTest::Is(name) }) => each(field, name),
            Self::Is(_) => Ok(()),
            Self::Not(inner) => inner.resolve_names(each),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter_mut().try_for_each(|part| part.resolve_names(each))
            }
        }
    }
}
