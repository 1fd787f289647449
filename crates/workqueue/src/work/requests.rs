//! The requests of clients of the work queue, and the answers.

use gt_core::bead::RequestKey;
use gt_core::schedule::RunId;
use gt_core::work::{
    Cursor, DispatchLogEntry, ItemRef, Lease, ProjectRef, RunRef, Version, WorkItem, WorkPriority,
    WorkStatus,
};
use gt_core::{IssueType, Json, Outcome, RigSlug, Timestamp, Uid};

use gt_beads::beads::FieldEdit;

/// A project to be made.
#[derive(Debug, Clone, Default)]
pub struct NewProject {
    /// Its name, any text.
    pub name: String,
    /// Its name in another system.
    pub external_ref: Option<String>,
}

/// A change to a project.
#[derive(Debug, Clone, Default)]
pub struct ProjectChange {
    /// Its name.
    pub name: Option<String>,
    /// Its name in another system.
    pub external_ref: FieldEdit<String>,
}

/// A work item to be submitted.
#[derive(Debug, Clone, Default)]
pub struct NewItem {
    /// The project it belongs to.
    pub project: Option<ProjectRef>,
    /// The kind of work; see [`gt_core::work::work_type`].
    pub kind: String,
    /// The work to do.
    pub description: String,
    /// The data that its kind needs.
    pub payload: Option<Json>,
    /// How urgent it is.
    pub priority: WorkPriority,
    /// The agent that gets it when it is dispatched. It is queued all the same.
    pub agent: Option<String>,
    /// The submitter; the actor of the town if nothing is said.
    pub created_by: Option<String>,
    /// Notes that it has from the beginning.
    pub notes: String,
    /// The items that must be done first.
    pub depends_on: Vec<ItemRef>,
}

/// Work items to be submitted, all of them or none.
#[derive(Debug, Clone, Default)]
pub struct Submission {
    /// The items.
    pub items: Vec<NewItem>,
    /// A name for the request, so that repeating it does no harm.
    pub key: Option<RequestKey>,
    /// They were written as a list, even if it has only one: what is wrong with an item is told with its place in it.
    pub is_list: bool,
}

/// Work items that were submitted.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The items, in the order of the submission.
    pub items: Vec<WorkItem>,
    /// The same request had been made before; nothing was done now.
    pub before: bool,
}

/// A work item with its dispatch log.
#[derive(Debug, Clone)]
pub struct ItemDetails {
    /// The item.
    pub item: WorkItem,
    /// Every run of it, oldest first.
    pub dispatch_log: Vec<DispatchLogEntry>,
    /// The beads that it waits for or waited for, as given in `depends_on`.
    pub depends_on: Vec<Uid>,
}

/// A part of a list of work items.
#[derive(Debug, Clone)]
pub struct ItemPage {
    /// The items, in the order of the list.
    pub items: Vec<WorkItem>,
    /// Where it goes on; nothing if this was the end.
    pub next: Option<Cursor>,
}

/// The conditions under which a change is made.
#[derive(Debug, Clone, Default)]
pub struct Precondition {
    /// This run has it.
    pub run: Option<RunRef>,
    /// It is at this version.
    pub version: Option<Version>,
}

/// A change to a work item.
#[derive(Debug, Clone, Default)]
pub struct ItemChange {
    /// Where it should stand.
    pub status: Option<WorkStatus>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Notes in place of the old ones; empty for none.
    pub notes: Option<String>,
    /// The agent that should have it.
    pub agent: FieldEdit<String>,
    /// How urgent it is.
    pub priority: Option<WorkPriority>,
    /// The kind of work; see [`gt_core::work::work_type`].
    pub kind: Option<String>,
    /// The work to do.
    pub description: Option<String>,
    /// The data that its kind needs.
    pub payload: FieldEdit<Json>,
    /// The project it belongs to.
    pub project: FieldEdit<ProjectRef>,
    /// The conditions under which it is made.
    pub precondition: Precondition,
}

/// An agent that asks for work.
#[derive(Debug, Clone)]
pub struct NextRequest {
    /// The agent that asks.
    pub agent: String,
    /// Only these kinds of work; empty for all.
    pub kinds: Vec<IssueType>,
    /// Only work of this project.
    pub project: Option<ProjectRef>,
    /// Only what was dispatched to this agent.
    pub dispatched: bool,
    /// How long it is the agent's without another word.
    pub lease: Lease,
}

/// The answer to an agent that asked for work.
#[derive(Debug, Clone)]
pub enum NextWork {
    /// This is to be done.
    Item(Box<TakenItem>),
    /// There is nothing, for this reason.
    Nothing(NoWork),
}

/// Work that an agent has now.
#[derive(Debug, Clone)]
pub struct TakenItem {
    /// The item, which is in progress.
    pub item: WorkItem,
    /// The run in which the agent has it, as far as its name is known.
    pub run: RunRef,
    /// The alias of that run.
    pub run_uid: Uid,
    /// When another agent may get it, unless a heartbeat extends the lease before.
    pub lease_expires_at: Timestamp,
}

/// Why there is no work for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoWork {
    /// Nothing is started: by whom, since when.
    Paused(String, Timestamp),
    /// Nothing begins in these projects.
    ProjectsClosed(Vec<RigSlug>),
    /// Something is queued, but none of it can be done now: it is blocked, put off or meant for others.
    AllWait,
    /// Nothing that fits was dispatched to the agent, and it gets nothing else.
    NotDispatched,
    /// Nothing that fits is queued.
    Empty,
    /// The answer of a server.
    Told {
        /// A short name that programs can rely on.
        code: String,
        /// The reason, in words.
        reason: String,
    },
}

impl NoWork {
    /// A short name that programs can rely on.
    pub fn code(&self) -> &str {
        match self {
            Self::Paused(..) => "paused",
            Self::ProjectsClosed(_) => "project-closed",
            Self::AllWait => "all-wait",
            Self::NotDispatched => "not-dispatched",
            Self::Empty => "empty",
            Self::Told { code, .. } => code,
        }
    }
}

impl std::fmt::Display for NoWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Paused(by, at) => {
                write!(f, "paused by {by} since {at}; gt scheduler resume ends it")
            }
            Self::ProjectsClosed(rigs) => {
                let names: Vec<&str> = rigs.iter().map(RigSlug::as_str).collect();
                write!(f, "nothing begins in {}: parked or docked", names.join(", "))
            }
            Self::AllWait => {
                f.write_str("everything that fits is blocked, put off or meant for another agent")
            }
            Self::NotDispatched => f.write_str(
                "nothing that fits was dispatched to this agent, and it takes nothing else",
            ),
            Self::Empty => f.write_str("nothing that fits is queued"),
            Self::Told { reason, .. } => f.write_str(reason),
        }
    }
}

/// A heartbeat of an agent.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    /// In which run.
    pub run: RunRef,
    /// How long the work is its own from now on; as long as before if nothing is said.
    pub lease: Option<Lease>,
    /// Only if no run has a lease on it: of several processes that find work without a lease, one gets it.
    pub adopts: bool,
}

/// The result of a check for stale and lost work.
#[derive(Debug, Clone, Default)]
pub struct Overdue {
    /// Items that are blocked now, because their agents have been silent for too long.
    pub stale: Vec<RunId>,
    /// Runs that are lost, because their leases have ended; their items are queued again.
    pub lost: Vec<RunId>,
    /// When the next one is due.
    pub due: Option<Timestamp>,
}

impl Overdue {
    /// How much was found.
    pub fn count(&self) -> usize {
        self.stale.len() + self.lost.len()
    }
}

/// Why a work item is where it is.
#[derive(Debug, Clone)]
pub struct ItemWhy {
    /// The item.
    pub item: WorkItem,
    /// Every reason, the most telling first; none if the next agent that asks gets it.
    pub reasons: Vec<ItemReason>,
}

/// A reason why a work item does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemReason {
    /// A short name that programs can rely on.
    pub code: &'static str,
    /// The reason, in words.
    pub reason: String,
    /// The step that removes it.
    pub remedy: String,
    /// When it goes away by itself, if that is known.
    pub until: Option<Timestamp>,
}
