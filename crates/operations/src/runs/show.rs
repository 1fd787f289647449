//! Looking at runs.

use std::path::PathBuf;

use gt_core::schedule::{Context, Run, RunId, RunState, StepProgress};
use gt_core::{Bead, RigSlug};
use gt_executors::runs::RunFiles;
use gt_store::Reader;

use super::remote::reach;
use super::world::{Alive, World};
use crate::beads::resolve_in;
use crate::recovery::{Need, needs_of};
use crate::worker::{StepsOfRun, progress_in, progress_of_live, steps_in};
use crate::{OperationError, Result, Town};

/// Which runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Those that have ended, too; otherwise only live ones, unless a bead or a state is named.
    pub all: bool,
    /// Only of this bead.
    pub bead: Option<String>,
    /// Only in this rig.
    pub rig: Option<RigSlug>,
    /// Only in this state.
    pub state: Option<RunState>,
    /// At most so many.
    pub limit: usize,
}

/// A run with what stands around it.
#[derive(Debug, Clone)]
pub struct ShownRun {
    /// The run.
    pub run: Run,
    /// Its steps as they stand.
    pub steps: StepsOfRun,
    /// What it works on.
    pub bead: Option<Bead>,
    /// How it was scheduled.
    pub context: Option<Context>,
    /// Whether any process of it is left.
    pub alive: Alive,
    /// Whether it runs, or ran, on this machine and in this directory.
    pub is_here: bool,
    /// The other machine that it was sent to, if it was.
    pub elsewhere: Option<Elsewhere>,
    /// What about it needs a person.
    pub needs: Vec<Need>,
    /// Where its output is kept.
    pub log: PathBuf,
}

impl ShownRun {
    /// Whether its agent goes on without anybody who looks after it.
    pub fn is_unsupervised(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, Need::Unsupervised(..)))
    }
}

/// Another machine that a run was sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// As ssh calls it.
    pub machine: String,
    /// Why it cannot be reached, if it could not when it was last tried.
    pub away: Option<String>,
}

/// A run in a list.
#[derive(Debug, Clone)]
pub struct ListedRun {
    /// The run.
    pub run: Run,
    /// The title of its bead; empty if that is gone.
    pub title: String,
    /// How many of its steps are done; nothing if it follows no recipe.
    pub progress: Option<StepProgress>,
}

/// The runs that the filter admits, newest first.
pub fn list(town: &Town, filter: &RunFilter) -> Result<Vec<ListedRun>> {
    town.read(|reader| {
        let mut runs = match &filter.bead {
            Some(input) => reader.runs_of(&resolve_in(town, reader, input)?)?,
            None if filter.all || filter.state.is_some_and(|state| !state.is_live()) => {
                let is_narrowed = filter.rig.is_some() || filter.state.is_some();
                reader.recent_runs(if is_narrowed { usize::MAX } else { filter.limit })?
            }
            None => {
                let mut live = reader.live_runs()?;
                live.reverse();
                live
            }
        };
        runs.retain(|run| {
            filter.rig.as_ref().is_none_or(|rig| run.rig == *rig)
                && filter.state.is_none_or(|state| run.state == state)
        });
        runs.truncate(filter.limit);
        // Live ones were read without their steps.
        let live = progress_of_live(reader)?;
        let with_title = |run: Run| {
            let title = reader.bead(&run.id.bead)?.map(|bead| bead.title.to_string());
            let progress = match live.get(&run.id) {
                Some(progress) => Some(*progress),
                None => progress_in(reader, &run)?,
            };
            Ok(ListedRun { run, title: title.unwrap_or_default(), progress })
        };
        runs.into_iter().map(with_title).collect()
    })
}

/// The run that `input` means: `gt-abc#3`, or a bead, whose live or last run it is.
pub fn resolve(town: &Town, input: &str) -> Result<Run> {
    town.read(|reader| resolve_run(town, reader, input))
}

/// Like [`resolve`], as a part of something larger.
pub(crate) fn resolve_run(town: &Town, reader: &Reader<'_>, input: &str) -> Result<Run> {
    if let Ok(id) = RunId::parse(input)
        && let Some(run) = reader.run(&id)?
    {
        return Ok(run);
    }
    let has_epoch = input.rsplit_once('#').filter(|(_, epoch)| epoch.parse::<u32>().is_ok());
    let bead = resolve_in(town, reader, has_epoch.map_or(input, |(bead, _)| bead))?;
    let runs = reader.runs_of(&bead)?;
    let epoch = has_epoch.and_then(|(_, epoch)| epoch.parse::<u32>().ok());
    let found = runs.into_iter().find(|run| epoch.is_none_or(|epoch| run.id.epoch == epoch));
    found.ok_or_else(|| match epoch {
        Some(epoch) => OperationError::rejected(format!(
            "{bead} has no run {epoch}; gt run list {bead} shows those it has"
        )),
        None => OperationError::rejected(format!(
            "{bead} has no run; gt why {bead} says what it waits for"
        )),
    })
}

/// One run with what stands around it.
pub fn show(town: &Town, world: &dyn World, input: &str) -> Result<ShownRun> {
    let (run, steps, bead, context) = town.read(|reader| {
        let run = resolve_run(town, reader, input)?;
        let bead = reader.bead(&run.id.bead)?;
        let context = reader.context_by_number(run.context)?;
        let steps = steps_in(reader, run.clone())?;
        Ok((run, steps, bead, context))
    })?;
    let alive = world.worker_of(&run);
    let log = log_path(town, &run.id);
    let is_here = run.is_on(world.host());
    let files = RunFiles::of(&town.runs_directory(), &run.id.to_string());
    let elsewhere = reach::elsewhere(&files).filter(|_| is_here);
    let needs = needs_of(town, &run)?;
    Ok(ShownRun { run, steps, bead, context, alive, is_here, elsewhere, needs, log })
}

/// Where the output of a run is kept.
pub fn log_path(town: &Town, run: &RunId) -> PathBuf {
    RunFiles::of(&town.runs_directory(), &run.to_string()).output_path()
}
