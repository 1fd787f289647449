//! A demonstration: a temporary town, in which scripted workers do a day's work in seconds. Only the workers are
//! simulated: everything else works as in a real town.

mod tasks;
mod town_setup;
mod watch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gt_core::BeadId;
use gt_core::decide::ConvoyState;
use gt_core::merging::{RequestState, ReviewDecision};
use gt_executors::daemon::Signals;
use tempfile::TempDir;

use crate::daemon::{self, DaemonPresence, LatencyReport};
use gt_execution::merge_queue::{self, RequestReview};
use gt_execution::runs;
use gt_town::{Environment, OperationError, Result, Town};
use town_setup::{launch_all, set_up};

pub use town_setup::DemoPlan;
pub use watch::{DemoEvent, DemoEventKind, DemoOutcome};

/// How long the demonstration may take before it is ended: many times its usual length.
const DEMO_TIMEOUT: Duration = Duration::from_mins(3);

/// A demonstration that goes on. The processes that it started end with it.
#[derive(Debug)]
pub struct RunningDemo {
    town: Town,
    watch: watch::DemoWatch,
    plan: DemoPlan,
    signals: Signals,
    began: Instant,
    /// Nothing once the user has decided whether to keep it.
    directory: Option<TempDir>,
}

/// How a demonstration ended.
#[derive(Debug)]
pub struct DemoResult {
    /// The outcome.
    pub outcome: DemoOutcome,
    /// From the end of a run to the start of the run that got its slot, as the daemon measured it.
    pub end_to_start: LatencyReport,
    /// From a close to the start of the work that it made ready.
    pub close_to_start: LatencyReport,
    /// The plan of the work.
    pub plan: DemoPlan,
    /// Whether the convoy has landed.
    pub convoy_landed: bool,
    /// The directory of the town, if it was kept.
    pub kept: Option<PathBuf>,
}

/// The progress of the demonstration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoProgress {
    /// It goes on.
    GoesOn,
    /// Everything is over.
    Over,
    /// The user wants it to end.
    Interrupted,
    /// It takes far too long.
    Stuck,
}

impl RunningDemo {
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
        let watch = watch::DemoWatch::begin(&town)?;
        let plan = DemoPlan { convoy: BeadId::trusted(String::new()), waves: Vec::new() };
        let (began, directory) = (Instant::now(), Some(directory));
        let mut performance = Self { town, watch, plan, signals, began, directory };
        daemon::start(performance.town.root(), program)?;
        performance.plan = launch_all(&performance.town)?;
        Ok(performance)
    }

    /// The plan of the work.
    pub fn plan(&self) -> &DemoPlan {
        &self.plan
    }

    /// How many beads there are, in how many rigs, and how many work at once.
    pub fn size(&self) -> (usize, usize, u32) {
        (tasks::PARTS.len(), tasks::RIGS.len(), tasks::CAP)
    }

    /// The events since the last look, and the progress so far.
    pub fn advance(&mut self) -> Result<(Vec<DemoEvent>, DemoProgress)> {
        self.approve()?;
        // Before the look, so that the last moments are seen.
        let is_over = watch::is_over(&self.town)?;
        let moments = self.watch.new_events(&self.town)?;
        let progress = if is_over {
            DemoProgress::Over
        } else if self.signals.stop() {
            DemoProgress::Interrupted
        } else if self.began.elapsed() > DEMO_TIMEOUT {
            DemoProgress::Stuck
        } else {
            DemoProgress::GoesOn
        };
        Ok((moments, progress))
    }

    /// Approves what waits for a review, as a person would.
    fn approve(&self) -> Result<()> {
        let open = self.town.read(|reader| Ok(reader.open_merge_requests()?))?;
        for request in open.iter().filter(|request| request.state == RequestState::Review) {
            let approval = RequestReview {
                decision: ReviewDecision::Approved,
                file: "",
                line: None,
                body: "Looks good",
                process: None,
            };
            merge_queue::review(&self.town, &request.id.to_string(), &approval)?;
        }
        Ok(())
    }

    /// Ends it, and keeps the town or throws it away.
    pub fn end(mut self, keep: bool) -> Result<DemoResult> {
        let report = match daemon::presence(self.town.root())? {
            DaemonPresence::Running { report, .. } => report.unwrap_or_default(),
            DaemonPresence::NotRunning => Box::default(),
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
        Ok(DemoResult {
            outcome,
            end_to_start: report.end_to_start,
            close_to_start: report.close_to_start,
            plan: self.plan.clone(),
            convoy_landed: state == Some(ConvoyState::Landed),
            kept,
        })
    }
}

impl Drop for RunningDemo {
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
