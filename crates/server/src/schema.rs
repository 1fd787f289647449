//! The shapes of what is sent and answered, for the description. Answers are written by `gt_records`, requests are read field
//! by field; tests compare both with what is described here.

#![expect(dead_code, reason = "these are described, never made")]

use utoipa::ToSchema;

/// Why a request was not done (RFC 9457).
#[derive(ToSchema)]
pub(crate) struct ProblemDocument {
    /// Always `about:blank`: `code` tells problems apart.
    r#type: String,
    /// The meaning of the status.
    title: String,
    status: u16,
    /// What happened, to what, and what to do next.
    detail: String,
    /// What kind of problem it is, in a word for programs.
    code: String,
    /// The fields that are wrong.
    errors: Option<Vec<FieldError>>,
    /// Where the item can go from where it stands.
    allowed: Option<Vec<String>>,
    /// The id of the request, which is in the log too.
    request_id: String,
}

/// Something that is wrong with one field.
#[derive(ToSchema)]
pub(crate) struct FieldError {
    field: String,
    detail: String,
}

/// Where a work item stands.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum WorkStatus {
    Queued,
    Dispatched,
    InProgress,
    Blocked,
    Completed,
    Failed,
    Cancelled,
}

/// How a work item ended.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum WorkOutcome {
    Success,
    Failed,
    Cancelled,
}

/// A project.
#[derive(ToSchema)]
pub(crate) struct ProjectDocument {
    #[schema(format = "uuid")]
    id: String,
    name: String,
    /// Its name in another system.
    #[schema(required)]
    external_ref: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    /// The rig that it is.
    rig: String,
    /// How its work is carried out.
    executor: String,
}

/// A project to be made.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewProjectDocument {
    /// Any text; need not be unique.
    #[schema(min_length = 1)]
    name: String,
    /// Its name in another system.
    external_ref: Option<String>,
}

/// What is to change about a project.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectChangeDocument {
    #[schema(min_length = 1)]
    name: Option<String>,
    /// Null takes it away.
    external_ref: Option<String>,
}

/// A work item.
#[derive(ToSchema)]
pub(crate) struct WorkItemDocument {
    #[schema(format = "uuid")]
    id: String,
    /// The bead that it is; its id can be used like the UUID.
    bead: String,
    #[schema(required, format = "uuid")]
    project_id: Option<String>,
    /// What kind of work it is.
    r#type: String,
    description: String,
    /// Whatever its kind needs: any JSON.
    #[schema(required, value_type = Option<Object>)]
    payload: Option<()>,
    /// 1 (highest) to 5.
    #[schema(minimum = 1, maximum = 5)]
    priority: i64,
    status: WorkStatus,
    /// Who has it, or is to have it.
    #[schema(required)]
    assigned_agent: Option<String>,
    #[schema(required)]
    created_by: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    /// Set when it is completed, failed or cancelled.
    #[schema(required, format = DateTime)]
    completed_at: Option<String>,
    #[schema(required)]
    outcome: Option<WorkOutcome>,
    #[schema(required)]
    notes: Option<String>,
    /// The run that has it now.
    #[schema(required)]
    run_id: Option<String>,
    /// When somebody else gets it if its agent says nothing.
    #[schema(required, format = DateTime)]
    lease_expires_at: Option<String>,
    /// Why it is not offered to anybody although it is queued.
    #[schema(required)]
    reason: Option<String>,
}

/// A work item with its history.
#[derive(ToSchema)]
pub(crate) struct WorkDetailsDocument {
    #[schema(inline)]
    #[schema(value_type = WorkItemDocument)]
    #[serde(flatten)]
    item: WorkItemDocument,
    /// What it waits for, or waited for.
    depends_on: Vec<String>,
    /// Every time that it was given to somebody, oldest first.
    dispatch_log: Vec<DispatchDocument>,
}

/// A time that a work item was given to somebody.
#[derive(ToSchema)]
pub(crate) struct DispatchDocument {
    /// A UUID; `run_id` takes it.
    id: String,
    /// Its other name, `<bead>#<number>`; `run_id` takes it too.
    run: String,
    work_item_id: String,
    #[schema(format = DateTime)]
    dispatched_at: String,
    agent: String,
    executor: String,
    state: String,
    #[schema(required, format = DateTime)]
    completed_at: Option<String>,
    #[schema(required)]
    outcome: Option<WorkOutcome>,
}

/// A work item to be submitted. It is queued whoever it is assigned to.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewWorkDocument {
    /// What kind of work it is.
    #[schema(min_length = 1, max_length = 50)]
    r#type: String,
    #[schema(min_length = 1)]
    description: String,
    #[schema(format = "uuid")]
    project_id: Option<String>,
    /// Any JSON object.
    #[schema(value_type = Option<Object>)]
    payload: Option<()>,
    /// 1 (highest) to 5; 3 if nothing is said.
    #[schema(minimum = 1, maximum = 5)]
    priority: Option<i64>,
    assigned_agent: Option<String>,
    /// Who submits it; else the name of the token, else `api`.
    created_by: Option<String>,
    notes: Option<String>,
    /// What must be done first.
    depends_on: Option<Vec<String>>,
}

/// One item, or several: all of them or none.
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum SubmissionDocument {
    One(Box<NewWorkDocument>),
    Many(Vec<NewWorkDocument>),
}

/// What came of a submission: one item, or as many as were sent.
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum SubmittedDocument {
    One(Box<WorkItemDocument>),
    Many(Vec<WorkItemDocument>),
}

/// What is to change about a work item.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkChangeDocument {
    status: Option<WorkStatus>,
    /// Needed with completed and failed, and has to fit.
    outcome: Option<WorkOutcome>,
    /// In place of the old ones.
    notes: Option<String>,
    /// Needed to dispatch what nobody is assigned to.
    assigned_agent: Option<String>,
    #[schema(minimum = 1, maximum = 5)]
    priority: Option<i64>,
    #[schema(min_length = 1, max_length = 50)]
    r#type: Option<String>,
    #[schema(min_length = 1)]
    description: Option<String>,
    #[schema(value_type = Option<Object>)]
    payload: Option<()>,
    #[schema(format = "uuid")]
    project_id: Option<String>,
    /// Refuse this unless that run still has it.
    #[schema(format = "uuid")]
    run_id: Option<String>,
}

/// An agent that asks for work.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NextDocument {
    #[schema(min_length = 1)]
    agent: String,
    /// Only these kinds of work.
    types: Option<Vec<String>>,
    /// Only work of this project.
    #[schema(format = "uuid")]
    project_id: Option<String>,
    /// How long to wait for work if there is none.
    #[schema(minimum = 0, maximum = 60)]
    wait_s: Option<i64>,
    /// How long it is the agent's without another word; 300 if nothing is said.
    #[schema(minimum = 30, maximum = 3600)]
    lease_s: Option<i64>,
}

/// What an agent is given.
#[derive(ToSchema)]
pub(crate) struct NextAnswerDocument {
    /// In progress; null if there is nothing.
    #[schema(required)]
    item: Option<WorkItemDocument>,
    /// What the agent shows when it reports.
    run_id: Option<String>,
    /// When somebody else gets it unless the agent says something before.
    lease_expires_at: Option<String>,
    /// Why there is nothing.
    reason: Option<String>,
    /// The same, in a word for programs.
    code: Option<String>,
}

/// An agent that speaks for its work.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeartbeatDocument {
    #[schema(format = "uuid")]
    run_id: String,
    /// How long it is the agent's from now on; as long as before if nothing is said.
    #[schema(minimum = 30, maximum = 3600)]
    lease_s: Option<i64>,
    /// Only if nobody has a lease on it yet: of several that find work which nobody speaks for, one gets it.
    adopt: Option<bool>,
}

/// An agent that gives its work back.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseDocument {
    #[schema(format = "uuid")]
    run_id: String,
}

/// A look at all work that agents have. There is nothing to say.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StaleCheckDocument {}

/// What a look at all work that agents have found.
#[derive(ToSchema)]
pub(crate) struct OverdueDocument {
    /// What is blocked now.
    stale: Vec<RunDocument>,
    /// What is queued again.
    lost: Vec<RunDocument>,
    /// When the next is due.
    #[schema(format = DateTime)]
    due: Option<String>,
}

/// A run.
#[derive(ToSchema)]
pub(crate) struct RunDocument {
    bead: String,
    run: String,
}

/// Until when an agent has its work now.
#[derive(ToSchema)]
pub(crate) struct HeartbeatAnswerDocument {
    #[schema(format = DateTime)]
    lease_expires_at: String,
}

/// Why a work item is where it is.
#[derive(ToSchema)]
pub(crate) struct WhyDocument {
    id: String,
    bead: String,
    status: WorkStatus,
    /// The most telling first; none if the next agent that asks gets it.
    reasons: Vec<ReasonDocument>,
}

/// A reason why a work item does not go on.
#[derive(ToSchema)]
pub(crate) struct ReasonDocument {
    code: String,
    reason: String,
    /// What takes it away.
    remedy: String,
    #[schema(required, format = DateTime)]
    until: Option<String>,
}

/// How the server is.
#[derive(ToSchema)]
pub(crate) struct HealthDocument {
    /// `ok`.
    status: String,
    version: String,
    /// The number of the last event.
    last_event: u64,
}
