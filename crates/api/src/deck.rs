//! The views of a town at work: its head line, the board, runs and search. Lists are bounded.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    DaemonAbsenceDocument, MergeRequestDocument, ParkedDocument, RawJson, SpentDocument,
    UsageWindowDocument, UtcTime, WhyBeadDocument,
};

/// A page of a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ListDocument<T> {
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: u64,
    /// The `cursor` of the next page; left out on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The head line of a town.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TownHeadDocument {
    /// The name of its directory.
    pub name: String,
    pub version: String,
    /// The clock of the server.
    #[schema(value_type = String, format = DateTime)]
    pub now: UtcTime,
    /// The number of the last event.
    pub last_event: u64,
    pub daemon: TownDaemonDocument,
    /// The person who paused the scheduler, and when; left out if nothing is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<TownPauseDocument>,
    /// The most runs at once; null for no limit.
    pub cap: Option<u64>,
    /// How many runs have a slot.
    pub live: u64,
    /// How many beads wait for no other bead, as the board counts them.
    pub ready: u64,
    /// How many beads are scheduled and wait.
    pub scheduled: u64,
    /// How many scheduled beads wait only for a slot.
    pub scheduled_ready: u64,
    /// How many beads something holds, as the board counts them.
    pub blocked: u64,
    /// How many things need a person.
    pub inbox: u64,
    pub spent_24h: SpentDocument,
    pub budgets: Vec<BudgetUseDocument>,
    pub parked: Vec<ParkedDocument>,
    pub hosts: Vec<TownHostDocument>,
    /// The names of the rigs.
    pub rigs: Vec<String>,
    /// Everything that makes the town unhealthy; empty if nothing does.
    pub problems: Vec<TownProblemDocument>,
}

/// The daemon of a town on this machine.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TownDaemonDocument {
    pub running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Work that is ready while no daemon starts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absence: Option<DaemonAbsenceDocument>,
}

/// A pause, by whom and since when.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TownPauseDocument {
    pub by: String,
    #[schema(value_type = String, format = DateTime)]
    pub since: UtcTime,
}

/// A machine that works on a town.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TownHostDocument {
    pub name: String,
    /// `active`, `draining`, `away` or `gone`.
    #[schema(example = "active")]
    pub state: String,
    /// How long ago it was seen, by the clock of the store.
    pub seen_seconds_ago: u64,
}

/// Something that makes a town unhealthy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TownProblemDocument {
    /// `daemon`, `host`, `parked`, `budget`, or the code of the resource that is short: `memory`, `disk` or `load`.
    #[schema(example = "daemon")]
    pub code: String,
    pub text: String,
    /// A command that ends it, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The board: where beads stand on their way from waiting to landed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BoardDocument {
    pub lanes: Vec<BoardLaneDocument>,
}

/// A lane of the board, with its first beads.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BoardLaneDocument {
    /// `blocked`, `ready`, `running`, `review`, `queue` or `landed`.
    #[schema(example = "ready")]
    pub lane: String,
    pub total: u64,
    pub items: Vec<BoardCardDocument>,
}

/// A bead on the board.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BoardCardDocument {
    pub bead: String,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convoy: Option<CardConvoyDocument>,
    pub priority: i64,
    pub issue_type: String,
    /// Since when it stands in this lane, as far as that is known.
    #[schema(value_type = String, format = DateTime)]
    pub since: UtcTime,
    /// The first reason why it does not go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<CardReasonDocument>,
    /// The action that ends that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<CardRunDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<CardRequestDocument>,
}

/// The convoy of a bead.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CardConvoyDocument {
    pub id: String,
    pub title: String,
}

/// Why a bead does not go on.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CardReasonDocument {
    #[schema(example = "blocked")]
    pub code: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<UtcTime>,
}

/// The live run of a bead.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CardRunDocument {
    pub id: String,
    pub agent: String,
    pub state: String,
    /// Since when nothing was heard of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub silent_since: Option<UtcTime>,
}

/// The merge request of a bead.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CardRequestDocument {
    pub id: String,
    pub state: String,
    /// Its place in line, if it waits for its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The commit of the target that has its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed: Option<String>,
}

/// A run as lists of runs show it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunRowDocument {
    pub id: String,
    pub bead: String,
    pub title: String,
    pub rig: String,
    /// The polecat, or the agent that asked for the work.
    pub agent: String,
    /// The preset of its worker; empty for the command of the rig.
    pub runtime: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub account: String,
    pub host: String,
    pub executor: String,
    pub state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<RunStepDocument>,
    /// The last call of a tool, on one line; only of live runs on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_tool: Option<String>,
    /// The last thing that its agent said; only for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_words: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Dollars as text, so that no digit is lost; left out if nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// `reported` by its agent, `priced` by the table of prices, `mixed`, or `unpriced` if tokens have no price; left out if
    /// nothing was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "reported")]
    pub cost_source: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub started_at: UtcTime,
    /// When its worker took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub running_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<UtcTime>,
    /// Since when nothing was heard of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub silent_since: Option<UtcTime>,
    /// Why it ended, or what it waits for.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub branch: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub session: String,
}

/// How far a run is in its recipe.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunStepDocument {
    pub done: u64,
    pub total: u64,
    /// The title of the step that comes next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A bead with everything that its card shows.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BeadPageDocument {
    /// The bead as `bd show --json` prints it, with its dependents and comments.
    #[schema(value_type = Object)]
    pub bead: RawJson,
    pub why: WhyBeadDocument,
    /// Its last runs, the newest first.
    pub runs: Vec<RunRowDocument>,
    /// Its merge requests, the newest first.
    pub requests: Vec<MergeRequestDocument>,
}

/// Changes of a bead; a field that is left out stays.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BeadChangeDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// From 0, the most urgent, to 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// The `updated_at` of the bead that the caller has seen: if it was changed since, the answer is 409.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_updated_at: Option<String>,
}

/// How a bead is tried again.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BeadRetryDocument {
    /// Whether a backoff or cooldown ends at once.
    #[schema(required = false)]
    pub now: bool,
}

/// Where a bead is slung.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BeadSlingDocument {
    /// A rig, a polecat or an agent; by default the rig of the bead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// Why a bead is closed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BeadCloseDocument {
    pub reason: String,
}

/// Words to a worker, or the answer to a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WordsDocument {
    pub text: String,
}

/// A request body without fields.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct NothingDocument {}

/// Something that a search has found.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SearchHitDocument {
    /// `bead`, `run`, `convoy` or `merge-request`.
    #[schema(example = "bead")]
    pub kind: String,
    pub id: String,
    pub title: String,
    /// Its state in a word.
    pub state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    /// The part of an address of the page that shows it.
    #[schema(example = "beads/gt-abc")]
    pub url: String,
}

/// A budget and how much of it is used.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BudgetUseDocument {
    /// The setting that it is from.
    #[schema(example = "budget.day_cost")]
    pub name: String,
    /// The whole town, or the rig, account, bead or convoy.
    #[schema(example = "town")]
    pub scope: String,
    pub spent: String,
    /// The part that live runs have reserved and not used yet.
    pub held: String,
    pub limit: String,
    /// `dollars`, `tokens` or `runs`.
    #[schema(example = "dollars")]
    pub unit: String,
    /// The time that it is about, if it begins anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "day")]
    pub window: Option<String>,
    /// When some of it is free again, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub resets_at: Option<UtcTime>,
    /// Whether it is used up.
    pub is_spent: bool,
}

/// A new limit of a budget.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BudgetLimitDocument {
    /// As `gt config set` takes it; 0 takes the budget away.
    #[schema(example = "60")]
    pub limit: String,
    /// The limit that the person saw; if there is another one meanwhile, nothing is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "40")]
    pub if_limit: Option<String>,
}

/// An account, how much of it is in use, and what its service told.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AccountUseDocument {
    pub name: String,
    /// `account`, or `runtime` for what is used without an account.
    #[schema(example = "account")]
    pub kind: String,
    /// How many live runs use it.
    pub runs: u64,
    /// The most live runs; left out for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<u64>,
    /// `open` or `parked`.
    #[schema(example = "open")]
    pub state: String,
    /// Why it is parked.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub parked_until: Option<UtcTime>,
    pub windows: Vec<UsageWindowDocument>,
}

/// Spending hour by hour.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BurnDocument {
    pub hours: Vec<BurnHourDocument>,
}

/// Spending in an hour.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BurnHourDocument {
    #[schema(value_type = String, format = DateTime)]
    pub from: UtcTime,
    /// Dollars as text.
    pub cost: String,
    pub tokens: u64,
    /// The tokens whose cost is unknown.
    pub unpriced_tokens: u64,
}

/// A check that passed after it had failed on the same tree.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FlakyUseDocument {
    pub rig: String,
    pub check: String,
    /// How often that was seen lately.
    pub flips: u64,
    #[schema(value_type = String, format = DateTime)]
    pub last_at: UtcTime,
    /// The commit that it was last seen with.
    pub commit: String,
}

/// Work that has landed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LandingDocument {
    pub request: String,
    pub bead: String,
    pub title: String,
    pub rig: String,
    pub target: String,
    /// The commit of the target that has the work.
    pub commit: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: UtcTime,
    /// The checks that it passed together with its batch.
    pub checks: Vec<String>,
    /// How many requests landed together.
    pub batch: u64,
}
