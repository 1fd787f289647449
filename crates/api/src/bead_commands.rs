//! The answers of commands that agents and tools around beads call.

use serde::Serialize;

use crate::{OrderedMap, RawJson};

/// An epic and how far it is.
#[derive(Debug, Clone, Serialize)]
pub struct EpicProgressDocument {
    pub epic: RawJson,
    pub total_children: u64,
    pub closed_children: u64,
    pub eligible_for_close: bool,
}

/// Epics that were closed because their parts are.
#[derive(Debug, Clone, Serialize)]
pub struct ClosedEpicsDocument {
    pub closed: Vec<String>,
    pub count: u64,
    pub reason: String,
}

/// A gate that waits for a workflow run, and the run that was found for it.
#[derive(Debug, Clone, Serialize)]
pub struct DiscoveredRunDocument {
    pub gate_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    pub dry_run: bool,
}

/// A formula that was made of beads.
#[derive(Debug, Clone, Serialize)]
pub struct DistilledFormulaDocument {
    pub formula_name: String,
    /// Empty after a dry run.
    pub formula_path: String,
    pub steps: u64,
    pub variables: Vec<String>,
}

/// A memory that was kept.
#[derive(Debug, Clone, Serialize)]
pub struct KeptMemoryDocument {
    pub key: String,
    pub value: String,
    pub action: String,
}

/// Where the beads are, for tools that look for a directory of them.
#[derive(Debug, Clone, Serialize)]
pub struct LocationDocument {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    pub database_path: String,
}

/// The store and the repository that a command works on.
#[derive(Debug, Clone, Serialize)]
pub struct WorkspaceDocument {
    pub beads_dir: String,
    pub repo_root: String,
    pub is_redirected: bool,
    pub is_worktree: bool,
    pub backend: String,
    /// Always empty: there is no Dolt. Tools expect the key.
    pub dolt_mode: String,
    pub database: String,
    pub project_id: String,
    pub role: String,
    pub bd_version: String,
}

/// A bead that was closed as a duplicate.
#[derive(Debug, Clone, Serialize)]
pub struct MarkedDuplicateDocument {
    pub duplicate: String,
    pub canonical: String,
    pub status: String,
}

/// A bead that was closed because another takes its place.
#[derive(Debug, Clone, Serialize)]
pub struct SupersededDocument {
    pub superseded: String,
    pub replacement: String,
    pub status: String,
}

/// Beads that say the same.
#[derive(Debug, Clone, Serialize)]
pub struct DuplicatesDocument {
    pub duplicate_groups: u64,
    pub groups: Vec<DuplicateGroupDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_results: Option<Vec<MarkedDuplicateDocument>>,
}

/// One group of beads that say the same.
#[derive(Debug, Clone, Serialize)]
pub struct DuplicateGroupDocument {
    pub title: String,
    pub issues: Vec<DuplicateIssueDocument>,
    pub suggested_target: String,
    pub suggested_sources: Vec<String>,
}

/// A bead in a group of duplicates.
#[derive(Debug, Clone, Serialize)]
pub struct DuplicateIssueDocument {
    pub id: String,
    pub title: String,
    pub status: String,
    pub priority: i64,
    pub dependents: u64,
    pub is_merge_target: bool,
}

/// Two beads that are, or are no longer, related.
#[derive(Debug, Clone, Serialize)]
pub struct RelationDocument {
    pub id1: String,
    pub id2: String,
    pub related: bool,
}

/// That the store answers.
#[derive(Debug, Clone, Serialize)]
pub struct PingDocument {
    pub status: String,
    pub database_path: String,
    pub version: String,
}

/// The types that a bead can have.
#[derive(Debug, Clone, Serialize)]
pub struct TypesDocument {
    pub core_types: Vec<NamedDocument>,
    pub custom_types: Vec<String>,
}

/// Something with a name and a description.
#[derive(Debug, Clone, Serialize)]
pub struct NamedDocument {
    pub name: String,
    pub description: String,
}

/// The statuses that a bead can have.
#[derive(Debug, Clone, Serialize)]
pub struct StatusesDocument {
    pub built_in_statuses: Vec<StatusDocument>,
    pub custom_statuses: Vec<StatusDocument>,
}

/// A status and its category.
#[derive(Debug, Clone, Serialize)]
pub struct StatusDocument {
    pub name: String,
    pub category: String,
}

/// The answer of a hook of a coding agent at the start of a session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionHookDocument {
    pub hook_specific_output: SessionContextDocument,
}

/// Text for the context of an agent.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionContextDocument {
    pub hook_event_name: String,
    pub additional_context: String,
}

/// The files that `bd setup` looks after.
#[derive(Debug, Clone, Serialize)]
pub struct SetupDocument {
    pub agent: String,
    pub installed: bool,
    pub files: Vec<String>,
}

/// The main fields of a bead at some time.
#[derive(Debug, Clone, Serialize)]
pub struct PastBeadDocument {
    pub id: String,
    pub title: String,
    pub status: String,
    pub priority: i64,
    pub issue_type: String,
    pub assignee: String,
    pub as_of: String,
}

/// The step of a molecule after one that was closed.
#[derive(Debug, Clone, Serialize)]
pub struct MoleculeAdvanceDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub molecule_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<RawJson>,
    pub auto_advanced: bool,
    pub molecule_complete: bool,
}

/// A molecule that a formula became.
#[derive(Debug, Clone, Serialize)]
pub struct PouredMoleculeDocument {
    pub new_epic_id: String,
    pub id_mapping: OrderedMap<String>,
    pub created: u64,
    pub phase: String,
}

/// A molecule and how far it is.
#[derive(Debug, Clone, Serialize)]
pub struct MoleculeDocument {
    pub molecule_id: String,
    pub molecule_title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_step: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<RawJson>,
    pub steps: Vec<MoleculeStepDocument>,
    pub completed: u64,
    pub total: u64,
}

/// A step of a molecule.
#[derive(Debug, Clone, Serialize)]
pub struct MoleculeStepDocument {
    pub issue: RawJson,
    pub status: String,
    pub is_current: bool,
}

/// Molecules that were joined.
#[derive(Debug, Clone, Serialize)]
pub struct BondDocument {
    pub result_id: String,
    pub result_type: String,
    pub bond_type: String,
    pub spawned: u64,
    pub id_mapping: OrderedMap<String>,
}

/// Ephemeral beads.
#[derive(Debug, Clone, Serialize)]
pub struct WispsDocument {
    pub wisps: Vec<RawJson>,
    pub count: u64,
}

/// A molecule whose steps were replaced by a summary.
#[derive(Debug, Clone, Serialize)]
pub struct SquashedMoleculeDocument {
    pub molecule_id: String,
    pub digest_id: String,
    pub squashed_ids: Vec<String>,
    pub squashed_count: u64,
}

/// Beads that were deleted, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct PurgedDocument {
    pub deleted_ids: Vec<String>,
    pub deleted_count: u64,
    pub dry_run: bool,
}

/// Molecules that can go on because a gate was closed.
#[derive(Debug, Clone, Serialize)]
pub struct GatedStepsDocument {
    pub molecules: Vec<GatedStepDocument>,
    pub count: u64,
}

/// A step that a closed gate has set free.
#[derive(Debug, Clone, Serialize)]
pub struct GatedStepDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub molecule_id: Option<String>,
    pub closed_gate: String,
    pub ready_step: RawJson,
}

/// A slot that one holder has at a time.
#[derive(Debug, Clone, Serialize)]
pub struct MergeSlotDocument {
    pub id: String,
    pub available: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub holder: String,
    pub waiters: Vec<String>,
}

/// Parts of an epic by how they stand.
#[derive(Debug, Clone, Serialize)]
pub struct SwarmDocument {
    pub epic_id: String,
    pub epic_title: String,
    pub total_issues: u64,
    pub completed: Vec<RawJson>,
    pub active: Vec<RawJson>,
    pub ready: Vec<RawJson>,
    pub blocked: Vec<RawJson>,
}

/// The parts of an epic in the order in which they can be worked on.
#[derive(Debug, Clone, Serialize)]
pub struct SwarmPlanDocument {
    pub epic_id: String,
    pub epic_title: String,
    pub total_issues: u64,
    pub closed_issues: u64,
    pub ready_fronts: Vec<SwarmWaveDocument>,
    pub max_parallelism: u64,
    pub estimated_sessions: u64,
    pub warnings: Vec<String>,
    pub errors: Vec<String>,
    pub swarmable: bool,
}

/// Parts of an epic that can be worked on at once.
#[derive(Debug, Clone, Serialize)]
pub struct SwarmWaveDocument {
    pub wave: u64,
    pub issues: Vec<String>,
}

/// A swarm that was made.
#[derive(Debug, Clone, Serialize)]
pub struct CreatedSwarmDocument {
    pub swarm_id: String,
    pub epic_id: String,
    pub coordinator: String,
    pub analysis: SwarmPlanDocument,
}

/// The swarms that are not closed.
#[derive(Debug, Clone, Serialize)]
pub struct SwarmsDocument {
    pub swarms: Vec<ListedSwarmDocument>,
}

/// A swarm, and how far its epic is.
#[derive(Debug, Clone, Serialize)]
pub struct ListedSwarmDocument {
    pub id: String,
    pub title: String,
    pub epic_id: String,
    pub epic_title: String,
    pub status: String,
    pub coordinator: String,
    pub total_issues: u64,
    pub completed_issues: u64,
    pub active_issues: u64,
    pub progress_percent: u64,
}

/// How the gates stand.
#[derive(Debug, Clone, Serialize)]
pub struct GateCheckDocument {
    pub checked: u64,
    pub resolved: u64,
    pub escalated: u64,
    pub errors: u64,
    pub dry_run: bool,
    pub gates: Vec<CheckedGateDocument>,
}

/// How a gate stands.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedGateDocument {
    pub id: String,
    pub state: String,
    pub reason: String,
}

/// A bead that a commit mentions, although it is not closed.
#[derive(Debug, Clone, Serialize)]
pub struct OrphanDocument {
    pub issue_id: String,
    pub title: String,
    pub status: String,
    pub latest_commit: String,
    pub latest_commit_message: String,
}

/// A bead that has another id now.
#[derive(Debug, Clone, Serialize)]
pub struct RenamedBeadDocument {
    pub old_id: String,
    pub new_id: String,
    pub references_updated: u64,
}

/// A rig whose beads have another prefix.
#[derive(Debug, Clone, Serialize)]
pub struct RenamedPrefixDocument {
    pub old_prefix: String,
    pub new_prefix: String,
    pub issues_count: u64,
    pub dry_run: bool,
}

/// How many beads with the label human there are.
#[derive(Debug, Clone, Serialize)]
pub struct HumanCountsDocument {
    pub total: u64,
    pub pending: u64,
    pub closed: u64,
}

/// About a list without labels.
#[derive(Debug, Clone, Serialize)]
pub struct SkippedLabelsDocument {
    pub labels_skipped: bool,
    pub has_more: bool,
}

/// The store behind `bd info`.
#[derive(Debug, Clone, Serialize)]
pub struct SchemaDocument {
    pub level: i64,
    pub issue_types: Vec<String>,
    pub statuses: Vec<String>,
}
