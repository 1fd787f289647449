//! Slinging as commands and tools do it: schedule, start what may start, and tell what became of each bead.

use std::collections::HashMap;
use std::path::Path;

use gt_core::decide::Right;
use gt_execution::runs::RunSpawner;
use gt_scheduling::dispatch::{DispatchResult, Dispatcher, NotStarted};
use gt_scheduling::processes::{LocalProcesses, ProcessProbe as _};
use gt_scheduling::queue::why;
use gt_scheduling::schedule::{SlingOutcome, SlingReport, SlingRequest, sling_to_start};
use gt_town::{Result, Town};

use crate::reconcile::after_named;

/// Schedules the beads of a request, and starts those that may start at once.
pub fn sling(town: &Town, request: &SlingRequest, program: &Path) -> Result<SlingReport> {
    town.require_right(Right::Queue, "a dispatch cycle")?;
    let processes = LocalProcesses::of(town)?;
    let spawner = RunSpawner::new(town, program);
    let dispatcher = Dispatcher::new(town, &spawner).with_starter_lock(processes.host());
    let (mut report, begun) =
        dispatcher.as_starter(|starter| sling_to_start(town, request, Some(starter)))?;
    if report.deferred || request.rehearsal || report.contexts.is_empty() {
        return Ok(report);
    }
    let dispatcher = dispatcher.with_only(report.contexts.clone());
    let first = match begun {
        Some(begun) => dispatcher.start_begun(begun)?,
        None => dispatcher.dispatch()?,
    };
    let (_, dispatched) = after_named(town, &processes, &dispatcher, first)?;
    note_starts(town, &mut report, dispatched)?;
    Ok(report)
}

/// Records the result of each bead that was to start at once.
fn note_starts(
    town: &Town,
    slung: &mut SlingReport,
    DispatchResult { dispatched, errors, paused, .. }: DispatchResult,
) -> Result<()> {
    slung.paused = paused.or(slung.paused.take());
    let mut runs: HashMap<_, _> = dispatched
        .into_iter()
        .filter_map(|started| Some((started.context.id, started.run?.id)))
        .collect();
    let mut errors: HashMap<_, _> = errors.into_iter().collect();
    for entry in &mut slung.entries {
        let SlingOutcome::Scheduled(id, _) = &entry.outcome else { continue };
        let error = entry.bead.as_ref().and_then(|bead| errors.remove(bead));
        let outcome = match (runs.remove(id), error) {
            (Some(run), _) => SlingOutcome::Started(run),
            (None, Some(NotStarted::Changed(reasons))) => {
                SlingOutcome::Scheduled(id.clone(), reasons)
            }
            // The obstacle is temporary, and the next cycle starts the bead.
            (None, Some(error)) if error.is_busy() => {
                entry.consequence = Some(error.to_string());
                SlingOutcome::Scheduled(id.clone(), why(town, &entry.name)?.reasons)
            }
            (None, Some(error)) => SlingOutcome::NotStarted(id.clone(), error.to_string()),
            (None, None) => continue,
        };
        entry.outcome = outcome;
    }
    Ok(())
}
