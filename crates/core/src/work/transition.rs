//! The table of the work queue: status × wish × run.

use super::status::WorkStatus;
use crate::schedule::RunId;
use crate::{BeadId, ExecutorKind, Outcome};

#[cfg(test)]
#[path = "transition_tests.rs"]
mod tests;

/// The run that has an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemHolder<'a> {
    /// The run.
    pub run: &'a RunId,
    /// Its executor.
    pub executor: ExecutorKind,
    /// The agent that works in it.
    pub agent: &'a str,
}

/// The facts that the table decides by.
#[derive(Debug, Clone, Copy)]
pub struct WorkFacts<'a> {
    /// The status of the item.
    pub status: WorkStatus,
    /// The agent that has it or is to have it; empty if there is none.
    pub agent: &'a str,
    /// The run that has it.
    pub holder: Option<ItemHolder<'a>>,
    /// The beads that must be done first.
    pub blockers: &'a [BeadId],
    /// Whether it is a fixed reference, and no work.
    pub pinned: bool,
}

/// The agent that a client wishes for an item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AgentChange {
    /// The present one.
    #[default]
    Keep,
    /// No agent.
    Unassigned,
    /// This agent.
    Is(String),
}

/// The change that a client wishes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkChange {
    /// The status that it should have.
    pub status: Option<WorkStatus>,
    /// The outcome.
    pub outcome: Option<Outcome>,
    /// The agent that should have it.
    pub agent: AgentChange,
}

/// The step that fulfils a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkStep {
    /// Nothing: it stands like that already.
    Nothing,
    /// Another agent is to have it when it is dispatched, or none; no run has it.
    Assign(String),
    /// This agent gets it; the agent that had it until now has not begun and loses it.
    Dispatch(String),
    /// Its agent has picked it up.
    Start,
    /// Its agent waits for something.
    Block,
    /// Its agent goes on.
    Resume,
    /// It goes back to the queue; the agent that had it loses it. Afterwards it is assigned to this one, or to none.
    Requeue(String),
    /// It is over, as its agent says.
    Finish(Outcome),
    /// It is cancelled.
    Cancel,
}

/// Why a change is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkRefusal {
    /// The status does not change from this to that.
    #[error("a work item that is {from} cannot become {to}; {}", go(*from))]
    NotAllowed {
        /// The present status.
        from: WorkStatus,
        /// The wanted status.
        to: WorkStatus,
    },
    /// A worker of ours has it, and its run says how it stands.
    #[error("{agent} has it in the run {run}, which says how it stands; {}", command_for(*wanted, run))]
    Supervised {
        /// The run.
        run: RunId,
        /// The agent that works in it.
        agent: String,
        /// Where it was to stand, if that was the wish.
        wanted: Option<WorkStatus>,
    },
    /// Something must be done first.
    #[error("it is blocked by {}; it can be dispatched when they are done", list(.0))]
    BlockedBy(Vec<BeadId>),
    /// It is a fixed reference.
    #[error("it is pinned, and pinned items are never dispatched")]
    Pinned,
    /// Another has it.
    #[error(
        "{agent} has it in the run {run}; dispatch it to another agent while it is dispatched, or queue it first"
    )]
    HeldBy {
        /// The run.
        run: RunId,
        /// The agent that works in it.
        agent: String,
    },
    /// No agent was named.
    #[error("it cannot be dispatched without an agent; name the agent")]
    NeedsAgent,
    /// The outcome is missing.
    #[error("{0} needs an outcome; give {expected}", expected = outcome_of(*.0))]
    NeedsOutcome(WorkStatus),
    /// How it ended contradicts where it is to stand.
    #[error("the outcome {} does not go with {to}; give {expected}", given.as_str(), expected = outcome_of(*to))]
    WrongOutcome {
        /// The wanted status.
        to: WorkStatus,
        /// The given outcome.
        given: Outcome,
    },
    /// How it ended was said of something that does not end.
    #[error("an outcome goes with the status completed, failed or cancelled, and with no other")]
    OutcomeAlone,
}

impl WorkRefusal {
    /// The field that is wrong, if the request is and not the moment.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::NotAllowed { .. }
            | Self::Supervised { .. }
            | Self::BlockedBy(_)
            | Self::Pinned
            | Self::HeldBy { .. } => None,
            Self::NeedsAgent => Some("assigned_agent"),
            Self::NeedsOutcome(_) | Self::WrongOutcome { .. } | Self::OutcomeAlone => {
                Some("outcome")
            }
        }
    }
}

/// Where an item that stands like this can go.
pub fn allowed_from(status: WorkStatus) -> &'static [WorkStatus] {
    use WorkStatus::{Blocked, Cancelled, Completed, Dispatched, Failed, InProgress, Queued};
    match status {
        Queued => &[Dispatched, Cancelled],
        // Once more, for another agent.
        Dispatched => &[Queued, Dispatched, InProgress, Cancelled],
        InProgress => &[Blocked, Completed, Failed],
        Blocked => &[Queued, InProgress, Failed],
        Completed | Failed | Cancelled => &[],
    }
}

/// The step that changes an item in this situation as the client wishes.
pub fn decide(situation: &WorkFacts<'_>, wish: &WorkChange) -> Result<WorkStep, WorkRefusal> {
    let wanted_agent = match &wish.agent {
        AgentChange::Keep => None,
        AgentChange::Unassigned => Some(""),
        AgentChange::Is(agent) => Some(agent.as_str()),
    };
    let agent_changes = wanted_agent.is_some_and(|agent| agent != situation.agent);
    if let Some(holder) = situation.holder
        && is_supervised(holder.executor)
        && (wish.status.is_some_and(|to| to != situation.status) || agent_changes)
    {
        let (run, agent) = (holder.run.clone(), holder.agent.to_owned());
        return Err(WorkRefusal::Supervised { run, agent, wanted: wish.status });
    }
    let Some(to) = wish.status else {
        return without_status(situation, wish, wanted_agent.filter(|_| agent_changes));
    };
    let from = situation.status;
    // It stands like that already. An item that is dispatched once more goes to another agent, or begins.
    if to == from && to != WorkStatus::Dispatched {
        if wish.outcome.is_some() {
            check_outcome(to, wish.outcome)?;
        }
        let said = WorkChange { outcome: None, ..wish.clone() };
        return without_status(situation, &said, wanted_agent.filter(|_| agent_changes));
    }
    if !allowed_from(from).contains(&to) {
        return Err(WorkRefusal::NotAllowed { from, to });
    }
    check_outcome(to, wish.outcome)?;
    match to {
        WorkStatus::Dispatched => dispatch(situation, wanted_agent, agent_changes),
        WorkStatus::Queued => Ok(WorkStep::Requeue(wanted_agent.unwrap_or_default().to_owned())),
        // The agent that begins, waits or ends is the one that has it.
        WorkStatus::InProgress
        | WorkStatus::Blocked
        | WorkStatus::Completed
        | WorkStatus::Failed => {
            if agent_changes && let Some(holder) = situation.holder {
                let (run, agent) = (holder.run.clone(), holder.agent.to_owned());
                return Err(WorkRefusal::HeldBy { run, agent });
            }
            Ok(match to {
                WorkStatus::Blocked => WorkStep::Block,
                WorkStatus::InProgress if from == WorkStatus::Blocked => WorkStep::Resume,
                WorkStatus::InProgress => WorkStep::Start,
                WorkStatus::Failed => WorkStep::Finish(Outcome::Failed),
                _ => WorkStep::Finish(Outcome::Success),
            })
        }
        WorkStatus::Cancelled => Ok(WorkStep::Cancel),
    }
}

fn dispatch(
    situation: &WorkFacts<'_>,
    wanted_agent: Option<&str>,
    agent_changes: bool,
) -> Result<WorkStep, WorkRefusal> {
    let agent = wanted_agent.unwrap_or(situation.agent);
    if agent.is_empty() {
        return Err(WorkRefusal::NeedsAgent);
    }
    if situation.status == WorkStatus::Dispatched && situation.holder.is_some() && !agent_changes {
        return Ok(WorkStep::Nothing);
    }
    if situation.pinned {
        return Err(WorkRefusal::Pinned);
    }
    if !situation.blockers.is_empty() {
        return Err(WorkRefusal::BlockedBy(situation.blockers.to_vec()));
    }
    Ok(WorkStep::Dispatch(agent.to_owned()))
}

/// The step for a wish that names no status. `agent` is the agent that is to have it and does not.
fn without_status(
    situation: &WorkFacts<'_>,
    wish: &WorkChange,
    agent: Option<&str>,
) -> Result<WorkStep, WorkRefusal> {
    if wish.outcome.is_some() {
        return Err(WorkRefusal::OutcomeAlone);
    }
    let Some(agent) = agent else { return Ok(WorkStep::Nothing) };
    if let Some(holder) = situation.holder {
        let (run, agent) = (holder.run.clone(), holder.agent.to_owned());
        return Err(WorkRefusal::HeldBy { run, agent });
    }
    if situation.status.is_terminal() {
        let (from, to) = (situation.status, WorkStatus::Dispatched);
        return Err(WorkRefusal::NotAllowed { from, to });
    }
    Ok(WorkStep::Assign(agent.to_owned()))
}

/// Whether it has to be said how something ended, and was said rightly.
fn check_outcome(to: WorkStatus, given: Option<Outcome>) -> Result<(), WorkRefusal> {
    match (to.outcome(), given) {
        (None | Some(Outcome::Cancelled), None) => Ok(()),
        (None, Some(_)) => Err(WorkRefusal::OutcomeAlone),
        (Some(_), None) => Err(WorkRefusal::NeedsOutcome(to)),
        (Some(right), Some(given)) if right == given => Ok(()),
        (Some(_), Some(given)) => Err(WorkRefusal::WrongOutcome { to, given }),
    }
}

/// Whether a process of ours says how a run stands.
fn is_supervised(executor: ExecutorKind) -> bool {
    match executor {
        ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh => true,
        ExecutorKind::Pull | ExecutorKind::None => false,
    }
}

fn go(from: WorkStatus) -> String {
    let names: Vec<&str> = allowed_from(from).iter().map(|status| status.as_str()).collect();
    if names.is_empty() {
        "it is over, and only bd reopen opens it again".to_owned()
    } else {
        format!("from here it can become {}", names.join(", "))
    }
}

fn outcome_of(to: WorkStatus) -> &'static str {
    to.outcome().map_or("none", Outcome::as_str)
}

fn command_for(wanted: Option<WorkStatus>, run: &RunId) -> String {
    match wanted {
        Some(WorkStatus::Queued | WorkStatus::Dispatched | WorkStatus::Cancelled) | None => {
            format!("end that first with gt run cancel {run}")
        }
        Some(WorkStatus::InProgress) => format!("gt run show {run} says how far it is"),
        Some(WorkStatus::Blocked | WorkStatus::Completed | WorkStatus::Failed) => {
            format!("its worker finishes with gt done, or end it with gt run cancel {run}")
        }
    }
}

fn list(ids: &[BeadId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
