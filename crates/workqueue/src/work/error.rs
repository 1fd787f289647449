//! The errors of the work queue, by class, so that a server need not guess.

use gt_core::schedule::RunId;
use gt_core::work::{RunRef, Version, WorkRefusal, WorkStatus, allowed_from};
use gt_core::{BeadId, Invalid, RigSlug, RigState, Timestamp, Uid};
use gt_store::StoreError;

use super::remote::RemoteError;
use gt_town::OperationError;

/// The result of an operation of the work queue.
pub type WorkResult<T> = Result<T, WorkError>;

/// Why an operation of the work queue did nothing.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// Nothing has this name.
    #[error("there is no {} {name}", what.name())]
    NotFound {
        /// The kind of thing that was looked for.
        what: MissingKind,
        /// The name that was given.
        name: String,
    },
    /// The request is well-formed, and cannot be done as things stand.
    #[error(transparent)]
    Conflict(Box<Conflict>),
    /// The caller may act for one agent only, and this concerns another.
    #[error(
        "this token acts for {agent} only, and {what}; show the token of that agent, or one with the scope submit to give \
         work to others"
    )]
    NotForAgent {
        /// The agent that the caller may act for.
        agent: String,
        /// The action that the request asks for.
        what: String,
    },
    /// A field is wrong.
    #[error("{field}: {message}")]
    Invalid {
        /// Which field, as clients spell it.
        field: &'static str,
        /// The fault of its value, and the right form.
        message: String,
    },
    /// A field of one of several items is wrong.
    #[error("{at}.{field}: {message}")]
    InvalidItem {
        /// Which item, from 0.
        at: usize,
        /// Which field of it, as clients spell it.
        field: &'static str,
        /// The fault of its value, and the right form.
        message: String,
    },
    /// A queue that is elsewhere said no, or cannot be asked.
    #[error(transparent)]
    Remote(Box<RemoteError>),
    /// Another error, which the request did not cause.
    #[error(transparent)]
    Operation(#[from] OperationError),
}

/// The kinds of things that may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingKind {
    /// A work item.
    Item,
    /// A project.
    Project,
    /// A token.
    Token,
}

impl MissingKind {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Item => "work item",
            Self::Project => "project",
            Self::Token => "token",
        }
    }
}

/// Why something cannot be done as things stand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The table of statuses said no.
    #[error("{bead}: {refusal}")]
    Refused {
        /// The item.
        bead: BeadId,
        /// Where it stands.
        status: WorkStatus,
        /// The reason.
        refusal: WorkRefusal,
    },
    /// An agent has one item in progress at a time.
    #[error(
        "{agent} has {item} ({bead}) in progress; it can begin another when that is completed, failed or blocked"
    )]
    AgentBusy {
        /// The agent.
        agent: String,
        /// The item that it has.
        item: Uid,
        /// The bead of it.
        bead: BeadId,
    },
    /// Another run has the item now, or none has.
    #[error("the run {given} does not have {bead} any more{}", now_has(live.as_ref()))]
    StaleRun {
        /// The item.
        bead: BeadId,
        /// The run that was named.
        given: RunRef,
        /// The run that has it.
        live: Option<RunId>,
    },
    /// The item has changed since it was read.
    #[error("{bead} has changed since it was read; it is at version {current} now: read it again")]
    StaleVersion {
        /// The item.
        bead: BeadId,
        /// How it is now.
        current: Version,
    },
    /// Nothing begins in its project.
    #[error("the project {rig} is {}; gt rig {} {rig} opens it", state.as_str(), opening(*state))]
    RigClosed {
        /// The project.
        rig: RigSlug,
        /// How it is.
        state: RigState,
    },
    /// It cannot be moved while a run has it.
    #[error("{run} is at work on it where it is; it can be moved when that is over")]
    Running {
        /// The run.
        run: RunId,
    },
    /// A run that waits or has not begun needs no heartbeat.
    #[error("the run {run} of {bead} is not in progress, so it needs no heartbeat")]
    NotInProgress {
        /// The item.
        bead: BeadId,
        /// The run.
        run: RunId,
    },
    /// The run has a lease.
    #[error("the run {run} of {bead} has a lease until {until} at least")]
    Leased {
        /// The item.
        bead: BeadId,
        /// The run.
        run: RunId,
        /// When its lease ends.
        until: Timestamp,
    },
}

impl Conflict {
    /// Where the item can go from where it stands, if the request was about that.
    pub fn allowed(&self) -> Option<&'static [WorkStatus]> {
        match self {
            Self::Refused { status, .. } => Some(allowed_from(*status)),
            Self::AgentBusy { .. }
            | Self::StaleRun { .. }
            | Self::StaleVersion { .. }
            | Self::RigClosed { .. }
            | Self::Running { .. }
            | Self::NotInProgress { .. }
            | Self::Leased { .. } => None,
        }
    }

    /// A short name that programs can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused { refusal, .. } => match refusal {
                WorkRefusal::BlockedBy(_) => "blocked-by",
                WorkRefusal::Supervised { .. } | WorkRefusal::HeldBy { .. } => "held-by-run",
                WorkRefusal::NotAllowed { .. }
                | WorkRefusal::Pinned
                | WorkRefusal::NeedsAgent
                | WorkRefusal::NeedsOutcome(_)
                | WorkRefusal::WrongOutcome { .. }
                | WorkRefusal::OutcomeAlone => "not-allowed",
            },
            Self::AgentBusy { .. } => "agent-busy",
            Self::StaleRun { .. } => "stale-run",
            Self::StaleVersion { .. } => "stale-version",
            Self::RigClosed { .. } => "project-closed",
            Self::Running { .. } => "running",
            Self::NotInProgress { .. } => "not-in-progress",
            Self::Leased { .. } => "leased",
        }
    }
}

impl WorkError {
    /// A short name for what is wrong, where it has one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::NotFound { .. } => Some("not-found"),
            Self::NotForAgent { .. } => Some("forbidden"),
            Self::Conflict(conflict) => Some(conflict.code()),
            Self::Invalid { .. } | Self::InvalidItem { .. } => Some("invalid"),
            Self::Remote(error) => match &**error {
                RemoteError::Told { code, .. } => Some(code),
                RemoteError::Away(_) | RemoteError::Unsure(_) | RemoteError::Senseless { .. } => {
                    None
                }
            },
            Self::Operation(_) => None,
        }
    }

    /// The item that an agent has and that keeps it from having another, if that is what is wrong.
    pub fn busy_with(&self) -> Option<Uid> {
        match self {
            Self::Conflict(conflict) => match &**conflict {
                Conflict::AgentBusy { item, .. } => Some(*item),
                _ => None,
            },
            Self::Remote(error) => match &**error {
                RemoteError::Told { code, item, .. } if code == "agent-busy" => *item,
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the same may work in a moment.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::NotFound { .. }
            | Self::NotForAgent { .. }
            | Self::Conflict(_)
            | Self::Invalid { .. }
            | Self::InvalidItem { .. } => false,
            Self::Remote(error) => error.may_pass(),
            Self::Operation(error) => error.may_pass(),
        }
    }

    /// The same about one of several items, if it is about a field.
    pub(crate) fn of_item(self, at: usize) -> Self {
        match self {
            Self::Invalid { field, message } => Self::InvalidItem { at, field, message },
            other => other,
        }
    }

    /// A field that is wrong for this reason.
    pub fn invalid(field: &'static str, why: &Invalid) -> Self {
        Self::Invalid { field, message: why.to_string() }
    }

    /// The error for a refused change of an item's status.
    pub fn refused(bead: &BeadId, status: WorkStatus, refusal: WorkRefusal) -> Self {
        match refusal.field() {
            Some(field) => Self::Invalid { field, message: refusal.to_string() },
            None => Conflict::Refused { bead: bead.clone(), status, refusal }.into(),
        }
    }
}

impl From<Conflict> for WorkError {
    fn from(conflict: Conflict) -> Self {
        Self::Conflict(Box::new(conflict))
    }
}

impl From<RemoteError> for WorkError {
    fn from(error: RemoteError) -> Self {
        Self::Remote(Box::new(error))
    }
}

impl From<Invalid> for WorkError {
    fn from(invalid: Invalid) -> Self {
        Self::Operation(invalid.into())
    }
}

impl From<StoreError> for WorkError {
    fn from(error: StoreError) -> Self {
        Self::Operation(error.into())
    }
}

fn now_has(live: Option<&RunId>) -> String {
    live.map_or_else(
        || "; no run has it now: stop, your work on it is over".to_owned(),
        |live| format!("; {live} has it now: stop, your work on it is over"),
    )
}

fn opening(state: RigState) -> &'static str {
    match state {
        RigState::Active | RigState::Parked => "unpark",
        RigState::Docked => "undock",
    }
}
