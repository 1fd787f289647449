//! The work that keeps a town going. Each function looks at the rows that need attention and does the missing step,
//! at any time, beside any number of others. Commands and the daemon call the same functions.

use std::path::Path;

use gt_core::Timestamp;
use gt_core::decide::Right;

use crate::{notice_helper, retention};
use gt_execution::merge_queue::{self, PassReport};
use gt_execution::runs::message_delivery::deliver_waiting;
use gt_execution::runs::stalls::StallReport;
use gt_execution::runs::{Recovered, RunSpawner, clear_left_runs, recover, stalls};
use gt_execution::stale_hooks::{StaleHook, release_stale_hooks};
use gt_execution::trees::{WarmTreeChanges, complete_moves, keep_warm};
use gt_scheduling::convoy_planning::{ConvoyCheck, check_convoys};
use gt_scheduling::dispatch::DispatchInputs;
use gt_scheduling::dispatch::{DispatchResult, Dispatcher};
use gt_scheduling::host_lease::renew_if_due;
use gt_scheduling::processes::{LocalProcesses, ProcessProbe};
use gt_town::{OperationError, Result, Town};
use gt_workqueue::work;
use gt_workqueue::work::{Overdue, WorkError};

/// Recovers runs and starts that died, and closes contexts whose bead is closed.
pub fn liveness(town: &Town, processes: &dyn ProcessProbe) -> Result<Recovered> {
    renew_if_due(town)?;
    let cleared = clear_left_runs(town, processes)?;
    let recovered = recover(town, processes)?;
    Ok(Recovered { cleared, ..recovered })
}

/// Releases hooked beads without a worker. Returns them, and when the next may be due.
pub fn stale_hooks(town: &Town) -> Result<(Vec<StaleHook>, Option<Timestamp>)> {
    release_stale_hooks(town)
}

/// Schedules the members of convoys that are not scheduled yet, and lands convoys that are done.
pub fn convoys(town: &Town) -> Result<ConvoyCheck> {
    check_convoys(town, &DispatchInputs::read(town)?)
}

/// Finds silent workers.
pub fn stalls(town: &Town, processes: &LocalProcesses) -> Result<StallReport> {
    stalls::find_stalls(town, processes)
}

/// Finds agents that asked for work and are silent.
pub fn work(town: &Town) -> Result<Overdue> {
    work::check_overdue(town).map_err(|error| match error {
        WorkError::Operation(error) => error,
        other => OperationError::rejected(other.to_string()),
    })
}

/// Builds, checks and pushes merge requests until nothing more can be done now. A queue that another process of this host works
/// on is left to that process.
pub fn merge_queue(town: &Town, program: &Path) -> Result<PassReport> {
    merge_queue::pass_if_free(town, program)
}

/// Delivers nudges that no session has shown yet, and notices that are due.
pub fn deliver_messages(town: &Town) -> Result<()> {
    deliver_waiting(town)?;
    notice_helper::catch_up(town)
}

/// Makes trees ready before a run needs them. Takes its time where a rig has a setup command.
pub fn warm_trees(town: &Town, processes: &LocalProcesses) -> Result<WarmTreeChanges> {
    keep_warm(town, processes)
}

/// Completes interrupted moves of trees, and deletes old records.
pub(crate) fn housekeeping(town: &Town, processes: &LocalProcesses) -> Result<()> {
    complete_moves(town)?;
    retention::catch_up(town, processes.host())
}

/// Recovers runs and starts that died, and starts work that may start.
pub fn recover_and_start(
    town: &Town,
    processes: &LocalProcesses,
    dispatcher: &Dispatcher<'_>,
) -> Result<(Recovered, DispatchResult)> {
    Ok((liveness(town, processes)?, dispatcher.dispatch()?))
}

/// Does [`all`], and then lands what can land: the command `gt scheduler run`. Origins and checks come last, because they may take
/// long and no start waits for them. What lands may make more work startable, which is started at once.
pub fn all_and_land(
    town: &Town,
    processes: &LocalProcesses,
    dispatcher: &Dispatcher<'_>,
    program: &Path,
) -> Result<(Recovered, DispatchResult, PassReport)> {
    if dispatcher.is_dry_run() {
        let (recovered, dispatched) = all(town, processes, dispatcher)?;
        return Ok((recovered, dispatched, PassReport::default()));
    }
    let (mut recovered, mut dispatched) = all(town, processes, dispatcher)?;
    let landed = merge_queue(town, program)?;
    if !landed.changed.is_empty() {
        let later = recover_and_start(town, processes, dispatcher)?;
        deliver_messages(town)?;
        recovered = recovered.followed_by(later.0);
        dispatched = dispatched.followed_by(later.1);
    }
    Ok((recovered, dispatched, landed))
}

/// Does everything that keeps a town going but landing, once. A dispatcher of named contexts
/// starts those first, because its caller waits for them. A dry run only returns the starts.
pub fn all(
    town: &Town,
    processes: &LocalProcesses,
    dispatcher: &Dispatcher<'_>,
) -> Result<(Recovered, DispatchResult)> {
    if dispatcher.is_dry_run() {
        return Ok((Recovered::default(), dispatcher.dispatch()?));
    }
    town.require_right(Right::Queue, "a dispatch cycle")?;
    if dispatcher.named().is_some() {
        return after_named(town, processes, dispatcher, dispatcher.dispatch()?);
    }
    housekeeping(town, processes)?;
    convoys(town)?;
    let (recovered, dispatched) = recover_and_start(town, processes, dispatcher)?;
    finish_round(town, processes, recovered, dispatched)
}

/// Starts these contexts, if they may start, and does everything else once.
pub fn start_contexts(town: &Town, contexts: Vec<u64>, program: &Path) -> Result<DispatchResult> {
    let processes = LocalProcesses::of(town)?;
    let spawner = RunSpawner::new(town, program);
    let dispatcher =
        Dispatcher::new(town, &spawner).with_starter_lock(processes.host()).with_only(contexts);
    Ok(all(town, &processes, &dispatcher)?.1)
}

/// The rest of [`all`] after the first attempt at named contexts. They are tried again only if one of them did not start:
/// then something may have to be recovered first.
pub(crate) fn after_named(
    town: &Town,
    processes: &LocalProcesses,
    dispatcher: &Dispatcher<'_>,
    first: DispatchResult,
) -> Result<(Recovered, DispatchResult)> {
    housekeeping(town, processes)?;
    let (recovered, dispatched) = if dispatcher.named() == Some(first.dispatched.len()) {
        (liveness(town, processes)?, first)
    } else {
        let (recovered, later) = recover_and_start(town, processes, dispatcher)?;
        (recovered, first.followed_by(later))
    };
    finish_round(town, processes, recovered, dispatched)
}

/// Delivers messages, and finds silent workers.
fn finish_round(
    town: &Town,
    processes: &LocalProcesses,
    mut recovered: Recovered,
    dispatched: DispatchResult,
) -> Result<(Recovered, DispatchResult)> {
    deliver_messages(town)?;
    recovered.silent = stalls(town, processes)?.silent;
    Ok((recovered, dispatched))
}
