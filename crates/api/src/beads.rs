//! The answers of commands about beads, besides the records.

use serde::Serialize;

use crate::{Clearable, MoleculeAdvanceDocument, OrderedMap, RawJson, SchemaDocument};

/// A line of a batch.
#[derive(Debug, Clone, Serialize)]
pub struct BatchLineDocument {
    pub line: u64,
    pub command: String,
    pub ids: Vec<String>,
}

/// Beads that were closed.
#[derive(Debug, Clone, Serialize)]
pub struct ClosedDocument {
    pub closed: Vec<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unblocked: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Clearable::is_kept")]
    pub claimed: Clearable<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#continue: Option<MoleculeAdvanceDocument>,
}

/// A name and its value.
#[derive(Debug, Clone, Serialize)]
pub struct PairDocument {
    pub key: String,
    pub value: String,
}

/// A value that was looked for.
#[derive(Debug, Clone, Serialize)]
pub struct FoundPairDocument {
    pub key: String,
    pub found: bool,
    pub value: String,
}

/// A value that was removed.
#[derive(Debug, Clone, Serialize)]
pub struct DeletedPairDocument {
    pub key: String,
    pub deleted: bool,
}

/// How many beads there are.
#[derive(Debug, Clone, Serialize)]
pub struct CountDocument {
    pub count: u64,
}

/// How many beads there are, by group.
#[derive(Debug, Clone, Serialize)]
pub struct GroupedCountDocument {
    pub total: u64,
    pub groups: Vec<GroupDocument>,
}

/// A group of beads.
#[derive(Debug, Clone, Serialize)]
pub struct GroupDocument {
    pub group: String,
    pub count: i64,
}

/// The ids of beads, by their keys in a plan.
#[derive(Debug, Clone, Serialize)]
pub struct IdsByKeyDocument {
    pub ids: OrderedMap<String>,
}

/// Beads that were deleted, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct DeletionDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<DeletedIds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_delete: Option<Vec<String>>,
    pub deleted_count: u64,
    pub dependencies_removed: u64,
    pub labels_removed: u64,
    pub comments_removed: u64,
    pub orphaned: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_cancelled: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_cancel_runs: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_requests_cancelled: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_cancel_merge_requests: Option<Vec<String>>,
}

/// The beads that were deleted; one is named alone, as scripts expect it.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum DeletedIds {
    One(String),
    Several(Vec<String>),
}

/// An edge that was added or removed.
#[derive(Debug, Clone, Serialize)]
pub struct EdgeDocument {
    pub status: String,
    pub issue_id: String,
    pub depends_on_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

/// An edge that was added from its other end.
#[derive(Debug, Clone, Serialize)]
pub struct BlockingEdgeDocument {
    pub status: String,
    pub blocker_id: String,
    pub blocked_id: String,
    pub r#type: String,
}

/// A formula in a list.
#[derive(Debug, Clone, Serialize)]
pub struct FormulaDocument {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vars: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub source: String,
    pub tier: String,
    pub shadowed: bool,
}

/// Why a formula cannot be used.
#[derive(Debug, Clone, Serialize)]
pub struct FormulaProblemsDocument {
    pub error: String,
    pub problems: Vec<FormulaProblemDocument>,
}

/// Something that is wrong with a formula.
#[derive(Debug, Clone, Serialize)]
pub struct FormulaProblemDocument {
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    pub message: String,
}

/// The result of an import.
#[derive(Debug, Clone, Serialize)]
pub struct ImportDocument {
    pub dry_run: bool,
    pub source: String,
    pub files: Vec<String>,
    pub created: u64,
    pub updated: u64,
    pub unchanged: u64,
    pub skipped: u64,
    pub mended: u64,
    pub memories: u64,
    pub old_queue_state: u64,
    pub kept_running: u64,
    pub skipped_details: Vec<ImportRemarkDocument>,
    pub repaired: Vec<ImportRemarkDocument>,
    pub rigs: Vec<String>,
    pub rigs_unchanged: u64,
    pub settings: OrderedMap<String>,
    pub kept: OrderedMap<String>,
    pub settings_unchanged: u64,
    pub kept_running_details: Vec<String>,
    pub conflicts: Vec<String>,
    pub left_out: Vec<String>,
    pub remarks: Vec<String>,
}

/// Something about a record of an import.
#[derive(Debug, Clone, Serialize)]
pub struct ImportRemarkDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub reason: String,
}

/// Where the beads are.
#[derive(Debug, Clone, Serialize)]
pub struct InfoDocument {
    pub town: String,
    pub database_path: String,
    pub issue_count: i64,
    pub actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<SchemaDocument>,
}

/// A label and how many beads have it.
#[derive(Debug, Clone, Serialize)]
pub struct LabelCountDocument {
    pub label: String,
    pub count: i64,
}

/// A label that was added or removed.
#[derive(Debug, Clone, Serialize)]
pub struct LabelChangeDocument {
    pub status: String,
    pub issue_id: String,
    pub label: String,
}

/// A bead that lacks something.
#[derive(Debug, Clone, Serialize)]
pub struct LintDocument {
    pub id: String,
    pub title: String,
    pub r#type: String,
    pub missing: Vec<String>,
    pub warnings: u64,
}

/// The JSONL file and the store after they were brought together.
#[derive(Debug, Clone, Serialize)]
pub struct SyncDocument {
    /// The file.
    pub path: String,
    /// Beads of the file that were new.
    pub created: u64,
    /// Beads of the file that were newer than the store.
    pub updated: u64,
    /// Beads that were deleted in the store, because the file says so.
    pub deleted: u64,
    /// Beads of the file that were older than the store, which kept its own.
    pub kept: u64,
    /// Whether the file was written.
    pub written: bool,
}

/// A sentence.
#[derive(Debug, Clone, Serialize)]
pub struct SentenceDocument {
    pub message: String,
}

/// The facts that an agent gets at its beginning.
#[derive(Debug, Clone, Serialize)]
pub struct PrimerDocument {
    pub actor: String,
    pub town: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    pub beads: PrimerCountsDocument,
    pub claimed: Vec<PrimerBeadDocument>,
    pub ready: Vec<PrimerBeadDocument>,
}

/// Beads in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct PrimerCountsDocument {
    pub ready: u64,
    pub in_progress: u64,
    pub waiting: u64,
}

/// A bead in short.
#[derive(Debug, Clone, Serialize)]
pub struct PrimerBeadDocument {
    pub id: String,
    pub title: String,
    pub status: String,
    pub priority: i64,
    pub issue_type: String,
}

/// A query as it was understood.
#[derive(Debug, Clone, Serialize)]
pub struct QueryDocument {
    pub expression: String,
}

/// Ready and waiting beads in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct ReadySummaryDocument {
    pub total_ready: u64,
    pub total_blocked: u64,
    pub cycle_count: u64,
}

/// The beads of a town in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct StatisticsDocument {
    pub summary: SummaryDocument,
}

/// Beads in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct SummaryDocument {
    #[serde(flatten)]
    pub counts: OrderedMap<i64>,
    pub average_lead_time_hours: RawJson,
}

/// Versions.
#[derive(Debug, Clone, Serialize)]
pub struct VersionDocument {
    pub version: String,
    pub gt_version: String,
}
