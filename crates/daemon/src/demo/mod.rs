//! A demonstration: a temporary town, in which scripted workers do a day's work in seconds. Only the workers are
//! simulated: everything else works as in a real town.

mod play;
mod stage;
mod watch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gt_core::BeadId;
use gt_core::decide::ConvoyState;
use gt_executors::daemon::Signals;
use tempfile::TempDir;

use crate::daemon::{self, LatencyReport, Standing};
use gt_execution::runs;
use gt_town::{Environment, OperationError, Result, Town};
use stage::{launch_all, set_up};

pub use stage::Plan;
pub use watch::{Moment, Outcome, Scene};

/// How long the demonstration may take before it is ended: many times its usual length.
const DEMO_TIMEOUT: Duration = Duration::from_mins(3);

/// A demonstration that goes on. The processes that it started end with it.
#[derive(Debug)]
pub struct Performance {
    town: Town,
    watch: watch::Watch,
    plan: Plan,
    signals: Signals,
    began: Instant,
    /// Nothing once the user has decided whether to keep it.
    directory: Option<TempDir>,
}

/// How a demonstration ended.
#[derive(Debug)]
pub struct Ended {
    /// The outcome.
    pub outcome: Outcome,
    /// From the end of a run to the start of the run that got its slot, as the daemon measured it.
    pub end_to_start: LatencyReport,
    /// From a close to the start of the work that it made ready.
    pub close_to_start: LatencyReport,
    /// The plan of the work.
    pub plan: Plan,
    /// Whether the convoy has landed.
    pub convoy_landed: bool,
    /// The directory of the town, if it was kept.
    pub kept: Option<PathBuf>,
}

/// The progress of the demonstration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It goes on.
    GoesOn,
    /// Everything is over.
    Over,
    /// The user wants it to end.
    Interrupted,
    /// It takes far too long.
    Stuck,
}

impl Performance {
    /// Makes a town in a directory of its own, starts its daemon, and launches all the work as one convoy.
    pub fn begin(environment: &Environment, program: &Path) -> Result<Self> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| OperationError::File { action, path, source }
        };
        let temporary = std::env::temp_dir();
        // Before anything is there that would have to be ended.
        let signals = Signals::listen().map_err(failed("listen to signals in", &temporary))?;
        let directory = tempfile::Builder::new().prefix("gt-demo-").tempdir();
        let directory = directory.map_err(failed("make a directory in", &temporary))?;
        let path = directory.path();
        let path = path.canonicalize().map_err(failed("find", path))?;
        let town = set_up(&path, environment)?;
        let watch = watch::Watch::begin(&town)?;
        let plan = Plan { convoy: BeadId::trusted(String::new()), waves: Vec::new() };
        let (began, directory) = (Instant::now(), Some(directory));
        let mut performance = Self { town, watch, plan, signals, began, directory };
        daemon::start(performance.town.root(), program)?;
        performance.plan = launch_all(&performance.town)?;
        Ok(performance)
    }

    /// The town.
    pub fn root(&self) -> &Path {
        self.town.root()
    }

    /// The plan of the work.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many beads there are, in how many rigs, and how many work at once.
    pub fn size(&self) -> (usize, usize, u32) {
        (play::PARTS.len(), play::RIGS.len(), play::CAP)
    }

    /// The events since the last look, and the progress so far.
    pub fn look(&mut self) -> Result<(Vec<Moment>, Progress)> {
        // Before the look, so that the last moments are seen.
        let is_over = watch::is_over(&self.town)?;
        let moments = self.watch.look(&self.town)?;
        let progress = if is_over {
            Progress::Over
        } else if self.signals.stop() {
            Progress::Interrupted
        } else if self.began.elapsed() > DEMO_TIMEOUT {
            Progress::Stuck
        } else {
            Progress::GoesOn
        };
        Ok((moments, progress))
    }

    /// Ends it, and keeps the town or throws it away.
    pub fn end(mut self, keep: bool) -> Result<Ended> {
        let report = match daemon::standing(self.town.root())? {
            Standing::Running { report, .. } => report.unwrap_or_default(),
            Standing::NotRunning => Box::default(),
        };
        stop(&self.town)?;
        let directory = self.directory.take();
        let path = directory.as_ref().map_or(self.town.root(), TempDir::path);
        let outcome = self.watch.outcome(&self.town, path)?;
        let convoy = self.town.read(|reader| Ok(reader.bead(&self.plan.convoy)?))?;
        let state = convoy.map(|convoy| ConvoyState::of(&convoy));
        let kept = keep.then(|| self.town.root().to_owned());
        if let Some(directory) = directory {
            if keep {
                let _ = directory.keep();
            } else {
                let path = directory.path().to_owned();
                let failed = |source| OperationError::File { action: "remove", path, source };
                directory.close().map_err(failed)?;
            }
        }
        Ok(Ended {
            outcome,
            end_to_start: report.end_to_start,
            close_to_start: report.close_to_start,
            plan: self.plan.clone(),
            convoy_landed: state == Some(ConvoyState::Landed),
            kept,
        })
    }
}

impl Drop for Performance {
    /// The viewer may have left in the middle.
    fn drop(&mut self) {
        if self.directory.is_some() {
            let _ = stop(&self.town);
        }
    }
}

/// Ends the daemon, so that nothing more starts, and then all live runs.
fn stop(town: &Town) -> Result<()> {
    daemon::stop(town.root())?;
    let live = town.read(|reader| Ok(reader.live_runs()?))?;
    for run in live {
        runs::cancel_by_force(town, &run.id.to_string())?;
    }
    Ok(())
}
