//! Fields of a change that can also be emptied.

use serde::{Serialize, Serializer};

/// A field of a change: left out, `null`, or a new value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Clearable<T> {
    #[default]
    Keep,
    Clear,
    Set(T),
}

impl<T> Clearable<T> {
    /// Whether the field is left out.
    pub fn is_kept(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

impl<T: Serialize> Serialize for Clearable<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Keep | Self::Clear => serializer.serialize_none(),
            Self::Set(value) => value.serialize(serializer),
        }
    }
}
