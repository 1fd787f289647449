//! The part of the status table for beads that a run has.

use super::{
    RunEffect, Transition, TransitionFacts, Verb, VerbActor, VerbDecision, VerbRefusal, unheld,
};
use crate::schedule::{Run, RunId, RunState};
use crate::{ExecutorKind, Status};

/// A run that has a bead, as far as the table looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRun<'a> {
    id: &'a RunId,
    state: RunState,
    executor: ExecutorKind,
    agent: &'a str,
}

impl<'a> LiveRun<'a> {
    /// The run, if it is live.
    pub fn of(run: &'a Run) -> Option<Self> {
        let Run { id, state, executor, agent, .. } = run;
        Self::new(id, *state, *executor, agent)
    }

    pub(super) fn new(
        id: &'a RunId,
        state: RunState,
        executor: ExecutorKind,
        agent: &'a str,
    ) -> Option<Self> {
        state.is_live().then_some(Self { id, state, executor, agent })
    }

    /// The relation of a speaker to the run. A worker names the run it acts in; where there is no process that
    /// could be told to, its name counts.
    pub(super) fn relation(&self, speaker: VerbActor<'_>) -> Relation {
        match speaker.run {
            Some(acting) if acting == self.id => return Relation::Worker(self.manner()),
            Some(acting) if acting.bead == self.id.bead => {
                return Relation::Superseded(acting.clone());
            }
            Some(_) | None => {}
        }
        match self.manner() {
            manner @ (WorkerBinding::Pulling | WorkerBinding::Alone)
                if speaker.name == self.agent =>
            {
                Relation::Worker(manner)
            }
            WorkerBinding::Supervised | WorkerBinding::Pulling | WorkerBinding::Alone => {
                Relation::Stranger
            }
        }
    }

    fn manner(&self) -> WorkerBinding {
        match self.executor {
            ExecutorKind::Tmux | ExecutorKind::Process | ExecutorKind::Ssh => {
                WorkerBinding::Supervised
            }
            ExecutorKind::Pull => WorkerBinding::Pulling,
            ExecutorKind::None => WorkerBinding::Alone,
        }
    }
}

/// The way in which a worker is bound to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerBinding {
    /// A process whose supervisor has taken the run for it.
    Supervised,
    /// An agent that asks for work, and takes the run itself.
    Pulling,
    /// A person or a standing agent: there is no process, so the bead is all they have to say things by.
    Alone,
}

/// The relation of a speaker to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Relation {
    /// The speaker is the worker of the run.
    Worker(WorkerBinding),
    /// They act in another run of the same bead, which this one has fenced off.
    Superseded(RunId),
    /// They have nothing to do with it.
    Stranger,
}

/// The table for a bead that `run` has.
pub(super) fn decide(
    verb: &Verb,
    facts: &TransitionFacts<'_>,
    run: &LiveRun<'_>,
    speaker: VerbActor<'_>,
) -> Result<VerbDecision, VerbRefusal> {
    let relation = run.relation(speaker);
    if let Relation::Superseded(acting) = relation {
        return Err(VerbRefusal::Superseded { acting, live: run.id.clone() });
    }
    let unchanged = match verb {
        Verb::SetStatus(wanted) => wanted == facts.status,
        Verb::Assign(to) => to == facts.assignee,
        Verb::Edit => true,
        Verb::Claim | Verb::Close { .. } | Verb::Reopen | Verb::PutOff | Verb::Delete { .. } => {
            false
        }
    };
    if unchanged {
        return Ok(NOTHING);
    }
    match relation {
        Relation::Worker(manner) => by_worker(verb, facts, run, manner, speaker),
        Relation::Superseded(_) | Relation::Stranger => by_stranger(verb, facts, run, speaker),
    }
}

const NOTHING: VerbDecision = VerbDecision { bead: Transition::Nothing, run: RunEffect::Untouched };

fn by_worker(
    verb: &Verb,
    facts: &TransitionFacts<'_>,
    run: &LiveRun<'_>,
    manner: WorkerBinding,
    speaker: VerbActor<'_>,
) -> Result<VerbDecision, VerbRefusal> {
    let closes = manner == WorkerBinding::Alone;
    match verb {
        Verb::Edit => Ok(NOTHING),
        Verb::Claim | Verb::SetStatus(Status::InProgress) => match (manner, run.state) {
            (WorkerBinding::Pulling | WorkerBinding::Alone, RunState::Starting) => {
                let bead = Transition::Status(Status::InProgress);
                Ok(VerbDecision { bead, run: RunEffect::Taken })
            }
            _ => Ok(NOTHING),
        },
        Verb::Close { .. } | Verb::SetStatus(Status::Closed) if closes => {
            let bead = unheld(verb, facts, speaker.name)?;
            Ok(VerbDecision { bead, run: RunEffect::Ended })
        }
        Verb::Delete { force: true } if closes => by_stranger(verb, facts, run, speaker),
        Verb::Close { .. } | Verb::SetStatus(Status::Closed) | Verb::Delete { force: true } => {
            Err(VerbRefusal::FinishWithDone(run.id.clone()))
        }
        Verb::SetStatus(_)
        | Verb::Reopen
        | Verb::PutOff
        | Verb::Assign(_)
        | Verb::Delete { force: false } => {
            Err(VerbRefusal::StatusOfRun { run: run.id.clone(), closes })
        }
    }
}

fn by_stranger(
    verb: &Verb,
    facts: &TransitionFacts<'_>,
    run: &LiveRun<'_>,
    speaker: VerbActor<'_>,
) -> Result<VerbDecision, VerbRefusal> {
    if verb.is_forced() {
        let bead = unheld(verb, facts, speaker.name)?;
        return Ok(VerbDecision { bead, run: RunEffect::Cancelled });
    }
    let (run, agent) = (run.id.clone(), run.agent.to_owned());
    Err(match verb {
        Verb::Edit => return Ok(NOTHING),
        Verb::Claim => VerbRefusal::ClaimedInRun { run, agent },
        Verb::Close { .. } | Verb::Delete { .. } => {
            VerbRefusal::HeldByRun { run, agent, force_helps: true }
        }
        Verb::SetStatus(_) | Verb::Reopen | Verb::PutOff | Verb::Assign(_) => {
            VerbRefusal::HeldByRun { run, agent, force_helps: false }
        }
    })
}
