//! Showing runs.

use std::path::PathBuf;

use gt_core::cost::{CountedUsage, counted};
use gt_core::schedule::{Context, Run, RunState, StepProgress};
use gt_core::{Bead, RigSlug};

use super::output::{RunOutput, output_path, setup_path};
use gt_beads::lookup::resolve_in;
use gt_beads::run_records::resolve_run;
use gt_beads::steps::{StepsOfRun, progress_in, progress_of_live, steps_in};
use gt_scheduling::fleet::{AwayHost, away_in};
use gt_scheduling::needs::{Need, needs_of};
use gt_scheduling::processes::{Alive, ProcessProbe};
use gt_town::hosts::has_lease;
use gt_town::{Result, Town};

/// A filter for runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Includes ended runs; otherwise only live ones, unless a bead or a state is named.
    pub all: bool,
    /// Only of this bead.
    pub bead: Option<String>,
    /// Only in this rig.
    pub rig: Option<RigSlug>,
    /// Only in this state.
    pub state: Option<RunState>,
    /// The largest number of runs.
    pub limit: usize,
}

/// A run with its related data.
#[derive(Debug, Clone)]
pub struct ShownRun {
    /// The run.
    pub run: Run,
    /// Its steps as they stand.
    pub steps: StepsOfRun,
    /// The bead it works on.
    pub bead: Option<Bead>,
    /// How it was scheduled.
    pub context: Option<Context>,
    /// Whether any process of it is left.
    pub alive: Alive,
    /// Whether it runs, or ran, on this machine and in this directory.
    pub is_here: bool,
    /// Its problems that need a person.
    pub needs: Vec<Need>,
    /// Where its output is kept.
    pub log: PathBuf,
    /// The last lines of the setup command of its tree, if that failed.
    pub setup_output: Option<String>,
    /// The usage that counts, of all that its agents reported.
    pub usage: Vec<CountedUsage>,
}

impl ShownRun {
    /// Whether its agent goes on without a supervisor.
    pub fn is_unsupervised(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, Need::Unsupervised(..)))
    }
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
    /// Why it is not known whether it lives: its host is away or gone.
    pub unknown: Option<String>,
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
        let live_runs: Vec<Run> = runs.iter().filter(|run| run.state.is_live()).cloned().collect();
        let away = if has_lease(town) { away_in(reader, &live_runs)? } else { Vec::new() };
        let with_title = |run: Run| {
            let title = reader.bead(&run.id.bead)?.map(|bead| bead.title.to_string());
            let progress = match live.get(&run.id) {
                Some(progress) => Some(*progress),
                None => progress_in(reader, &run)?,
            };
            let host = away.iter().find(|host| host.runs.contains(&run.id));
            let unknown = host.map(AwayHost::of_run);
            Ok(ListedRun { run, title: title.unwrap_or_default(), progress, unknown })
        };
        runs.into_iter().map(with_title).collect()
    })
}

/// One run with its related data.
pub fn show(town: &Town, processes: &dyn ProcessProbe, input: &str) -> Result<ShownRun> {
    let (run, steps, bead, context, usage) = town.read(|reader| {
        let run = resolve_run(town, reader, input)?;
        let bead = reader.bead(&run.id.bead)?;
        let context = reader.context_by_number(run.context)?;
        let steps = steps_in(reader, run.clone())?;
        let usage = counted(&reader.usage_records(&run.id)?);
        Ok((run, steps, bead, context, usage))
    })?;
    let alive = processes.worker_of(&run);
    let log = output_path(town, &run);
    let setup_output = setup_path(town, &run).map(|_| last_lines(town, &run)).transpose()?;
    let is_here = run.is_on(processes.host());
    let needs = needs_of(town, &run)?;
    Ok(ShownRun { run, steps, bead, context, alive, is_here, needs, log, setup_output, usage })
}

/// How many lines of the output of a setup command are shown.
const SETUP_LINES_SHOWN: usize = 20;

fn last_lines(town: &Town, run: &Run) -> Result<String> {
    let mut output = RunOutput::of(town, run)?;
    output.skip_to_last(SETUP_LINES_SHOWN)?;
    Ok(String::from_utf8_lossy(&output.read_to_end()?).into_owned())
}
