//! Work items and what is answered about them.

use gt_core::bead::check_text;
use gt_core::work::{DispatchLogEntry, HoldReason, WorkItem, WorkPriority, WorkStatus, work_type};
use gt_core::{BeadId, ExecutorKind, Invalid, Outcome, RunId, RunState, Timestamp, Uid};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::project::{in_field, uid};
use crate::{RawJson, UtcTime, from_json};

/// Where a work item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = WorkStatus)]
pub enum WorkStatusName {
    Queued,
    Dispatched,
    InProgress,
    Blocked,
    Completed,
    Failed,
    Cancelled,
}

impl From<WorkStatus> for WorkStatusName {
    fn from(status: WorkStatus) -> Self {
        match status {
            WorkStatus::Queued => Self::Queued,
            WorkStatus::Dispatched => Self::Dispatched,
            WorkStatus::InProgress => Self::InProgress,
            WorkStatus::Blocked => Self::Blocked,
            WorkStatus::Completed => Self::Completed,
            WorkStatus::Failed => Self::Failed,
            WorkStatus::Cancelled => Self::Cancelled,
        }
    }
}

impl From<WorkStatusName> for WorkStatus {
    fn from(status: WorkStatusName) -> Self {
        match status {
            WorkStatusName::Queued => Self::Queued,
            WorkStatusName::Dispatched => Self::Dispatched,
            WorkStatusName::InProgress => Self::InProgress,
            WorkStatusName::Blocked => Self::Blocked,
            WorkStatusName::Completed => Self::Completed,
            WorkStatusName::Failed => Self::Failed,
            WorkStatusName::Cancelled => Self::Cancelled,
        }
    }
}

/// How a work item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkOutcome {
    Success,
    Failed,
    Cancelled,
}

impl From<Outcome> for WorkOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::Success,
            Outcome::Failed => Self::Failed,
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}

impl From<WorkOutcome> for Outcome {
    fn from(outcome: WorkOutcome) -> Self {
        match outcome {
            WorkOutcome::Success => Self::Success,
            WorkOutcome::Failed => Self::Failed,
            WorkOutcome::Cancelled => Self::Cancelled,
        }
    }
}

/// A work item.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkItemDocument {
    #[schema(format = "uuid")]
    pub id: String,
    #[schema(required, format = "uuid")]
    pub project_id: Option<String>,
    /// The kind of work.
    pub r#type: String,
    #[schema(required)]
    #[serde(default)]
    pub description: String,
    /// Data for its kind of work: any JSON.
    #[schema(required, value_type = Option<Object>)]
    pub payload: Option<RawJson>,
    /// 1 (highest) to 5.
    #[schema(required, minimum = 1, maximum = 5)]
    #[serde(default = "usual_priority")]
    pub priority: i64,
    pub status: WorkStatusName,
    /// The agent that has it, or is to have it.
    #[schema(required)]
    pub assigned_agent: Option<String>,
    #[schema(required)]
    pub created_by: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UtcTime,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: UtcTime,
    /// Set when it is completed, failed or cancelled.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<UtcTime>,
    #[schema(required)]
    pub outcome: Option<WorkOutcome>,
    #[schema(required)]
    pub notes: Option<String>,
    /// The bead that it is; its id can be used like the UUID.
    pub bead: String,
    /// The run that has it now.
    #[schema(required)]
    pub run_id: Option<String>,
    /// When it is queued again unless its agent sends a heartbeat.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub lease_expires_at: Option<UtcTime>,
    /// Why no agent is offered it although it is queued.
    #[schema(required)]
    pub reason: Option<String>,
}

fn usual_priority() -> i64 {
    WorkPriority::default().number()
}

impl From<&WorkItem> for WorkItemDocument {
    fn from(item: &WorkItem) -> Self {
        Self {
            id: item.uid.to_string(),
            project_id: item.project.map(|project| project.to_string()),
            r#type: item.kind.as_str().to_owned(),
            description: item.description.clone(),
            payload: item.payload.as_ref().map(RawJson::from),
            priority: item.priority.number(),
            status: item.status.into(),
            assigned_agent: item.agent.clone(),
            created_by: not_empty(&item.created_by),
            created_at: item.created_at.into(),
            updated_at: item.updated_at.into(),
            completed_at: item.completed_at.map(UtcTime),
            outcome: item.outcome.map(WorkOutcome::from),
            notes: not_empty(&item.notes),
            bead: item.bead.to_string(),
            run_id: item.run.map(|run| run.to_string()),
            lease_expires_at: item.lease_expires_at.map(UtcTime),
            reason: item.held.map(|held| held.to_string()),
        }
    }
}

fn not_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl TryFrom<WorkItemDocument> for WorkItem {
    type Error = Invalid;

    fn try_from(item: WorkItemDocument) -> Result<Self, Invalid> {
        if let Some(agent) = &item.assigned_agent {
            check_text("assigned_agent", agent)?;
        }
        Ok(Self {
            uid: uid("id", &item.id)?,
            bead: in_field("bead", BeadId::parse(&item.bead))?,
            project: item.project_id.map(|id| uid("project_id", &id)).transpose()?,
            kind: in_field("type", work_type(&item.r#type))?,
            description: item.description,
            payload: item.payload.map(|payload| payload.0),
            priority: WorkPriority::new(item.priority)?,
            status: item.status.into(),
            agent: item.assigned_agent,
            created_by: item.created_by.unwrap_or_default(),
            created_at: item.created_at.0,
            updated_at: item.updated_at.0,
            completed_at: item.completed_at.map(|at| at.0),
            outcome: item.outcome.map(Outcome::from),
            notes: item.notes.unwrap_or_default(),
            run: item.run_id.map(|id| uid("run_id", &id)).transpose()?,
            lease_expires_at: item.lease_expires_at.map(|at| at.0),
            held: item.reason.as_deref().and_then(HoldReason::parse),
        })
    }
}

/// A work item with its history.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WorkDetailsDocument {
    #[schema(inline)]
    #[serde(flatten)]
    pub item: WorkItemDocument,
    /// The items that it waits for, or waited for.
    pub depends_on: Vec<String>,
    /// Every dispatch of it, oldest first.
    pub dispatch_log: Vec<DispatchDocument>,
}

impl WorkDetailsDocument {
    /// An item and what is known besides.
    pub fn of(item: &WorkItem, log: &[DispatchLogEntry], depends_on: &[Uid]) -> Self {
        Self {
            item: item.into(),
            depends_on: depends_on.iter().map(ToString::to_string).collect(),
            dispatch_log: log.iter().map(DispatchDocument::from).collect(),
        }
    }

    /// Reads an item with its history. The two parts are read one after the other: joined fields cannot keep JSON as it
    /// was spelled.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct WorkHistory {
            #[serde(default)]
            depends_on: Vec<String>,
            #[serde(default)]
            dispatch_log: Vec<DispatchDocument>,
        }
        let WorkHistory { depends_on, dispatch_log } = from_json(text)?;
        Ok(Self { item: from_json(text)?, depends_on, dispatch_log })
    }
}

/// A dispatch of a work item to an agent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DispatchDocument {
    /// A UUID; `run_id` takes it.
    pub id: String,
    pub work_item_id: String,
    #[schema(value_type = String, format = DateTime)]
    pub dispatched_at: UtcTime,
    #[schema(required)]
    #[serde(default)]
    pub agent: String,
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<UtcTime>,
    #[schema(required)]
    pub outcome: Option<WorkOutcome>,
    /// Its other name, `<bead>#<number>`; `run_id` takes it too.
    pub run: String,
    pub state: String,
    pub executor: String,
}

impl From<&DispatchLogEntry> for DispatchDocument {
    fn from(attempt: &DispatchLogEntry) -> Self {
        Self {
            id: attempt.uid.to_string(),
            work_item_id: attempt.item.to_string(),
            dispatched_at: attempt.dispatched_at.into(),
            agent: attempt.agent.clone(),
            completed_at: attempt.completed_at.map(UtcTime),
            outcome: attempt.outcome.map(WorkOutcome::from),
            run: attempt.run.to_string(),
            state: attempt.state.as_str().to_owned(),
            executor: attempt.executor.as_str().to_owned(),
        }
    }
}

impl TryFrom<DispatchDocument> for DispatchLogEntry {
    type Error = Invalid;

    fn try_from(attempt: DispatchDocument) -> Result<Self, Invalid> {
        Ok(Self {
            uid: uid("id", &attempt.id)?,
            run: in_field("run", RunId::parse(&attempt.run))?,
            item: uid("work_item_id", &attempt.work_item_id)?,
            dispatched_at: attempt.dispatched_at.0,
            agent: attempt.agent,
            executor: in_field("executor", ExecutorKind::parse(&attempt.executor))?,
            state: in_field("state", RunState::parse(&attempt.state))?,
            completed_at: attempt.completed_at.map(|at| at.0),
            outcome: attempt.outcome.map(Outcome::from),
        })
    }
}

/// The answer to an agent that asks for work.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct NextAnswerDocument {
    /// In progress; null if there is nothing.
    #[schema(required)]
    pub item: Option<WorkItemDocument>,
    /// The id that the agent sends with its reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// When it is queued again unless the agent sends a heartbeat.
    #[schema(value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<UtcTime>,
    /// The same as `reason`, in a word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl NextAnswerDocument {
    /// An item, its run and until when the agent has it.
    pub fn taken(item: &WorkItem, run: Uid, lease_expires_at: Timestamp) -> Self {
        Self {
            item: Some(item.into()),
            run_id: Some(run.to_string()),
            lease_expires_at: Some(lease_expires_at.into()),
            ..Self::default()
        }
    }

    /// Nothing, and why.
    pub fn nothing(code: &str, reason: String) -> Self {
        Self { code: Some(code.to_owned()), reason: Some(reason), ..Self::default() }
    }
}

/// The result of a check for stale and lost work.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OverdueDocument {
    /// The items that are blocked now.
    #[schema(required)]
    #[serde(default)]
    pub stale: Vec<RunDocument>,
    /// The items that are queued again.
    #[schema(required)]
    #[serde(default)]
    pub lost: Vec<RunDocument>,
    /// When the next is due.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub due: Option<UtcTime>,
}

impl OverdueDocument {
    /// The result as a document.
    pub fn of(stale: &[RunId], lost: &[RunId], due: Option<Timestamp>) -> Self {
        let documents = |runs: &[RunId]| runs.iter().map(RunDocument::from).collect();
        Self { stale: documents(stale), lost: documents(lost), due: due.map(UtcTime) }
    }
}

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RunDocument {
    #[schema(required)]
    #[serde(default)]
    pub bead: String,
    pub run: String,
}

impl From<&RunId> for RunDocument {
    fn from(run: &RunId) -> Self {
        Self { bead: run.bead.to_string(), run: run.to_string() }
    }
}

/// Until when an agent has its work now.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswerDocument {
    #[schema(value_type = String, format = DateTime)]
    pub lease_expires_at: UtcTime,
}

/// Why a work item is where it is.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WhyDocument {
    pub id: String,
    pub bead: String,
    pub status: WorkStatusName,
    /// The most telling first; none if the next agent that asks gets it.
    pub reasons: Vec<ReasonDocument>,
}

/// A reason why a work item does not go on.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReasonDocument {
    pub code: String,
    pub reason: String,
    /// The step that removes it.
    pub remedy: String,
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub until: Option<UtcTime>,
}

/// Something that happened to an agent that polls.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PollDocument {
    pub event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bead: Option<String>,
    /// The file with the output of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use gt_core::work::Project;
    use gt_core::{Json, RigSlug};
    use proptest::prelude::*;

    use super::*;
    use crate::{EventDocument, HealthDocument, ProblemDocument, ProjectDocument, to_json};

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn some_item() -> WorkItem {
        let bead = BeadId::parse("wq-abc").unwrap();
        WorkItem {
            uid: Uid::of_bead(&bead, at(1)),
            bead,
            project: None,
            kind: work_type("code_review").unwrap(),
            description: "Review it".to_owned(),
            payload: None,
            priority: WorkPriority::default(),
            status: WorkStatus::Queued,
            agent: None,
            created_by: String::new(),
            created_at: at(1),
            updated_at: at(2),
            completed_at: None,
            outcome: None,
            notes: String::new(),
            run: None,
            lease_expires_at: None,
            held: None,
        }
    }

    fn read_item(text: &str) -> Result<WorkItem, String> {
        let item: WorkItemDocument = from_json(text)?;
        item.try_into().map_err(|wrong: Invalid| wrong.to_string())
    }

    #[test]
    fn every_answer_reads_back_as_it_was_written() {
        let item = some_item();
        let run = RunId::parse("wq-abc#2").unwrap();
        let attempt = DispatchLogEntry {
            uid: Uid::of_run(&run, at(5)),
            run: run.clone(),
            item: item.uid,
            dispatched_at: at(5),
            agent: "steve-w".to_owned(),
            executor: ExecutorKind::Pull,
            state: RunState::Lost,
            completed_at: Some(at(9)),
            outcome: Some(Outcome::Failed),
        };
        let log = std::slice::from_ref(&attempt);
        let text = to_json(&WorkDetailsDocument::of(&item, log, &[item.uid]));
        let read = WorkDetailsDocument::read(&text).unwrap();
        assert_eq!(WorkItem::try_from(read.item).unwrap(), item);
        assert_eq!(DispatchLogEntry::try_from(read.dispatch_log[0].clone()).unwrap(), attempt);
        assert_eq!(read.depends_on, [item.uid.to_string()]);

        let next = to_json(&NextAnswerDocument::taken(&item, attempt.uid, at(7)));
        let next: NextAnswerDocument = from_json(&next).unwrap();
        assert_eq!(WorkItem::try_from(next.item.unwrap()).unwrap(), item);
        assert_eq!(
            (next.run_id, next.lease_expires_at),
            (Some(attempt.uid.to_string()), Some(UtcTime(at(7))))
        );

        let project = Project {
            uid: item.uid,
            name: "Shop \"API\"".to_owned(),
            external_ref: Some("todoist:123".to_owned()),
            created_at: at(1),
            updated_at: at(2),
            rig: RigSlug::parse("shop").unwrap(),
            executor: ExecutorKind::Pull,
        };
        let read: ProjectDocument = from_json(&to_json(&ProjectDocument::from(&project))).unwrap();
        assert_eq!(Project::try_from(read).unwrap(), project);

        let runs = std::slice::from_ref(&run);
        let overdue = to_json(&OverdueDocument::of(runs, runs, Some(at(3))));
        let overdue: OverdueDocument = from_json(&overdue).unwrap();
        assert_eq!(
            (overdue.stale[0].run.as_str(), overdue.due),
            ("wq-abc#2", Some(UtcTime(at(3))))
        );
    }

    #[test]
    fn an_answer_that_makes_no_sense_names_the_field() {
        let whole = to_json(&WorkItemDocument::from(&some_item()));
        for (field, right, wrong) in [
            ("id", &*format!("\"id\":\"{}\"", some_item().uid), "\"id\":7"),
            ("status", "\"queued\"", "\"lost\""),
            ("bead", "\"wq-abc\"", "null"),
            ("priority", "\"priority\":3", "\"priority\":9"),
        ] {
            let broken = whole.replacen(right, wrong, 1);
            let error = read_item(&broken).unwrap_err();
            assert!(error.contains(field), "{error} in {broken}");
        }
        assert!(from_json::<Vec<WorkItemDocument>>("{}").is_err());
        assert!(from_json::<ProblemDocument>("<html>").is_err());
        let health: HealthDocument = from_json("{\"last_event\":12}").unwrap();
        assert_eq!(health.last_event, 12);
    }

    #[test]
    fn the_names_of_the_wire_are_those_of_the_core() {
        for status in WorkStatus::ALL.iter().copied() {
            assert_eq!(to_json(&WorkStatusName::from(status)), format!("\"{status}\""));
            assert_eq!(WorkStatus::from(WorkStatusName::from(status)), status);
        }
        for outcome in [Outcome::Success, Outcome::Failed, Outcome::Cancelled] {
            assert_eq!(to_json(&WorkOutcome::from(outcome)), format!("\"{}\"", outcome.as_str()));
            assert_eq!(Outcome::from(WorkOutcome::from(outcome)), outcome);
        }
    }

    proptest! {
        #[test]
        fn an_item_reads_back_as_it_was_written(
            description in "[^\0]{1,40}",
            notes in "[^\0]{0,40}",
            agent in proptest::option::of("[a-zü -]{1,10}"),
            updated in any::<u32>(),
            status in 0..WorkStatus::ALL.len(),
            lease in proptest::option::of(any::<u32>()),
        ) {
            let status = WorkStatus::ALL[status];
            let item = WorkItem {
                description,
                notes,
                agent,
                status,
                outcome: status.outcome(),
                updated_at: at(updated.into()),
                lease_expires_at: lease.map(|lease| at(lease.into())),
                held: Some(HoldReason::Deferred(Some(at(updated.into())))),
                payload: Some(Json::parse(r#"{"pr":3,"b":1e400,"a":[null]}"#).unwrap()),
                ..some_item()
            };
            let text = to_json(&WorkItemDocument::from(&item));
            let read = read_item(&text).unwrap();
            prop_assert_eq!(read.version(), item.version());
            prop_assert_eq!(&read, &item);
            let details = WorkDetailsDocument::of(&item, &[], &[]);
            let details = WorkDetailsDocument::read(&to_json(&details)).unwrap();
            prop_assert_eq!(WorkItem::try_from(details.item).unwrap(), item);
        }

        #[test]
        fn nothing_makes_reading_panic(text in r#"\{("[a-z_]{1,12}":("[a-z]{0,4}"|[0-9]|null|\[\]),?){0,4}\}|.{0,30}"#) {
            let _ = (WorkDetailsDocument::read(&text), from_json::<NextAnswerDocument>(&text));
            let _ = (from_json::<ProjectDocument>(&text), from_json::<OverdueDocument>(&text));
            let _ = (from_json::<ProblemDocument>(&text), from_json::<HeartbeatAnswerDocument>(&text));
            let _ = (from_json::<HealthDocument>(&text), from_json::<EventDocument>(&text));
        }
    }
}
