//! JSON that is passed on as it was spelled.

use gt_core::Json;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// JSON of others: the order of keys and the spelling of numbers stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawJson(pub Json);

impl From<&Json> for RawJson {
    fn from(json: &Json) -> Self {
        Self(json.clone())
    }
}

impl RawJson {
    /// A number with this many digits behind the point.
    pub fn decimal(number: f64, digits: usize) -> Self {
        Self(Json::trusted(format!("{number:.digits$}")))
    }

    /// A record that is compact JSON already.
    pub fn record(compact: String) -> Self {
        Self(Json::trusted(compact))
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.0.as_str()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Json::parse(raw.get()).map(Self).map_err(serde::de::Error::custom)
    }
}
