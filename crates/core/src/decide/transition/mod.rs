//! The status table: status × actor × verb × run.

mod held;
#[cfg(test)]
mod tests;

pub use held::LiveRun;

use crate::merging::MergeRequestId;
use crate::schedule::RunId;
use crate::{BeadId, IssueType, Status};

/// An action on a bead that a person or an agent asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// Claim it, unless another has it.
    Claim,
    /// Give it this status by hand. Closing and reopening this way are the same as by name, but
    /// closing asks for no permission.
    SetStatus(Status),
    /// Close it.
    Close {
        /// Past every guard except the one for templates.
        force: bool,
    },
    /// Open it again.
    Reopen,
    /// Not before a time to come: an open bead is deferred.
    PutOff,
    /// Assign it to this actor; empty removes the assignee.
    Assign(String),
    /// Remove it for good.
    Delete {
        /// Even while a run has it.
        force: bool,
    },
    /// Anything else that is kept with it: its text, labels, comments and dependencies, its place in the queue. Its
    /// status stays.
    Edit,
}

impl Verb {
    /// Whether the action is forced.
    fn is_forced(&self) -> bool {
        match self {
            Self::Close { force } | Self::Delete { force } => *force,
            Self::Claim
            | Self::SetStatus(_)
            | Self::Reopen
            | Self::PutOff
            | Self::Assign(_)
            | Self::Edit => false,
        }
    }
}

/// The actor that asks for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerbActor<'a> {
    /// The name they go by.
    pub name: &'a str,
    /// The run in which they act, if they are a worker.
    pub run: Option<&'a RunId>,
}

/// The facts that the table decides by.
#[derive(Debug, Clone)]
pub struct TransitionFacts<'a> {
    /// The bead.
    pub id: &'a BeadId,
    /// The bead's status; a deferred bead whose date has passed stands as open.
    pub status: &'a Status,
    /// The assignee; empty if there is none.
    pub assignee: &'a str,
    /// Its type.
    pub issue_type: &'a IssueType,
    /// Whether it is a fixed reference.
    pub pinned: bool,
    /// Whether it is a pattern for other beads.
    pub is_template: bool,
    /// Whether it has a child that is not closed.
    pub has_open_children: bool,
    /// The beads that block it now.
    pub blockers: &'a [BeadId],
    /// The run that has it.
    pub run: Option<LiveRun<'a>>,
    /// Its merge request that is not over.
    pub request: Option<&'a MergeRequestId>,
}

/// The change of the bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// It is that way already.
    Nothing,
    /// It is the actor's now.
    Claimed,
    /// It has this status now, which is not `closed`.
    Status(Status),
    /// It is over, possibly once more: a new close replaces the old one's reason and outcome.
    Closed,
    /// It is open again.
    Reopened,
    /// Another has it now.
    Assigned,
    /// It is gone.
    Deleted,
}

/// The change of the run that has the bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEffect {
    /// Nothing; or there is none.
    Untouched,
    /// Its worker has taken it.
    Taken,
    /// It ends the way the bead does, said by its worker.
    Ended,
    /// It is cancelled, before anything happens to the bead.
    Cancelled,
}

/// The answer of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerbDecision {
    /// The change of the bead.
    pub bead: Transition,
    /// The change of its run.
    pub run: RunEffect,
}

/// Why a verb is refused. The text names no bead; the caller that prints it adds the id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerbRefusal {
    /// Another has it.
    #[error("issue already claimed by {0}")]
    ClaimedBy(String),
    /// Its status does not allow a claim.
    #[error("issue not claimable: status {0}")]
    NotClaimable(Status),
    /// A closed bead must be reopened first.
    #[error("it is closed; open it again first with bd reopen")]
    Closed,
    /// It is a pattern for others.
    #[error("it is a template, and templates are never closed")]
    Template,
    /// It is a fixed reference.
    #[error("it is pinned (use --force to override)")]
    Pinned,
    /// It has open children.
    #[error("it is an epic with open children (use --force to override)")]
    OpenChildren,
    /// Something must be done first.
    #[error("blocked by open issues [{}] (use --force to override)", list(.0))]
    Blocked(Vec<BeadId>),
    /// A run has it, so it cannot be claimed.
    #[error("issue already claimed by {agent}, in the run {run}; {}", end_first(run))]
    ClaimedInRun {
        /// The run.
        run: RunId,
        /// The agent that works in it.
        agent: String,
    },
    /// A run has it.
    #[error(
        "{agent} has it in the run {run}; {}{}", end_first(run),
        if *force_helps { ", or use --force, which cancels the run" } else { "" }
    )]
    HeldByRun {
        /// The run.
        run: RunId,
        /// The agent that works in it.
        agent: String,
        /// Whether the same can be forced.
        force_helps: bool,
    },
    /// Its work is done, and a merge request decides what becomes of it.
    #[error(
        "its work is in the merge request {request}; give that up first with gt mq cancel {request}{}",
        if *force_helps { ", or use --force, which does that" } else { "" }
    )]
    InMergeQueue {
        /// The merge request.
        request: MergeRequestId,
        /// Whether the same can be forced.
        force_helps: bool,
    },
    /// Workers do not close the bead they work on.
    #[error("you are its worker in the run {0}; finish with gt done")]
    FinishWithDone(RunId),
    /// Its worker asks for a status or an assignee that only its run can set.
    #[error(
        "its status and its assignee are those of your run {run}; finish with {}, or give it back with \
         gt unsling {}",
        if *closes { "bd close" } else { "gt done" }, run.bead
    )]
    StatusOfRun {
        /// The run.
        run: RunId,
        /// Whether its worker ends it by closing the bead.
        closes: bool,
    },
    /// A worker of another run of the same bead.
    #[error("you act in the run {acting}, but {live} has it now; stop, your run is over")]
    Superseded {
        /// The run they act in.
        acting: RunId,
        /// The run that has the bead.
        live: RunId,
    },
    /// The worker of a run that has ended; no other run has the bead.
    #[error(
        "your run {0} is over, and nothing that you do counts any more; stop working, leave everything as it is, \
         and end your session"
    )]
    Over(RunId),
}

fn end_first(run: &RunId) -> String {
    format!("end that first with gt run cancel {run}")
}

fn list(ids: &[BeadId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The effect of `verb` on a bead with these facts, and on the run that has it, when `speaker` says it.
pub fn decide(
    verb: &Verb,
    facts: &TransitionFacts<'_>,
    speaker: VerbActor<'_>,
) -> Result<VerbDecision, VerbRefusal> {
    if let Some(run) = &facts.run {
        return held::decide(verb, facts, run, speaker);
    }
    // An action from a run carries the run's number, also when no other run has come after it.
    if let Some(acting) = speaker.run.filter(|acting| acting.bead == *facts.id) {
        return Err(VerbRefusal::Over(acting.clone()));
    }
    let bead = unheld(verb, facts, speaker.name)?;
    if let Some(request) = facts.request
        && bead != Transition::Nothing
        && !verb.is_forced()
    {
        let force_helps = matches!(verb, Verb::Close { .. } | Verb::Delete { .. });
        return Err(VerbRefusal::InMergeQueue { request: request.clone(), force_helps });
    }
    Ok(VerbDecision { bead, run: RunEffect::Untouched })
}

/// The table for a bead that no run has.
fn unheld(
    verb: &Verb,
    facts: &TransitionFacts<'_>,
    actor: &str,
) -> Result<Transition, VerbRefusal> {
    let current = facts.status;
    match verb {
        Verb::Claim => match current {
            Status::Open if facts.assignee.is_empty() || facts.assignee == actor => {
                Ok(Transition::Claimed)
            }
            Status::InProgress if facts.assignee == actor => Ok(Transition::Nothing),
            Status::Open | Status::InProgress | Status::Hooked if !facts.assignee.is_empty() => {
                Err(VerbRefusal::ClaimedBy(facts.assignee.to_owned()))
            }
            other => Err(VerbRefusal::NotClaimable(other.clone())),
        },
        Verb::SetStatus(wanted) => match (current, wanted) {
            (_, Status::Closed) if facts.is_template => Err(VerbRefusal::Template),
            (Status::Closed, Status::Closed) => Ok(Transition::Nothing),
            (_, Status::Closed) => Ok(Transition::Closed),
            (Status::Closed, Status::Open) => Ok(Transition::Reopened),
            (Status::Closed, _) => Err(VerbRefusal::Closed),
            (current, wanted) if current == wanted => Ok(Transition::Nothing),
            (_, wanted) => Ok(Transition::Status(wanted.clone())),
        },
        Verb::Close { force } => {
            if facts.is_template {
                return Err(VerbRefusal::Template);
            }
            if *force || *current == Status::Closed {
                return Ok(Transition::Closed);
            }
            if facts.pinned || *current == Status::Pinned {
                return Err(VerbRefusal::Pinned);
            }
            if facts.issue_type.is_epic() && facts.has_open_children {
                return Err(VerbRefusal::OpenChildren);
            }
            if !facts.blockers.is_empty() {
                return Err(VerbRefusal::Blocked(facts.blockers.to_vec()));
            }
            Ok(Transition::Closed)
        }
        Verb::Reopen => match current {
            Status::Open => Ok(Transition::Nothing),
            Status::Closed => Ok(Transition::Reopened),
            _ => Ok(Transition::Status(Status::Open)),
        },
        Verb::PutOff => match current {
            Status::Open => Ok(Transition::Status(Status::Deferred)),
            _ => Ok(Transition::Nothing),
        },
        Verb::Assign(to) if to == facts.assignee => Ok(Transition::Nothing),
        Verb::Assign(_) => Ok(Transition::Assigned),
        Verb::Delete { .. } => Ok(Transition::Deleted),
        Verb::Edit => Ok(Transition::Nothing),
    }
}
