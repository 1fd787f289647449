//! The scheduler and its queue.

use gt_core::decide::{Budget, BudgetScope, WaitReason};
use gt_core::schedule::Money;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{OrderedMap, UtcTime};

/// Why a bead does not start.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WaitReasonDocument {
    pub code: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<UtcTime>,
}

/// Work that waits for a daemon that does not run.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DaemonAbsenceDocument {
    pub text: String,
    /// How many beads are ready.
    pub ready: u64,
    /// How many merge requests wait to land.
    pub merge_requests: u64,
    /// How many pull requests are open, whose merge would not be noticed.
    pub pull_requests: u64,
    pub remedy: String,
}

/// A scheduled bead.
#[derive(Debug, Clone, Serialize)]
pub struct QueuedDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_absence: Option<DaemonAbsenceDocument>,
    pub id: String,
    pub title: String,
    pub status: String,
    pub target_rig: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
    pub context: String,
    pub priority: i64,
    pub enqueued_at: UtcTime,
    pub enqueued_by: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch_failures: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
    /// The text of the first reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub reasons: Vec<WaitReasonDocument>,
}

/// The scheduler.
#[derive(Debug, Clone, Serialize)]
pub struct SchedulerStatusDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_absence: Option<DaemonAbsenceDocument>,
    pub mode: String,
    pub paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_dispatch_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_dispatch_count: Option<u64>,
    pub queued_total: u64,
    pub queued_ready: u64,
    pub active_polecats: u64,
    pub max_polecats: i64,
    pub queue_max_polecats: u64,
    pub queue_enabled: bool,
    /// Null for no limit.
    pub capacity: Option<u64>,
    pub free_slots: Option<u64>,
    pub parked: Vec<ParkedDocument>,
    pub budgets: Vec<BudgetDocument>,
    pub reasons: Vec<WaitReasonDocument>,
    pub rigs: Vec<RigQueueDocument>,
    pub beads: Vec<QueuedDocument>,
}

/// A runtime or account that gets no work for a while.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct ParkedDocument {
    pub kind: String,
    pub name: String,
    pub limit: bool,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub more_at: Option<UtcTime>,
}

/// A budget and how much of it is used.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BudgetDocument {
    pub setting: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bead: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convoy: Option<String>,
    pub limit: AmountDocument,
    pub used: AmountDocument,
    /// The part that live runs have reserved and not used yet.
    pub held: AmountDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<UtcTime>,
}

/// A number of things, or money.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum AmountDocument {
    Count(u64),
    Money(String),
}

/// The queue of a rig.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RigQueueDocument {
    pub name: String,
    pub state: String,
    pub queued: u64,
    pub ready: u64,
    pub running: u64,
    pub max_polecats: Option<u64>,
}

/// The result of a dispatch cycle.
#[derive(Debug, Clone, Serialize)]
pub struct DispatchedDocument {
    pub dry_run: bool,
    pub paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<UtcTime>,
    pub queued_total: u64,
    pub queued_ready: u64,
    pub active_polecats: u64,
    pub capacity: Option<u64>,
    pub free_slots: Option<u64>,
    pub skipped: u64,
    pub gated: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub dispatched: Vec<StartedDocument>,
    pub errors: Vec<BeadErrorDocument>,
    pub lost: Vec<String>,
    pub waiting_for_origin: Vec<AwaitingRunDocument>,
    pub recovery_errors: Vec<RunErrorDocument>,
}

/// A bead that was started.
#[derive(Debug, Clone, Serialize)]
pub struct StartedDocument {
    pub id: String,
    pub title: String,
    pub target_rig: String,
    pub context: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A bead that could not be started.
#[derive(Debug, Clone, Serialize)]
pub struct BeadErrorDocument {
    pub id: String,
    pub error: String,
}

/// A run whose work waits for the origin.
#[derive(Debug, Clone, Serialize)]
pub struct AwaitingRunDocument {
    pub run: String,
    pub since: UtcTime,
    pub why: String,
}

/// A run that could not be recovered.
#[derive(Debug, Clone, Serialize)]
pub struct RunErrorDocument {
    pub run: String,
    pub error: String,
}

/// The result of draining a queue.
#[derive(Debug, Clone, Serialize)]
pub struct WorkedOffDocument {
    pub paused: bool,
    pub started: u64,
    pub done: u64,
    pub failed: Vec<String>,
    pub queued_total: u64,
    pub queued_ready: u64,
    pub active_polecats: u64,
}

/// Contexts that were made of the state of an older queue.
#[derive(Debug, Clone, Serialize)]
pub struct AdoptionDocument {
    pub adopted: Vec<AdoptedDocument>,
    pub quarantined: Vec<QuarantinedDocument>,
    pub cleaned: Vec<CleanedDocument>,
    pub dry_run: bool,
}

/// A bead that is scheduled now.
#[derive(Debug, Clone, Serialize)]
pub struct AdoptedDocument {
    pub id: String,
    pub context: String,
    pub target_rig: String,
    pub dispatch_failures: u64,
    pub gated: bool,
}

/// A bead that was set aside.
#[derive(Debug, Clone, Serialize)]
pub struct QuarantinedDocument {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    pub reason: String,
    pub why: String,
}

/// A bead whose old state was only removed.
#[derive(Debug, Clone, Serialize)]
pub struct CleanedDocument {
    pub id: String,
    pub why: String,
}

/// Whether the scheduler is paused.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PauseDocument {
    pub changed: bool,
    pub paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub paused_at: Option<UtcTime>,
}

/// A scheduler that starts nothing and waits for what runs.
#[derive(Debug, Clone, Serialize)]
pub struct DrainDocument {
    pub drained: bool,
    pub paused: bool,
    pub paused_by: String,
    pub paused_at: UtcTime,
    pub running: Vec<String>,
}

/// Beads that were taken out of the queue.
#[derive(Debug, Clone, Serialize)]
pub struct ClearedDocument {
    pub cleared: u64,
    pub beads: Vec<String>,
    pub starting: Vec<String>,
}

/// Beads that are tried again.
#[derive(Debug, Clone, Serialize)]
pub struct RetryDocument {
    pub retried: Vec<RetriedDocument>,
    pub errors: Vec<String>,
}

/// A bead that is tried again.
#[derive(Debug, Clone, Serialize)]
pub struct RetriedDocument {
    pub id: String,
    /// Absent with `context`, if the bead was never scheduled and is only open again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_rig: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    pub reopened: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

/// The result of slinging beads.
#[derive(Debug, Clone, Serialize)]
pub struct SlingDocument {
    pub mode: String,
    pub dry_run: bool,
    pub paused: bool,
    /// The epic, molecule or convoy that was slung, under its kind.
    #[serde(flatten)]
    pub container: OrderedMap<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convoy: Option<String>,
    pub entries: Vec<SlingEntryDocument>,
}

/// The result for a slung bead.
#[derive(Debug, Clone, Serialize)]
pub struct SlingEntryDocument {
    pub id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_rig: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consequence: Option<String>,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub reasons: Vec<WaitReasonDocument>,
}

/// The result of feeding stranded convoys.
#[derive(Debug, Clone, Serialize)]
pub struct FeedDocument {
    pub fed: u64,
    pub closed: u64,
    pub skipped: u64,
    pub needs_attention: u64,
    pub errors: u64,
    pub details: Vec<FeedDetailDocument>,
}

/// The result for a stranded convoy.
#[derive(Debug, Clone, Serialize)]
pub struct FeedDetailDocument {
    pub convoy_id: String,
    pub action: String,
    pub message: String,
}

/// Hooks without a run.
#[derive(Debug, Clone, Serialize)]
pub struct StaleHooksDocument {
    pub dry_run: bool,
    pub released: Vec<ReleasedHookDocument>,
    pub kept: Vec<KeptHookDocument>,
}

/// A hook that was released.
#[derive(Debug, Clone, Serialize)]
pub struct ReleasedHookDocument {
    pub id: String,
    pub title: String,
    pub assignee: String,
    pub status: String,
    pub idle_seconds: u64,
}

/// A hook that was kept.
#[derive(Debug, Clone, Serialize)]
pub struct KeptHookDocument {
    pub id: String,
    pub code: String,
    pub reason: String,
}

/// The result for a bead that was dispatched again.
#[derive(Debug, Clone, Serialize)]
pub struct RedispatchDocument {
    pub bead: String,
    pub action: String,
    pub message: String,
}

/// A runtime or an account by its name.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ParkedNameDocument {
    /// `runtime` or `account`.
    #[schema(example = "runtime")]
    pub kind: String,
    #[schema(example = "claude")]
    pub name: String,
}

/// A runtime or account that gets work again.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ResumedDocument {
    pub kind: String,
    pub name: String,
    pub changed: bool,
}

impl From<&WaitReason> for WaitReasonDocument {
    fn from(reason: &WaitReason) -> Self {
        Self {
            code: reason.code().to_owned(),
            text: reason.to_string(),
            until: reason.until().map(UtcTime),
        }
    }
}

impl From<&Budget> for BudgetDocument {
    fn from(budget: &Budget) -> Self {
        let amount = |amount: u64| {
            if budget.set.kind.is_money() {
                AmountDocument::Money(Money(amount).to_string())
            } else {
                AmountDocument::Count(amount)
            }
        };
        let of = |is_meant: fn(&BudgetScope) -> bool| {
            budget.set.scope.one_of_many().filter(|_| is_meant(&budget.set.scope))
        };
        let rig = match &budget.set.scope {
            BudgetScope::Rig(rig) => Some(rig.to_string()),
            _ => None,
        };
        Self {
            setting: if budget.set.scope.is_work() {
                budget.set.setting()
            } else {
                budget.set.kind.setting().to_owned()
            },
            rig,
            account: of(|scope| matches!(scope, BudgetScope::Account(_))),
            bead: of(|scope| matches!(scope, BudgetScope::Bead(_))),
            convoy: of(|scope| matches!(scope, BudgetScope::Convoy(_))),
            limit: amount(budget.set.limit),
            used: amount(budget.used),
            held: amount(budget.held),
            until: budget.until.filter(|_| budget.is_spent()).map(UtcTime),
        }
    }
}
