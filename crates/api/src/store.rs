//! The store.

use serde::Serialize;

use crate::{OrderedMap, RawJson, UtcTime};

/// A backup.
#[derive(Debug, Clone, Serialize)]
pub struct BackupDocument {
    pub path: String,
    pub beads: u64,
    pub events: u64,
    pub bytes: u64,
}

/// A town that has another store.
#[derive(Debug, Clone, Serialize)]
pub struct StoreMoveDocument {
    pub from: String,
    pub to: String,
    pub changed: bool,
    pub tables: u64,
    pub rows: u64,
}

/// A store that was compacted.
#[derive(Debug, Clone, Serialize)]
pub struct VacuumDocument {
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// A check of the store.
#[derive(Debug, Clone, Serialize)]
pub struct StoreCheckDocument {
    pub problems: u64,
    pub damage: Vec<String>,
    pub warnings: Vec<String>,
    pub difference_count: u64,
    pub differences: Vec<DifferenceDocument>,
    pub circles: Vec<Vec<String>>,
}

/// A derived value that is wrong.
#[derive(Debug, Clone, Serialize)]
pub struct DifferenceDocument {
    pub about: String,
    pub value: String,
    pub stored: String,
    pub computed: String,
}

/// A store.
#[derive(Debug, Clone, Serialize)]
pub struct StoreInfoDocument {
    pub town: String,
    pub root: String,
    pub place: String,
    pub engine: String,
    pub engine_version: String,
    pub schema: i64,
    pub schema_known: i64,
    pub bytes: u64,
    pub sizes: OrderedMap<u64>,
    pub settings: OrderedMap<String>,
    pub tables: Vec<TableDocument>,
    pub events: EventsGrowthDocument,
    pub beads: GrowthDocument,
}

/// A table.
#[derive(Debug, Clone, Serialize)]
pub struct TableDocument {
    pub name: String,
    pub rows: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// How events grow.
#[derive(Debug, Clone, Serialize)]
pub struct EventsGrowthDocument {
    pub first: u64,
    pub last: u64,
    #[serde(flatten)]
    pub growth: GrowthDocument,
}

/// How something grows.
#[derive(Debug, Clone, Serialize)]
pub struct GrowthDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<UtcTime>,
    pub last_7_days: u64,
    pub last_30_days: u64,
    pub per_day_in_7_days: RawJson,
    pub per_day_in_30_days: RawJson,
}
