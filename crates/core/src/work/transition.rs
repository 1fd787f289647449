//! The table of the work queue: status × wish × run.

use super::status::WorkStatus;
use crate::schedule::RunId;
use crate::{BeadId, ExecutorKind, Outcome};

#[cfg(test)]
#[path = "transition_tests.rs"]
mod tests;

/// The run that has an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder<'a> {
    /// Which run.
    pub run: &'a RunId,
    /// How it is carried out.
    pub executor: ExecutorKind,
    /// Who works in it.
    pub agent: &'a str,
}

/// What the table looks at.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// Where the item stands.
    pub status: WorkStatus,
    /// Who has it or is to have it; empty for nobody.
    pub agent: &'a str,
    /// The run that has it.
    pub holder: Option<Holder<'a>>,
    /// What must be done first.
    pub blockers: &'a [BeadId],
    /// Whether it is a fixed reference, and no work.
    pub pinned: bool,
}

/// What somebody wants for the agent of an item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AgentWish {
    /// Whoever it is.
    #[default]
    Keep,
    /// Nobody.
    Nobody,
    /// This one.
    Is(String),
}

/// What somebody wants to change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// Where it should stand.
    pub status: Option<WorkStatus>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Who should have it.
    pub agent: AgentWish,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it stands like that already.
    Nothing,
    /// Another is to have it when it is dispatched, or nobody; no run has it.
    Assign(String),
    /// This agent gets it; whoever had it until now has not begun and loses it.
    Dispatch(String),
    /// Its agent has picked it up.
    Start,
    /// Its agent waits for something.
    Block,
    /// Its agent goes on.
    Resume,
    /// It goes back to the queue; whoever had it loses it. Afterwards it is this one's, or nobody's.
    Requeue(String),
    /// It is over, as its agent says.
    Finish(Outcome),
    /// It is called off.
    Cancel,
}

/// Why the table says no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// From here it does not go there.
    #[error("a work item that is {from} cannot become {to}; {}", go(*from))]
    NotAllowed {
        /// Where it stands.
        from: WorkStatus,
        /// Where it was to stand.
        to: WorkStatus,
    },
    /// A worker of ours has it, and its run says how it stands.
    #[error("{agent} has it in the run {run}, which says how it stands; {}", command_for(*wanted, run))]
    Supervised {
        /// Which run.
        run: RunId,
        /// Who works in it.
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
        /// Which run.
        run: RunId,
        /// Who works in it.
        agent: String,
    },
    /// Nobody was named.
    #[error("it cannot be dispatched to nobody; name the agent")]
    NeedsAgent,
    /// How it ended was not said.
    #[error("{0} needs an outcome; give {expected}", expected = outcome_of(*.0))]
    NeedsOutcome(WorkStatus),
    /// How it ended contradicts where it is to stand.
    #[error("the outcome {} does not go with {to}; give {expected}", given.as_str(), expected = outcome_of(*to))]
    WrongOutcome {
        /// Where it is to stand.
        to: WorkStatus,
        /// What was said.
        given: Outcome,
    },
    /// How it ended was said of something that does not end.
    #[error("an outcome goes with the status completed, failed or cancelled, and with no other")]
    OutcomeAlone,
}

impl Refusal {
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

/// What is to be done so that an item that stands like this stands as somebody wishes.
pub fn decide(situation: &Situation<'_>, wish: &Wish) -> Result<Step, Refusal> {
    let wanted_agent = match &wish.agent {
        AgentWish::Keep => None,
        AgentWish::Nobody => Some(""),
        AgentWish::Is(agent) => Some(agent.as_str()),
    };
    let agent_changes = wanted_agent.is_some_and(|agent| agent != situation.agent);
    if let Some(holder) = situation.holder
        && is_supervised(holder.executor)
        && (wish.status.is_some_and(|to| to != situation.status) || agent_changes)
    {
        let (run, agent) = (holder.run.clone(), holder.agent.to_owned());
        return Err(Refusal::Supervised { run, agent, wanted: wish.status });
    }
    let Some(to) = wish.status else {
        return without_status(situation, wish, wanted_agent.filter(|_| agent_changes));
    };
    let from = situation.status;
    // It stands like that already. What is dispatched once more goes to another agent, or begins.
    if to == from && to != WorkStatus::Dispatched {
        if wish.outcome.is_some() {
            check_outcome(to, wish.outcome)?;
        }
        let said = Wish { outcome: None, ..wish.clone() };
        return without_status(situation, &said, wanted_agent.filter(|_| agent_changes));
    }
    if !allowed_from(from).contains(&to) {
        return Err(Refusal::NotAllowed { from, to });
    }
    check_outcome(to, wish.outcome)?;
    match to {
        WorkStatus::Dispatched => dispatch(situation, wanted_agent, agent_changes),
        WorkStatus::Queued => Ok(Step::Requeue(wanted_agent.unwrap_or_default().to_owned())),
        // Whoever begins, waits or ends is the one who has it.
        WorkStatus::InProgress
        | WorkStatus::Blocked
        | WorkStatus::Completed
        | WorkStatus::Failed => {
            if agent_changes && let Some(holder) = situation.holder {
                let (run, agent) = (holder.run.clone(), holder.agent.to_owned());
                return Err(Refusal::HeldBy { run, agent });
            }
            Ok(match to {
                WorkStatus::Blocked => Step::Block,
                WorkStatus::InProgress if from == WorkStatus::Blocked => Step::Resume,
                WorkStatus::InProgress => Step::Start,
                WorkStatus::Failed => Step::Finish(Outcome::Failed),
                _ => Step::Finish(Outcome::Success),
            })
        }
        WorkStatus::Cancelled => Ok(Step::Cancel),
    }
}

fn dispatch(
    situation: &Situation<'_>,
    wanted_agent: Option<&str>,
    agent_changes: bool,
) -> Result<Step, Refusal> {
    let agent = wanted_agent.unwrap_or(situation.agent);
    if agent.is_empty() {
        return Err(Refusal::NeedsAgent);
    }
    if situation.status == WorkStatus::Dispatched && situation.holder.is_some() && !agent_changes {
        return Ok(Step::Nothing);
    }
    if situation.pinned {
        return Err(Refusal::Pinned);
    }
    if !situation.blockers.is_empty() {
        return Err(Refusal::BlockedBy(situation.blockers.to_vec()));
    }
    Ok(Step::Dispatch(agent.to_owned()))
}

/// What a wish means that says nothing about where the item is to stand. `agent` is who is to have it and does not.
fn without_status(
    situation: &Situation<'_>,
    wish: &Wish,
    agent: Option<&str>,
) -> Result<Step, Refusal> {
    if wish.outcome.is_some() {
        return Err(Refusal::OutcomeAlone);
    }
    let Some(agent) = agent else { return Ok(Step::Nothing) };
    if let Some(holder) = situation.holder {
        let (run, agent) = (holder.run.clone(), holder.agent.to_owned());
        return Err(Refusal::HeldBy { run, agent });
    }
    if situation.status.is_terminal() {
        let (from, to) = (situation.status, WorkStatus::Dispatched);
        return Err(Refusal::NotAllowed { from, to });
    }
    Ok(Step::Assign(agent.to_owned()))
}

/// Whether it has to be said how something ended, and was said rightly.
fn check_outcome(to: WorkStatus, given: Option<Outcome>) -> Result<(), Refusal> {
    match (to.outcome(), given) {
        (None | Some(Outcome::Cancelled), None) => Ok(()),
        (None, Some(_)) => Err(Refusal::OutcomeAlone),
        (Some(_), None) => Err(Refusal::NeedsOutcome(to)),
        (Some(right), Some(given)) if right == given => Ok(()),
        (Some(_), Some(given)) => Err(Refusal::WrongOutcome { to, given }),
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
