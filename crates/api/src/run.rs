//! Runs, and what their workers do.

use gt_core::Run;
use gt_core::decide::WaitReason;
use gt_core::schedule::StepProgress;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{CountedUsageDocument, MessageDocument, NeedDocument, RawJson, UtcTime};

/// A run, as every command shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FullRunDocument {
    pub id: String,
    pub uid: String,
    pub bead: String,
    pub epoch: u64,
    pub state: String,
    pub rig: String,
    pub agent: String,
    pub executor: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub runtime: String,
    pub host: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_mb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// The limit of its own that it was over: `time`, `cost` or `tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_limit: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub formula: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UtcTime,
    pub created_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub running_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub ended_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub session: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub tree: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub branch: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub base_branch: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub accepted_commit: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub landed_commit: String,
}

/// A run in a list.
#[derive(Debug, Clone, Serialize)]
pub struct ListedRunDocument {
    #[serde(flatten)]
    pub run: FullRunDocument,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<StepProgressDocument>,
    /// Why it is not known whether it lives: its host is away or gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// How many steps are done.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StepProgressDocument {
    pub done: u64,
    pub total: u64,
}

/// Everything about a run.
#[derive(Debug, Clone, Serialize)]
pub struct ShownRunDocument {
    #[serde(flatten)]
    pub run: FullRunDocument,
    pub title: String,
    /// Null if that cannot be seen from this host.
    pub alive: Option<bool>,
    pub log: String,
    /// The last lines of the setup command of its tree, if it failed because of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup_output: Option<String>,
    pub needs_you: Vec<NeedDocument>,
    /// Its usage, by session and model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<CountedUsageDocument>,
    /// The steps as they were when the run began.
    pub steps: RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<StepProgressDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_done: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<RunContextDocument>,
}

/// The context that a run came from.
#[derive(Debug, Clone, Serialize)]
pub struct RunContextDocument {
    pub id: String,
    pub origin: String,
    pub enqueued_by: String,
    pub enqueued_at: UtcTime,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub args: String,
}

/// A run that was cancelled.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CancelledDocument {
    pub id: String,
    pub bead: String,
    pub state: String,
    pub already_ended: bool,
    /// The host on which its processes may still be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// The output of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RunLogDocument {
    pub id: String,
    pub state: String,
    pub path: String,
    pub bytes: u64,
    pub is_text: bool,
    pub output: String,
}

/// A line of the output of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RunLineDocument {
    pub line: String,
}

/// The end of the output of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RunStateDocument {
    pub state: String,
}

/// The steps of a run.
#[derive(Debug, Clone, Serialize)]
pub struct StepsDocument {
    pub run: String,
    pub progress: StepProgressDocument,
    pub steps: Vec<StepDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A step of a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StepDocument {
    pub id: String,
    pub name: String,
    pub title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub acceptance_criteria: String,
    pub done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub done_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_by: Option<String>,
    pub waits_for: Vec<String>,
}

/// Steps that were marked as done.
#[derive(Debug, Clone, Serialize)]
pub struct StepsDoneDocument {
    pub run: String,
    pub done: Vec<String>,
    pub already_done: Vec<String>,
    pub progress: StepProgressDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    pub fresh_session: bool,
}

/// The end of a run, as its worker says it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DoneDocument {
    pub run: String,
    pub status: String,
    /// `unchanged`, `landed`, `kept`, `merging`, `saved` or `left`.
    pub work: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The merge request, if it is in the merge queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// A bead that was taken out of the queue.
#[derive(Debug, Clone, Serialize)]
pub struct UnslungDocument {
    pub bead: String,
    pub was: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<CancelledDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// A bead and the run that has it.
#[derive(Debug, Clone, Serialize)]
pub struct HookedDocument {
    pub bead: HookedBeadDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<FullRunDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<StepProgressDocument>,
    pub unread: u64,
}

/// A bead on a hook.
#[derive(Debug, Clone, Serialize)]
pub struct HookedBeadDocument {
    pub id: String,
    pub title: String,
    pub status: String,
    pub priority: i64,
}

/// A run that goes on in a fresh session.
#[derive(Debug, Clone, Serialize)]
pub struct HandoffDocument {
    pub run: String,
    pub note: Option<MessageDocument>,
}

/// The overview for a person, or for an agent that is no worker.
#[derive(Debug, Clone, Serialize)]
pub struct OverviewDocument {
    pub who: String,
    pub actor: String,
    pub addresses: Vec<String>,
    pub town: String,
    pub scheduler: QueueCountsDocument,
    pub running: Vec<ListedRunDocument>,
    pub needs_you: Vec<MessageDocument>,
    pub unread: Vec<UnreadDocument>,
}

/// The queue in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct QueueCountsDocument {
    pub paused: bool,
    pub queued_total: u64,
    pub queued_ready: u64,
    pub active_polecats: u64,
}

/// A message that was not read yet.
#[derive(Debug, Clone, Serialize)]
pub struct UnreadDocument {
    pub id: String,
    pub from: String,
    pub subject: String,
}

/// The briefing of a worker.
#[derive(Debug, Clone, Serialize)]
pub struct BriefingDocument {
    pub who: String,
    pub run: FullRunDocument,
    pub bead: BriefedBeadDocument,
    pub instructions: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<EarlierRunDocument>,
    pub older_comments: u64,
    pub comments: Vec<RawJson>,
    pub progress: StepProgressDocument,
    pub steps: Vec<StepDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    pub messages: Vec<MessageDocument>,
    pub rules: Vec<String>,
    pub finish: Vec<EndingDocument>,
}

/// The bead of a worker.
#[derive(Debug, Clone, Serialize)]
pub struct BriefedBeadDocument {
    pub id: String,
    pub title: String,
    pub status: String,
    pub priority: i64,
    pub issue_type: String,
    pub description: String,
    pub design: String,
    pub acceptance_criteria: String,
    pub notes: String,
}

/// The run before, and the steps that it has done.
#[derive(Debug, Clone, Serialize)]
pub struct EarlierRunDocument {
    #[serde(flatten)]
    pub run: FullRunDocument,
    pub steps_done: Vec<String>,
}

/// A way to finish.
#[derive(Debug, Clone, Serialize)]
pub struct EndingDocument {
    pub command: String,
    pub when: String,
}

/// Work that was waited for.
#[derive(Debug, Clone, Serialize)]
pub struct WaitedDocument {
    pub ok: bool,
    pub timed_out: bool,
    pub beads: Vec<WaitedBeadDocument>,
}

/// A bead that was waited for.
#[derive(Debug, Clone, Serialize)]
pub struct WaitedBeadDocument {
    pub id: String,
    pub title: String,
    /// `done`, `going`, `failed` or `stuck`.
    pub result: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Vec<ReasonTextDocument>>,
}

/// Why a bead waits.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReasonTextDocument {
    pub code: String,
    pub text: String,
}

impl From<&Run> for FullRunDocument {
    fn from(run: &Run) -> Self {
        Self {
            id: run.id.to_string(),
            uid: run.uid.to_string(),
            bead: run.id.bead.to_string(),
            epoch: run.id.epoch.into(),
            state: run.state.as_str().to_owned(),
            rig: run.rig.to_string(),
            agent: run.agent.clone(),
            executor: run.executor.as_str().to_owned(),
            runtime: run.runtime.clone(),
            host: run.host.clone(),
            account: run.account.clone(),
            peak_memory_mb: run.usage.peak_memory_mb.map(Into::into),
            tokens: run.usage.tokens,
            cost: run.usage.cost.map(|cost| cost.to_string()),
            over_limit: run.over_limit.map(|limit| limit.as_str().to_owned()),
            formula: run.formula.clone(),
            created_at: run.created_at.into(),
            created_by: run.created_by.clone(),
            running_at: run.running_at.map(UtcTime),
            ended_at: run.ended_at.map(UtcTime),
            ended_by: run.ended_by.clone(),
            exit_code: run.exit_code.map(Into::into),
            exit_signal: run.exit_signal.map(Into::into),
            reason: run.explanation(),
            session: run.workplace.session.clone(),
            tree: run.workplace.tree.clone(),
            branch: run.workplace.branch.clone(),
            base_branch: run.workplace.base.clone(),
            accepted_commit: run.landing.accepted.clone(),
            landed_commit: run.landing.commit.clone(),
        }
    }
}

impl From<StepProgress> for StepProgressDocument {
    fn from(progress: StepProgress) -> Self {
        Self { done: progress.done as u64, total: progress.total as u64 }
    }
}

impl From<&WaitReason> for ReasonTextDocument {
    fn from(reason: &WaitReason) -> Self {
        Self { code: reason.code().to_owned(), text: reason.to_string() }
    }
}
