//! What somebody who starts a session is told first.

use std::collections::HashMap;

use gt_core::schedule::{Run, StepProgress};
use gt_core::{BeadId, Message};
use gt_store::Reader;

use super::briefing::{Briefing, briefing_in};
use super::steps::progress_of_live;
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
    let mut runs = reader.live_runs()?;
    runs.reverse();
    let progress = progress_of_live(reader)?;
    let beads: Vec<BeadId> = runs.iter().map(|run| run.id.bead.clone()).collect();
    let titles: HashMap<BeadId, String> = reader
        .bead_rows(&beads)?
        .into_iter()
        .map(|row| (row.bead.id, row.bead.title.to_string()))
        .collect();
    let with_title = |run: Run| RunningRun {
        title: titles.get(&run.id.bead).cloned().unwrap_or_default(),
        progress: progress.get(&run.id).copied(),
        run,
    };
    Ok(runs.into_iter().map(with_title).collect())
}
