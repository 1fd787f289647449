//! A town, its rigs and its state.

use gt_core::Rig;
use gt_core::cost::Spent;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    BudgetDocument, ConvoyOverviewDocument, DaemonAbsenceDocument, DeckDocument, EventDocument,
    InboxItemDocument, ListedRunDocument, OrderedMap, ParkedDocument, UtcTime,
};

/// A town that was installed.
#[derive(Debug, Clone, Serialize)]
pub struct InstalledDocument {
    pub root: String,
    pub created: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<bool>,
}

/// The result of `gt init`.
#[derive(Debug, Clone, Serialize)]
pub struct InitDocument {
    pub town: InstalledDocument,
    pub rig: String,
    pub repository: String,
    pub agent: String,
    pub max_polecats: String,
    pub checks: Vec<String>,
}

/// A rig.
#[derive(Debug, Clone, Serialize)]
pub struct RigDocument {
    pub name: String,
    pub uid: String,
    pub title: String,
    pub prefix: String,
    pub path: String,
    pub repo: String,
    pub default_branch: String,
    pub executor: String,
    pub state: String,
    pub created_at: UtcTime,
    pub updated_at: UtcTime,
    /// How many beads have each status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beads: Option<OrderedMap<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<u64>,
}

/// The state of a town.
#[derive(Debug, Clone, Serialize)]
pub struct TownStatusDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_absence: Option<DaemonAbsenceDocument>,
    pub town: String,
    pub deck: DeckDocument,
    pub beads: OrderedMap<i64>,
    pub ready: u64,
    pub waiting: i64,
    pub active: i64,
    pub notices: NoticeCountsDocument,
    pub scheduler: TownSchedulerDocument,
    pub needs_you: Vec<InboxItemDocument>,
    pub running: Vec<ListedRunDocument>,
    pub spent_24h: SpentDocument,
    pub convoys: Vec<ConvoyOverviewDocument>,
    pub rigs: Vec<RigCountsDocument>,
    /// The hosts of the town, if there is more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<FleetHostDocument>,
    pub recent_events: Vec<EventDocument>,
}

/// Spending in a time. The cost is in dollars, as far as it is known.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SpentDocument {
    pub tokens: u64,
    pub cost: String,
    /// The tokens whose cost is unknown.
    pub unpriced: u64,
}

impl SpentDocument {
    /// The sum, if there is any.
    pub fn of(spent: &Spent) -> Option<Self> {
        (!spent.is_nothing()).then(|| spent.into())
    }
}

impl From<&Spent> for SpentDocument {
    fn from(spent: &Spent) -> Self {
        let Spent { tokens, cost, unpriced } = *spent;
        Self { tokens, cost: cost.to_string(), unpriced }
    }
}

/// Notices that have not arrived.
#[derive(Debug, Clone, Serialize)]
pub struct NoticeCountsDocument {
    pub waiting: u64,
    pub given_up: u64,
}

/// The scheduler of a town.
#[derive(Debug, Clone, Serialize)]
pub struct TownSchedulerDocument {
    pub paused: bool,
    pub queued_total: u64,
    pub queued_ready: u64,
    pub active_polecats: u64,
    pub parked: Vec<ParkedDocument>,
    pub budgets: Vec<BudgetDocument>,
}

/// The beads of a rig in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct RigCountsDocument {
    pub name: String,
    pub prefix: String,
    pub state: String,
    pub beads: OrderedMap<i64>,
}

/// A check of `gt doctor`.
#[derive(Debug, Clone, Serialize)]
pub struct CheckDocument {
    pub check: String,
    pub grade: String,
    pub detail: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

/// The host.
#[derive(Debug, Clone, Serialize)]
pub struct HostDocument {
    pub host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former_path: Option<String>,
    /// The host as the store knows it, if the store is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetHostDocument>,
}

/// A host of a town.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FleetHostDocument {
    pub id: String,
    pub name: String,
    /// Whether it is the host that answers.
    pub here: bool,
    /// `active`, `draining`, `away`, `gone` or `removed`.
    pub state: String,
    /// Its directory.
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    pub version: String,
    pub labels: Vec<String>,
    /// The most live runs on it; null is no limit.
    pub cap: Option<u32>,
    /// The rigs that it works on; none is all.
    pub rigs: Vec<String>,
    /// The runtimes that it can start.
    pub runtimes: Vec<String>,
    pub memory_mb: u64,
    pub memory_free_mb: u64,
    /// The load average of a minute.
    pub load: f64,
    pub cores: u32,
    /// Whether its daemon is at work.
    pub daemon: bool,
    /// How long ago it renewed its lease, by the clock of the store.
    pub seen_seconds_ago: u64,
    /// The runs that are live on it, as far as the store knows.
    pub runs: Vec<String>,
    /// The runs that were declared lost by this command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// A host whose runs were taken over.
#[derive(Debug, Clone, Serialize)]
pub struct AdoptedHostDocument {
    pub adopted: String,
    pub runs: u64,
}

impl From<&Rig> for RigDocument {
    fn from(rig: &Rig) -> Self {
        Self {
            name: rig.slug.to_string(),
            uid: rig.uid.to_string(),
            title: rig.title.clone(),
            prefix: rig.prefix.to_string(),
            path: rig.path.clone(),
            repo: rig.repo.clone(),
            default_branch: rig.default_branch.clone(),
            executor: rig.executor.as_str().to_owned(),
            state: rig.state.as_str().to_owned(),
            created_at: rig.created_at.into(),
            updated_at: rig.updated_at.into(),
            beads: None,
            queued: None,
            ready: None,
            running: None,
        }
    }
}
