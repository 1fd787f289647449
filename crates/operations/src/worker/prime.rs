//! What somebody who starts a session is told first.

use gt_core::Message;
use gt_core::schedule::{Run, StepProgress};
use gt_store::Reader;

use super::briefing::{Briefing, briefing_in};
use super::steps::progress_in;
use crate::messages::{Party, needs_you_in, unread_in};
use crate::queue::{QueueStatus, status};
use crate::runs::resolve_run;
use crate::{OperationError, Result, Town};

/// What somebody who starts a session is told.
#[derive(Debug, Clone)]
pub enum Primed {
    /// A worker: what is to be done.
    Worker(Box<Briefing>),
    /// Everybody else: how the town stands.
    Other(Box<Overview>),
}

/// How the town stands for somebody who is no worker.
#[derive(Debug, Clone)]
pub struct Overview {
    /// Who they are.
    pub party: Party,
    /// The scheduler in numbers.
    pub queue: QueueStatus,
    /// What runs, newest first.
    pub running: Vec<RunningRun>,
    /// Who asks for a person.
    pub needs_you: Vec<Message>,
    /// What they have not read, oldest first.
    pub unread: Vec<Message>,
}

/// A live run, for people.
#[derive(Debug, Clone)]
pub struct RunningRun {
    /// The run, without its steps.
    pub run: Run,
    /// The title of its bead.
    pub title: String,
    /// How many of its steps are done.
    pub progress: Option<StepProgress>,
}

/// What the caller is told: the worker of a run about that run, everybody else about the run that was asked for, or
/// about the town. The caller is `role` if the environment says so. Nothing counts as seen because of this: whoever
/// shows it says so afterwards.
pub fn prime(town: &Town, role: Option<&str>, asked: Option<&str>) -> Result<Primed> {
    let primed = town.read(|reader| {
        let run = match (Party::of(town, reader, role)?, asked) {
            (Party::Worker(run), None) => *run,
            (Party::Standing(_) | Party::Person, Some(asked)) => resolve_run(town, reader, asked)?,
            (Party::Worker(run), Some(asked)) => {
                let other = resolve_run(town, reader, asked)?;
                if other.id != run.id {
                    return Err(OperationError::rejected(format!(
                        "GT_RUN says that you are the worker of {}; gt run show {} shows the other",
                        run.id, other.id
                    )));
                }
                other
            }
            (party @ (Party::Standing(_) | Party::Person), None) => return Ok(Err(party)),
        };
        Ok(Ok(briefing_in(reader, run)?))
    })?;
    match primed {
        Ok(briefing) => Ok(Primed::Worker(Box::new(briefing))),
        Err(party) => overview(town, party).map(|overview| Primed::Other(Box::new(overview))),
    }
}

fn overview(town: &Town, party: Party) -> Result<Overview> {
    let queue = status(town)?;
    town.read(|reader| {
        let running = running_in(reader)?;
        let (needs_you, unread) = (needs_you_in(reader, None)?, unread_in(reader, &party)?);
        Ok(Overview { party, queue, running, needs_you, unread })
    })
}

/// What runs, newest first.
pub fn running(town: &Town) -> Result<Vec<RunningRun>> {
    town.read(running_in)
}

fn running_in(reader: &Reader<'_>) -> Result<Vec<RunningRun>> {
    let mut running = Vec::new();
    for run in reader.live_runs()?.into_iter().rev() {
        let title = reader.bead(&run.id.bead)?.map(|bead| bead.title.to_string());
        let progress = progress_in(reader, &run)?;
        running.push(RunningRun { run, title: title.unwrap_or_default(), progress });
    }
    Ok(running)
}
