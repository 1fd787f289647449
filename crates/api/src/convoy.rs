//! Convoys.

use gt_core::convoy_graph::GraphLayout;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{OrderedMap, RawJson, ReasonTextDocument, SpentDocument, UtcTime};

/// A convoy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConvoyDocument {
    pub id: String,
    pub title: String,
    pub status: String,
    pub owned: bool,
    pub lifecycle: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub merge_strategy: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub base_branch: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub review: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub integration: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub close_reason: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UtcTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub closed_at: Option<UtcTime>,
    pub completed: u64,
    pub failed: u64,
    pub total: u64,
    pub landings: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub owner: String,
    pub cap: u64,
    pub paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub paused_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub watchers: Vec<String>,
}

/// A convoy and everything that it tracks.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConvoyStatusDocument {
    #[serde(flatten)]
    pub convoy: ConvoyDocument,
    #[schema(value_type = HashMap<String, u64>)]
    pub states: OrderedMap<u64>,
    pub waves: Vec<WaveDocument>,
    pub critical_path: Vec<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<EstimateDocument>,
    /// The request that brings its integration branch to the base, while that is not over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_request: Option<String>,
    /// The usage of the runs of all its beads; left out if nothing was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentDocument>,
    pub tracked: Vec<TrackedDocument>,
    /// The event after which it stood so; left out of the present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<LogPlaceDocument>,
}

/// An event's place in the log.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LogPlaceDocument {
    pub number: u64,
    #[schema(value_type = String, format = DateTime)]
    pub at: UtcTime,
}

/// How long each bead of a convoy waited for what, and was worked on.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConvoyTimelineDocument {
    pub id: String,
    pub title: String,
    /// The first kept event of the convoy or of a bead of it.
    pub first: LogPlaceDocument,
    /// The last event of the town.
    pub last: LogPlaceDocument,
    pub rows: Vec<TimelineRowDocument>,
}

/// The time of a bead.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TimelineRowDocument {
    pub bead: String,
    pub title: String,
    pub spans: Vec<TimelineSpanDocument>,
}

/// A part of the time of a bead.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TimelineSpanDocument {
    /// `waiting` (for capacity), `blocked`, `deferred`, `backoff`, `paused`, `held`, `running`, `checking`, `review` or `landing`.
    #[schema(example = "running")]
    pub kind: String,
    #[schema(value_type = String, format = DateTime)]
    pub from: UtcTime,
    /// Left out if it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub to: Option<UtcTime>,
    /// The run that worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// Beads that can run at the same time.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WaveDocument {
    pub number: u64,
    pub beads: Vec<String>,
}

/// How long something takes.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EstimateDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub eta: Option<UtcTime>,
    pub remaining_seconds: u64,
    pub left_out: u64,
}

/// A bead of a convoy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TrackedDocument {
    pub id: String,
    pub title: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    pub state: String,
    pub dependency_type: String,
    pub issue_type: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub blocked: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub assignee: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub labels: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_age: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Its merge request that is not over, and its state there, or `repairing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_request: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub blocked_by: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub reasons: Vec<ReasonTextDocument>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub failure: String,
    /// The usage of its runs; left out if nothing was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentDocument>,
}

/// The beads of a convoy as a graph.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConvoyGraphDocument {
    pub id: String,
    pub title: String,
    /// How many columns the drawing has.
    pub layers: u64,
    /// How many rows the longest column has.
    pub rows: u64,
    pub nodes: Vec<GraphNodeDocument>,
    pub edges: Vec<GraphEdgeDocument>,
    /// The event after which it stood so; left out of the present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<LogPlaceDocument>,
}

/// A bead at its place in the drawing of a convoy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct GraphNodeDocument {
    pub id: String,
    pub title: String,
    pub state: String,
    /// The state of its merge request that is not over, or `repairing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_state: Option<String>,
    /// Whether it is on the longest chain of what is left.
    pub critical: bool,
    pub layer: u64,
    pub row: u64,
}

/// A bead that waits, or has waited, for another.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct GraphEdgeDocument {
    /// The bead that comes first.
    pub from: String,
    /// The bead that waits for it.
    pub to: String,
    /// The row in each column between them that is left free for the line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub via: Vec<u64>,
}

impl ConvoyGraphDocument {
    /// The document of a drawing.
    pub fn of(id: String, title: String, graph: &GraphLayout) -> Self {
        let name = |at: usize| graph.nodes[at].node.id.to_string();
        Self {
            id,
            title,
            layers: graph.layers as u64,
            rows: graph.rows as u64,
            nodes: graph
                .nodes
                .iter()
                .map(|one| GraphNodeDocument {
                    id: one.node.id.to_string(),
                    title: one.node.title.clone(),
                    state: one.node.state.as_str().to_owned(),
                    merge_state: one.node.merge_state.clone(),
                    critical: one.node.is_critical,
                    layer: one.layer as u64,
                    row: one.row as u64,
                })
                .collect(),
            edges: graph
                .edges
                .iter()
                .map(|line| GraphEdgeDocument {
                    from: name(line.edge.from),
                    to: name(line.edge.to),
                    via: line.via.iter().map(|row| *row as u64).collect(),
                })
                .collect(),
            as_of: None,
        }
    }
}

/// A convoy whose beads are not scheduled.
#[derive(Debug, Clone, Serialize)]
pub struct StrandedDocument {
    pub id: String,
    pub title: String,
    pub tracked_count: u64,
    pub ready_count: u64,
    pub ready_issues: Vec<String>,
    pub waiting_issues: Vec<String>,
    pub created_at: UtcTime,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub base_branch: String,
}

/// A convoy in numbers.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConvoyOverviewDocument {
    pub id: String,
    pub title: String,
    pub completed: u64,
    pub total: u64,
    pub failed: u64,
    pub running: u64,
    pub queued: u64,
    pub blocked: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<EstimateDocument>,
}

/// The plan of a convoy.
#[derive(Debug, Clone, Serialize)]
pub struct StagedDocument {
    pub status: String,
    pub convoy_id: String,
    pub restaged: bool,
    pub errors: Vec<FindingDocument>,
    pub warnings: Vec<FindingDocument>,
    pub waves: Vec<StagedWaveDocument>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gated: Vec<StagedTaskDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Vec<String>>,
    /// The beads, each with those that are a part of it as `children`.
    pub tree: RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launched: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overridden: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<u64>,
}

/// Something that is wrong with a plan.
#[derive(Debug, Clone, Serialize)]
pub struct FindingDocument {
    pub category: String,
    pub bead_ids: Vec<String>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_fix: Option<String>,
}

/// Beads of a plan that can run at the same time.
#[derive(Debug, Clone, Serialize)]
pub struct StagedWaveDocument {
    pub number: u64,
    pub tasks: Vec<StagedTaskDocument>,
}

/// A bead of a plan.
#[derive(Debug, Clone, Serialize)]
pub struct StagedTaskDocument {
    pub id: String,
    pub title: String,
    pub r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gated_by: Option<Vec<String>>,
}

/// A bead in the tree of a plan, without those that are a part of it.
#[derive(Debug, Clone, Serialize)]
pub struct StagedBeadDocument {
    pub id: String,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    pub r#type: String,
    pub status: String,
}
