//! The first output for a new session.

use std::collections::HashMap;

use gt_core::schedule::{Run, StepProgress};
use gt_core::{BeadId, Message};
use gt_store::Reader;

use crate::briefing::{Briefing, briefing_in};
use gt_beads::messages::{MessageParty, needs_you_in, unread_in};
use gt_beads::run_records::resolve_run;
use gt_beads::steps::progress_of_live;
use gt_scheduling::fleet::{AwayHost, away_in};
use gt_scheduling::queue::{QueueStatus, status};
use gt_town::{OperationError, Result, Town};

/// The first output for a new session.
#[derive(Debug, Clone)]
pub enum PrimeOutput {
    /// A worker: its briefing.
    Worker(Box<Briefing>),
    /// Every other caller: the state of the town.
    Other(Box<TownOverview>),
}

/// The state of the town for a caller that is no worker.
#[derive(Debug, Clone)]
pub struct TownOverview {
    /// The caller.
    pub party: MessageParty,
    /// The scheduler in numbers.
    pub queue: QueueStatus,
    /// The live runs, newest first.
    pub running: Vec<RunningRun>,
    /// The messages that ask for a person.
    pub needs_you: Vec<Message>,
    /// The unread messages of the caller, oldest first.
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
    /// Why it is not known whether it lives: its host is away or gone.
    pub unknown: Option<String>,
}

/// The first output for the caller: for a worker, its run; for every other caller, the run that was asked for, or the
/// town. The caller is `role` if the environment says so. Messages do not count as seen because of this: the caller
/// marks them after it has shown them.
pub fn prime(town: &Town, role: Option<&str>, asked: Option<&str>) -> Result<PrimeOutput> {
    let primed = town.read(|reader| {
        let run = match (MessageParty::of(town, reader, role)?, asked) {
            (MessageParty::Worker(run), None) => *run,
            (MessageParty::Standing(_) | MessageParty::Person, Some(asked)) => {
                resolve_run(town, reader, asked)?
            }
            (MessageParty::Worker(run), Some(asked)) => {
                let other = resolve_run(town, reader, asked)?;
                if other.id != run.id {
                    return Err(OperationError::rejected(format!(
                        "GT_RUN says that you are the worker of {}; gt run show {} shows the other",
                        run.id, other.id
                    )));
                }
                other
            }
            (party @ (MessageParty::Standing(_) | MessageParty::Person), None) => {
                return Ok(Err(party));
            }
        };
        Ok(Ok(briefing_in(town, reader, run)?))
    })?;
    match primed {
        Ok(briefing) => Ok(PrimeOutput::Worker(Box::new(briefing))),
        Err(party) => overview(town, party).map(|overview| PrimeOutput::Other(Box::new(overview))),
    }
}

fn overview(town: &Town, party: MessageParty) -> Result<TownOverview> {
    let queue = status(town)?;
    town.read(|reader| {
        let running = running_in(reader)?;
        let (needs_you, unread) = (needs_you_in(reader, None)?, unread_in(reader, &party)?);
        Ok(TownOverview { party, queue, running, needs_you, unread })
    })
}

/// The live runs, newest first.
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
    let away = away_in(reader, &runs)?;
    let with_title = |run: Run| RunningRun {
        unknown: away.iter().find(|host| host.runs.contains(&run.id)).map(AwayHost::of_run),
        title: titles.get(&run.id.bead).cloned().unwrap_or_default(),
        progress: progress.get(&run.id).copied(),
        run,
    };
    Ok(runs.into_iter().map(with_title).collect())
}
