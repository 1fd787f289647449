//! Work that waits for a daemon that does not run.

use std::fmt;
use std::path::Path;

use gt_core::merging::MergeRequest;
use gt_execution::merge_queue::{QueueName, pass_for, unattended_requests};
use gt_executors::process;

use super::control::{DaemonPresence, presence};
use super::is_running;
use gt_scheduling::queue::{self, QueueStatus};
use gt_town::{Result, Town};

/// Beads are ready or merge requests wait to land, and no daemon of this town on this host moves them: none runs, or it is
/// stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonAbsence {
    /// How many beads are ready.
    pub ready: u64,
    /// How many beads would be, and wait for a budget.
    pub over_budget: u64,
    /// How many merge requests a pass would move, and no process works on them.
    pub requests: u64,
    /// The process of a daemon that a signal or Ctrl-Z has stopped.
    pub stopped: Option<u32>,
}

impl DaemonAbsence {
    /// The command that makes the work go on.
    pub fn remedy(&self) -> String {
        self.stopped.map_or_else(|| "gt up".to_owned(), |pid| format!("kill -CONT {pid}"))
    }

    /// The work that waits, in words.
    fn waiting(&self) -> String {
        let beads = match self.ready {
            0 => None,
            1 => Some("1 bead is ready".to_owned()),
            ready => Some(format!("{ready} beads are ready")),
        };
        let requests = match self.requests {
            0 => None,
            1 => Some("1 merge request waits to land".to_owned()),
            requests => Some(format!("{requests} merge requests wait to land")),
        };
        let over_budget = match self.over_budget {
            0 => None,
            1 => Some("1 bead waits for a budget".to_owned()),
            over_budget => Some(format!("{over_budget} beads wait for a budget")),
        };
        beads.into_iter().chain(over_budget).chain(requests).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for DaemonAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, remedy) = (self.waiting(), self.remedy());
        match self.stopped {
            Some(pid) => write!(
                f,
                "The daemon (process {pid}) is stopped and {waiting}; resume it with {remedy}"
            )?,
            None => {
                write!(f, "No daemon is running and {waiting}; start the daemon with {remedy}")?;
            }
        }
        if self.requests > 0 { write!(f, ", or land now with gt mq run") } else { Ok(()) }
    }
}

/// Whether ready work, or finished work that has not landed, waits for a daemon that does not run. A pause and the queue gate
/// hold work back on purpose, so work behind them does not count.
pub fn absence(town: &Town, status: &QueueStatus) -> Result<Option<DaemonAbsence>> {
    let stopped = match presence(town.root()) {
        Ok(DaemonPresence::Running { pid: Some(pid), .. }) if process::is_stopped(pid) => Some(pid),
        Ok(DaemonPresence::Running { .. }) => return Ok(None),
        // A warning too many is better than none.
        Ok(DaemonPresence::NotRunning) | Err(_) => None,
    };
    let requests = u64::try_from(unattended_requests(town)?.len()).unwrap_or(u64::MAX);
    let ready = status.ready_for_daemon();
    let over_budget = if status.paused.is_some() { 0 } else { status.over_budget };
    let is_waiting = ready > 0 || over_budget > 0 || requests > 0;
    Ok(is_waiting.then_some(DaemonAbsence { ready, over_budget, requests, stopped }))
}

/// The same for a merge request that a pass would move.
pub fn absence_for_request(town: &Town, request: &MergeRequest) -> Result<Option<DaemonAbsence>> {
    if !request.state.moves_by_itself() {
        return Ok(None);
    }
    let absence = absence(town, &queue::status(town)?)?;
    Ok(absence.filter(|absence| absence.requests > 0))
}

/// Lands a request where no daemon would; the request as it is then.
pub fn land_without_daemon(
    town: &Town,
    program: &Path,
    request: MergeRequest,
) -> Result<MergeRequest> {
    if is_running(town) {
        return Ok(request);
    }
    let queue = QueueName { rig: request.rig.clone(), target: request.target.clone() };
    pass_for(town, program, &queue)?;
    let now = town.read(|reader| Ok(reader.merge_request(&request.id)?))?;
    Ok(now.unwrap_or(request))
}
