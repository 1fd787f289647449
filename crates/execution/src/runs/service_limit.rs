//! A usage limit that an agent meets while it stays alive: it shows a menu, or tries again without end.

use std::time::{Duration, Instant};

use gt_core::runtime::{Runtime, TranscriptFormat};
use gt_core::schedule::Run;
use gt_scheduling::run_transitions::last_output;
use gt_scheduling::runtimes::{limit_in, named};
use gt_town::Town;

/// Watches the output of an agent that is alive.
pub(super) struct ServiceLimitWatch {
    runtime: Option<Runtime>,
    patience: Duration,
    /// The end of the output when a limit was first seen in it, and when that was.
    met: Option<(String, Instant)>,
}

impl ServiceLimitWatch {
    /// Begins to watch over a run. An agent without limits, or with endless patience, is left alone.
    pub(super) fn of(town: &Town, run: &Run, patience: Duration) -> Self {
        let runtime = named(town, &run.runtime).ok();
        let runtime = runtime.filter(|runtime| !patience.is_zero() && !runtime.limits.is_empty());
        Self { runtime, patience, met: None }
    }

    /// Whether the agent has waited long enough for the end of a limit. Where its output has no events, a tool may have
    /// printed the words: then the output must stand still.
    pub(super) fn is_over(&mut self, town: &Town, run: &Run) -> bool {
        let Some(runtime) = &self.runtime else { return false };
        let output = last_output(town, &run.id);
        if self.met.as_ref().is_some_and(|(before, _)| *before == output) {
            return self.met.as_ref().is_some_and(|(_, at)| at.elapsed() >= self.patience);
        }
        let has_events = runtime.transcript != TranscriptFormat::Plain;
        let is_limited = limit_in(runtime, &output, town.now()).is_some();
        let since = self.met.take().filter(|_| has_events).map_or_else(Instant::now, |(_, at)| at);
        self.met = is_limited.then_some((output, since));
        is_limited && since.elapsed() >= self.patience
    }
}
