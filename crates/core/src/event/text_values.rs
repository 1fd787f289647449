//! How the values of beads stand in the log: as text, and priorities as numbers.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    BeadId, DependencyType, IssueType, Outcome, Priority, RigSlug, Status, Timestamp, Title,
};

macro_rules! text_values {
    ($($type:ident: $read:expr;)*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let read: fn(String) -> Result<Self, crate::Invalid> = $read;
                read(text).map_err(D::Error::custom)
            }
        }
    )*};
}

// Names were checked when they were written, and a check of a later version must not hide them.
text_values! {
    BeadId: |text| Ok(Self::trusted(text));
    Title: |text| Ok(Self::trusted(text));
    IssueType: |text| Ok(Self::trusted(text));
    RigSlug: |text| Ok(Self::trusted(text));
    DependencyType: |text| Ok(Self::trusted(&text));
    Status: |text| Self::parse(&text);
    Outcome: |text| Self::parse(&text);
}

impl Serialize for Priority {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.number())
    }
}

impl<'de> Deserialize<'de> for Priority {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(i64::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
