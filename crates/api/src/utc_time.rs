//! Instants as RFC 3339 in UTC.

use gt_core::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant, in UTC with as many digits as it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UtcTime(pub Timestamp);

impl From<Timestamp> for UtcTime {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl Serialize for UtcTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for UtcTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Timestamp::parse(&text).map(Self).map_err(serde::de::Error::custom)
    }
}
